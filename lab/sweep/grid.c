/* grid.c: lists of values, their product, and each cell's name. */
#include "lab/sweep/grid.h"
#include "lab/methods/methods.h"

#include "base/assert.h"
#include "base/hex.h"
#include "base/option_value.h"
#include "lab/options/idle.h"
#include "lab/run/text_source.h"
#include "train/text/run_tokenizer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(f)      offsetof(struct sweep_options, f)
#define FIELD_SIZE(f) sizeof(((struct sweep_options *)0)->f)

static const struct rv_option own_options[] = {
	{"preset", RV_OPT_STRING, FIELD(preset), FIELD_SIZE(preset), "", 0, 0, NULL,
	 "The shape of a well-known model, of those in `rivulet train --help`; given options and FILE's lines override it. "
	 "Empty: none.",
	 "Sweep"},
	{"sync-every", RV_OPT_STRING, FIELD(sync_every), FIELD_SIZE(sync_every), "", 1, 0, NULL,
	 "H, or several: another name of steps-per-round.", "Sweep"},
	{"total-steps", RV_OPT_INT, FIELD(total_steps), 0, "0", 0, 1e9, NULL,
	 "Inner steps of each worker in every cell, a multiple of each H: rounds follows. 0: rounds as given.", "Sweep"},
	{"replicas-mode", RV_OPT_CHOICE, FIELD(replicas_mode), 0, "auto", 0, 0, "auto|fixed-tokens|fixed-steps",
	 "fixed-tokens: batch is that of all workers together, each takes batch / workers; fixed-steps: each takes batch; "
	 "auto: FILE's value, else fixed-steps.",
	 "Sweep"},
	{"out", RV_OPT_STRING, FIELD(out), FIELD_SIZE(out), "", 0, 0, NULL,
	 "Directory for the cells and summary.csv. Cells that are complete there are not run again. Empty: FILE's "
	 "value, else runs/sweep.",
	 "Sweep"},
	{"jobs", RV_OPT_INT, FIELD(jobs), 0, "-1", -1, 256, NULL,
	 "Cells that run at a time; 0: as many as cores and memory allow; -1: FILE's value, else 0.", "Sweep"},
	{"print", RV_OPT_BOOL, FIELD(print), 0, "false", 0, 0, NULL,
	 "Run nothing: print one command for each cell that is not complete, to be run anywhere; then sweep again to "
	 "merge.",
	 "Sweep"},
	{.name = NULL},
};

/* Options of train that the sweep sets itself, or that no cell has. */
static const char *const of_the_sweep[] = {"out",           "name",          "parallel",      "run-hash",
										   "eval-replicas", "replicas-mode", "on-record-gap", NULL};
/* Options about where files are, how often they are saved and when they are refused: equal for all
 * cells, and not part of a cell's name. */
static const char *const common[] = {"data", "field", "tokenizer", "init", "save-every", "short-of-memory", NULL};

static int table_find(const struct rv_option *table, const char *name) {
	for (int i = 0; table[i].name; i++)
		if (strcmp(table[i].name, name) == 0)
			return i;
	return -1;
}

/* Returns true if the value may be empty, as texts may for train (--speeds '': all alike); a list
 * of numbers or of choices has a value. */
static bool may_be_empty(const struct rv_option *o) {
	return o->type == RV_OPT_STRING && (!o->fallback || !o->fallback[0]);
}

void sweep_options_table(struct rv_option *table, int cap) {
	struct rv_option train[TRAIN_OPTIONS_MAX];
	int n = 0;
	train_options_table(train, TRAIN_OPTIONS_MAX);
	for (; own_options[n].name; n++)
		table[n] = own_options[n];
	for (int i = 0; train[i].name; i++) {
		if (rv_name_is_one_of(train[i].name, of_the_sweep))
			continue;
		RV_ASSERT(n + 1 < cap);
		table[n++] = (struct rv_option){.name = train[i].name,
										.type = RV_OPT_STRING,
										.offset = FIELD(values) + (size_t)i * SWEEP_LIST_BYTES,
										.cap = SWEEP_LIST_BYTES,
										.fallback = "",
										.min = may_be_empty(&train[i]) ? 0 : 1,
										.help = train[i].help,
										.group = train[i].group};
	}
	table[n] = (struct rv_option){.name = NULL};
}

