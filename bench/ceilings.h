/* ceilings.h: the best rates of a device in the parts of a training step: a stream of bytes, and
 * one large product. */
#ifndef RV_BENCH_CEILINGS_H
#define RV_BENCH_CEILINGS_H

#include "kernels/backend.h"

struct ceilings {
	double copy_gb_per_s; /* bytes read and written by y = 1 * a */
	double product_tflop_per_s;
};

/* Measures `be`: a copy of `copy_bytes` and a product of side x side x side in the backend's type,
 * the fastest of ten each. RV_E_NOMEM. */
enum rv_err ceilings_measure(struct backend *be, size_t copy_bytes, int side, struct ceilings *out,
							 struct rv_errtext *et);

#endif
