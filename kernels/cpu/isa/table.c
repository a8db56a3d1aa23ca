/* table.c: the table of this instruction set. */
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/tile.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const struct isa_kernels ISA(isa_kernels) = {.name = TEXT(RV_ISA),
											 .gemm_rows = TILE_ROWS,
											 .gemm_cols = TILE_COLS,
#define ISA_ENTRY_(type, name, args) .name = ISA(name),
											 ISA_KERNELS(ISA_ENTRY_)
#undef ISA_ENTRY_
};
