/* cpu_step_memory.c: the most that steps take of this backend's workspaces. */
#include "kernels/cpu/cpu.h"

/* Most bytes that products and attention pack: bounds that hold for the shapes of training. */
#define PACKED_MAX_BYTES ((size_t)16 << 20)

static size_t smaller(size_t a, size_t b) {
	return a < b ? a : b;
}

void cpu_step_memory(enum dtype act, const struct step_bounds *s, struct step_memory *out) {
	const size_t tokens = (size_t)s->b * (size_t)s->t, row = (size_t)s->vp * sizeof(float);
	const size_t logits = smaller(smaller(tokens, CPU_LOGITS_MAX_ROWS) * row, CPU_LOGITS_MAX_BYTES);
	const size_t packed = smaller(tokens * (size_t)s->widest * sizeof(float), PACKED_MAX_BYTES);
	(void)act;
	*out = (struct step_memory){.n = 0};
	step_memory_add(out, "logits", logits, logits);
	step_memory_add(out, "packed operands", packed, packed);
}
