/* summary.c: rows from metrics.jsonl, and their printing. */
#include "lab/sweep/summary.h"

#include "lab/report/chart_csv.h"
#include "train/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *state_name(enum sweep_state s) {
	static const char *const names[] = {"waiting", "running", "done", "diverged", "failed"};
	return names[s];
}

void sweep_row_of_cell(const struct sweep_cell *c, struct sweep_row *row) {
	const struct run_config *run = &c->opts.run;
	const struct lab_config cfg = train_options_resolve(&c->opts);
	*row = (struct sweep_row){.workers = c->opts.workers,
							  .steps_per_round = run->steps_per_round,
							  .rounds = run->rounds,
							  .seed = run->seed,
							  .batch = run->batch,
							  .loss = NAN,
							  .average_loss = NAN,
							  .replica_loss = NAN,
							  .delta_cosine = NAN,
							  .delta_norm = NAN,
							  .codec_error = NAN,
							  .codec_cosine = NAN,
							  .wall_s = NAN};
	memcpy(row->id, c->id, sizeof row->id);
	memcpy(row->label, c->label, sizeof row->label);
	snprintf(row->method, sizeof row->method, "%s", cfg.method->name);
	snprintf(row->outer, sizeof row->outer, "%s",
			 cfg.method->outer ? cfg.method->outer : outer_facts[cfg.run.outer].name);
	snprintf(row->codec, sizeof row->codec, "%s",
			 cfg.method->codec ? cfg.method->codec : codec_facts[cfg.run.codec].name);
	snprintf(row->replicas_mode, sizeof row->replicas_mode, "%s",
			 c->grid->fixed_tokens ? "fixed-tokens" : "fixed-steps");
	snprintf(row->data, sizeof row->data, "%s", c->data.text);
	memcpy(row->section, c->grid->section, sizeof row->section);
}

void sweep_row_update(struct sweep_row *row, const char *dir) {
	char path[640];
	struct run_record r;
	snprintf(path, sizeof path, "%s/%s/" METRICS_FILE, dir, row->id);
	if (run_record_read(path, &r, NULL) != RV_OK)
		return;
	struct record_totals t = run_record_totals(&r);
	row->done_rounds = t.rounds;
	row->tokens = t.tokens;
	row->bytes_sent = (uint64_t)t.bytes_sent;
	row->loss = t.loss;
	row->average_loss = r.average_loss;
	row->replica_loss = r.replica_loss;
	row->delta_cosine = t.delta_cosine;
	row->delta_norm = t.delta_norm;
	row->codec_error = t.codec_error;
	row->codec_cosine = t.codec_cosine;
	row->wall_s = r.wall_s;
	memcpy(row->data, r.data, sizeof row->data);
	memcpy(row->program, r.program, sizeof row->program);
	row->heldout_tokens = r.eval_tokens;
	row->diverged_round = r.diverged_round;
	if (r.ended && run_record_missing(&r, t.rounds) == 0) /* else its means lack rounds */
		row->state = SWEEP_DONE;
	if (r.diverged_round > 0) { /* earlier losses are no result */
		row->state = SWEEP_DIVERGED;
		row->loss = NAN;
	}
	run_record_release(&r);
}

bool sweep_row_is_complete(const struct sweep_row *row) {
	return row->state == SWEEP_DONE || row->state == SWEEP_DIVERGED;
}

void sweep_summary_csv(const struct sweep_row *rows, int n, FILE *out) {
	(void)fputs("id,state,method,workers,steps_per_round,rounds,replicas_mode,batch,outer,codec,seed,tokens,bytes_sent,"
				"loss,average_loss,replica_loss,delta_cosine,delta_norm,codec_error,codec_cosine,wall_s,diverged_round,"
				"heldout_tokens,data,program,section,cell\r\n",
				out);
	for (int i = 0; i < n; i++) {
		const struct sweep_row *r = &rows[i];
		(void)fprintf(
			out, "%s,%s,%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%s,%" PRId64 ",%s,%s,%" PRId64 ",%" PRIu64 ",%" PRIu64,
			r->id, state_name(r->state), r->method, r->workers, r->steps_per_round, r->rounds, r->replicas_mode,
			r->batch, r->outer, r->codec, r->seed, r->tokens, r->bytes_sent);
		const double numbers[] = {r->loss,
								  r->average_loss,
								  r->replica_loss,
								  r->delta_cosine,
								  r->delta_norm,
								  r->codec_error,
								  r->codec_cosine,
								  r->wall_s,
								  r->diverged_round > 0 ? (double)r->diverged_round : NAN,
								  r->heldout_tokens > 0 ? (double)r->heldout_tokens : NAN};
		for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
			(void)fputc(',', out);
			chart_csv_number(numbers[k], out);
		}
		(void)fprintf(out, ",%s,%s,%s,\"%s\"\r\n", r->data, r->program, r->section,
					  r->label); /* options' values hold no quotes */
	}
}

static void table_number(double v, const char *format, FILE *out) {
	if (isfinite(v))
		(void)fprintf(out, format, v);
	else
		(void)fprintf(out, "  %8s", "-");
}

void sweep_summary_table(const struct sweep_row *rows, int n, FILE *out) {
	(void)fprintf(out, "%-8s  %-8s  %8s  %8s  %8s  %8s  %9s  %9s  %s\n", "id", "state", "loss", "average", "replica",
				  "cosine", "Mtokens", "MB sent", "cell");
	for (int i = 0; i < n; i++) {
		const struct sweep_row *r = &rows[i];
		(void)fprintf(out, "%.8s  %-8s", r->id, state_name(r->state));
		if (r->diverged_round > 0)
			(void)fprintf(out, "  in %5" PRIu64, r->diverged_round);
		else
			table_number(r->loss, "  %8.4f", out);
		table_number(r->average_loss, "  %8.4f", out);
		table_number(r->replica_loss, "  %8.4f", out);
		table_number(r->delta_cosine, "  %8.3f", out);
		(void)fprintf(out, "  %9.3f  %9.3f  %s\n", (double)r->tokens * 1e-6, (double)r->bytes_sent * 1e-6, r->label);
	}
}
