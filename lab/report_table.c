/* report_table.c: the runs' final numbers, for the terminal. */
#include "lab/chart.h"
#include "lab/report.h"

#include <math.h>
#include <string.h>

/* "+3.1 %", or "-" for the baseline itself and where there is none. */
static void against(const struct report_run *run, const struct report_run *baseline, char out[CHART_TEXT_BYTES]) {
	bool compared = baseline && baseline != run && isfinite(run->totals.loss) && isfinite(baseline->totals.loss);
	snprintf(out, CHART_TEXT_BYTES, "-");
	if (compared)
		snprintf(out, CHART_TEXT_BYTES, "%+.1f %%", (run->totals.loss / baseline->totals.loss - 1) * 100);
}

/* How many times fewer bytes than data-parallel training with fp32 gradients; 0: does not apply. */
static double fewer_bytes(const struct report_run *run) {
	double ddp = run_record_ddp_bytes(run->evals_of);
	return run->totals.bytes_sent > 0 ? ddp / run->totals.bytes_sent : 0;
}

static double over_formula_percent(const struct report_run *run) {
	const struct record_totals *t = &run->totals;
	return t->formula_bytes > 0 ? (t->bytes_sent / t->formula_bytes - 1) * 100 : 0;
}

/* "-" for what is not known. */
static const char *number(const char *format, double v, char out[CHART_TEXT_BYTES]) {
	snprintf(out, CHART_TEXT_BYTES, "-");
	if (isfinite(v))
		snprintf(out, CHART_TEXT_BYTES, format, v); /* NOLINT: the formats are constants of this file */
	return out;
}

static void print_row(const struct report_run *run, const struct report_run *baseline, FILE *out) {
	const struct record_totals *t = &run->totals;
	char tokens[CHART_TEXT_BYTES], sent[CHART_TEXT_BYTES], versus[CHART_TEXT_BYTES], fewer[CHART_TEXT_BYTES] = "-";
	chart_si((double)t->tokens, tokens);
	chart_bytes(t->bytes_sent, sent);
	against(run, baseline, versus);
	if (fewer_bytes(run) > 0)
		snprintf(fewer, sizeof fewer, "%.0f x", fewer_bytes(run));
	char loss[CHART_TEXT_BYTES], perplexity[CHART_TEXT_BYTES], bits[CHART_TEXT_BYTES];
	(void)fprintf(out, "%-24.40s %8s %9s %11s %10s %10s %12s %9s\n", run->label, tokens, number("%.4f", t->loss, loss),
				  number("%.3f", exp(t->loss), perplexity), number("%.4f", t->loss / M_LN2, bits), versus, sent, fewer);
}

/* What was measured on a wire, said in words. */
static void print_sentence(const struct report_run *run, const struct report_run *baseline, FILE *out) {
	char sent[CHART_TEXT_BYTES], ddp[CHART_TEXT_BYTES], versus[CHART_TEXT_BYTES];
	if (strcmp(run->evals_of->role, "worker") != 0 || fewer_bytes(run) <= 0)
		return;
	chart_bytes(run->totals.bytes_sent, sent);
	chart_bytes(run_record_ddp_bytes(run->evals_of), ddp);
	(void)fprintf(out,
				  "%s: measured %s sent per worker (the formula and %.2f %%), %.0f times fewer than the %s of "
				  "data-parallel fp32",
				  run->label, sent, over_formula_percent(run), fewer_bytes(run), ddp);
	against(run, baseline, versus);
	if (baseline && baseline != run)
		(void)fprintf(out, "; held-out loss %s against it", versus);
	(void)fputs(".\n", out);
}

void report_print_table(const struct report *p, FILE *out) {
	static const char row[] = "%-24s %8s %9s %11s %10s %10s %12s %9s\n";
	const struct report_run *baseline = report_baseline(p);
	(void)fprintf(out, row, "", "", "held-out", "", "bits", "loss vs", "sent per", "fewer");
	(void)fprintf(out, row, "run", "tokens", "loss", "perplexity", "per byte", "data-par.", "worker", "bytes");
	for (int i = 0; i < p->n_runs; i++)
		print_row(&p->runs[i], baseline, out);
	(void)fputs(
		"fewer bytes: against data-parallel training with fp32 gradients, 2 (k-1)/k x 4 bytes x parameters x "
		"steps.\nsent: measured on the links between workers, with TLS, handshakes, headers and pings; reports to the "
		"coordinator are not in it.\n",
		out);
	for (int i = 0; i < p->n_runs; i++)
		print_sentence(&p->runs[i], baseline, out);
}
