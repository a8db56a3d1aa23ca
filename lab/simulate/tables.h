/* tables.h: published tables of the line rate that a utilisation needs, and our figures for the
 * same rows.
 *
 *   streaming-diloco  Douillard et al., Streaming DiLoCo, arXiv 2501.18512, table 4: 5 methods,
 *                     3 models
 *   scaling-laws      Charles et al., Scaling Laws for DiLoCo, arXiv 2503.09799, table 6: 5 values
 *                     of H, 1 model
 *
 * How a figure is read off: the papers try 50 rates, logspace(-1, 3, 50) Gbit/s, and report the
 * last that does *not* yet reach the utilisation, to one decimal. So do we, with simulate() in the
 * papers' convention: layerwise, each exchange sends 16 bits (or 4) per value once, no latency, no
 * headers; streaming has P = ceil(L / 3) fragments. Their H is the steps between two exchanges of
 * one parameter: a round of ours, which exchanges one fragment, is H / P of them. */
#ifndef RV_LAB_SIMULATE_TABLES_H
#define RV_LAB_SIMULATE_TABLES_H

#include "lab/simulate/simulate.h"

enum { TABLE_UTILISATIONS = 5, TABLE_GRID_POINTS = 50, TABLE_MAX_ROWS = 5, TABLE_MAX_MODELS = 3 };

extern const double table_utilisations[TABLE_UTILISATIONS];

struct table_model {
	const char *name;
	int layers;
	double n_params, step_s;
};

struct table_row {
	const char *name;
	enum simulate_method method;
	int steps_per_cycle, overlap_steps; /* the papers' H */
	double bits_per_value;
};

struct published_table {
	const char *name, *source;
	int n_rows, n_models;
	struct table_row rows[TABLE_MAX_ROWS];
	struct table_model models[TABLE_MAX_MODELS];
	double gbit_per_s[TABLE_MAX_ROWS][TABLE_MAX_MODELS][TABLE_UTILISATIONS];
};

enum { TABLE_STREAMING_DILOCO, TABLE_SCALING_LAWS, PUBLISHED_TABLES };
extern const struct published_table published_tables[PUBLISHED_TABLES];

/* One cell, in Gbit/s. */
struct table_cell {
	double published, ours;
	int off_by; /* grid points from the published figure to ours; 0: it prints the same */
};

struct table_count {
	int cells, exact, within_one;
};

/* Returns grid point i, in Gbit/s. */
double table_grid(int i);
/* Compares the cells of one row and model, and adds their count to `count`. */
void table_compare(const struct published_table *t, int row, int model, struct table_cell out[TABLE_UTILISATIONS],
				   struct table_count *count);

#endif
