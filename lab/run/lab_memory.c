/* lab_memory.c: see lab_memory.h. */
#include "lab/run/lab_memory.h"

#include "outer/optimizer.h"

static void request_of(const struct lab_config *c, uint64_t mapped_bytes, struct memory_request *out) {
	*out = (struct memory_request){.run = &c->run,
								   .device = &c->device,
								   .recompute = c->recompute,
								   .role = c->method->averages ? MEMORY_LAB : MEMORY_DDP,
								   .replicas = c->method->n_replicas(c->workers),
								   .threads = c->threads,
								   .step_shards = c->method->averages ? 1 : c->workers,
								   .parallel = c->parallel,
								   .mapped_bytes = mapped_bytes};
	if (c->method->n_extra)
		out->extra_vectors = c->method->n_extra(c->workers, outer_registry[c->run.outer]->n_states);
}

enum rv_err lab_memory_plan(const struct lab_config *c, uint64_t mapped_bytes, struct memory_plan *out,
							struct rv_errtext *et) {
	struct memory_request q;
	request_of(c, mapped_bytes, &q);
	return memory_plan_make(&q, out, et);
}

enum rv_err lab_memory_fit(const struct lab_config *c, const struct memory_room *room, struct rv_errtext *et) {
	struct memory_request q;
	request_of(c, 0, &q);
	return memory_fit(&q, room, et);
}

enum rv_err lab_memory_check(const struct lab_config *c, const struct memory_room *room, enum memory_short choice,
							 struct rv_events *ev, struct rv_errtext *et) {
	struct memory_request q;
	request_of(c, 0, &q);
	return memory_check(&q, room, choice, ev, et);
}
