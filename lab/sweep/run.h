/* run.h: takes a sweep's cells to their end: which are done, which run, what is told meanwhile. Blocking. */
#ifndef RV_LAB_SWEEP_RUN_H
#define RV_LAB_SWEEP_RUN_H

#include "lab/sweep/file.h"
#include "lab/sweep/summary.h"

#include <limits.h>

struct sweep {
	const struct sweep_options *opts; /* what holds for all: out, jobs, print */
	struct sweep_grid *grids;         /* one for each section */
	int n_grids;
	struct sweep_cell *cells; /* each once, where it was first */
	struct sweep_row *rows;   /* n_cells */
	int n_cells;
	/* Combinations that differ from cells in options only that have no effect on their results: not trained twice. */
	int n_merged;
};

/* Checks every cell, and looks which are complete in `out`. Borrows `f`. What sweep_grid_make and sweep_grid_cell
 * refuse;
 * RV_E_INVALID: two cells of a section are the same run; RV_E_RANGE: more than SWEEP_MAX_CELLS. */
enum rv_err sweep_open(const struct sweep_file *f, struct sweep *s, struct rv_errtext *et);
void sweep_release(struct sweep *s);

/* Runs what is not complete. RV_E_CANCELLED: told to stop; every cell has saved, the same command goes on.
 * RV_E_IO and others: some cells failed, the rest are done; the text names the first and its log. */
enum rv_err sweep_run(struct sweep *s, struct rv_errtext *et);
/* summary.csv, atomically. RV_E_FULL, RV_E_IO. */
enum rv_err sweep_write_summary(const struct sweep *s, struct rv_errtext *et);
/* One shell command a line for each cell that is not complete: print.c. It says the same in any directory.
 * RV_E_RANGE: a path is too long. */
enum rv_err sweep_print_commands(const struct sweep *s, FILE *out, struct rv_errtext *et);
/* This program's own file. */
void sweep_own_program(char path[PATH_MAX]);

#endif
