/* open.c: the work of a sweep: its cells, each once. */
#include "lab/sweep/run.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the cell that is the same run, or has the same result in the same product; NULL: none. */
static const struct sweep_cell *twin_of(const struct sweep *s, const struct sweep_cell *c) {
	for (int i = 0; i < s->n_cells; i++)
		if (strcmp(s->cells[i].id, c->id) == 0 ||
			(s->cells[i].grid == c->grid && strcmp(s->cells[i].result, c->result) == 0))
			return &s->cells[i];
	return NULL;
}

/* Merges a cell with its twin: sections may share cells, and methods ignore some options. Refuses
 * values written differently (8 and 08), which would make a run twice. */
static enum rv_err merge(struct sweep *s, const struct sweep_cell *c, const struct sweep_cell *twin,
						 struct rv_errtext *et) {
	if (twin->grid == c->grid && !sweep_cells_differ(twin, c))
		return rv_fail(et, RV_E_INVALID, "these are the same run: %s; %s", twin->label, c->label);
	s->n_merged += twin->grid == c->grid;
	return RV_OK;
}

static enum rv_err add_cells(struct sweep *s, struct sweep_grid *g, struct rv_errtext *et) {
	for (int i = 0; i < g->n_cells; i++) {
		struct sweep_cell *c = &s->cells[s->n_cells];
		RV_TRY(sweep_grid_cell(g, i, c, et));
		const struct sweep_cell *twin = twin_of(s, c);
		if (twin) {
			RV_TRY(merge(s, c, twin, et));
			continue;
		}
		sweep_row_of_cell(c, &s->rows[s->n_cells]);
		sweep_row_update(&s->rows[s->n_cells], s->opts->out);
		s->n_cells++;
	}
	return RV_OK;
}

static enum rv_err make_grids(struct sweep *s, const struct sweep_file *f, struct rv_errtext *et) {
	for (; s->n_grids < f->n; s->n_grids++) {
		enum rv_err e = sweep_grid_make(&f->parts[s->n_grids], &s->grids[s->n_grids], et);
		if (e != RV_OK)
			return f->n > 1 ? rv_fail_context(et, e, "section [%s]", f->parts[s->n_grids].section) : e;
	}
	return RV_OK;
}

static enum rv_err make_cells(struct sweep *s, struct rv_errtext *et) {
	int n = 0;
	for (int i = 0; i < s->n_grids; i++)
		n += s->grids[i].n_cells;
	if (n > SWEEP_MAX_CELLS)
		return rv_fail(et, RV_E_RANGE, "%d cells, at most %d: fewer values, or several sweeps", n, SWEEP_MAX_CELLS);
	RV_ASSERT(n >= 1);
	s->cells = calloc((size_t)n, sizeof *s->cells);
	s->rows = calloc((size_t)n, sizeof *s->rows);
	if (!s->cells || !s->rows)
		return rv_fail(et, RV_E_NOMEM, "no memory for %d cells", n);
	for (int i = 0; i < s->n_grids; i++)
		RV_TRY(add_cells(s, &s->grids[i], et));
	return RV_OK;
}

enum rv_err sweep_open(const struct sweep_file *f, struct sweep *s, struct rv_errtext *et) {
	*s = (struct sweep){.opts = &f->parts[0], .grids = calloc((size_t)f->n, sizeof *s->grids)};
	enum rv_err e = s->grids ? make_grids(s, f, et) : rv_fail(et, RV_E_NOMEM, "no memory for a sweep");
	if (e == RV_OK)
		e = make_cells(s, et);
	if (e != RV_OK)
		sweep_release(s);
	return e;
}

void sweep_release(struct sweep *s) {
	for (int i = 0; i < s->n_grids; i++)
		sweep_grid_release(&s->grids[i]);
	free(s->grids);
	free(s->cells);
	free(s->rows);
	*s = (struct sweep){0};
}
