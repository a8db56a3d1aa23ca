/* attention.c: attention in fp32: attention_blocks.h. */
#include "kernels/cpu/isa/word_fp32.h"

#include "kernels/cpu/isa/attention_blocks.h"

const struct attention_kernels ISA(attention_fp32) = ATTENTION_KERNELS;
