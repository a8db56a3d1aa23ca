/* presets.h: named settings: lines of configuration under a name, for `--preset NAME`. */
#ifndef RV_BASE_PRESETS_H
#define RV_BASE_PRESETS_H

#include "base/err.h"

#include <stdio.h>

struct rv_preset {
	const char *name; /* "llama-150m" */
	const char *help; /* one line: what it is */
	const char *text; /* `key = value` lines, as of a config file, each with its end of line */
};

/* Shapes of well-known models, for tables with run_config_options. Ended by name == NULL. */
extern const struct rv_preset model_presets[];
/* These and `strangers`, what members of a run open to all check of each other: for runs of real
 * workers. */
extern const struct rv_preset run_presets[];

/* Finds a preset. RV_E_INVALID for an unknown name: suggests the nearest, or lists all. */
enum rv_err rv_preset_find(const struct rv_preset *presets, const char *name, const struct rv_preset **out,
						   struct rv_errtext *et);
/* Checks that two presets may be named together: RV_E_INVALID, with the option's name, if both set
 * one. */
enum rv_err rv_presets_agree(const struct rv_preset *first, const struct rv_preset *second, struct rv_errtext *et);
/* Prints one line per preset, for --help. */
void rv_presets_help(const struct rv_preset *presets, FILE *out);

#endif
