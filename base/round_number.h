/* round_number.h: how rounds are counted where people read. Round n is the n-th, from 1; the state,
 * the loss and the files "of round n" are those after n rounds, and 0 is where the run begins
 * (docs/glossary.md). On the wire, in files and in code `round` is an index: the number of rounds
 * committed before it. So a state's index is its number, and an open round's is one less. */
#ifndef RV_BASE_ROUND_NUMBER_H
#define RV_BASE_ROUND_NUMBER_H

#include <stdint.h>

/* Returns the number of the round with this index. */
static inline uint64_t round_number(uint64_t index) {
	return index + 1;
}

#endif
