/* short_number.h: a number in three digits and a prefix, for people: "12.3 k". */
#ifndef RV_BASE_SHORT_NUMBER_H
#define RV_BASE_SHORT_NUMBER_H

enum { RV_SHORT_NUMBER_BYTES = 24 };

/* Writes `v` (>= 0) with the SI prefix (k, M, G, T, P) that leaves one to three digits before the
 * point: "0", "999", "1.00 k", "12.3 M". Returns `out`. */
const char *rv_short_number(double v, char out[RV_SHORT_NUMBER_BYTES]);

#endif
