/* topk_select.h: finds the largest of some values. */
#ifndef RV_OUTER_TOPK_SELECT_H
#define RV_OUTER_TOPK_SELECT_H

#include <stddef.h>
#include <stdint.h>

enum { TOPK_GROUP = 4096 }; /* most values to choose from at a time */

/* Sets index to the places, ascending, of the `most` largest magnitudes of x (n <= TOPK_GROUP,
 * finite) that are at least `least_bits` (as bits of a float); among equal ones the first. Returns
 * how many: fewer than `most` if there are no more. O(n), whatever the values are. */
size_t topk_select(const float *x, size_t n, size_t most, uint32_t least_bits, uint16_t *index);
/* Returns the count-th largest of magnitude (n), floats as bits without their sign; 1 <= count <=
 * n. */
uint32_t topk_threshold(const uint32_t *magnitude, size_t n, size_t count);

#endif
