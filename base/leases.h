/* leases.h: which member reads which sequences of the text, so that none is read twice in a pass
 * and none is left out. No I/O, no clock, no memory of its own.
 *
 * A position is the number of a sequence in the order of all passes (train/text/sequence_order.h).
 * At any time each one is in exactly one state:
 *
 *     ahead -> granted -> consumed         by leases_grant(), leases_consume()
 *                granted -> free           by leases_give_back(): its holder was dropped
 *                free -> granted           before any that is ahead
 *
 * Only ranges that are granted or free are stored: positions below `next` that are in none of them
 * are consumed. Their number is bounded by the memory given, whatever members do: a give-back makes
 * no new range, and a free range is cut only while there is room for one more; without room it is
 * granted whole. Equal calls in equal order give equal states: a copy of the struct and of its
 * array is a snapshot, for a rollback or a replay. */
#ifndef RV_BASE_LEASES_H
#define RV_BASE_LEASES_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define LEASE_FREE         UINT32_MAX /* as a holder: nobody */
#define LEASE_MAX_POSITION ((uint64_t)1 << 62)

/* Positions [begin, begin + count) of a holder, which it reads one after the other. */
struct lease_piece {
	uint64_t begin;
	uint32_t count;
};

struct lease {
	uint64_t begin, end; /* positions [begin, end) */
	uint64_t turn;       /* number of the grant: its holder reads in this order */
	uint32_t holder;
};

struct leases {
	struct lease *at; /* (n, room cap) ascending, disjoint */
	uint32_t n, cap;
	uint64_t next;  /* positions from here on are ahead */
	uint64_t turns; /* grants so far */
};

/* Starts with every position from `next` on ahead. `memory` (cap) is borrowed; with two ranges for
 * each member there is always one to grant. */
void leases_init(struct leases *l, struct lease *memory, uint32_t cap, uint64_t next);
/* Grants `count` positions to a holder, free ones first, the lowest first. Returns how many: more
 * if a free range could not be cut, fewer if there is no room for another range. */
uint64_t leases_grant(struct leases *l, uint32_t holder, uint64_t count);
/* Marks the first `count` positions of a holder as consumed, in the order in which it reads.
 * Returns RV_E_RANGE, with nothing changed, if it holds fewer. */
enum rv_err leases_consume(struct leases *l, uint32_t holder, uint64_t count, struct rv_errtext *et);
/* Makes free what a holder has. */
void leases_give_back(struct leases *l, uint32_t holder);

/* Return how many positions a holder has, or (LEASE_FREE) how many are free. */
uint64_t leases_held(const struct leases *l, uint32_t holder);
/* Returns the position that a holder reads as number i of those it has; asserts that it has as
 * many. */
uint64_t leases_position(const struct leases *l, uint32_t holder, uint64_t i);
/* Returns false if the struct cannot be one of these: for states that come from a file. */
bool leases_are_valid(const struct leases *l);

#endif
