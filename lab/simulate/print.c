/* print.c: answers of the utilisation model as text and as JSON lines. */
#include "lab/simulate/print.h"

#include <math.h>
#include <stdio.h>

/* ---- JSON lines ---- */

enum rv_err simulate_print_line(json_t *line, struct rv_errtext *et) {
	if (!line)
		return rv_fail(et, RV_E_NOMEM, "no memory for a line of output");
	int rc = json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(line);
	if (rc != 0 || putchar('\n') == EOF)
		return rv_fail(et, RV_E_IO, "cannot print the result");
	return RV_OK;
}

static json_t *number_or_null(double v) {
	return isfinite(v) ? json_real(v) : json_null();
}

/* ---- tables ---- */

static enum rv_err table_json(const struct published_table *t, int row, int model, const struct table_cell *cells,
							  struct rv_errtext *et) {
	for (int u = 0; u < TABLE_UTILISATIONS; u++)
		RV_TRY(simulate_print_line(json_pack("{ss ss ss ss sf sf sf si}", "event", "cell", "table", t->name, "method",
											 t->rows[row].name, "model", t->models[model].name, "utilisation",
											 table_utilisations[u], "published_gbit_per_s", cells[u].published,
											 "ours_gbit_per_s", round(cells[u].ours * 1e4) / 1e4, "grid_points_off",
											 cells[u].off_by),
								   et));
	return RV_OK;
}

static void table_head(const struct published_table *t) {
	printf("Gbit/s that a compute utilisation needs, published / ours. %s.\n"
		   "Where they differ, the number of grid points between them follows.\n\n%-22s",
		   t->source, "");
	for (int u = 0; u < TABLE_UTILISATIONS; u++)
		printf("%17.0f %%", table_utilisations[u] * 100);
	putchar('\n');
}

static void table_text(const struct published_table *t, int row, int model, const struct table_cell *cells) {
	printf("%-16s%-6s", t->rows[row].name, t->models[model].name);
	for (int u = 0; u < TABLE_UTILISATIONS; u++) {
		char off[16] = "";
		if (cells[u].off_by != 0)
			(void)snprintf(off, sizeof off, "%+d", cells[u].off_by);
		printf("%8.1f / %5.1f%3s", cells[u].published, cells[u].ours, off);
	}
	putchar('\n');
}

enum rv_err simulate_print_table(const struct published_table *t, bool json, struct rv_errtext *et) {
	struct table_count count = {0};
	char sentence[96];
	if (!json)
		table_head(t);
	for (int row = 0; row < t->n_rows; row++)
		for (int model = 0; model < t->n_models; model++) {
			struct table_cell cells[TABLE_UTILISATIONS];
			table_compare(t, row, model, cells, &count);
			if (json)
				RV_TRY(table_json(t, row, model, cells, et));
			else
				table_text(t, row, model, cells);
		}
	(void)snprintf(sentence, sizeof sentence, "%d of %d exact, %d within one grid point", count.exact, count.cells,
				   count.within_one);
	if (!json) {
		printf("\n%s\n", sentence);
		return RV_OK;
	}
	return simulate_print_line(json_pack("{ss ss si si si ss}", "event", "summary", "table", t->name, "cells",
										 count.cells, "exact", count.exact, "within_one", count.within_one, "message",
										 sentence),
							   et);
}

/* ---- runs ---- */

static json_t *streaming_only(const struct simulate_run *r, int v) {
	return r->method == SIMULATE_STREAMING ? json_integer(v) : json_null();
}

