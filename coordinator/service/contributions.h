/* contributions.h: combines the measurements of a round's contributions by the owners of its chunks
 * (report.measured): statistics for people, which decide nothing.
 *
 * An owner's numbers are only its own claim. So each owner's are made into figures that need no
 * other owner's, and the median of these over the owners is taken: a liar spoils the figures of the
 * chunks that it owns, and fewer than half of the owners move none of them. (With two owners one
 * can.) */
#ifndef RV_COORDINATOR_CONTRIBUTIONS_H
#define RV_COORDINATOR_CONTRIBUTIONS_H

#include "net/control/control.h"

struct contribution {
	bool measured;  /* else nothing below is known */
	double norm;    /* over the median norm of the roster: 1 is usual; at most CONTRIBUTION_NORM_MAX */
	double cosine;  /* of the angle to the mean, in [-1, 1]; 0 if one of the two is 0 */
	double clipped; /* the share of its chunks that were scaled down, in [0, 1] */
};

#define CONTRIBUTION_NORM_MAX 1e6

/* Computes out (n) for the roster's participants, from the reports of members that own `owned`
 * chunks each; a report that does not measure n participants, or whose sender owns nothing, is
 * ignored. n, n_owners <= NET_MAX_ROW. */
void contributions_of(const struct report *const *owners, const uint32_t *owned, int n_owners, int n,
					  struct contribution *out);

#endif
