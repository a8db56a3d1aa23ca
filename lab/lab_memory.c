/* lab_memory.c: see lab_memory.h. */
#include "lab/lab_memory.h"

#include "outer/optimizer.h"
#include "worker/train/memory_fit.h"

static struct memory_request request_of(const struct lab_config *c, uint64_t mapped_bytes) {
	return (struct memory_request){.run = &c->run,
								   .device = &c->device,
								   .recompute = c->recompute,
								   .role = c->method->averages ? MEMORY_LAB : MEMORY_DDP,
								   .replicas = c->method->n_replicas(c->workers),
								   .threads = c->threads,
								   .parallel = c->parallel,
								   .mapped_bytes = mapped_bytes};
}

enum rv_err lab_memory_plan(const struct lab_config *c, uint64_t mapped_bytes, struct memory_plan *out,
							struct rv_errtext *et) {
	const struct memory_request q = request_of(c, mapped_bytes);
	const struct outer_optimizer *outer;
	RV_TRY(memory_plan_make(&q, out, et));
	if (!c->method->n_extra)
		return RV_OK;
	RV_TRY(outer_find(c->run.outer, &outer, et));
	out->outer += (size_t)c->method->n_extra(c->workers, outer->n_states) * out->n_params * sizeof(float);
	return RV_OK;
}

enum rv_err lab_memory_fit(const struct lab_config *c, struct rv_errtext *et) {
	const struct memory_request q = request_of(c, 0);
	return memory_fit(&q, device_free_bytes(&c->device), et);
}