void sweep_options_fill(struct sweep_options *o, const struct sweep_options *file) {
	for (int i = 0; i < TRAIN_OPTIONS_MAX; i++)
		if (!o->values[i][0])
			memcpy(o->values[i], file->values[i], SWEEP_LIST_BYTES);
	if (!o->sync_every[0])
		memcpy(o->sync_every, file->sync_every, SWEEP_LIST_BYTES);
	if (o->total_steps == 0)
		o->total_steps = file->total_steps;
	if (o->jobs < 0)
		o->jobs = file->jobs;
	if (!o->out[0])
		memcpy(o->out, file->out, sizeof o->out);
	if (!o->preset[0])
		memcpy(o->preset, file->preset, sizeof o->preset);
	if (o->replicas_mode == SWEEP_REPLICAS_AUTO)
		o->replicas_mode = file->replicas_mode;
	memcpy(o->section, file->section, sizeof o->section);
}

void sweep_options_settle(struct sweep_options *o) {
	if (o->jobs < 0)
		o->jobs = 0;
	if (!o->out[0])
		snprintf(o->out, sizeof o->out, "runs/sweep");
	if (o->replicas_mode == SWEEP_REPLICAS_AUTO)
		o->replicas_mode = SWEEP_REPLICAS_FIXED_STEPS;
}

/* ---- the grid ---- */

/* Splits "1, 8,32" at its commas. */
static enum rv_err split(const struct rv_option *opt, const char *list, struct sweep_axis *axis,
						 struct rv_errtext *et) {
	axis->n = 0;
	for (const char *at = list;;) {
		at += strspn(at, " \t");
		size_t n = strcspn(at, ",");
		const char *next = at + n;
		while (n > 0 && (at[n - 1] == ' ' || at[n - 1] == '\t'))
			n--;
		if (n == 0 || n >= sizeof axis->values[0])
			return rv_fail(et, RV_E_INVALID, "%s = %.80s: value %d of the list is %s", opt->name, list, axis->n + 1,
						   n == 0 ? "missing" : "too long");
		if (axis->n == SWEEP_MAX_VALUES)
			return rv_fail(et, RV_E_RANGE, "%s: more than %d values", opt->name, SWEEP_MAX_VALUES);
		snprintf(axis->values[axis->n++], sizeof axis->values[0], "%.*s", (int)n, at);
		if (*next == '\0')
			return RV_OK;
		at = next + 1;
	}
}

static enum rv_err no_value_twice(const struct rv_option *opt, const struct sweep_axis *axis, struct rv_errtext *et) {
	for (int i = 0; i < axis->n; i++)
		for (int j = 0; j < i; j++)
			if (strcmp(axis->values[i], axis->values[j]) == 0)
				return rv_fail(et, RV_E_INVALID, "%s: %s is in the list twice", opt->name, axis->values[i]);
	return RV_OK;
}

static enum rv_err add_axis(struct sweep_grid *g, int option, const char *list, struct rv_errtext *et) {
	const struct rv_option *opt = &g->table[option];
	if (g->n_axes == SWEEP_MAX_AXES)
		return rv_fail(et, RV_E_RANGE, "more than %d options have lists of values", SWEEP_MAX_AXES);
	struct sweep_axis *axis = &g->axes[g->n_axes];
	axis->option = option;
	RV_TRY(split(opt, list, axis, et));
	RV_TRY(no_value_twice(opt, axis, et));
	for (int i = 0; i < axis->n; i++) {
		struct train_options scratch = g->base;
		RV_TRY(rv_option_value_parse(opt, &scratch, axis->values[i], et));
	}
	if (axis->n > SWEEP_MAX_CELLS / g->n_cells)
		return rv_fail(et, RV_E_RANGE, "more than %d cells: fewer values, or several sweeps", SWEEP_MAX_CELLS);
	g->n_cells *= axis->n;
	g->n_axes++;
	return RV_OK;
}

