/* rows.h: how a roster of more than row-size participants is laid out in rows and columns
 * (net/reduce/grid.h), and what becomes of that when participants are missed. Pure functions of
 * records: live and in replay the same.
 *
 * A column is a range of chunks, the same in all rows and attempts; in each row one participant
 * owns it. When owners are missed, each of their columns goes whole to the survivor of the row that
 * owns the fewest chunks. A row fails if fewer than half of it are left, if these cannot own its
 * columns, or if it would change for the fourth time: then the round goes on without it, and its
 * members keep their progress as those that come too late do. */
#ifndef RV_COORDINATOR_CORE_ROWS_H
#define RV_COORDINATOR_CORE_ROWS_H

#include "net/control/rows_view.h"

#include <stdbool.h>

enum { CORE_ROW_CHANGES_MAX = 3 };

/* Sets of places in the roster are bits of 64-bit words (coordinator/core/set.h). */
struct core_rows {
	struct rows_plan plan;         /* n_rows 0 or 1: one level, and nothing else is used; members: NULL */
	uint16_t laid[NET_MAX_ROWS];   /* the row's length when it was laid out */
	uint8_t changes[NET_MAX_ROWS]; /* attempts that it has lost participants in */
};

/* Facts of participants that a layout follows from, by place. */
struct core_lines {
	const uint64_t *owners;  /* those that may own columns, where their row has any */
	const uint64_t *relayed; /* those of them that should own half a part (owners.c) */
	const uint64_t *rates;   /* bytes/s, 0: not known; NULL: columns are equal */
};

/* Lays out n participants in rows of about `row_size` or fewer (base/rows.h), in attempt `attempt`.
 * In each row the k-th that may own columns has column k; where a row has fewer than others, some
 * have several columns, so that the most loaded owner of all has as little as possible. A column is
 * as wide as the slowest of its owners allows (shares.c). */
void core_rows_lay_out(struct core_rows *r, int n, int row_size, uint32_t n_chunks, const struct core_lines *lines,
					   uint32_t attempt);
/* Drops from `keep`, those that the next attempt could have, the participants of rows that fail. */
void core_rows_drop_failed(const struct core_rows *r, uint64_t *keep);
/* Goes on in attempt `attempt` with those in `keep`, not empty, of rows that do not fail. `owners`:
 * as above, by their new places; where they cannot own all columns of their row, all of it may. */
void core_rows_keep(struct core_rows *r, const uint64_t *keep, const uint64_t *owners, uint32_t attempt);

static inline bool core_rows_many(const struct core_rows *r) {
	return r->plan.n_rows > 1;
}
/* Return the row of a place, its length, and the chunks that its participant owns. */
int core_rows_row_of(const struct core_rows *r, int place);
int core_rows_length(const struct core_rows *r, int row);
uint32_t core_rows_owned(const struct core_rows *r, int place);
/* Returns true if data passes between two participants, and so one may accuse the other: they share
 * a row, or own the same column. */
bool core_rows_deal(const struct core_rows *r, int a, int b);
/* Returns the number of participants that deal with that of a place. */
int core_rows_dealing(const struct core_rows *r, int place);

#endif
