/* roster_set.h: sets of the places of a roster (0..NET_MAX_ROSTER - 1), as 64-bit words whose
 * number the owner chooses by its roster: a run of 4 has one word. A set of one row fits into one.
 *
 * Place p is bit p % 64 of word p / 64. */
#ifndef RV_NET_ROSTER_SET_H
#define RV_NET_ROSTER_SET_H

#include "net/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum { ROSTER_SET_WORDS = NET_MAX_ROSTER / 64 };

/* Returns the number of words of a set over `n` places. */
static inline int roster_set_words(uint32_t n) {
	return (int)((n + 63) / 64);
}

static inline bool roster_set_has(const uint64_t *set, uint32_t place) {
	return (set[place / 64] >> (place % 64) & 1) != 0;
}
static inline void roster_set_add(uint64_t *set, uint32_t place) {
	set[place / 64] |= UINT64_C(1) << (place % 64);
}
static inline void roster_set_remove(uint64_t *set, uint32_t place) {
	set[place / 64] &= ~(UINT64_C(1) << (place % 64));
}

/* Returns how many places are in it. */
int roster_set_count(const uint64_t *set, int words);
/* Returns the first place in it that is `from` or later; -1: there is none. */
int roster_set_next(const uint64_t *set, int words, uint32_t from);

/* Writes the first `room` places in it, ascending; returns their number. */
uint16_t roster_set_list(const uint64_t *set, int words, uint16_t *places, uint16_t room);
/* Fills the set with those of the places that are below 64 * words. */
void roster_set_of(uint64_t *set, int words, const uint16_t *places, uint16_t n);

#endif
