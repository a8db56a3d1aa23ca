/* optimizer.c: the registry of outer optimizers. */
#include "outer/optimizer.h"

#include "outer/registry.h"

#define OUTER_OPTIMIZER(name) &outer_##name,
const struct outer_optimizer *const outer_registry[] = {
#include "base/outer_optimizers.def"
	NULL};
#undef OUTER_OPTIMIZER

static const char *optimizer_name(int i) {
	return outer_registry[i] ? outer_registry[i]->name : NULL;
}

enum rv_err outer_find(const char *name, const struct outer_optimizer **out, struct rv_errtext *et) {
	int i;
	RV_TRY(registry_find("outer optimizer", optimizer_name, name, &i, et));
	*out = outer_registry[i];
	return RV_OK;
}

struct outer_params outer_params_of(const struct run_config *run) {
	return (struct outer_params){.lr = (float)run_config_outer_lr(run),
								 .momentum = (float)run_config_outer_momentum(run),
								 .beta2 = (float)run->outer_beta2,
								 .eps = (float)run->outer_eps,
								 .delay = (int)run->outer_delay};
}
