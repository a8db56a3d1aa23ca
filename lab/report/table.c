/* table.c: the configurations' final numbers, for the terminal. */
#include "base/chart/chart.h"
#include "lab/report/report.h"
#include "lab/run/loss_text.h"

#include <math.h>
#include <string.h>

enum { MAX_ROWS = 60 };

/* "-" for what is not known. */
static const char *number(const char *format, double v, char out[CHART_TEXT_BYTES]) {
	snprintf(out, CHART_TEXT_BYTES, "-");
	if (isfinite(v))
		snprintf(out, CHART_TEXT_BYTES, format, v); /* NOLINT: the formats are constants of this file */
	return out;
}

static void print_row(const struct lab_report *p, const struct report_group *g, FILE *out) {
	char tokens[CHART_TEXT_BYTES], sent[CHART_TEXT_BYTES], versus[CHART_TEXT_BYTES], fewer[CHART_TEXT_BYTES];
	char sd[CHART_TEXT_BYTES] = "", bits[CHART_TEXT_BYTES];
	const bool known = isfinite(g->loss.mean);
	const struct loss_text loss = loss_text(g->loss.mean), perplexity = perplexity_text(g->loss.mean);
	chart_si(g->tokens.mean, tokens);
	chart_bytes(g->bytes_sent.mean, sent);
	if (isfinite(g->loss.sd))
		snprintf(sd, sizeof sd, "%.4f", g->loss.sd);
	(void)fprintf(out, "%-28.44s %5d %8s %9s %7s %11s %10s %10s %12s %9s\n", g->label, g->n_runs, tokens,
				  known                        ? loss.text
				  : g->n_diverged == g->n_runs ? "diverged"
											   : "-",
				  sd, known ? perplexity.text : "-", number("%.4f", g->loss.mean / M_LN2, bits),
				  number("%+.1f %%", report_against_baseline(p, g) * 100, versus), sent,
				  number("%.0f x", report_fewer_bytes(g), fewer));
}

static bool is_measured(const struct report_group *g) {
	return strcmp(g->runs[0].whole->record.role, "worker") == 0;
}

static bool any_measured(const struct lab_report *p) {
	for (int i = 0; i < p->n_groups; i++)
		if (is_measured(&p->groups[i]))
			return true;
	return false;
}

/* What was measured on a wire, said in words. */
static void print_sentence(const struct lab_report *p, const struct report_group *g, FILE *out) {
	char sent[CHART_TEXT_BYTES], ddp[CHART_TEXT_BYTES], versus[CHART_TEXT_BYTES];
	const struct report_member *first = g->runs[0].whole;
	if (!is_measured(g) || !(report_fewer_bytes(g) > 0))
		return;
	chart_bytes(g->bytes_sent.mean, sent);
	chart_bytes(first->ddp_bytes, ddp);
	(void)fprintf(out,
				  "%s: measured %s sent per worker (the formula and %.2f %%), %.0f times fewer than the %s of "
				  "data-parallel fp32",
				  g->label, sent, report_over_formula(g) * 100, report_fewer_bytes(g), ddp);
	double against = report_against_baseline(p, g) * 100;
	if (isfinite(against))
		(void)fprintf(out, "; held-out loss %s against it", number("%+.1f %%", against, versus));
	(void)fputs(".\n", out);
}

static void print_diverged(const struct report_group *g, FILE *out) {
	char when[REPORT_LABEL_BYTES];
	report_diverged_text(g, when);
	if (when[0])
		(void)fprintf(out, "%s: diverged %s.\n", g->label, when);
}

/* What has not ended is there as far as it is. */
static void print_unfinished(const struct lab_report *p, FILE *out) {
	const struct report_group *first = NULL;
	int n = 0;
	for (int i = p->n_groups - 1; i >= 0; i--) {
		const struct report_group *g = &p->groups[i];
		const int going_on = g->n_runs - g->n_ended - g->n_diverged;
		n += going_on;
		first = going_on > 0 ? g : first;
	}
	if (first)
		(void)fprintf(out, "%d of %d runs %s not ended; the first: %s.\n", n, p->n_runs, n == 1 ? "has" : "have",
					  first->label);
}

/* A mean of fewer runs than there are should not look like one of all. */
static void print_provenance(const struct lab_report *p, FILE *out) {
	const struct report_eval e = report_eval_tokens(p);
	const struct run_record *first = &p->runs[0].evals_of->record;
	char models[REPORT_LABEL_BYTES];
	report_models_text(p, models);
	if (models[0])
		(void)fprintf(out, "NOTE: these runs are of different models, %s: a loss compares only within one model.\n",
					  models);
	if (e.tokens > 0)
		(void)fprintf(out, "held-out: the same %llu of %llu tokens for all, in the curves and here.\n",
					  (unsigned long long)e.tokens, (unsigned long long)e.of);
	if (!report_texts_differ(p) && first->data[0])
		(void)fprintf(out, "text: %s; trained by %s.\n", first->data, report_program(p));
}

static void print_left_out(const struct lab_report *p, FILE *out) {
	if (p->n_skipped > 0)
		(void)fprintf(out, "left out: %d, the first: %s.\n", p->n_skipped, p->skipped[0]);
}

void report_print_table(const struct lab_report *p, FILE *out) {
	static const char row[] = "%-28s %5s %8s %9s %7s %11s %10s %10s %12s %9s\n";
	(void)fprintf(out, row, "", "", "", "held-out", "", "", "bits", "loss vs", "sent per", "fewer");
	(void)fprintf(out, row, "run", "seeds", "tokens", "loss", "+-", "perplexity",
				  p->on_bytes ? "per byte" : "per token", "data-par.", "worker", "bytes");
	for (int i = 0; i < p->n_groups && i < MAX_ROWS; i++)
		print_row(p, &p->groups[i], out);
	if (p->n_groups > MAX_ROWS)
		(void)fprintf(out, "and %d more: in the page\n", p->n_groups - MAX_ROWS);
	(void)fputs("fewer bytes: against data-parallel training with fp32 gradients, 2 (k-1)/k x 4 bytes x parameters x "
				"steps.\n",
				out);
	(void)fputs(any_measured(p)
					? "sent: of real workers measured on the links between them, with TLS, handshakes, headers and "
					  "pings; reports "
					  "to the coordinator are not in it.\n      In the lab by formula: 2 (k-1)/k x what is encoded.\n"
					: "sent: by formula, 2 (k-1)/k x what is encoded.\n",
				out);
	print_provenance(p, out);
	for (int i = 0; i < p->n_groups; i++)
		print_sentence(p, &p->groups[i], out);
	for (int i = 0; i < p->n_groups; i++)
		print_diverged(&p->groups[i], out);
	print_unfinished(p, out);
	print_left_out(p, out);
}
