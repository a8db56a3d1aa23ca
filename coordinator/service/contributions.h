/* contributions.h: combines the measurements of a round's contributions by the owners of its chunks
 * (report.measured): statistics for people, which decide nothing.
 *
 * In a roster of several rows an owner measures its row. Directions are then relative to the row's
 * mean; sizes are made relative to the whole roster by those of the rows.
 *
 * A participant that sends a part of its contribution (base/slow_lines.h) may have sent an owner
 * nothing: the owners that measured nothing of it do not count for it, unless none did.
 *
 * An owner's numbers are only its own claim. So each owner's are made into figures that need no
 * other owner's, and the median of these over the owners is taken: a liar spoils the figures of the
 * chunks that it owns, and fewer than half of the owners move none of them. (With two owners one
 * can.) */
#ifndef RV_COORDINATOR_CONTRIBUTIONS_H
#define RV_COORDINATOR_CONTRIBUTIONS_H

#include "net/control/control.h"

struct contribution_figures {
	bool measured;  /* else nothing below is known */
	double norm;    /* over the median norm of the roster: 1 is usual; at most CONTRIBUTION_NORM_MAX */
	double cosine;  /* of the angle to the mean (of its row), in [-1, 1]; 0 if one of the two is 0 */
	double clipped; /* the share of its chunks that were scaled down, in [0, 1] */
};

#define CONTRIBUTION_NORM_MAX 1e6

/* Computes out (n) for the participants of a row, from the reports of those of them that own
 * `owned` chunks each; a report that does not measure n participants, or whose sender owns nothing,
 * is ignored. parts (n): member_ref.part of each. n, n_owners <= NET_MAX_ROW. */
void contributions_of(const struct report *const *owners, const uint32_t *owned, int n_owners, const uint8_t *parts,
					  int n, struct contribution_figures *out);

/* Returns the median over these owners of the median norm of a chunk that each measured: the size
 * of the row's contributions; 0: none is known. */
double contributions_size(const struct report *const *owners, const uint32_t *owned, int n_owners, int n);
/* Makes the norms of a row, which contributions_of has filled in, relative to the whole roster:
 * `size` is the row's, `median` that of the rows' sizes, both positive. */
void contributions_compare(struct contribution_figures *row, int n, double size, double median);

#endif
