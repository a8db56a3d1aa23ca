/* loss_curve.h: the losses of a run by round, thinned to a bounded number of points: once it is
 * full, every second one goes, and from then on only every second new one comes. Also as a text, in
 * which a coordinator keeps it and gives it to others. */
#ifndef RV_BASE_LOSS_CURVE_H
#define RV_BASE_LOSS_CURVE_H

#include "base/err.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { LOSS_CURVE_POINTS = 400, LOSS_CURVE_TEXT_BYTES = 64 + LOSS_CURVE_POINTS * 40 };

#define LOSS_CURVE_MOST 1e6 /* nats per token, in a text */

struct loss_point {
	uint64_t round;
	double loss; /* nats per token */
};

/* A zeroed struct is empty. */
struct loss_curve {
	struct loss_point at[LOSS_CURVE_POINTS - 1], last; /* `last`: the latest, whether it is in `at` or not */
	int n;
	uint64_t seen; /* points added since the curve was empty: every 2^halved-th is kept */
	unsigned halved;
};

/* Adds a point; losses that are not finite are left out. Points of this round and later ones, which
 * the run took back, go. */
void loss_curve_add(struct loss_curve *c, uint64_t round, double loss);
/* Takes back the points after `round`. */
void loss_curve_rewind(struct loss_curve *c, uint64_t round);
/* Writes the points, the latest included, in ascending order. Returns their number. */
int loss_curve_points(const struct loss_curve *c, struct loss_point out[LOSS_CURVE_POINTS]);
/* Returns a list of [round, loss] that the caller drops; NULL: no memory. */
json_t *loss_curve_json(const struct loss_curve *c);

/* Writes "rivulet-loss 1", then a line "ROUND LOSS" for each point. Brings losses of 0 and less, or
 * above LOSS_CURVE_MOST, into these bounds. */
void loss_curve_print(const struct loss_curve *c, char out[LOSS_CURVE_TEXT_BYTES]);
/* Reads such a text, NUL-terminated, from anybody. "" is an empty curve. RV_E_INVALID names the
 * line; *out is empty then. */
enum rv_err loss_curve_parse(const char *text, struct loss_curve *out, struct rv_errtext *et);

#endif
