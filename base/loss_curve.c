/* loss_curve.c: see loss_curve.h. */
#include "base/loss_curve.h"

#include "base/assert.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MOST = LOSS_CURVE_POINTS - 1 };

#define LOSS_LEAST 1e-9 /* of a text */
#define HEAD       "rivulet-loss 1\n"

static void halve(struct loss_curve *c) {
	int n = 0;
	for (int i = 0; i < c->n; i += 2)
		c->at[n++] = c->at[i];
	c->n = n;
	c->halved++;
}

static bool is_kept(const struct loss_curve *c) {
	return (c->seen & ((UINT64_C(1) << c->halved) - 1)) == 0;
}

void loss_curve_rewind(struct loss_curve *c, uint64_t round) {
	while (c->n > 0 && c->at[c->n - 1].round > round)
		c->n--;
	if (c->seen > 0 && c->last.round > round && c->n > 0)
		c->last.round = c->at[c->n - 1].round, c->last.loss = c->at[c->n - 1].loss;
	if (c->n == 0)
		*c = (struct loss_curve){.n = 0};
}

void loss_curve_add(struct loss_curve *c, uint64_t round, double loss) {
	if (!isfinite(loss))
		return;
	if (c->seen > 0 && c->last.round >= round)
		loss_curve_rewind(c, round > 0 ? round - 1 : 0);
	if (is_kept(c) && c->n == MOST)
		halve(c);
	if (is_kept(c)) {
		c->at[c->n].round = round;
		c->at[c->n++].loss = loss;
	}
	c->last.round = round;
	c->last.loss = loss;
	c->seen++;
}

int loss_curve_points(const struct loss_curve *c, struct loss_point out[LOSS_CURVE_POINTS]) {
	int n = c->n;
	memcpy(out, c->at, (size_t)n * sizeof out[0]);
	if (c->seen > 0 && (n == 0 || out[n - 1].round < c->last.round))
		out[n++] = c->last;
	return n;
}

json_t *loss_curve_json(const struct loss_curve *c) {
	struct loss_point point[LOSS_CURVE_POINTS];
	const int n = loss_curve_points(c, point);
	json_t *list = json_array();
	int bad = list ? 0 : -1;
	for (int i = 0; i < n && bad == 0; i++)
		bad = json_array_append_new(list, json_pack("[I, f]", (json_int_t)point[i].round, point[i].loss));
	if (bad == 0)
		return list;
	json_decref(list);
	return NULL;
}

/* ---- as a text ---- */

void loss_curve_print(const struct loss_curve *c, char out[LOSS_CURVE_TEXT_BYTES]) {
	struct loss_point point[LOSS_CURVE_POINTS];
	const int n = loss_curve_points(c, point);
	size_t at = (size_t)snprintf(out, LOSS_CURVE_TEXT_BYTES, HEAD);
	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(out + at, LOSS_CURVE_TEXT_BYTES - at, "%" PRIu64 " %.6g\n", point[i].round,
							   fmin(fmax(point[i].loss, LOSS_LEAST), LOSS_CURVE_MOST));
	RV_ASSERT(at < LOSS_CURVE_TEXT_BYTES);
}

/* Reads the line at *text, and goes on behind it. Returns false if it is no point. */
static bool read_point(const char **text, struct loss_point *out) {
	int used = 0;
	const size_t line = strcspn(*text, "\n");
	if ((*text)[line] != '\n' || sscanf(*text, "%" SCNu64 " %lf%n", &out->round, &out->loss, &used) != 2 ||
		(size_t)used != line)
		return false;
	*text += line + 1;
	return out->loss > 0 && out->loss <= LOSS_CURVE_MOST;
}

enum rv_err loss_curve_parse(const char *text, struct loss_curve *out, struct rv_errtext *et) {
	*out = (struct loss_curve){.n = 0};
	if (!*text)
		return RV_OK;
	if (strncmp(text, HEAD, sizeof HEAD - 1) != 0)
		return rv_fail(et, RV_E_INVALID, "losses by round: the first line is not \"%.14s\"", HEAD);
	text += sizeof HEAD - 1;
	for (int i = 0; *text; i++) {
		struct loss_point p;
		const bool ok = i < LOSS_CURVE_POINTS && read_point(&text, &p) && (i == 0 || p.round > out->last.round);
		if (!ok) {
			*out = (struct loss_curve){.n = 0};
			return rv_fail(et, RV_E_INVALID,
						   "losses by round: line %d must be \"ROUND LOSS\", a later round than before, a loss above 0 "
						   "and at most %g, and the %dth point at most",
						   i + 2, LOSS_CURVE_MOST, (int)LOSS_CURVE_POINTS);
		}
		loss_curve_add(out, p.round, p.loss);
	}
	return RV_OK;
}
