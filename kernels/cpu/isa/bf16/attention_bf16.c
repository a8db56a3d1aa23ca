/* attention_bf16.c: attention with products in bf16: word_bf16.h, attention_blocks.h. Scores, their
 * statistics and all sums are fp32. */
#include "kernels/cpu/isa/bf16/word_bf16.h"

#include "kernels/cpu/isa/attention_blocks.h"

const struct attention_kernels ISA(attention_bf16) = ATTENTION_KERNELS;
