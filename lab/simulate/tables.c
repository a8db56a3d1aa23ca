/* tables.c: the published figures, and the comparison with ours. */
#include "lab/simulate/tables.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

const double table_utilisations[TABLE_UTILISATIONS] = {0.50, 0.80, 0.90, 0.95, 0.99};

#define MODEL_10B                                                                                                      \
	{ "10B", 48, 10e9, 0.8 }

const struct published_table published_tables[PUBLISHED_TABLES] = {
	{.name = "streaming-diloco",
	 .source = "Streaming DiLoCo, arXiv 2501.18512, table 4 (H = 100)",
	 .n_rows = 5,
	 .n_models = 3,
	 .models = {{"1B", 24, 1e9, 0.1}, MODEL_10B, {"100B", 108, 100e9, 4.9}},
	 .rows = {{"data-parallel", SIMULATE_DDP, 1, 0, 16},
			  {"DiLoCo", SIMULATE_DILOCO, 100, 0, 16},
			  {"streaming", SIMULATE_STREAMING, 100, 0, 16},
			  {"+ overlap", SIMULATE_STREAMING, 100, 1, 16},
			  {"+ 4 bits", SIMULATE_STREAMING, 100, 1, 4}},
	 .gbit_per_s =
		 {
			 {{86.8, 152.6, 184.2, 222.3, 569},
			  {104.8, 222.3, 222.3, 268.3, 471.5},
			  {184.2, 323.8, 390.7, 390.7, 471.5}},
			 {{1.4, 6.2, 13.3, 23.3, 86.8}, {1.7, 7.5, 16.0, 33.9, 104.8}, {3.0, 11.0, 23.3, 49.4, 184.2}},
			 {{1.4, 5.2, 9.1, 16.0, 28.1}, {1.7, 5.2, 9.1, 13.3, 19.3}, {2.4, 6.2, 9.1, 11.0, 19.3}},
			 {{1.4, 4.3, 6.2, 9.1, 11.0}, {1.7, 3.6, 5.2, 6.2, 7.5}, {1.7, 3.6, 4.3, 5.2, 5.2}},
			 {{0.4, 0.9, 1.7, 2.0, 3.0}, {0.4, 0.9, 1.4, 1.4, 1.7}, {0.5, 0.9, 1.1, 1.1, 1.4}},
		 }},
	{.name = "scaling-laws",
	 .source = "Scaling Laws for DiLoCo, arXiv 2503.09799, table 6 (10B)",
	 .n_rows = 5,
	 .n_models = 1,
	 .models = {MODEL_10B},
	 .rows = {{"H = 1", SIMULATE_DDP, 1, 0, 16},
			  {"H = 10", SIMULATE_DILOCO, 10, 0, 16},
			  {"H = 50", SIMULATE_DILOCO, 50, 0, 16},
			  {"H = 100", SIMULATE_DILOCO, 100, 0, 16},
			  {"H = 300", SIMULATE_DILOCO, 300, 0, 16}},
	 .gbit_per_s = {{{104.8, 184.2, 222.3, 222.3, 390.7}},
					{{16.0, 49.4, 86.8, 152.6, 222.3}},
					{{3.0, 11.0, 23.3, 41.0, 126.5}},
					{{1.4, 6.2, 13.3, 23.3, 86.8}},
					{{0.5, 2.0, 4.3, 9.1, 41.0}}}},
};

double table_grid(int i) {
	return pow(10, -1 + 4.0 * i / (TABLE_GRID_POINTS - 1));
}

static struct simulate_run table_run(const struct published_table *t, int row, int model) {
	const struct table_row *r = &t->rows[row];
	const struct table_model *m = &t->models[model];
	int fragments = (m->layers + 2) / 3, rounds = r->method == SIMULATE_STREAMING ? fragments : 1;
	return (struct simulate_run){.method = r->method,
								 .layers = m->layers,
								 .n_params = m->n_params,
								 .step_s = m->step_s,
								 /* half: to even; 12.5 is 12, as in the published figures */
								 .steps_per_round = (int)rint((double)r->steps_per_cycle / rounds),
								 .fragments = fragments,
								 .overlap_steps = r->overlap_steps,
								 .bits_per_value = r->bits_per_value,
								 .rate_bits_per_s = INFINITY,
								 .overhead = 1,
								 .layerwise = true};
}

static bool prints_as(double gbit, double published) {
	return fabs(round(gbit * 10) / 10 - published) < 1e-6;
}

/* Returns the grid points from the published figure, read as the nearest one or any that prints the
 * same, to grid point i. */
static int distance(double published, int i) {
	int best = 0, nearest = 0;
	for (int j = 0; j < TABLE_GRID_POINTS; j++)
		if (fabs(log(table_grid(j) / published)) < fabs(log(table_grid(nearest) / published)))
			nearest = j;
	best = i - nearest;
	for (int j = 0; j < TABLE_GRID_POINTS; j++)
		if (prints_as(table_grid(j), published) && abs(i - j) < abs(best))
			best = i - j;
	return best;
}

void table_compare(const struct published_table *t, int row, int model, struct table_cell out[TABLE_UTILISATIONS],
				   struct table_count *count) {
	struct simulate_run run = table_run(t, row, model);
	double reached[TABLE_GRID_POINTS];
	for (int i = 0; i < TABLE_GRID_POINTS; i++) {
		struct simulate_result r;
		run.rate_bits_per_s = table_grid(i) * 1e9;
		simulate(&run, &r);
		reached[i] = r.utilisation;
	}
	for (int u = 0; u < TABLE_UTILISATIONS; u++) {
		int below = 0; /* the lowest rate is printed even if it already suffices */
		for (int i = 1; i < TABLE_GRID_POINTS && reached[i] < table_utilisations[u]; i++)
			below = i;
		double published = t->gbit_per_s[row][model][u];
		out[u] = (struct table_cell){
			.published = published, .ours = table_grid(below), .off_by = distance(published, below)};
		count->cells++;
		count->exact += out[u].off_by == 0;
		count->within_one += abs(out[u].off_by) <= 1;
	}
}