enum rv_err simulate_print_answer_json(const struct simulate_answer *a, struct rv_errtext *et) {
	const struct simulate_run *r = &a->run;
	json_t *line = json_pack(
		"{ss ss si sf si sf si so so sf}", "event", "simulate", "method", simulate_method_name(r->method), "layers",
		r->layers, "n_params", r->n_params, "workers", r->workers, "step_s", r->step_s, "steps_per_round",
		r->method == SIMULATE_DDP ? 1 : r->steps_per_round, "fragments", streaming_only(r, r->fragments),
		"overlap_steps", streaming_only(r, r->overlap_steps), "bits", r->bits_per_value);
	const double mean_bits = r->mean_bits_per_value > 0 ? r->mean_bits_per_value : r->bits_per_value;
	const double down = r->down_bits_per_s > 0 ? r->down_bits_per_s : r->rate_bits_per_s;
	json_t *figures = json_pack("{so so sf so sb sf sf sf sf}", "mean_bits",
								r->method == SIMULATE_GATHER ? json_null() : json_real(mean_bits), "down_bits_per_s",
								number_or_null(down), "latency_s", r->latency_s, "rate_bits_per_s",
								number_or_null(r->rate_bits_per_s), "reachable", (int)a->reachable, "utilisation",
								a->result.utilisation, "wall_s", a->result.step_wall_s * a->steps, "compute_s",
								r->step_s * a->steps, "sent_bytes", a->result.sent_per_step * a->steps);
	if (line && figures)
		json_object_update(line, figures);
	json_decref(figures);
	return simulate_print_line(line, et);
}

static void scaled_text(double v, const char *unit, char out[static 24]) {
	static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
	size_t i = 0;
	for (; v >= 999.5 && i + 1 < sizeof prefixes / sizeof prefixes[0]; i++)
		v /= 1000;
	(void)snprintf(out, 24, "%.3g %s%s", v, prefixes[i], unit);
}

static void duration_text(double s, char out[static 24]) {
	if (s < 120)
		(void)snprintf(out, 24, "%.3g s", s);
	else if (s < 7200)
		(void)snprintf(out, 24, "%.1f min", s / 60);
	else if (s < 48 * 3600)
		(void)snprintf(out, 24, "%.1f h", s / 3600);
	else
		(void)snprintf(out, 24, "%.1f days", s / 86400);
}

static void rate_text(const struct simulate_answer *a, char out[static 24]) {
	if (a->run.workers == 1)
		(void)snprintf(out, 24, "not needed");
	else if (!a->reachable)
		(void)snprintf(out, 24, "none suffices");
	else if (isinf(a->run.rate_bits_per_s))
		(void)snprintf(out, 24, "unlimited");
	else
		scaled_text(a->run.rate_bits_per_s, "bit/s", out);
}

void simulate_print_head(const struct simulate_answer *first, bool solved) {
	const struct simulate_run *r = &first->run;
	char params[24], compute[24];
	scaled_text(r->n_params, "", params);
	duration_text(r->step_s * first->steps, compute);
	printf("%s parameters in %d layers, %g ms a step; %d worker%s, rounds of %d steps, %g ms one way; %.0f steps "
		   "compute for %s.\n\n"
		   "%-28s%16s%14s%14s%18s\n",
		   params, r->layers, r->step_s * 1e3, r->workers, r->workers == 1 ? ", without exchanges" : "s",
		   r->steps_per_round, r->latency_s * 1e3, first->steps, compute, "method", solved ? "line needed" : "line",
		   "computing", "wall-clock", "sent per worker");
}

void simulate_print_answer(const struct simulate_answer *a) {
	char name[48], rate[24], wall[24], sent[24];
	const struct simulate_run *r = &a->run;
	(void)snprintf(name, sizeof name, "%s", simulate_method_name(r->method));
	if (r->method == SIMULATE_STREAMING)
		(void)snprintf(name, sizeof name, "streaming (P %d, overlap %d)", r->fragments, r->overlap_steps);
	rate_text(a, rate);
	duration_text(a->result.step_wall_s * a->steps, wall);
	scaled_text(a->result.sent_per_step * a->steps, "B", sent);
	printf("%-28s%16s%12.2f %%%14s%18s\n", name, rate, a->result.utilisation * 100, wall, sent);
}
