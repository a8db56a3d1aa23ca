/* table.c: the table of this instruction set. */
#include "kernels/cpu/isa/isa.h"

#define TEXT_(x)                  #x
#define TEXT(x)                   TEXT_(x)
#define ENTRY_(type, entry, args) .entry = ISA(entry),

const struct isa_kernels ISA(isa_kernels) = {.name = TEXT(RV_ISA),
											 .gemm_fp32 = &ISA(gemm_fp32),
											 .gemm_rounded = &ISA(gemm_rounded),
											 .attention_fp32 = &ISA(attention_fp32),
											 .attention_rounded = &ISA(attention_rounded),
											 ISA_KERNELS(ENTRY_)};
