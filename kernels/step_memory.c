/* step_memory.c: the sums of struct step_memory (kernels/backend.h). */
#include "base/assert.h"
#include "kernels/backend.h"

void step_memory_add(struct step_memory *m, const char *name, size_t bytes, size_t least) {
	RV_ASSERT(least <= bytes && m->n < STEP_MEMORY_ITEMS);
	if (bytes == 0)
		return;
	m->items[m->n].name = name;
	m->items[m->n].bytes = bytes;
	m->items[m->n++].least = least;
}

size_t step_memory_bytes(const struct step_memory *m) {
	size_t sum = 0;
	for (int i = 0; i < m->n; i++)
		sum += m->items[i].bytes;
	return sum;
}

size_t step_memory_least(const struct step_memory *m) {
	size_t sum = 0;
	for (int i = 0; i < m->n; i++)
		sum += m->items[i].least;
	return sum;
}
