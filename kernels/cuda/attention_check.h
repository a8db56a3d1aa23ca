/* attention_check.h: compares cuDNN's results with those of our own kernels from the same inputs.
 *
 * Done once for each shape and direction, on the first call, which no CUDA graph captures
 * (cuda_micro.h). Our own kernels run sequence by sequence into memory for one sequence (GPT-2
 * 124M: 5 MB): borrowed from the sums of dq of cuDNN's backward passes if those are large enough,
 * as they are from two sequences on, else allocated and freed at once.
 *
 * Rows are compared: one token's part of out, or of dq, dk or dv; the rms of the difference against
 * the rms of the row plus that of all rows. Both sides round probabilities (or their gradients) and
 * results to bf16, each by at most 2^-9 of itself and independently, and sum in fp32, so that the
 * ratio is about sqrt(4/3) 2^-9 = 0.2 % where sums do not cancel. ATTENTION_RMS_MAX is 1/16, 28
 * times that: cancelling sums (dq where keys have a large common part) stay below it, and a wrong
 * scale, mask, head or tile in any row does not. An error e in lse changes all probabilities of its
 * row by a factor of exp(e): at most ATTENTION_LSE_MAX. NaN is never within bounds. */
#ifndef RV_CUDA_ATTENTION_CHECK_H
#define RV_CUDA_ATTENTION_CHECK_H

#include "kernels/cuda/attention.h"

#include <stddef.h>

#define ATTENTION_RMS_MAX (1.0 / 16)
#define ATTENTION_LSE_MAX (1.0 / 64)

struct cuda_backend;

enum attention_verdict {
	ATTENTION_AGREES,
	ATTENTION_DIFFERS, /* or there was no memory for the comparison */
	ATTENTION_UNKNOWN  /* our own results are not finite: no comparison is possible */
};

/* Compares the outputs of `c`, which cuDNN is computing; waits for them. ATTENTION_DIFFERS: `why`
 * (cap bytes) names an array with its figure and the limit, or the missing memory. */
enum attention_verdict attention_check(struct cuda_backend *cu, const struct attention_call *c, char *why, size_t cap);

#endif
