/* file.h: the FILE of `rivulet sweep`: options as on the command line, one `name = values` a line,
 * and sections.
 *
 *     workers = 4                 lines before the first section apply to all
 *     seed = 1,2,3
 *     [interval]                  each section is a product of its own, with its own values
 *     sync-every = 8,32,128
 *     [codec]
 *     codec = int8,fp32
 *
 * A cell that two sections have in common is trained once. The command line wins over all
 * sections. */
#ifndef RV_LAB_SWEEP_FILE_H
#define RV_LAB_SWEEP_FILE_H

#include "lab/sweep/grid.h"

enum { SWEEP_MAX_SECTIONS = 64 };

struct sweep_file {
	struct sweep_options *parts; /* one for each section; one for the whole file if it has none */
	int n;
};

/* Reads `path` (NULL: there is no file) and applies `given` over it. RV_E_INVALID, RV_E_RANGE name
 * the file and the line; RV_E_NOTFOUND, RV_E_IO, RV_E_NOMEM. On a fault there is nothing to
 * release. */
enum rv_err sweep_file_read(const char *path, const struct sweep_options *given, struct sweep_file *out,
							struct rv_errtext *et);
void sweep_file_release(struct sweep_file *f);

#endif
