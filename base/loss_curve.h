/* loss_curve.h: the losses of a run by round, thinned to a bounded number of points: once it is
 * full, every second one goes, and from then on only every second new one comes. */
#ifndef RV_WORKER_LOCAL_LOSS_CURVE_H
#define RV_WORKER_LOCAL_LOSS_CURVE_H

#include "worker/local/local_chart.h"

#include <stdint.h>

/* A zeroed struct is empty. */
struct loss_curve {
	struct {
		uint64_t round;
		double loss;                    /* nats per token */
	} at[LOCAL_CHART_POINTS - 1], last; /* `last`: the latest, whether it is in `at` or not */
	int n;
	uint64_t seen; /* points that came, without those that were taken back */
	unsigned halved;
};

/* Adds a point; losses that are not finite are left out. Points of this round and later ones, which
 * the run took back, go. */
void loss_curve_add(struct loss_curve *c, uint64_t round, double loss);
/* Takes back the points after `round`. */
void loss_curve_rewind(struct loss_curve *c, uint64_t round);
/* Returns a list of [round, loss] that the caller drops; NULL: no memory. */
json_t *loss_curve_json(const struct loss_curve *c);

#endif
