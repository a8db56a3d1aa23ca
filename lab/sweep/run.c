/* run.c: the loop over cells. */
#include "lab/sweep/run.h"

#include "base/clean_text.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/option_value.h"
#include "base/os_memory.h"
#include "base/parallel.h"
#include "base/signals.h"
#include "base/version.h"
#include "lab/run/console.h"
#include "lab/run/record_gap.h"
#include "lab/sweep/memory.h"
#include "lab/sweep/notices.h"
#include "lab/sweep/pool.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
	POLL_MS = 200,
	LOOK_US = 2 * RV_US_PER_S,
	MEMORY_SHARE_PERCENT = 85,
	PATH_BYTES = 600,
	WHY_BYTES = 320,
	HOW_BYTES = 112
};

/* ---- files ---- */

/* Writes summary.csv, atomically. RV_E_FULL, RV_E_IO. */
static enum rv_err sweep_write_summary(const struct sweep *s, struct rv_errtext *et) {
	char path[PATH_BYTES], *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		return rv_fail(et, RV_E_NOMEM, "no memory for summary.csv");
	sweep_summary_csv(s->rows, s->n_cells, f);
	snprintf(path, sizeof path, "%s/summary.csv", s->opts->out);
	enum rv_err e = fclose(f) == 0 ? rv_file_write_atomic(path, text, n, 0644, et)
								   : rv_fail(et, RV_E_NOMEM, "no memory for summary.csv");
	free(text);
	return e;
}

/* Writes sweep.json: every option of the cell, how tokens are counted, and which options are the
 * sweep's axes (config.json is the model's). */
static enum rv_err write_config(const struct sweep *s, int i, struct rv_errtext *et) {
	const struct sweep_cell *c = &s->cells[i];
	char path[PATH_BYTES];
	json_t *options = json_object(), *axes = json_object();
	const struct sweep_grid *g = c->grid;
	for (const struct rv_option *o = g->table; o->name; o++) {
		char value[RV_OPTION_TEXT_BYTES];
		rv_option_value_print(o, &c->opts, value);
		(void)json_object_set_new(options, o->name, json_string(value));
	}
	for (int a = 0; a < g->n_axes; a++)
		(void)json_object_set_new(axes, g->table[g->axes[a].option].name, json_string(sweep_cell_value(c, a)));
	json_t *all = json_pack("{ss so ss ss ss so so}", "id", c->id, "program", json_sprintf("rivulet %s", rv_version()),
							"data", c->data.text, "replicas_mode", s->rows[i].replicas_mode, "section", g->section,
							"axes", axes, "options", options);
	char *text = all ? json_dumps(all, JSON_INDENT(1)) : NULL;
	json_decref(all);
	snprintf(path, sizeof path, "%s/%s/sweep.json", s->opts->out, c->id);
	enum rv_err e = text ? rv_file_write_atomic(path, text, strlen(text), 0644, et)
						 : rv_fail(et, RV_E_NOMEM, "no memory for %s", path);
	free(text);
	return e;
}

/* ---- running ---- */

struct runner {
	struct sweep *s;
	struct console console;
	struct sweep_pool pool;
	char program[PATH_MAX];
	int n_signals;
	int next; /* next cell to consider */
	int n_failed, first_failed;
	int n_too_large, first_too_large;
	int64_t looked_us;
};

/* Reports a cell that lost a part of its record and will be trained anew (--on-record-gap): a
 * continued run would not write it again. */
static void tell_of_gap(const struct runner *r, int i, const char *dir) {
	struct rv_errtext what = {0};
	if (record_gap(dir, &what))
		rv_event(r->console.events, RV_WARN, "cell_again",
				 RV_FIELDS(rv_field_str("id", r->s->cells[i].id), rv_field_str("why", what.text)),
				 "%.8s  trained anew: %s", r->s->cells[i].id, what.text);
}

static enum rv_err start_cell(struct runner *r, int i, size_t memory_bytes, struct rv_errtext *et) {
	struct sweep *s = r->s;
	char log[PATH_BYTES], dir[PATH_BYTES];
	snprintf(dir, sizeof dir, "%s/%s", s->opts->out, s->cells[i].id);
	snprintf(log, sizeof log, "%s/train.log", dir);
	RV_TRY(rv_dir_make(dir, 0755, et));
	RV_TRY(write_config(s, i, et));
	tell_of_gap(r, i, dir);
	struct sweep_command *c = malloc(sizeof *c);
	if (!c)
		return rv_fail(et, RV_E_NOMEM, "no memory to start a cell");
	struct sweep_cell cell = s->cells[i];
	cell.opts.parallel = 1;
	cell.opts.short_of_memory = MEMORY_SHORT_WARN; /* decided here: others run beside it */
	sweep_cell_command(&cell, r->program, s->opts->out, c);
	enum rv_err e = sweep_pool_start(&r->pool, i, memory_bytes, c->words, log, et);
	free(c);
	if (e == RV_OK)
		s->rows[i].state = SWEEP_RUNNING;
	return e;
}

