/* progress.c: rate, ETA and the bar. */
#include "base/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BAR_CELLS = 20 };
static const double smoothing_s = 10;

void rv_progress_observe(struct rv_progress_state *s, int64_t now_us, const char *label, uint64_t done) {
	if (strncmp(s->label, label, sizeof s->label - 1) != 0 || done < s->last_done || now_us < s->last_us) {
		*s = (struct rv_progress_state){.first_us = now_us, .last_us = now_us, .first_done = done, .last_done = done};
		(void)snprintf(s->label, sizeof s->label, "%s", label);
		return;
	}
	if (done == s->last_done || now_us == s->last_us)
		return;
	/* Weighted by elapsed time: the plain mean at first, then an exponential mean over smoothing_s. */
	double dt = (double)(now_us - s->last_us) * 1e-6, age = (double)(now_us - s->first_us) * 1e-6;
	double weight = dt / (age < smoothing_s ? age : smoothing_s);
	double rate = (double)(done - s->last_done) / dt;
	s->rate_per_s += (weight < 1 ? weight : 1) * (rate - s->rate_per_s);
	s->last_us = now_us;
	s->last_done = done;
}

static void format_eta(double seconds, char *out, size_t cap) {
	int64_t t = seconds < 1e7 ? (int64_t)(seconds + 0.5) : 10000000;
	if (t >= 3600)
		(void)snprintf(out, cap, "%" PRId64 ":%02" PRId64 ":%02" PRId64, t / 3600, t / 60 % 60, t % 60);
	else
		(void)snprintf(out, cap, "%" PRId64 ":%02" PRId64, t / 60, t % 60);
}

static size_t append(char *out, size_t cap, size_t len, const char *text) {
	if (len < cap)
		(void)snprintf(out + len, cap - len, "%s", text);
	return len + strlen(text) < cap ? len + strlen(text) : cap - 1;
}

static size_t append_bar(const struct rv_progress_state *s, uint64_t total, char *out, size_t cap, size_t len) {
	char bar[BAR_CELLS + 1], text[96];
	uint64_t done = s->last_done < total ? s->last_done : total;
	double fraction = (double)done / (double)total;
	for (int i = 0; i < BAR_CELLS; i++)
		bar[i] = fraction * BAR_CELLS >= i + 1 ? '#' : '.';
	bar[BAR_CELLS] = '\0';
	(void)snprintf(text, sizeof text, " [%s] %d%% %" PRIu64 "/%" PRIu64, bar, (int)(fraction * 100), s->last_done,
				   total);
	return append(out, cap, len, text);
}

size_t rv_progress_render(const struct rv_progress_state *s, uint64_t total, const char *unit, const char *note,
						  char *out, size_t cap) {
	char text[160], eta[32];
	size_t len = append(out, cap, 0, s->label);
	if (total > 0) {
		len = append_bar(s, total, out, cap, len);
	} else {
		(void)snprintf(text, sizeof text, " %" PRIu64, s->last_done);
		len = append(out, cap, len, text);
	}
	(void)snprintf(text, sizeof text, " %s", unit);
	len = append(out, cap, len, text);
	if (s->rate_per_s > 0) {
		(void)snprintf(text, sizeof text, "  %.3g %s/s", s->rate_per_s, unit);
		len = append(out, cap, len, text);
	}
	if (s->rate_per_s > 0 && total > s->last_done) {
		format_eta((double)(total - s->last_done) / s->rate_per_s, eta, sizeof eta);
		(void)snprintf(text, sizeof text, "  ETA %s", eta);
		len = append(out, cap, len, text);
	}
	if (note && note[0]) {
		len = append(out, cap, len, "  ");
		len = append(out, cap, len, note);
	}
	return len;
}
