/* session_memory.c: what this worker's training will take, said before it is allocated. */
#include "worker/session_internal.h"

#include "worker/train/memory_fit.h"

enum rv_err session_plan_memory(struct session *s, const struct trainer_config *c, struct rv_errtext *et) {
	struct device_choice device;
	RV_TRY(device_choose(c->device, &device, et));
	const struct memory_request request = {.run = c->run,
										   .device = &device,
										   .recompute = c->recompute,
										   .role = MEMORY_WORKER,
										   .replicas = 1,
										   .threads = c->threads,
										   .parallel = 1,
										   .mapped_bytes = dataset_mapped_bytes(c->data)};
	RV_TRY(memory_plan_make(&request, &s->memory, et));
	memory_report_plan(s->events, &s->memory);
	return memory_fit(&request, device_free_bytes(&device), et);
}
