/* optimizer.c: the registry of outer optimizers. */
#include "outer/optimizer.h"

#define OUTER_OPTIMIZER(name, facts, lr, momentum) &outer_##name,
const struct outer_optimizer *const outer_registry[] = {
#include "base/outer_optimizers.def"
	NULL};
#undef OUTER_OPTIMIZER

struct outer_params outer_params_of(const struct run_config *run) {
	return (struct outer_params){.lr = (float)run_config_outer_lr(run),
								 .momentum = (float)run_config_outer_momentum(run),
								 .beta2 = (float)run->outer_beta2,
								 .eps = (float)run->outer_eps,
								 .delay = (int)run->outer_delay};
}