/* Returns true if the value is a list. A path, which may hold commas, is the same for all cells:
 * never a list. */
static bool is_list(const struct rv_option *opt, const char *text) {
	return !rv_name_is_one_of(opt->name, common) && strchr(text, ',') != NULL;
}

static enum rv_err set_preset(struct sweep_grid *g, const char *name, struct rv_errtext *et) {
	const struct rv_preset *preset;
	if (!name[0])
		return RV_OK;
	RV_TRY(rv_preset_find(model_presets, name, &preset, et));
	return rv_options_parse_text(g->table, &g->base, preset->name, preset->text, et);
}

/* Returns the list that was given for train's option i: sync-every is another name of
 * steps-per-round. */
static const char *given(const struct sweep_grid *g, const struct sweep_options *o, int i) {
	return o->sync_every[0] && i == table_find(g->table, "steps-per-round") ? o->sync_every : o->values[i];
}

static enum rv_err set_scalars(struct sweep_grid *g, const struct sweep_options *o, struct rv_errtext *et) {
	RV_TRY(set_preset(g, o->preset, et));
	for (int i = 0; g->table[i].name; i++)
		if (given(g, o, i)[0] && !is_list(&g->table[i], given(g, o, i)))
			RV_TRY(rv_option_value_parse(&g->table[i], &g->base, given(g, o, i), et));
	RV_TRY(rv_options_check_required(g->table, &g->base, et));
	if (g->base.threads == 0)
		g->base.threads = 1; /* not this machine's: results of several machines merge */
	g->base.eval_replicas = true;
	RV_TRY(train_options_read_files(&g->base, et));
	return run_tokenizer_open(&g->base.run, g->base.files.tokenizer, &g->tokenizer, et);
}

static enum rv_err set_axes(struct sweep_grid *g, const struct sweep_options *o, struct rv_errtext *et) {
	for (int i = 0; g->table[i].name; i++)
		if (is_list(&g->table[i], given(g, o, i)))
			RV_TRY(add_axis(g, i, given(g, o, i), et));
	return RV_OK;
}

/* Refuses a grid that would compare runs of different length: as many rounds for each H. */
static enum rv_err same_length(const struct sweep_grid *g, const struct sweep_options *o, struct rv_errtext *et) {
	const int h = table_find(g->table, "steps-per-round");
	for (int a = 0; a < g->n_axes; a++)
		if (g->axes[a].option == h && g->axes[a].n > 1 && o->total_steps == 0 &&
			!o->values[table_find(g->table, "rounds")][0])
			return rv_fail(et, RV_E_INVALID,
						   "sync-every has several values: also give their length: --total-steps N (inner steps of "
						   "each worker, a multiple of each H), or --rounds N for equal numbers of rounds");
	return RV_OK;
}

static enum rv_err fill_grid(struct sweep_grid *g, const struct sweep_options *o, struct rv_errtext *et) {
	if (o->sync_every[0] && o->values[table_find(g->table, "steps-per-round")][0])
		return rv_fail(et, RV_E_INVALID, "sync-every and steps-per-round are the same: give one of them");
	if (o->total_steps > 0 && o->values[table_find(g->table, "rounds")][0])
		return rv_fail(et, RV_E_INVALID, "total-steps and rounds: give one of them, the other follows from it");
	RV_TRY(set_scalars(g, o, et));
	RV_TRY(set_axes(g, o, et));
	return same_length(g, o, et);
}

enum rv_err sweep_grid_make(const struct sweep_options *o, struct sweep_grid *g, struct rv_errtext *et) {
	*g = (struct sweep_grid){
		.n_cells = 1, .fixed_tokens = o->replicas_mode == SWEEP_REPLICAS_FIXED_TOKENS, .total_steps = o->total_steps};
	memcpy(g->section, o->section, sizeof g->section);
	train_options_table(g->table, TRAIN_OPTIONS_MAX);
	rv_options_defaults(g->table, &g->base);
	enum rv_err e = fill_grid(g, o, et);
	if (e != RV_OK)
		sweep_grid_release(g);
	return e;
}

