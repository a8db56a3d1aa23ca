/* memory.c: logs the memory that training will take, and refuses too much, before it is
 * allocated. */
#include "worker/session/internal.h"

#include "train/fp32_notice.h"
#include "train/memory/check.h"
#include "train/memory/choose.h"
#include "train/memory/cost.h"

#include <string.h>

static struct memory_request request_of(const struct trainer_config *c, const struct device_choice *device) {
	return (struct memory_request){.run = c->run,
								   .device = device,
								   .savings = c->savings,
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

/* Returns what the options fix: 0 is auto, and the values are one more than the enums'. */
static struct savings_wish wish_of(const struct worker_options *o) {
	return (struct savings_wish){.micro_batch = (int)o->micro_batch,
								 .logits_rows = (int)o->logits,
								 .recompute = o->recompute - 1,
								 .moments = o->moments - 1,
								 .offload = o->offload - 1,
								 .stream = o->stream_state - 1,
								 .zero = o->zero - 1};
}

void session_choose_savings_within(const struct session *s, const struct device_choice *device,
								   const struct memory_room *room, struct trainer_config *c) {
	const struct memory_request request = request_of(c, device);
	const struct savings_wish wish = wish_of(s->opt);
	(void)savings_choose(&request, &wish, room, &c->savings);
}

void session_choose_savings(const struct session *s, struct trainer_config *c) {
	struct device_choice device;
	if (device_choose(c->device, &device, NULL) != RV_OK)
		return; /* it is refused later, with the reason */
	const struct memory_room room = room_of(s, &device);
	session_choose_savings_within(s, &device, &room, c);
}

static bool is_stream_alone(const struct savings *s) {
	return s->stream && !s->offload && s->micro_batch == 0 && s->logits_rows == 0 && s->recompute == RECOMPUTE_NONE &&
		   s->moments == MOMENTS_FP32 && s->zero == ZERO_MOMENTS;
}

/* Logs savings that the worker chose by itself. */
static void log_savings(const struct session *s, const struct trainer_config *c, const struct device_choice *device) {
	const struct worker_options *o = s->opt;
	const struct memory_request request = request_of(c, device);
	struct savings chosen = c->savings;
	char text[SAVINGS_TEXT_BYTES];
	chosen.micro_batch = o->micro_batch ? 0 : chosen.micro_batch;
	chosen.logits_rows = o->logits ? 0 : chosen.logits_rows;
	chosen.recompute = o->recompute ? RECOMPUTE_NONE : chosen.recompute;
	chosen.moments = o->moments ? MOMENTS_FP32 : chosen.moments;
	chosen.offload = !o->offload && chosen.offload;
	chosen.stream = !o->stream_state && chosen.stream;
	chosen.zero = o->zero ? ZERO_MOMENTS : chosen.zero;
	savings_text(&chosen, text, sizeof text);
	if (!text[0])
		return;
	if (is_stream_alone(&chosen)) {
		rv_event(
			s->events, RV_INFO, "savings",
			RV_FIELDS(rv_field_str("options", text),
					  rv_field_double("slower", memory_cost(&request, s->memory.n_params))),
			"there is too little memory for copies of the state on its way to the disk; chosen: %s. Training waits "
			"where the disk is slow; results are the same",
			text);
		return;
	}
	const double slower = memory_cost(&request, s->memory.n_params);
	const double link_bytes = memory_link_bytes(&request, s->memory.n_params);
	char links[96] = "";
	if (chosen.zero != ZERO_MOMENTS)
		(void)snprintf(links, sizeof links, ", and each GPU sends and receives at most %.1f GB in it",
					   link_bytes / 1e9);
	rv_event(s->events, RV_INFO, "savings",
			 RV_FIELDS(rv_field_str("options", text), rv_field_double("slower", slower),
					   rv_field_double("link_bytes", link_bytes)),
			 "there is too little memory to train without savings; chosen: %s. A step takes about %.0f %% longer, by a "
			 "model%s; results differ in their last bits at most%s",
			 text, slower > 0 ? 100 * slower : 0, links,
			 chosen.moments == MOMENTS_INT8 ? ", and by moments of 8 bits" : "");
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
	log_savings(s, c, &device);
	fp32_notice(s->events, c->run, &device,
				"The run's configuration fixes it, a worker cannot change it: its operator may start a run with "
				"dtype = auto, the default");
	return RV_OK;
}