static enum rv_err start_what_fits(struct runner *r, struct rv_errtext *et) {
	for (; r->n_signals == 0 && r->next < r->s->n_cells; r->next++) {
		if (r->s->rows[r->next].state != SWEEP_WAITING)
			continue;
		size_t memory = sweep_cell_memory(&r->s->cells[r->next]);
		if (!sweep_pool_has_room(&r->pool, memory))
			return RV_OK;
		RV_TRY(start_cell(r, r->next, memory, et));
	}
	return RV_OK;
}

/* Skips cells that would not fit even alone: the kernel would kill them, or another process. */
static void leave_out_what_cannot_fit(struct runner *r, const struct memory_room *room) {
	for (int i = 0; i < r->s->n_cells; i++) {
		struct sweep_row *row = &r->s->rows[i];
		struct rv_errtext why = {0};
		if (row->state != SWEEP_WAITING || sweep_cell_fit(&r->s->cells[i], room, &why) == RV_OK)
			continue;
		row->state = SWEEP_FAILED;
		if (r->n_too_large++ == 0)
			r->first_too_large = i;
		rv_event(r->console.events, RV_ERROR, "cell_too_large",
				 RV_FIELDS(rv_field_str("id", row->id), rv_field_str("why", why.text)), "%.8s  left out: %s  (%s)",
				 row->id, why.text, row->label);
	}
}

/* Reads the last line that the cell's process printed, or why its log cannot be read. */
static void read_why(const char *out, const char *id, char why[WHY_BYTES]) {
	char path[PATH_BYTES], text[4 * WHY_BYTES];
	snprintf(path, sizeof path, "%s/%s/train.log", out, id);
	FILE *f = fopen(path, "re");
	long end = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;
	size_t n = 0;
	if (end > 0 && fseek(f, end > (long)sizeof text ? end - (long)sizeof text + 1 : 0, SEEK_SET) == 0)
		n = fread(text, 1, sizeof text - 1, f);
	if (f)
		(void)fclose(f);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	const char *last = strrchr(text, '\n');
	snprintf(why, WHY_BYTES, "%.*s", WHY_BYTES - 1,
			 n == 0 ? "its log is empty: is the disk full?"
			 : last ? last + 1
					: text);
	clean_text(why);
}

/* Describes a status of sweep_pool_reap. An unexpected SIGKILL is the kernel's. */
static void print_how(int status, char how[HOW_BYTES]) {
	const int signal = status - SWEEP_POOL_SIGNALLED;
	if (signal <= 0)
		snprintf(how, HOW_BYTES, "failed with status %d", status);
	else
		snprintf(how, HOW_BYTES, "was killed by signal %d (%s)%s; its last line", signal, strsignal(signal),
				 signal == SIGKILL ? ", as the kernel does when memory is short" : "");
}

static void cell_ended(struct runner *r, int i, int status) {
	struct sweep_row *row = &r->s->rows[i];
	row->state = SWEEP_WAITING;
	sweep_row_update(row, r->s->opts->out);
	if (row->state == SWEEP_DONE) {
		rv_event(r->console.events, RV_INFO, "cell",
				 RV_FIELDS(rv_field_str("id", row->id), rv_field_double("loss", row->loss),
						   rv_field_int("bytes_sent", (int64_t)row->bytes_sent)),
				 "%.8s  held-out %.4f  %.3f MB sent  %s", row->id, row->loss, (double)row->bytes_sent * 1e-6,
				 row->label);
		return;
	}
	if (row->state == SWEEP_DIVERGED) {
		rv_event(r->console.events, RV_WARN, "cell_diverged",
				 RV_FIELDS(rv_field_str("id", row->id), rv_field_int("round", (int64_t)row->diverged_round)),
				 "%.8s  diverged in round %" PRIu64 "  %s", row->id, row->diverged_round, row->label);
		return;
	}
	if (r->n_signals > 0)
		return;
	row->state = SWEEP_FAILED;
	if (r->n_failed++ == 0)
		r->first_failed = i;
	char why[WHY_BYTES], how[HOW_BYTES];
	read_why(r->s->opts->out, row->id, why);
	print_how(status, how);
	rv_event(r->console.events, RV_ERROR, "cell_failed",
			 RV_FIELDS(rv_field_str("id", row->id), rv_field_int("status", status), rv_field_str("how", how),
					   rv_field_str("why", why)),
			 "%.8s  %s: %s  (%s; %s/%s/train.log)", row->id, how, why, row->label, r->s->opts->out, row->id);
}

/* Returns the steps of a row; a run that has diverged counts as complete. */
static uint64_t steps_of(const struct sweep_row *row, bool done) {
	uint64_t rounds = done || row->state == SWEEP_DIVERGED ? row->done_rounds : (uint64_t)row->rounds;
	return rounds * (uint64_t)row->steps_per_round * (uint64_t)row->workers;
}

/* Updates a running row, whose process may still have to end after its last line. */
static void look_at_running(struct sweep_row *row, const char *dir) {
	sweep_row_update(row, dir);
	row->state = SWEEP_RUNNING;
}

