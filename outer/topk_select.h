/* topk_select.h: which of some values are the largest. */
#ifndef RV_OUTER_TOPK_SELECT_H
#define RV_OUTER_TOPK_SELECT_H

#include <stddef.h>
#include <stdint.h>

enum { TOPK_GROUP = 4096 }; /* values that are chosen from at a time, at most */

/* index = the places, ascending, of the `most` largest magnitudes of x (n <= TOPK_GROUP, finite) that are at least
 * `least_bits` (as bits of a float); of equal ones the first. Returns how many: fewer than `most` where there are not
 * more. O(n), whatever the values are. */
size_t topk_select(const float *x, size_t n, size_t most, uint32_t least_bits, uint16_t *index);
/* The count-th largest of magnitude (n), floats as bits without their sign; 1 <= count <= n. */
uint32_t topk_threshold(const uint32_t *magnitude, size_t n, size_t count);

#endif
