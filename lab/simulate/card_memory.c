/* card_memory.c: see card_memory.h. */
#include "lab/simulate/card_memory.h"

#include "base/presets.h"
#include "train/memory/cost.h"

#include <string.h>

#define GB (1000UL * 1000 * 1000)

const struct card_room card_rooms[CARD_ROOMS] = {
	{1, 8 * GB, SIZE_MAX},  {1, 12 * GB, SIZE_MAX}, {1, 16 * GB, SIZE_MAX}, {1, 24 * GB, SIZE_MAX},
	{2, 24 * GB, SIZE_MAX}, {8, 24 * GB, SIZE_MAX}, {8, 80 * GB, SIZE_MAX},
};

enum { HEAD_CHANNELS = 64, MOST_HEADS = 256, PAPER_HEADS = 12, PAPER_MORE_LAYERS = 3, MOST_LAYERS = 48 };

/* Sets what the preset of that name does. */
static enum rv_err take_preset(const char *name, struct run_config *run, struct rv_errtext *et) {
	const struct rv_preset *preset;
	RV_TRY(rv_preset_find(run_presets, name, &preset, et));
	return rv_options_parse_text(run_config_options, run, preset->name, preset->text, et);
}

enum rv_err card_run_of(const struct card_question *q, struct run_config *run, struct rv_errtext *et) {
	const struct rv_preset *model;
	RV_TRY(rv_preset_find(model_presets, q->model, &model, et));
	run_config_defaults(run);
	RV_TRY(take_preset(model->name, run, et));
	if (q->strangers) {
		RV_TRY(take_preset("strangers", run, et));
		memset(run->data_hash, '0', sizeof run->data_hash - 1);
	}
	run->dtype = RUN_DTYPE_BF16;
	run->batch = q->sequences;
	run->grad_accum = 1;
	return run_config_validate(run, et);
}

/* Returns the request of a worker with no savings yet. */
static struct memory_request request_of(const struct run_config *run, const struct device_choice *device) {
	return (struct memory_request){
		.run = run, .device = device, .role = MEMORY_WORKER, .replicas = 1, .threads = 1, .parallel = 1};
}

enum rv_err card_plan(const struct run_config *run, const struct card_room *room, const struct savings_wish *wish,
					  struct card_answer *out, struct rv_errtext *et) {
	struct device_choice device;
	const struct memory_room limit = {.device = room->card_bytes, .host = room->host_bytes};
	struct memory_request q = request_of(run, &device);
	struct memory_plan p;
	device_planned_gpus(room->cards, &device);
	const bool fits = savings_choose(&q, wish, &limit, &q.savings);
	RV_TRY(memory_plan_make(&q, &p, et));
	*out = (struct card_answer){.run = *run,
								.savings = q.savings,
								.fits = fits,
								.n_params = p.n_params,
								.device_bytes = memory_plan_least_device(&p) + MEMORY_DEVICE_OVERHEAD_BYTES,
								.host_bytes = memory_plan_host(&p),
								.vector_bytes_per_param = (double)(p.parameters + p.gradients + p.moments) /
														  (double)p.devices / (double)p.n_params,
								.slower = memory_cost(&q, p.n_params),
								.link_bytes = memory_link_bytes(&q, p.n_params)};
	return RV_OK;
}

static void set_shape(struct run_config *run, int heads) {
	const int layers = heads < PAPER_HEADS ? heads : PAPER_HEADS + PAPER_MORE_LAYERS * (heads - PAPER_HEADS);
	run->n_head = heads;
	run->n_embd = (int64_t)heads * HEAD_CHANNELS;
	run->n_layer = layers < MOST_LAYERS ? layers : MOST_LAYERS;
}

enum rv_err card_largest(const struct card_room *room, const struct card_question *q, struct card_answer *out,
						 struct rv_errtext *et) {
	const struct savings_wish any = SAVINGS_WISH_ANY;
	struct card_question gpt2 = *q;
	struct run_config run;
	int some = 0, none = MOST_HEADS + 1;
	*out = (struct card_answer){.n_params = 0};
	gpt2.model = "gpt2-1.5b";
	RV_TRY(card_run_of(&gpt2, &run, et));
	out->run = (struct run_config){.batch = run.batch, .context = run.context}; /* all that is known if none fits */
	while (none - some > 1) {
		struct card_answer a;
		const int middle = some + (none - some) / 2;
		set_shape(&run, middle);
		const enum rv_err e = card_plan(&run, room, &any, &a, et);
		if (e != RV_OK && e != RV_E_RANGE)
			return e;
		const bool fits = e == RV_OK && a.fits; /* RV_E_RANGE: larger than a run may be */
		if (fits)
			*out = a;
		some = fits ? middle : some;
		none = fits ? none : middle;
	}
	return RV_OK;
}
