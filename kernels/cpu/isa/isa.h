/* isa.h: the common header of this folder: the vector, and the prototypes of this instruction set's
 * kernels. */
#ifndef RV_KERNELS_CPU_ISA_ISA_H
#define RV_KERNELS_CPU_ISA_ISA_H

#include "kernels/cpu/isa/isa_kernels.h"
#include "kernels/cpu/isa/vec.h"

#define ISA_PROTOTYPE_(type, name, args) type ISA(name) args;
ISA_KERNELS(ISA_PROTOTYPE_)
#undef ISA_PROTOTYPE_

extern const struct gemm_kernels ISA(gemm_fp32), ISA(gemm_rounded);
extern const struct attention_kernels ISA(attention_fp32), ISA(attention_rounded);

#endif
