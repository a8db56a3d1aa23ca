/* options_find.h: looking options up in their table. Internal to options.h. */
#ifndef RV_BASE_OPTIONS_FIND_H
#define RV_BASE_OPTIONS_FIND_H

#include "base/options.h"

enum { RV_OPTIONS_MAX = 128, RV_OPTIONS_OTHERS_MAX = 8 };

/* Returns the number of entries; at most RV_OPTIONS_MAX (asserted). */
int rv_options_count(const struct rv_option *table);

/* Returns the index of `name`, or -1 with an error text that suggests the nearest name. `prefix`
 * ("--" or "") precedes options where this one was found; `others` (NULL-terminated, or NULL) are
 * allowed there too. */
int rv_options_find(const struct rv_option *table, const char *prefix, const char *name, const char *const *others,
					struct rv_errtext *et);

#endif