static void show_progress(struct runner *r) {
	int64_t now_us = rv_clock_monotonic_us();
	uint64_t done = 0, total = 0;
	int n_done = 0;
	bool look = now_us - r->looked_us >= LOOK_US;
	for (int i = 0; i < r->s->n_cells; i++) {
		struct sweep_row *row = &r->s->rows[i];
		if (look && row->state == SWEEP_RUNNING)
			look_at_running(row, r->s->opts->out);
		done += steps_of(row, true);
		total += steps_of(row, false);
		n_done += sweep_row_is_complete(row);
	}
	if (look)
		r->looked_us = now_us;
	char note[64];
	snprintf(note, sizeof note, "%d/%d cells, %d running", n_done, r->s->n_cells, r->pool.n_running);
	rv_progress(r->console.events, now_us, "sweep", done, total, "step", note);
}

static void take_signals(struct runner *r) {
	while (rv_signals_take(r->console.signals) != 0)
		sweep_pool_signal(&r->pool, r->n_signals++ == 0 ? SIGTERM : SIGKILL);
}

static enum rv_err run_cells(struct runner *r, struct rv_errtext *et) {
	enum rv_err e = start_what_fits(r, et);
	while (r->pool.n_running > 0) {
		int cell, status;
		bool ended = false;
		while (sweep_pool_reap(&r->pool, &cell, &status)) {
			cell_ended(r, cell, status);
			ended = true;
		}
		if (ended && e == RV_OK)
			e = sweep_write_summary(r->s, et);
		if (e == RV_OK)
			e = start_what_fits(r, et);
		else
			sweep_pool_signal(&r->pool, SIGTERM);
		show_progress(r);
		struct pollfd fd = {.fd = r->console.signals, .events = POLLIN};
		(void)poll(&fd, 1, POLL_MS);
		take_signals(r);
	}
	rv_progress_clear(r->console.events);
	return e;
}

static bool is_described(const struct sweep *s, int i) {
	char path[PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s/sweep.json", s->opts->out, s->cells[i].id);
	json_t *all = json_load_file(path, 0, NULL);
	const char *id = json_string_value(json_object_get(all, "id"));
	const bool mine = id && strcmp(id, s->cells[i].id) == 0;
	json_decref(all);
	return mine;
}

/* Writes sweep.json of complete cells: those made elsewhere, with the commands of --print, lack it;
 * others may be damaged. */
static enum rv_err describe_done(const struct sweep *s, struct rv_errtext *et) {
	for (int i = 0; i < s->n_cells; i++)
		if (sweep_row_is_complete(&s->rows[i]) && !is_described(s, i))
			RV_TRY(write_config(s, i, et));
	return RV_OK;
}

static enum rv_err outcome(const struct runner *r, struct rv_errtext *et) {
	const struct sweep *s = r->s;
	if (r->n_signals > 0)
		return rv_fail(et, RV_E_CANCELLED,
					   "stopped; the running cells have saved in %s, and the same command continues", s->opts->out);
	if (r->n_failed == 0 && r->n_too_large > 0)
		return rv_fail(
			et, RV_E_NOMEM,
			"%d of %d cells do not fit into this machine's memory and were skipped, first %s; what would fit "
			"is printed above, and the same command on a larger machine continues",
			r->n_too_large, s->n_cells, s->rows[r->first_too_large].label);
	if (r->n_failed > 0)
		return rv_fail(et, RV_E_IO, "%d of %d cells failed, first %s: see %s/%s/train.log", r->n_failed, s->n_cells,
					   s->rows[r->first_failed].label, s->opts->out, s->rows[r->first_failed].id);
	return RV_OK;
}

static int jobs_of(const struct sweep *s) {
	int64_t threads = 1;
	for (int i = 0; i < s->n_grids; i++)
		threads = s->grids[i].base.threads > threads ? s->grids[i].base.threads : threads;
	int jobs = s->opts->jobs > 0 ? (int)s->opts->jobs : parallel_cores() / (int)threads;
	return jobs < 1 ? 1 : jobs > SWEEP_POOL_MAX ? SWEEP_POOL_MAX : jobs;
}

enum rv_err sweep_run(struct sweep *s, struct rv_errtext *et) {
	struct runner r = {.s = s};
	const struct memory_room room = {
		.device = SIZE_MAX, .host = os_memory_available(""), .swap = os_swap_available("")};
	int lock = -1;
	r.pool = (struct sweep_pool){.jobs = jobs_of(s), .memory_bytes = room.host / 100 * MEMORY_SHARE_PERCENT};
	sweep_own_program(r.program);
	enum rv_err e = console_open(&r.console, stdout, et);
	if (e == RV_OK)
		e = rv_dir_make(s->opts->out, 0755, et);
	if (e == RV_OK)
		e = rv_dir_lock(s->opts->out, &lock, et);
	if (e == RV_OK) {
		sweep_notices(s, r.console.events);
		leave_out_what_cannot_fit(&r, &room);
		e = describe_done(s, et);
	}
	if (e == RV_OK)
		e = run_cells(&r, et);
	if (e == RV_OK)
		e = sweep_write_summary(s, et);
	if (e == RV_OK)
		e = outcome(&r, et);
	console_close(&r.console);
	if (lock >= 0)
		rv_dir_unlock(lock);
	return e;
}
