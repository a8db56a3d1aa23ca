/* notices.c: see notices.h. */
#include "lab/sweep/notices.h"

#include "base/run_config_idle.h"
#include "lab/options/idle.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Emits a notice once for the sweep: for the first cell of which it is true. */
static void first_of(const struct sweep *s, const char *event,
					 bool (*is_true)(const struct train_options *o, struct rv_errtext *what),
					 struct rv_events *events) {
	for (int i = 0; i < s->n_cells; i++) {
		struct rv_errtext what = {0};
		if (!is_true(&s->cells[i].opts, &what))
			continue;
		rv_event(events, RV_WARN, event, RV_FIELDS(rv_field_str("id", s->cells[i].id)), "%s: %s", s->cells[i].label,
				 what.text);
		return;
	}
}

/* Returns why an option has no effect in any cell; if it has one in some, that is no mistake: they
 * are compared with others. */
static const char *idle_everywhere(const void *ctx, const char *name, struct idle_text *room) {
	const struct sweep *s = ctx;
	const char *belongs = NULL;
	for (int i = 0; i < s->n_cells; i++) {
		struct train_idle idle;
		train_idle_init(&idle, &s->cells[i].opts);
		belongs = train_idle(&idle, name, room);
		if (!belongs)
			return NULL;
	}
	return belongs;
}

static void idle_options(const struct sweep *s, struct rv_events *events) {
	const struct sweep_grid *g = s->cells[0].grid;
	struct train_options usual = {.run = {.seed = 0}};
	struct rv_errtext what = {0};
	rv_options_defaults(g->table, &usual);
	if (rv_options_idle(g->table, &s->cells[0].opts, &usual, idle_everywhere, s, &what) > 0)
		rv_event(events, RV_WARN, "no_effect", RV_FIELDS(rv_field_str("text", what.text)), "%s", what.text);
}

static void merged(const struct sweep *s, struct rv_events *events) {
	if (s->n_merged > 0)
		rv_event(events, RV_INFO, "same_runs", RV_FIELDS(rv_field_int("n", s->n_merged)),
				 "%d combinations differ from cells in options only that have no effect on their results: trained once",
				 s->n_merged);
}

static bool is_cell(const struct sweep *s, const char *id) {
	for (int i = 0; i < s->n_cells; i++)
		if (strcmp(s->cells[i].id, id) == 0)
			return true;
	return false;
}

/* Returns true if the name is that of a cell, of any sweep. */
static int is_id(const struct dirent *d) {
	return strlen(d->d_name) == SWEEP_ID_BYTES - 1 && strspn(d->d_name, "0123456789abcdef") == SWEEP_ID_BYTES - 1;
}

static void strangers(const struct sweep *s, struct rv_events *events) {
	struct dirent **entries;
	const char *out = s->opts->out;
	int n = scandir(out, &entries, is_id, alphasort), n_others = 0;
	for (int i = 0; i < n; i++) {
		char path[sizeof s->opts->out + SWEEP_ID_BYTES + 16];
		snprintf(path, sizeof path, "%s/%.16s/sweep.json", out, entries[i]->d_name);
		n_others += !is_cell(s, entries[i]->d_name) && access(path, F_OK) == 0;
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	if (n_others > 0)
		rv_event(events, RV_INFO, "other_cells", RV_FIELDS(rv_field_int("n", n_others)),
				 "%d runs in %s are cells of another sweep (other options, another text, or another version of this "
				 "program): they are kept, but not in summary.csv",
				 n_others, out);
}

void sweep_notices(const struct sweep *s, struct rv_events *events) {
	first_of(s, "shared_text", train_options_share_text, events);
	first_of(s, "only_warm_up", train_options_only_warm_up, events);
	idle_options(s, events);
	merged(s, events);
	strangers(s, events);
}
