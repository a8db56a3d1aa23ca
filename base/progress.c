/* progress.c: rate, ETA and the bar. */
#include "base/progress.h"

#include "base/short_number.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { BAR_CELLS = 20, RATE_WITH_PREFIX = 1000 };
static const double smoothing_s = 10;

void rv_progress_observe(struct rv_progress_state *s, int64_t now_us, const char *label, uint64_t done) {
	if (strncmp(s->label, label, sizeof s->label - 1) != 0 || done < s->last_done || now_us < s->last_us) {
		*s = (struct rv_progress_state){.first_us = now_us, .last_us = now_us, .first_done = done, .last_done = done};
		(void)snprintf(s->label, sizeof s->label, "%s", label);
		return;
	}
	if (done == s->last_done || now_us == s->last_us)
		return;
	/* Smooths by elapsed time: the plain mean at first, then an exponential mean over
	 * smoothing_s. */
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

/* ---- the line, of fields ---- */

/* Fields of a line, most important first. */
enum rank { RANK_LABEL, RANK_PERCENT, RANK_ETA, RANK_NOTE, RANK_RATE, RANK_BAR, RANK_COUNT, RANK_REST, RANKS };
enum { FIELDS_MAX = 16, SCRATCH_BYTES = 1024, NOTES_FIRST = 2 };

struct field {
	const char *text; /* with the spaces before it */
	size_t len;
	enum rank rank;
	bool kept;
};

struct line {
	struct field fields[FIELDS_MAX]; /* in the order in which they stand */
	int n;
	char scratch[SCRATCH_BYTES];
	size_t used;
};

__attribute__((format(printf, 3, 4))) static void add(struct line *l, enum rank rank, const char *fmt, ...) {
	char *text = l->scratch + l->used;
	size_t left = sizeof l->scratch - l->used;
	va_list ap;
	va_start(ap, fmt);
	int len = vsnprintf(text, left, fmt, ap);
	va_end(ap);
	if (l->n == FIELDS_MAX || len <= 0 || (size_t)len >= left)
		return;
	l->used += (size_t)len;
	l->fields[l->n++] = (struct field){.text = text, .len = (size_t)len, .rank = rank};
}

static void add_done(struct line *l, const struct rv_progress_state *s, uint64_t total, const char *unit) {
	char bar[BAR_CELLS + 1];
	if (total == 0) {
		add(l, RANK_PERCENT, " %" PRIu64 " %s", s->last_done, unit);
		return;
	}
	uint64_t done = s->last_done < total ? s->last_done : total;
	double fraction = (double)done / (double)total;
	for (int i = 0; i < BAR_CELLS; i++)
		bar[i] = fraction * BAR_CELLS >= i + 1 ? '#' : '.';
	bar[BAR_CELLS] = '\0';
	add(l, RANK_BAR, " [%s]", bar);
	add(l, RANK_PERCENT, " %d%%", (int)(fraction * 100));
	add(l, RANK_COUNT, " %" PRIu64 "/%" PRIu64 " %s", s->last_done, total, unit);
}

static void add_pace(struct line *l, const struct rv_progress_state *s, uint64_t total, const char *unit) {
	char eta[32] = "unknown", rate[RV_SHORT_NUMBER_BYTES];
	bool known = s->rate_per_s > 0;
	if (s->rate_per_s >= RATE_WITH_PREFIX)
		add(l, RANK_RATE, "  %s %s/s", rv_short_number(s->rate_per_s, rate), unit);
	else if (known)
		add(l, RANK_RATE, "  %.3g %s/s", s->rate_per_s, unit);
	if (total <= s->last_done)
		return;
	if (known)
		format_eta((double)(total - s->last_done) / s->rate_per_s, eta, sizeof eta);
	add(l, RANK_ETA, "  ETA %s", eta);
}

/* Adds the note's fields, which two spaces separate. */
static void add_note(struct line *l, const char *note) {
	for (int i = 0; note && *note; i++) {
		const char *end = strstr(note, "  ");
		int len = end ? (int)(end - note) : (int)strlen(note);
		add(l, i < NOTES_FIRST ? RANK_NOTE : RANK_REST, "  %.*s", len, note);
		note += len;
		note += strspn(note, " ");
	}
}

static void keep_what_fits(struct line *l, size_t room) {
	for (int rank = 0; rank < RANKS; rank++) {
		for (int i = 0; i < l->n; i++) {
			struct field *f = &l->fields[i];
			if ((int)f->rank != rank || f->len > room)
				continue;
			f->kept = true;
			room -= f->len;
		}
	}
}

size_t rv_progress_render(const struct rv_progress_state *s, uint64_t total, const char *unit, const char *note,
						  char *out, size_t cap) {
	struct line l = {.n = 0};
	size_t len = 0;
	add(&l, RANK_LABEL, "%.*s", (int)(cap - 1 < sizeof s->label ? cap - 1 : sizeof s->label), s->label);
	add_done(&l, s, total, unit);
	add_pace(&l, s, total, unit);
	add_note(&l, note);
	keep_what_fits(&l, cap - 1);
	for (int i = 0; i < l.n; i++) {
		if (!l.fields[i].kept)
			continue;
		memcpy(out + len, l.fields[i].text, l.fields[i].len);
		len += l.fields[i].len;
	}
	out[len] = '\0';
	return len;
}
