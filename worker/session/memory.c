/* memory.c: logs the memory that training will take, and refuses too much, before it is
 * allocated. */
#include "worker/session/internal.h"

#include "train/fp32_notice.h"
#include "train/memory/check.h"

#include <string.h>

static struct memory_request request_of(const struct trainer_config *c, const struct device_choice *device) {
	return (struct memory_request){.run = c->run,
								   .device = device,
								   .recompute = c->recompute,
								   .role = MEMORY_WORKER,
								   .replicas = 1,
								   .threads = c->threads,
								   .parallel = 1,
								   .mapped_bytes = c->data ? dataset_mapped_bytes(c->data) : 0};
}

/* Returns the memory that training may take: what is free, within what the person allows. */
static struct memory_room room_of(const struct session *s, const struct device_choice *device) {
	struct memory_room room = memory_room_now(device);
	memory_room_cap(&room, s->opt->max_memory, s->opt->gpu_memory);
	return room;
}

void session_choose_recompute(const struct session *s, struct trainer_config *c) {
	struct device_choice device;
	c->recompute = s->opt->recompute == WORKER_RECOMPUTE_BLOCK ? RECOMPUTE_BLOCK : RECOMPUTE_NONE;
	if (s->opt->recompute != WORKER_RECOMPUTE_AUTO || device_choose(c->device, &device, NULL) != RV_OK)
		return;
	const struct memory_request request = request_of(c, &device);
	const struct memory_room room = room_of(s, &device);
	c->recompute = memory_choose_recompute(&request, &room);
}

enum rv_err session_check_memory(const struct session *s, const struct trainer_config *c, struct rv_errtext *et) {
	struct device_choice device;
	RV_TRY(device_choose(c->device, &device, et));
	const struct memory_request request = request_of(c, &device);
	const struct memory_room room = room_of(s, &device);
	return memory_check(&request, &room, (enum memory_short)s->opt->short_of_memory, s->events, et);
}

enum rv_err session_memory_of(const struct trainer_config *c, const struct device_choice *device,
							  struct memory_plan *out, struct rv_errtext *et) {
	const struct memory_request request = request_of(c, device);
	return memory_plan_make(&request, out, et);
}

enum rv_err session_memory_fits(const struct trainer_config *c, const struct device_choice *device,
								const struct memory_room *room, struct rv_errtext *et) {
	const struct memory_request request = request_of(c, device);
	return memory_fit(&request, room, et);
}

enum rv_err session_plan_memory(struct session *s, const struct trainer_config *c, struct rv_errtext *et) {
	struct device_choice device;
	RV_TRY(device_choose(c->device, &device, et));
	RV_TRY(session_memory_of(c, &device, &s->memory, et));
	memory_report_plan(s->events, &s->memory);
	if (c->recompute == RECOMPUTE_BLOCK && s->opt->recompute == WORKER_RECOMPUTE_AUTO)
		rv_event(s->events, RV_INFO, "recompute", RV_FIELDS(rv_field_str("recompute", "block")),
				 "there is too little memory to keep all activations: blocks are computed again, about a third slower "
				 "(--recompute)");
	fp32_notice(s->events, c->run, &device,
				"The run's configuration fixes it, a worker cannot change it: its operator may start a run with "
				"dtype = auto, the default");
	return RV_OK;
}
