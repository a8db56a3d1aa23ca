/* optimizer.c: the registry of outer optimizers. */
#include "outer/optimizer.h"

#include "outer/registry.h"

const struct outer_optimizer *const outer_registry[] = {&outer_nesterov, &outer_sgd, &outer_average, NULL};

static const char *optimizer_name(int i) {
	return outer_registry[i] ? outer_registry[i]->name : NULL;
}

enum rv_err outer_find(const char *name, const struct outer_optimizer **out, struct rv_errtext *et) {
	int i;
	RV_TRY(registry_find("outer optimizer", optimizer_name, name, &i, et));
	*out = outer_registry[i];
	return RV_OK;
}
