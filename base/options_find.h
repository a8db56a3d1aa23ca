/* options_find.h: looking options up in their table. Inner part of options.h. */
#ifndef RV_BASE_OPTIONS_FIND_H
#define RV_BASE_OPTIONS_FIND_H

#include "base/options.h"

enum { RV_OPTIONS_MAX = 128, RV_OPTIONS_OTHERS_MAX = 8 };

/* Entries of the table; at most RV_OPTIONS_MAX (asserted). */
int rv_options_count(const struct rv_option *table);

/* The index of `name`, or -1 with an error text that suggests the nearest name; `prefix` ("--" or "") is how options
 * are written where this one was found; `others` (NULL-terminated; or NULL) may stand there too. */
int rv_options_find(const struct rv_option *table, const char *prefix, const char *name, const char *const *others,
					struct rv_errtext *et);

#endif
