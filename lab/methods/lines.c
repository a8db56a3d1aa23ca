/* lines.c: see lines.h. */
#include "lab/methods/lines.h"

#include "base/clock.h"
#include "base/option_value.h"
#include "base/rows.h"
#include "outer/slow_codecs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool has_lines(const struct lab_config *c) {
	return c->lines[0].up > 0;
}

static uint64_t slower(struct slow_line line) {
	return line.up < line.down ? line.up : line.down;
}

struct lines_round lines_round_of(const struct lab_run *r, uint64_t round) {
	const struct global_config *g = &r->global.cfg;
	const struct chunking chunks = global_round_chunks(g, round);
	return (struct lines_round){round, chunking_total_bytes(&chunks, global_sent(g)),
								chunking_total_bytes(&chunks, g->codec), chunks.n_chunks};
}

static uint64_t payload_bytes(const struct lines_round *round) {
	return round->sent_bytes > round->mean_bytes ? round->sent_bytes : round->mean_bytes;
}

static struct slow_lines slow_lines_in(const struct lab_config *c, const struct lines_round *round) {
	return (struct slow_lines){.payload_bytes = payload_bytes(round),
							   .deadline_us = c->run.slow_deadline_ms * RV_US_PER_MS,
							   .fragments = (uint32_t)c->run.fragments,
							   .chunks = round->chunks,
							   .sent_bytes = round->sent_bytes,
							   .mean_bytes = round->mean_bytes};
}

static int64_t deadline_us(const struct lab_config *c, const struct slow_lines *slow) {
	uint64_t rates[LAB_MAX_WORKERS];
	for (int i = 0; i < c->workers; i++)
		rates[i] = slower(c->lines[i]);
	return slow_lines_deadline_us(slow, rates, c->workers);
}

/* Returns true if `part` is as `skip`: in several rows. */
static bool parts_rest(const struct lab_config *c) {
	return c->run.slow_members == SLOW_PART && rows_choose(c->workers, (int)c->run.row_size) > 1;
}

void lines_leave_out(const struct lab_config *c, const struct lines_round *round, bool *takes_part) {
	const struct slow_lines slow = slow_lines_in(c, round);
	bool stays[LAB_MAX_WORKERS];
	int n = 0;
	if (!has_lines(c) || (c->run.slow_members != SLOW_SKIP && !parts_rest(c)))
		return;
	const int64_t deadline = deadline_us(c, &slow);
	for (int i = 0; i < c->workers; i++) {
		stays[i] = takes_part[i] && round->round % slow_lines_every(&slow, deadline, slower(c->lines[i])) == 0;
		n += stays[i];
	}
	if (n >= c->run.min_workers)
		memcpy(takes_part, stays, (size_t)c->workers * sizeof stays[0]);
}

/* ---- forms ---- */

static uint64_t bytes_by(const struct global_config *g, uint64_t round, const struct codec *codec) {
	const struct chunking chunks = global_round_chunks(g, round);
	return chunking_total_bytes(&chunks, codec);
}

static void choose_codecs(const struct lab_config *c, const struct lines_round *round, const struct global_config *g,
						  struct contribution_form *forms) {
	const struct slow_codecs codecs = slow_codecs_of(&c->run);
	struct slow_lines slow = slow_lines_in(c, round);
	slow.n_steps = codecs.n;
	for (int k = 0; k < codecs.n; k++)
		slow.step_bytes[k] = bytes_by(g, round->round, codecs.step[k]);
	const int64_t deadline = deadline_us(c, &slow);
	for (int i = 0; i < c->workers; i++) {
		const int step = slow_lines_step(&slow, deadline, c->lines[i], (uint32_t)i, round->round);
		forms[i].codec = step >= 0 ? codecs.step[step]->id : 0;
	}
}

/* As core_keep_one_whole does. */
static void keep_one_whole(const struct lab_config *c, const bool *takes_part, struct contribution_form *forms) {
	int best = -1;
	for (int i = 0; i < c->workers; i++) {
		if (takes_part[i] && forms[i].part == 0)
			return;
		if (takes_part[i] && (best < 0 || slower(c->lines[i]) > slower(c->lines[best])))
			best = i;
	}
	if (best >= 0)
		forms[best].part = 0;
}

static void choose_parts(const struct lab_config *c, const struct lines_round *round, const bool *takes_part,
						 struct contribution_form *forms) {
	const struct slow_lines slow = slow_lines_in(c, round);
	const int64_t deadline = deadline_us(c, &slow);
	int n = 0;
	for (int i = 0; i < c->workers; i++)
		n += takes_part[i];
	if (n == 0 || parts_rest(c))
		return;
	for (int i = 0; i < c->workers; i++)
		forms[i].part = slow_lines_part(&slow, deadline, c->lines[i], (uint32_t)i, round->round);
	keep_one_whole(c, takes_part, forms);
}

void lines_forms(const struct lab_config *c, const struct lines_round *round, const struct global_config *g,
				 const bool *takes_part, struct contribution_form *forms) {
	for (int i = 0; i < c->workers; i++)
		forms[i] = (struct contribution_form){.member = (uint32_t)i};
	if (has_lines(c) && c->run.slow_members == SLOW_COARSER)
		choose_codecs(c, round, g, forms);
	if (has_lines(c) && c->run.slow_members == SLOW_PART)
		choose_parts(c, round, takes_part, forms);
}

