/* gemm_rounded.c: packed products of operands rounded to bf16, see word_rounded.h. */
#include "kernels/cpu/isa/word_rounded.h"

#include "kernels/cpu/isa/gemm_panels.h"

const struct gemm_kernels ISA(gemm_rounded) = GEMM_KERNELS("bf16 rounded");
