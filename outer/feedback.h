/* feedback.h: encoding with error feedback: what an encoding loses is kept, and added to what is
 * encoded next.
 *
 *     a = beta e + x        a^ = decode(encode(a))        e' = a - a^
 *
 * (Seide et al. 2014; Karimireddy et al., arXiv 1901.09847; with beta: SparseLoCo, arXiv
 * 2508.15706.) All in fp32, single correctly rounded operations, the same bits on every processor.
 * So a^ + e' = a, exactly: the codecs move no value by more than its magnitude and by few enough
 * bits that a - a^ is exact.
 *
 * A worker does so with its contributions (outer/contribution.h), the owner of a chunk with its
 * means (outer/mean_residual.h). Both at once is DoubleSqueeze (Tang et al., arXiv 1905.05957). */
#ifndef RV_OUTER_FEEDBACK_H
#define RV_OUTER_FEEDBACK_H

#include "outer/codec.h"

/* The residual of n values. */
struct feedback {
	float beta;        /* share of `kept` that is added, above 0 */
	const float *kept; /* e (n); NULL: zeros */
	float *left;       /* becomes e' (n); not `kept` */
};

/* Encodes x (n), which becomes a, into `out`. f NULL: encodes x alone, and what is lost is lost.
 * RV_E_RANGE: a is not finite; `out` and f->left are then unspecified. */
enum rv_err feedback_encode(const struct codec *codec, float *x, size_t n, const struct feedback *f, uint8_t *out,
							struct rv_errtext *et);

#endif
