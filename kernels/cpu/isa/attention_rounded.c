/* attention_rounded.c: attention with the operands of its products rounded to bf16: word_rounded.h,
 * attention_blocks.h. */
#include "kernels/cpu/isa/word_rounded.h"

#include "kernels/cpu/isa/attention_blocks.h"

const struct attention_kernels ISA(attention_rounded) = ATTENTION_KERNELS;
