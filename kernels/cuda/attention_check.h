/* attention_check.h: compares what cuDNN computed with what our own kernels compute from the same inputs.
 *
 * Done once for each shape and direction, on the first call, which no CUDA graph captures (cuda_micro.h). Our own
 * kernels run sequence by sequence into memory for one sequence (GPT-2 124M: 5 MB): what cuDNN's backward passes sum dq in
 * lends it where that is large enough, as it is for two sequences, else it is allocated and freed at once.
 *
 * Compared are rows: what one token has in out, or in dq, dk or dv; the rms of the difference against the rms of the row
 * plus that of all rows. Both sides round probabilities (or their gradients) and results to bf16, each by at most 2^-9 of
 * itself and independently, and sum in fp32, so that the ratio is about sqrt(4/3) 2^-9 = 0.2 % where sums do not cancel.
 * ATTENTION_RMS_MAX is 1/16, 28 times that: cancelling sums (dq where keys have a large common part) stay below it, and a
 * wrong scale, mask, head or tile in any row does not. An error e in lse changes all probabilities of its row by a
 * factor of exp(e): at most ATTENTION_LSE_MAX. NaN is never within bounds. */
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
	ATTENTION_UNKNOWN  /* our own results are not finite: the inputs tell nothing */
};

/* Compares the outputs of `c`, which cuDNN has been asked for; waits for them. ATTENTION_DIFFERS: `why` (cap bytes) names
 * an array with its figure and the limit, or the memory that was missing. */
enum attention_verdict attention_check(struct cuda_backend *cu, const struct attention_call *c, char *why, size_t cap);

#endif