/* ---- time ---- */

/* What one participant moves, in ms of its line. */
struct load {
	double sent_up;     /* its contribution */
	double mean_up;     /* a mean */
	double mean_down;   /* a mean */
	double others_down; /* the contributions of all others */
};

/* Returns the share of the chunks that it can own in `ms`, at most all: a share x sends
 * sent (1 - x) + (n - 1) mean x, and receives mean (1 - x) + others x. Less than 0: not even
 * none. */
static double can_own(const struct load *l, int n, double ms) {
	const double up = (ms - l->sent_up) / ((n - 1) * l->mean_up - l->sent_up);
	const double more_down = l->others_down - l->mean_down;
	const double down = more_down > 0 ? (ms - l->mean_down) / more_down : 1;
	return fmin(1, fmin(up, down));
}

static double owned_by(const struct load *loads, int n, double ms) {
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += fmax(0, can_own(&loads[i], n, ms));
	return sum;
}

static double sent_bytes(const struct lines_round *round, const struct global_config *g,
						 const struct contribution_form *form) {
	const double bytes = (double)bytes_by(g, round->round, global_sent_as(g, form->codec));
	return form->part > 0 ? bytes / form->part : bytes;
}

/* Fills the loads of those that take part; returns their number. *least: the least time that one
 * needs which owns nothing. */
static int fill_loads(const struct lab_config *c, const struct lines_round *round, const struct global_config *g,
					  const bool *takes_part, const struct contribution_form *forms, struct load *loads,
					  double *least) {
	double all = 0;
	int n = 0;
	*least = 0;
	for (int i = 0; i < c->workers; i++)
		all += takes_part[i] ? sent_bytes(round, g, &forms[i]) : 0;
	for (int i = 0; i < c->workers; i++) {
		if (!takes_part[i])
			continue;
		const double sent = sent_bytes(round, g, &forms[i]), mean = (double)round->mean_bytes;
		const double up = (double)c->lines[i].up / 1e3, down = (double)c->lines[i].down / 1e3;
		loads[n++] = (struct load){sent / up, mean / up, mean / down, (all - sent) / down};
		*least = fmax(*least, fmax(sent / up, mean / down));
	}
	return n;
}

double lines_exchange_ms(const struct lab_config *c, const struct lines_round *round, const struct global_config *g,
						 const bool *takes_part, const struct contribution_form *forms) {
	enum { HALVINGS = 60 };
	struct load loads[LAB_MAX_WORKERS];
	double low = 0;
	if (!has_lines(c))
		return 0;
	const int n = fill_loads(c, round, g, takes_part, forms, loads, &low);
	if (n <= 2)
		return n == 2 ? low : 0;
	double high = 2 * low;
	while (owned_by(loads, n, high) < 1)
		high *= 2;
	for (int i = 0; i < HALVINGS && owned_by(loads, n, low) < 1; i++) {
		double middle = (low + high) / 2;
		if (owned_by(loads, n, middle) < 1)
			low = middle;
		else
			high = middle;
	}
	return owned_by(loads, n, low) < 1 ? high : low;
}

/* ---- the option ---- */

static enum rv_err parse_rate(const char *text, const char *one, int value, uint64_t *out, struct rv_errtext *et) {
	static const struct rv_option rate = {.name = "lines", .type = RV_OPT_RATE, .min = 1, .max = 1e12};
	int64_t parsed;
	RV_TRY(rv_option_value_parse(&rate, &parsed, one, et));
	if (parsed == 0)
		return rv_fail(et, RV_E_RANGE, "lines = %.80s: value %d is no rate; as in 100mbit:20mbit/5mbit", text, value);
	*out = (uint64_t)parsed;
	return RV_OK;
}

/* Parses one value: RATE, or DOWN/UP. */
static enum rv_err parse_line(const char *text, char *one, int value, struct slow_line *out, struct rv_errtext *et) {
	char *up = strchr(one, '/');
	if (up)
		*up++ = '\0';
	RV_TRY(parse_rate(text, one, value, &out->down, et));
	out->up = out->down;
	return up ? parse_rate(text, up, value, &out->up, et) : RV_OK;
}

enum rv_err lines_parse(const char *text, struct slow_line lines[LAB_MAX_WORKERS], struct rv_errtext *et) {
	char one[64];
	int n = 0;
	for (const char *at = text; *at;) {
		size_t length = strcspn(at, ":,");
		if (n == LAB_MAX_WORKERS)
			return rv_fail(et, RV_E_RANGE, "lines: more than %d values", LAB_MAX_WORKERS);
		(void)snprintf(one, sizeof one, "%.*s", (int)(length < sizeof one ? length : sizeof one - 1), at);
		RV_TRY(parse_line(text, one, n + 1, &lines[n], et));
		n++;
		at += length;
		if (*at && !*++at)
			return rv_fail(et, RV_E_INVALID, "lines = %.80s: value %d is missing", text, n + 1);
	}
	for (int i = n; i < LAB_MAX_WORKERS; i++)
		lines[i] = n > 0 ? lines[i % n] : (struct slow_line){0, 0};
	return RV_OK;
}
