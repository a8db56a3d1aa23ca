/* registry.h: look-up by name in a table of implementations, with an error that lists them. Private to outer/. */
#ifndef RV_OUTER_REGISTRY_H
#define RV_OUTER_REGISTRY_H

#include "base/err.h"

/* `name_at(i)` gives the i-th name, NULL past the last. RV_E_NOTFOUND: "no codec 'x'; there are: int8, fp32". */
enum rv_err registry_find(const char *what, const char *(*name_at)(int i), const char *name, int *out,
						  struct rv_errtext *et);

#endif
