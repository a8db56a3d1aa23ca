/* gemm.c: packed products in fp32. Kernel and packing are in gemm_panels.h and tile.h, the blocking
 * around them in kernels/cpu/cpu_gemm.c.
 *
 * The idea: a tile of 14 x 32 of C in registers does 28 multiply-adds for 16 loads from the first
 * two cache levels; C's own lines are asked for before the loop and used after it. Bytes moved:
 * packing writes and reads each operand once more, 9 to 13 G elements/s.
 *
 * Measured (one Zen 5 core, peak 250 GFLOP/s): the tiles alone 247 on packed operands; whole
 * products of a training step 205 to 245 forward, 210 to 245 for the input gradient, 215 to 240 for
 * the weight gradient, where oneDNN has 217 to 250 (bench_kernels --own-product --threads 1). */
#include "kernels/cpu/isa/word_fp32.h"

#include "kernels/cpu/isa/gemm_panels.h"

const struct gemm_kernels ISA(gemm_fp32) = GEMM_KERNELS("fp32");
