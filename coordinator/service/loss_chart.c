/* loss_chart.c: the training loss by round as a picture, for the dashboard. */
#include "coordinator/service/internal.h"

#include "base/chart/chart.h"
#include "base/round_number.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static void round_text(double v, char out[CHART_TEXT_BYTES]) {
	(void)snprintf(out, CHART_TEXT_BYTES, "%.0f", v);
}

static void tell_round(const void *of, int i, FILE *out) {
	const struct commit_stats *c = &((const struct service *)of)->history[i];
	char took[CHART_TEXT_BYTES];
	chart_seconds((double)c->duration_us / 1e6, took);
	(void)fprintf(out, "round %" PRIu64 ": loss %.4f, %u participants, %s", round_number(c->round), c->loss,
				  c->participants, took);
}

char *service_loss_chart(const struct service *s, int width) {
	double round[SERVICE_HISTORY], loss[SERVICE_HISTORY];
	char *text = NULL;
	size_t n_text = 0;
	FILE *f = open_memstream(&text, &n_text);
	if (f == NULL)
		return NULL;
	for (int i = 0; i < s->n_history; i++) {
		round[i] = (double)round_number(s->history[i].round);
		loss[i] = s->history[i].loss > 0 ? s->history[i].loss : NAN;
	}
	const struct line_chart c = {.width = width,
								 .height = 260,
								 .title = "Training loss by round",
								 .x_label = "round",
								 .x_tight = true,
								 .x_whole = true,
								 .format_x = round_text,
								 .format_y = chart_plain,
								 .n_series = 1,
								 .series = {{.label = "", .x = round, .y = loss, .n = s->n_history}},
								 .tell = tell_round,
								 .of = s};
	chart_print_lines(&c, f);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
