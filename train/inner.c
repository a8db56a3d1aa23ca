/* inner.c: the registry of inner optimizers. */
#include "train/inner.h"

#define INNER_OPTIMIZER(name, facts) &inner_##name,
const struct inner_optimizer *const inner_registry[] = {
#include "base/inner_optimizers.def"
	NULL};
#undef INNER_OPTIMIZER

size_t inner_scratch_floats(const struct inner_optimizer *o, const struct model_layout *l) {
	return o->scratch_floats ? o->scratch_floats(l) : 0;
}

size_t inner_operand_floats(const struct inner_optimizer *o, const struct model_layout *l) {
	return o->operand_floats ? o->operand_floats(l) : 0;
}
