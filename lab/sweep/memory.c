/* memory.c: see memory.h. */
#include "lab/sweep/memory.h"

#include "lab/run/lab_memory.h"

#include <string.h>

/* Returns the cell's configuration: cells run side by side. */
static struct lab_config config_of(const struct sweep_cell *c) {
	struct lab_config cfg = train_options_resolve(&c->opts);
	cfg.parallel = 1;
	return cfg;
}

size_t sweep_cell_memory(const struct sweep_cell *c) {
	const struct lab_config cfg = config_of(c);
	struct memory_plan plan;
	const struct memory_request q = lab_memory_request(&cfg, 0);
	return memory_plan_make(&q, &plan, NULL) == RV_OK ? memory_plan_host(&plan) : 0;
}

enum rv_err sweep_cell_fit(const struct sweep_cell *c, const struct memory_room *room, struct rv_errtext *et) {
	const struct lab_config cfg = config_of(c);
	if (c->opts.short_of_memory == MEMORY_SHORT_WARN || (cfg.device.automatic && device_has_gpu()))
		return RV_OK;
	const struct memory_request q = lab_memory_request(&cfg, 0);
	return memory_fit(&q, room, et) == RV_E_NOMEM ? RV_E_NOMEM : RV_OK;
}
