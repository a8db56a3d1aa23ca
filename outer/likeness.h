/* likeness.h: how alike two contributions are: what an auditor that repeated a member's training
 * compares. On one instruction set and dtype they are equal bit by bit; between others they differ
 * by rounding that training has amplified (docs/benchmarks.md, "Audits of training"). */
#ifndef RV_OUTER_LIKENESS_H
#define RV_OUTER_LIKENESS_H

#include <stddef.h>

struct likeness {
	double cosine;     /* 0 if one of them is zero */
	double norm_ratio; /* |a| / |b|; 0 if b is zero */
};
/* Compares vectors of n values; sums in double, in ascending order. */
struct likeness likeness_of(const float *a, const float *b, size_t n);

#endif
