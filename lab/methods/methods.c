/* methods.c: the registry of methods. */
#include "lab/methods/methods.h"
#include "lab/run/lab_run.h"

#include <string.h>

#define LAB_METHOD(name, light, dark, about) &lab_method_##name,
const struct lab_method *const lab_methods[N_METHODS + 1] = {
#include "lab/methods/methods.def"
	NULL};
#undef LAB_METHOD

const struct lab_method *lab_method_find(const char *name) {
	for (int i = 0; lab_methods[i]; i++)
		if (strcmp(lab_methods[i]->name, name) == 0)
			return lab_methods[i];
	return NULL;
}
