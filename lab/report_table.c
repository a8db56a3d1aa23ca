/* report_table.c: the runs' final numbers, for the terminal. */
#include "lab/chart.h"
#include "lab/report.h"

#include <math.h>

/* "+3.1 %", or "" for the baseline itself and where there is none. */
static void against(const struct report_run *run, const struct report_run *baseline, char out[CHART_TEXT_BYTES]) {
	out[0] = '\0';
	if (baseline && baseline != run && isfinite(run->totals.loss) && isfinite(baseline->totals.loss))
		snprintf(out, CHART_TEXT_BYTES, "%+.1f %%", (run->totals.loss / baseline->totals.loss - 1) * 100);
}

static void ratio(const struct report_run *run, char out[CHART_TEXT_BYTES]) {
	double ddp = run_record_ddp_bytes(run->evals_of);
	out[0] = '\0';
	if (ddp > 0 && run->totals.bytes_sent > 0)
		snprintf(out, CHART_TEXT_BYTES, "%.0f x", ddp / run->totals.bytes_sent);
}

void report_print_table(const struct report *p, FILE *out) {
	const struct report_run *baseline = report_baseline(p);
	(void)fprintf(out, "%-24s %8s %10s %10s %10s %9s %12s %9s\n", "run", "tokens", "held-out", "perplexity",
				  "bits/byte", "loss vs", "sent per", "fewer");
	(void)fprintf(out, "%-24s %8s %10s %10s %10s %9s %12s %9s\n", "", "", "loss", "", "", "data-par.", "worker",
				  "bytes");
	for (int i = 0; i < p->n_runs; i++) {
		const struct report_run *run = &p->runs[i];
		const struct record_totals *t = &run->totals;
		char tokens[CHART_TEXT_BYTES], sent[CHART_TEXT_BYTES], versus[CHART_TEXT_BYTES], fewer[CHART_TEXT_BYTES];
		chart_si((double)t->tokens, tokens);
		chart_bytes(t->bytes_sent, sent);
		against(run, baseline, versus);
		ratio(run, fewer);
		(void)fprintf(out, "%-24.40s %8s %10.4f %10.3f %10.4f %9s %12s %9s\n", run->label, tokens, t->loss,
					  exp(t->loss), t->loss / M_LN2, versus, sent, fewer);
	}
	(void)fputs("fewer bytes: against data-parallel training with fp32 gradients, 2 (k-1)/k x 4 bytes x parameters x "
				"steps.\n",
				out);
}
