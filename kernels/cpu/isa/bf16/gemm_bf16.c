/* gemm_bf16.c: packed products in bf16 by the processor's own instructions, see word_bf16.h.
 *
 * The idea: operands are converted while they are packed, and that is free, since packing reads and
 * writes every element anyway; packed operands are half as large.
 *
 * Measured (AVX512_BF16, one Zen 5 core): whole products of a training step 380 to 485 GFLOP/s, 1.8
 * to 2 times those in fp32 (bench_kernels --bf16 --threads 1). */
#include "kernels/cpu/isa/bf16/word_bf16.h"

#include "kernels/cpu/isa/gemm_panels.h"

const struct gemm_kernels ISA(gemm_bf16) = GEMM_KERNELS("bf16");
