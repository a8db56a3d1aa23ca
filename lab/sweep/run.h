/* run.h: runs a sweep's cells to their end and reports progress. Blocking. */
#ifndef RV_LAB_SWEEP_RUN_H
#define RV_LAB_SWEEP_RUN_H

#include "lab/sweep/file.h"
#include "lab/sweep/summary.h"

#include <limits.h>

struct sweep {
	const struct sweep_options *opts; /* common to all: out, jobs, print */
	struct sweep_grid *grids;         /* one for each section */
	int n_grids;
	struct sweep_cell *cells; /* each once, at its first occurrence */
	struct sweep_row *rows;   /* n_cells */
	int n_cells;
	/* Combinations that differ from cells only in options without effect on the results: not
	 * trained twice. */
	int n_merged;
};

/* Checks every cell, and finds those complete in `out`. Borrows `f`. The faults of sweep_grid_make
 * and sweep_grid_cell; RV_E_INVALID: two cells of a section are the same run; RV_E_RANGE: more than
 * SWEEP_MAX_CELLS. */
enum rv_err sweep_open(const struct sweep_file *f, struct sweep *s, struct rv_errtext *et);
void sweep_release(struct sweep *s);

/* Runs the incomplete cells. RV_E_CANCELLED: stopped by a signal; every cell has saved, the same
 * command continues. RV_E_IO and others: some cells failed, the rest are done; the text names the
 * first and its log. */
enum rv_err sweep_run(struct sweep *s, struct rv_errtext *et);
/* Prints one shell command a line for each incomplete cell (print.c), which works in any directory.
 * RV_E_RANGE: a path is too long. */
enum rv_err sweep_print_commands(const struct sweep *s, FILE *out, struct rv_errtext *et);
/* Writes the path of this program's own file. */
void sweep_own_program(char path[PATH_MAX]);

#endif