void sweep_grid_release(struct sweep_grid *g) {
	tokenizer_free(g->tokenizer);
	g->tokenizer = NULL;
}

/* ---- cells ---- */

/* Returns the value of axis `a` in cell i: the last axis runs fastest. */
static const char *value_at(const struct sweep_grid *g, int i, int a) {
	for (int later = g->n_axes - 1; later > a; later--)
		i /= g->axes[later].n;
	return g->axes[a].values[i % g->axes[a].n];
}

const char *sweep_cell_value(const struct sweep_cell *c, int a) {
	return value_at(c->grid, c->index, a);
}

static enum rv_err divide(int64_t *value, int64_t by, const char *what, const char *by_what, struct rv_errtext *et) {
	if (*value % by != 0)
		return rv_fail(et, RV_E_RANGE, "%s = %" PRId64 " is not a multiple of %s = %" PRId64, what, *value, by_what,
					   by);
	*value /= by;
	return RV_OK;
}

static enum rv_err divide_work(const struct sweep_grid *g, struct train_options *o, struct rv_errtext *et) {
	if (g->fixed_tokens)
		RV_TRY(divide(&o->run.batch, o->workers, "batch", "workers", et));
	if (g->total_steps == 0)
		return RV_OK;
	o->run.rounds = g->total_steps;
	return divide(&o->run.rounds, o->run.steps_per_round, "total-steps", "steps-per-round", et);
}

/* Returns true if an option is part of a run's description. */
static bool is_a_fact(const char *name) {
	return !rv_name_is_one_of(name, of_the_sweep) && !rv_name_is_one_of(name, common) && strcmp(name, "recompute") != 0;
}

bool sweep_cells_differ(const struct sweep_cell *a, const struct sweep_cell *b) {
	for (const struct rv_option *o = a->grid->table; o->name; o++)
		if (is_a_fact(o->name) && !rv_option_value_same(o, &a->opts, &b->opts))
			return true;
	return false;
}

/* Hashes the options of `opts` that decide a result; one without effect counts as not chosen. */
static void hash_facts(const struct rv_option *table, const struct train_options *opts, struct rv_hasher *h) {
	struct train_options usual = {.run = {.seed = 0}};
	struct train_idle idle;
	struct idle_text room;
	rv_options_defaults(table, &usual);
	train_idle_init(&idle, opts);
	for (const struct rv_option *o = table; o->name; o++) {
		char value[RV_OPTION_TEXT_BYTES];
		if (!is_a_fact(o->name))
			continue;
		rv_option_value_print(o, train_idle(&idle, o->name, &room) ? &usual : opts, value);
		rv_hash_update(h, o->name, strlen(o->name) + 1);
		rv_hash_update(h, value, strlen(value) + 1);
	}
}

static void name_run(const struct rv_option *table, const struct train_options *opts, const struct data_content *data,
					 char out[SWEEP_ID_BYTES]) {
	struct rv_hasher h = rv_hasher_of("rivulet sweep");
	hash_facts(table, opts, &h);
	rv_hash_update(&h, data->text, strlen(data->text) + 1);
	const struct rv_hash hash = rv_hash_final(&h);
	rv_hex_encode(hash.b, SWEEP_ID_BYTES / 2, out);
}

/* Returns the options without H if gradients are averaged at every step: H then only decides when
 * to evaluate. */
static struct train_options whatever_h(const struct train_options *o) {
	struct train_options out = *o;
	if (lab_methods[o->method]->averages)
		return out;
	out.run.rounds *= out.run.steps_per_round;
	out.run.steps_per_round = 1;
	return out;
}

