/* ref.h: the reference backend: defines each operation of backend.h in readable loops, summed in
 * double. One thread, no tricks; the oracle of every other backend's tests. */
#ifndef RV_KERNELS_REF_REF_H
#define RV_KERNELS_REF_REF_H

#include "kernels/computing_ops.h"

struct ref_backend {
	struct backend base;
	double *scratch; /* for rows of scores and logits; grows to the largest request */
	size_t scratch_n;
};

extern const struct backend_ops ref_ops;

/* Returns n doubles, contents unspecified, valid until the next call. */
double *ref_scratch(struct backend *be, size_t n);

/* Computes one query over the keys and values 0..last, `ld` floats apart: out (hd) = softmax(q . k
 * / sqrt(hd)) v. p: room for last + 1 probabilities. Returns the log-sum-exp of the scores. */
double ref_attend(float *out, double *p, const float *q, const float *k, const float *v, size_t ld, int last, int hd);

COMPUTING_OPS(OP_PROTOTYPE, ref)

#endif
