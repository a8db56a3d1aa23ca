/* grid.h: the cells of a sweep: every combination of the given values of `rivulet train`'s options.
 *
 * Any of train's options that describes a run may have a list of values, separated by commas; those
 * with more than one are the axes. A cell's name is the hash of everything that decides its result
 * (the options that have an effect, and the content of the text), so that a sweep continues where
 * it was, on this machine or another, and results of several machines merge. Another version of the
 * program may have more options, and then its names differ: it trains anew.
 *
 * Two conventions of comparing k workers are in use, and they have opposite signs (arXiv 2311.08105
 * and 2503.09799):
 *   fixed-steps   every worker takes the batch as given: k workers see k times the tokens
 *   fixed-tokens  the batch is that of all workers together: each takes batch / k of it */
#ifndef RV_LAB_SWEEP_GRID_H
#define RV_LAB_SWEEP_GRID_H

#include "base/hash.h"
#include "lab/options/train_options.h"

enum {
	SWEEP_OPTIONS_MAX = 128,
	SWEEP_LIST_BYTES = 512, /* the values of one option, as given */
	SWEEP_MAX_AXES = 16,
	SWEEP_MAX_VALUES = 64, /* of one axis */
	SWEEP_MAX_CELLS = 10000,
	SWEEP_ID_BYTES = 17, /* 16 hex digits of the hash */
	SWEEP_LABEL_BYTES = 160,
	SWEEP_SECTION_BYTES = 32
};

enum sweep_replicas { SWEEP_REPLICAS_AUTO, SWEEP_REPLICAS_FIXED_TOKENS, SWEEP_REPLICAS_FIXED_STEPS };

struct sweep_options {
	char values[TRAIN_OPTIONS_MAX][SWEEP_LIST_BYTES]; /* of train's option i; "": not given. Zero before defaults */
	char sync_every[SWEEP_LIST_BYTES];                /* another name of steps-per-round */
	char out[400], preset[32];
	int replicas_mode;   /* enum sweep_replicas */
	int64_t total_steps; /* of each worker; rounds follows from it. 0: rounds is given */
	int64_t jobs;
	bool print;
	char section[SWEEP_SECTION_BYTES]; /* of the file (file.h); "": none */
};

/* Fills `table` with the options of `rivulet sweep`: its own, then a list for each of train's.
 * Asserts that they fit `cap`. */
void sweep_options_table(struct rv_option *table, int cap);
/* Copies to `o` the values that `file` has and `o` does not, and its section. */
void sweep_options_fill(struct sweep_options *o, const struct sweep_options *file);

/* Replaces options that neither gives by their defaults. */
void sweep_options_settle(struct sweep_options *o);

struct sweep_axis {
	int option; /* of train's table */
	int n;
	char values[SWEEP_MAX_VALUES][64];
};

struct sweep_grid {
	char section[SWEEP_SECTION_BYTES];
	struct rv_option table[TRAIN_OPTIONS_MAX]; /* train's */
	struct train_options base;                 /* common to all cells */
	struct sweep_axis axes[SWEEP_MAX_AXES];
	int n_axes;
	int n_cells;
	bool fixed_tokens;
	int64_t total_steps;
	struct tokenizer *tokenizer; /* NULL: bytes */
	/* The content of the text that was read last, which is mostly that of all cells. */
	char content_of[sizeof((struct train_options *)0)->data];
	struct data_content content;
};

/* Makes the grid. Reads --tokenizer and --init. RV_E_INVALID, RV_E_RANGE name the option and the
 * value; the faults of train_options_read_files. On a fault there is nothing to release. */
enum rv_err sweep_grid_make(const struct sweep_options *o, struct sweep_grid *g, struct rv_errtext *et);
void sweep_grid_release(struct sweep_grid *g);

struct sweep_cell {
	const struct sweep_grid *grid;
	int index;                 /* in it */
	struct train_options opts; /* out, name and threads are still those of the base */
	struct data_content data;  /* content of its text */
	char id[SWEEP_ID_BYTES];
	/* Equal in cells that must have equal results: data-parallel runs of as many steps, whatever
	 * H. */
	char result[SWEEP_ID_BYTES];
	char label[SWEEP_LABEL_BYTES]; /* section and its values of the axes: "workers=4" */
};
/* Returns cell i in [0, n_cells), completely checked. Opens the text. The faults of
 * train_options_check, with the cell's label; RV_E_RANGE: the batch or the steps cannot be
 * divided. */
enum rv_err sweep_grid_cell(struct sweep_grid *g, int i, struct sweep_cell *out, struct rv_errtext *et);
/* Returns true if an option that describes a run differs, with effect or without. */
bool sweep_cells_differ(const struct sweep_cell *a, const struct sweep_cell *b);
/* Returns the value of axis `a` in the cell. */
const char *sweep_cell_value(const struct sweep_cell *c, int a);

/* Writes the words of `PROGRAM train ...` that trains the cell in `dir`: only options that differ
 * from the defaults, NULL-terminated. They borrow from `memory`. */
enum { SWEEP_MAX_WORDS = 2 * TRAIN_OPTIONS_MAX + 16 };
struct sweep_command {
	char text[TRAIN_OPTIONS_MAX + 16][640];
	char *words[SWEEP_MAX_WORDS];
	int n;
};
void sweep_cell_command(const struct sweep_cell *c, const char *program, const char *dir, struct sweep_command *out);

#endif
