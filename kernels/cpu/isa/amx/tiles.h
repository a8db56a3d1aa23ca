/* tiles.h: the tiles of Intel's AMX: eight registers of 16 rows of 64 bytes, configured by each
 * thread. While they are in use, the system saves 8 KiB more at each switch of threads: who
 * configures them releases them. The instructions are written out, as gcc 10 has no intrinsics of
 * them. */
#ifndef RV_KERNELS_CPU_ISA_AMX_TILES_H
#define RV_KERNELS_CPU_ISA_AMX_TILES_H

#include <stddef.h>
#include <stdint.h>

enum { AMX_TILES = 8, AMX_ROWS = 16, AMX_WORDS = 16, AMX_ROW_BYTES = 64, AMX_TILE_WORDS = 256 };

/* Move tile `t` from or to memory whose rows are `stride` bytes apart. */
#define AMX_LOAD(t, p, stride)                                                                                         \
	__asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(p), "r"((ptrdiff_t)(stride)) : "memory")
#define AMX_STORE(t, p, stride)                                                                                        \
	__asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(p), "r"((ptrdiff_t)(stride)) : "memory")
#define AMX_ZERO(t) __asm__ volatile("tilezero %%tmm" #t ::)
/* Adds to tile c the product of tiles a and b. */
#define AMX_MULTIPLY(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)

/* The operand of LDTILECFG. */
struct amx_config {
	uint8_t palette, start_row, reserved[14];
	uint16_t row_bytes[16];
	uint8_t rows[16];
};
_Static_assert(sizeof(struct amx_config) == 64, "LDTILECFG reads 64 bytes");

static inline void amx_configure(void) {
	struct amx_config c = {.palette = 1};
	for (int i = 0; i < AMX_TILES; i++) {
		c.row_bytes[i] = AMX_ROW_BYTES;
		c.rows[i] = AMX_ROWS;
	}
	__asm__ volatile("ldtilecfg %0" : : "m"(c));
}

static inline void amx_release(void) {
	__asm__ volatile("tilerelease" ::);
}

#endif
