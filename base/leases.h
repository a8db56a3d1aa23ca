/* leases.h: which member reads which sequences of the text, so that none is read twice in a pass
 * and none is left out. No I/O, no clock, no memory of its own.
 *
 * A position is the number of a sequence in the order of all passes (train/text/sequence_order.h).
 * At any time each one is in exactly one state:
 *
 *     ahead -> held -> consumed       by leases_grant(), leases_consume()
 *              held -> free           by leases_give_back(), or what a consumer had passed over
 *              free -> held           before any that is ahead
 *              consumed -> free       by leases_restore(): committed rounds were taken back
 *
 * A holder (an index that its owner gives out: a slot, a worker's number) reads what it holds in
 * the order in which it was granted. That order is its *stream*, and has numbers: those of a holder
 * only grow, whatever happens to what it held, so a number means one position for ever. A holder
 * with nothing goes on at the number of all positions granted so far, which is above every number
 * that anybody ever had: its owner need not remember it.
 *
 * A holder has LEASE_PIECES pieces at most. Free ranges may be small, so that a grant takes them
 * only up to the half of these; what lacks then comes from ahead, in one piece. Equal calls in
 * equal order give equal states: a copy of the struct and of its arrays is a snapshot. */
#ifndef RV_BASE_LEASES_H
#define RV_BASE_LEASES_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define LEASE_MAX_POSITION ((uint64_t)1 << 62)

enum {
	LEASE_PIECES = 16,
	LEASE_ROUNDS = 3 /* a member is leased what it reads in so many rounds, so that it can be fetched ahead */
};

/* Positions [begin, begin + count) of a holder, which it reads one after the other. */
struct lease_piece {
	uint64_t begin;
	uint32_t count; /* > 0 */
};

struct lease_holder {
	uint64_t first; /* number of pieces[0].begin in its stream; without a piece it means nothing */
	uint64_t held;  /* positions */
	uint32_t n;
	struct lease_piece pieces[LEASE_PIECES]; /* in the order in which they are read */
};

struct lease_range {
	uint64_t begin, end; /* positions [begin, end) */
};

struct leases {
	struct lease_holder *holders; /* (n_holders) */
	uint32_t n_holders;
	struct lease_range *free; /* (n_free, room free_cap) ascending, with gaps between them */
	uint32_t n_free, free_cap;
	uint64_t next;    /* positions from here on are ahead */
	uint64_t granted; /* positions granted so far; one that was granted again counts again */
	/* Number of positions below `next` that are consumed; and that nobody will read, because there
	 * was no room for another free range: the smallest is left out then. */
	uint64_t consumed, left_out;
};

/* Starts with every position ahead. Both arrays are borrowed; `holders` (n_holders) is
 * overwritten. */
void leases_init(struct leases *l, struct lease_holder *holders, uint32_t n_holders, struct lease_range *free,
				 uint32_t free_cap);
/* Grants `count` positions to a holder, free ones first, the lowest first. Returns how many: fewer
 * only if it has LEASE_PIECES pieces. */
uint64_t leases_grant(struct leases *l, uint32_t holder, uint64_t count);
/* Returns how much a holder lacks of LEASE_ROUNDS rounds of `round` sequences; 0 too if that is
 * less than a quarter of a round: pieces would be many and small. */
uint64_t leases_lacks(const struct leases *l, uint32_t holder, uint64_t round);
/* Returns true if the numbers [first, first + count) of its stream are among those it holds. */
bool leases_has(const struct leases *l, uint32_t holder, uint64_t first, uint64_t count);
/* Marks [first, first + count) of a holder's stream, which it has, as consumed, and makes free what
 * it holds before that. Returns the number of pieces of `consumed`, which it fills. A commit of a
 * round does this for each participant in its order, then grants each what it lacks. */
int leases_consume(struct leases *l, uint32_t holder, uint64_t first, uint64_t count,
				   struct lease_piece consumed[LEASE_PIECES]);
/* Makes free what a holder has. */
void leases_give_back(struct leases *l, uint32_t holder);
/* Makes free what was consumed. */
void leases_restore(struct leases *l, struct lease_range consumed);

/* Returns the position that a holder reads under a number of its stream; asserts that it has it. */
uint64_t leases_position(const struct leases *l, uint32_t holder, uint64_t number);
/* Returns the number of positions that are free. */
uint64_t leases_free(const struct leases *l);
/* Returns false if the struct cannot be one of these: for states that come from a file, and tests.
 * Looks at every pair of pieces. */
bool leases_are_valid(const struct leases *l);

#endif
