/* lab_memory.c: see lab_memory.h. */
#include "lab/run/lab_memory.h"

#include "outer/optimizer.h"

struct memory_request lab_memory_request(const struct lab_config *c, uint64_t mapped_bytes) {
	struct memory_request q = {.run = &c->run,
							   .device = &c->device,
							   .savings = c->savings,
							   .role = c->method->averages ? MEMORY_LAB : MEMORY_DDP,
							   .replicas = c->method->n_replicas(c->workers),
							   .threads = c->threads,
							   .step_shards = c->method->averages ? 1 : c->workers,
							   .parallel = c->parallel,
							   .mapped_bytes = mapped_bytes};
	if (c->method->n_extra)
		q.extra_vectors = c->method->n_extra(c->workers, outer_registry[c->run.outer]->n_states);
	return q;
}
