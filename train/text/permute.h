/* permute.h: a pseudo-random permutation of [0, n), computed in O(1) per position. */
#ifndef RV_TRAIN_TEXT_PERMUTE_H
#define RV_TRAIN_TEXT_PERMUTE_H

#include <stdint.h>

/* Returns where position i of [0, n) goes under `key`: a bijection for every n in [1, 2^62] and
 * every key, equal on all machines. */
uint64_t permute_index(uint64_t n, uint64_t key, uint64_t i);

#endif