/* Finds the content of the cell's text; read once for consecutive cells that name the same. */
static enum rv_err find_content(struct sweep_grid *g, struct sweep_cell *c, struct rv_errtext *et) {
	struct dataset *data;
	const struct text_source source = {
		.path = c->opts.data, .field = c->opts.field, .tokenizer = g->tokenizer, .signals = -1};
	RV_TRY(text_source_open(&source, &c->opts.run, &data, et));
	enum rv_err e = RV_OK;
	if (strcmp(g->content_of, c->opts.data) != 0) {
		g->content_of[0] = '\0';
		e = dataset_content(data, &g->content, et);
	}
	dataset_close(data);
	RV_TRY(e);
	memcpy(g->content_of, c->opts.data, sizeof g->content_of);
	c->data = g->content;
	return RV_OK;
}

/* Names the cell by the options that decide its result, and the text. */
static enum rv_err name_cell(struct sweep_grid *g, struct sweep_cell *c, struct rv_errtext *et) {
	const struct train_options result = whatever_h(&c->opts);
	RV_TRY(find_content(g, c, et));
	name_run(g->table, &c->opts, &c->data, c->id);
	name_run(g->table, &result, &c->data, c->result);
	return RV_OK;
}

static void label_cell(struct sweep_cell *c) {
	const struct sweep_grid *g = c->grid;
	size_t at = (size_t)snprintf(c->label, sizeof c->label, "%s", g->section);
	if (g->n_axes == 0 && at == 0)
		snprintf(c->label, sizeof c->label, "the only cell");
	for (int a = 0; a < g->n_axes && at < sizeof c->label; a++)
		at += (size_t)snprintf(c->label + at, sizeof c->label - at, "%s%s=%s", at > 0 ? " " : "",
							   g->table[g->axes[a].option].name, sweep_cell_value(c, a));
}

enum rv_err sweep_grid_cell(struct sweep_grid *g, int i, struct sweep_cell *out, struct rv_errtext *et) {
	RV_ASSERT(i >= 0 && i < g->n_cells);
	out->grid = g;
	out->index = i;
	out->opts = g->base;
	label_cell(out);
	enum rv_err e = RV_OK;
	for (int a = 0; e == RV_OK && a < g->n_axes; a++)
		e = rv_option_value_parse(&g->table[g->axes[a].option], &out->opts, value_at(g, i, a), et);
	if (e == RV_OK)
		e = divide_work(g, &out->opts, et);
	if (e == RV_OK)
		e = train_options_check(&out->opts, NULL, et);
	if (e == RV_OK)
		e = name_cell(g, out, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s", out->label);
}

/* ---- commands ---- */

static void add_word(struct sweep_command *c, const char *name, const char *value) {
	RV_ASSERT(c->n + 1 < SWEEP_MAX_WORDS);
	char *text = c->text[c->n];
	snprintf(text, sizeof c->text[0], "%s%s%s", name, value ? "=" : "", value ? value : "");
	c->words[c->n++] = text;
}

void sweep_cell_command(const struct sweep_cell *c, const char *program, const char *dir, struct sweep_command *out) {
	const struct sweep_grid *g = c->grid;
	struct train_options defaults, mine = c->opts;
	struct train_idle idle;
	struct idle_text room;
	train_idle_init(&idle, &c->opts);
	rv_options_defaults(g->table, &defaults);
	mine.on_record_gap = RECORD_GAP_ANEW; /* a cell is its record */
	snprintf(mine.out, sizeof mine.out, "%s/%s", dir, c->id);
	snprintf(mine.name, sizeof mine.name, "%.*s", (int)sizeof mine.name - 1, c->label);
	out->n = 0;
	add_word(out, program, NULL);
	add_word(out, "train", NULL);
	for (int i = 0; g->table[i].name; i++) {
		char value[RV_OPTION_TEXT_BYTES], name[80];
		const struct rv_option *opt = &g->table[i];
		if (rv_option_value_same(opt, &mine, &defaults) || train_idle(&idle, opt->name, &room)) /* not chosen */
			continue;
		rv_option_value_print(opt, &mine, value);
		snprintf(name, sizeof name, "--%s", opt->name);
		add_word(out, name, value);
	}
	out->words[out->n] = NULL;
}
