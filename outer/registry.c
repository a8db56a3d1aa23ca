/* registry.c: see registry.h. */
#include "outer/registry.h"

#include <stdio.h>
#include <string.h>

enum rv_err registry_find(const char *what, const char *(*name_at)(int i), const char *name, int *out,
						  struct rv_errtext *et) {
	char names[256] = "";
	size_t used = 0;
	for (int i = 0; name_at(i); i++) {
		if (strcmp(name_at(i), name) == 0) {
			*out = i;
			return RV_OK;
		}
		if (used < sizeof names)
			used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", name_at(i));
	}
	return rv_fail(et, RV_E_NOTFOUND, "no %s '%.40s'; there are: %s", what, name, names);
}
