/* inner.c: the registry of inner optimizers. */
#include "train/inner.h"

#include <string.h>

#define INNER_OPTIMIZER(name) &inner_##name,
const struct inner_optimizer *const inner_registry[] = {
#include "base/inner_optimizers.def"
	NULL};
#undef INNER_OPTIMIZER

#define INNER_OPTIMIZER(name) " " #name
static const char names[] =
#include "base/inner_optimizers.def"
	;
#undef INNER_OPTIMIZER

enum rv_err inner_find(const char *name, const struct inner_optimizer **out, struct rv_errtext *et) {
	for (int i = 0; inner_registry[i]; i++)
		if (strcmp(inner_registry[i]->name, name) == 0) {
			*out = inner_registry[i];
			return RV_OK;
		}
	return rv_fail(et, RV_E_NOTFOUND, "no inner optimizer '%.40s'; there are:%s", name, names);
}

size_t inner_scratch_floats(const struct inner_optimizer *o, const struct model_layout *l) {
	return o->scratch_floats ? o->scratch_floats(l) : 0;
}

size_t inner_operand_floats(const struct inner_optimizer *o, const struct model_layout *l) {
	return o->operand_floats ? o->operand_floats(l) : 0;
}
