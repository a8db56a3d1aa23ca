/* settings.c: worker.conf. */
#include "worker/options/settings.h"

#include "base/assert.h"
#include "base/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECRET_MODE = 0600, TABLE_MAX = 64, LINE_BYTES = 1200 };

static const char FILE_NAME[] = "worker.conf";
static const char HEAD[] = "# Options of earlier starts. The command line overrides them and is stored here.\n";
static const char END[] = "# end\n";

/* Returns true if the file holds this option. */
static bool is_kept(const struct rv_option *o) {
	static const char *const not_kept[] = {"dir", "data", "tokenizer", "init", "name", "yes", "link-file"};
	for (size_t i = 0; i < sizeof not_kept / sizeof not_kept[0]; i++)
		if (strcmp(o->name, not_kept[i]) == 0)
			return false;
	return true;
}

struct table {
	struct rv_option options[TABLE_MAX];
	int n;
};

static struct table kept_table(void) {
	struct table t = {.n = 0};
	for (const struct rv_option *o = worker_options_table; o->name; o++) {
		RV_ASSERT(t.n < TABLE_MAX - 1);
		if (is_kept(o))
			t.options[t.n++] = *o;
	}
	t.options[t.n] = (struct rv_option){.name = NULL};
	return t;
}

static void path_of(const struct worker_options *o, char out[PATH_MAX]) {
	(void)snprintf(out, PATH_MAX, "%s/%s", o->dir, FILE_NAME);
}

/* Writes a line such as "max-up = 1mbit\n". */
static void print_line(const struct rv_option *option, const struct worker_options *o, char out[LINE_BYTES]) {
	const struct rv_option table[] = {*option, {.name = NULL}};
	size_t n = rv_options_print(table, o, out, LINE_BYTES);
	RV_ASSERT(n < LINE_BYTES);
}

static bool same(const struct rv_option *option, const struct worker_options *a, const struct worker_options *b) {
	char x[LINE_BYTES], y[LINE_BYTES];
	print_line(option, a, x);
	print_line(option, b, y);
	return strcmp(x, y) == 0;
}

/* ---- reading ---- */

static enum rv_err check_whole(const char *text, size_t n, struct rv_errtext *et) {
	size_t end = sizeof END - 1;
	if (strlen(text) == n && n >= end && strcmp(text + n - end, END) == 0)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "it does not end with the line \"# end\": it was cut short");
}

/* Reads the defaults, overridden by the file in `dir`. */
static enum rv_err read_kept(const char *dir, struct worker_options *o, struct rv_errtext *et) {
	const struct table t = kept_table();
	char path[PATH_MAX];
	uint8_t *text;
	size_t n;
	rv_options_defaults(worker_options_table, o);
	(void)snprintf(o->dir, sizeof o->dir, "%s", dir);
	path_of(o, path);
	enum rv_err e = rv_file_read(path, SETTINGS_TEXT_BYTES, &text, &n, et);
	if (e == RV_E_NOTFOUND)
		return RV_OK;
	if (e == RV_OK) {
		e = check_whole((const char *)text, n, et);
		if (e == RV_OK)
			e = rv_options_parse_text(t.options, o, FILE_NAME, (const char *)text, et);
		free(text);
	}
	if (e != RV_OK)
		return rv_fail_context(
			et, e,
			"%s holds the options of earlier starts (caps, ports, devices) and is damaged: mend it, or "
			"remove it and give them all again",
			path);
	return RV_OK;
}

enum rv_err settings_recall(void *opts, struct rv_errtext *et) {
	struct worker_options *o = opts;
	char dir[sizeof o->dir];
	memcpy(dir, o->dir, sizeof dir);
	return read_kept(dir, o, et);
}

/* ---- writing ---- */

struct text {
	char at[SETTINGS_TEXT_BYTES];
	size_t n;
};

static void append(struct text *t, const char *s) {
	size_t n = strlen(s);
	if (t->n + n < sizeof t->at)
		memcpy(t->at + t->n, s, n + 1);
	t->n += n;
}

/* Makes `path` valid in any working directory. */
static void make_absolute(char *path, size_t cap) {
	char *here = path[0] && path[0] != '/' ? getcwd(NULL, 0) : NULL;
	char relative[sizeof((struct worker_options *)0)->log_file];
	(void)snprintf(relative, sizeof relative, "%s", path);
	if (here && strlen(here) + strlen(relative) + 1 < cap)
		(void)snprintf(path, cap, "%s/%s", here, relative);
	free(here);
}

enum rv_err settings_store(const struct worker_options *given, struct rv_errtext *et) {
	const struct table t = kept_table();
	struct worker_options o = *given, defaults;
	struct text text = {.n = 0};
	char path[PATH_MAX], line[LINE_BYTES];
	make_absolute(o.log_file, sizeof o.log_file);
	rv_options_defaults(worker_options_table, &defaults);
	append(&text, HEAD);
	for (int i = 0; i < t.n; i++) {
		if (same(&t.options[i], &o, &defaults))
			continue;
		print_line(&t.options[i], &o, line);
		append(&text, line);
	}
	append(&text, END);
	path_of(&o, path);
	if (text.n >= sizeof text.at)
		return rv_fail(et, RV_E_RANGE, "%s: the options to be kept have more than %d bytes", path, SETTINGS_TEXT_BYTES);
	return rv_file_write_atomic(path, text.at, text.n, SECRET_MODE, et);
}

/* ---- one option ---- */

enum rv_err settings_set(struct worker_options *o, const char *name, const char *value, struct rv_errtext *et) {
	const struct table t = kept_table();
	return rv_options_set(t.options, o, name, value, et);
}

bool settings_same(const struct worker_options *a, const struct worker_options *b, const char *name) {
	for (const struct rv_option *o = worker_options_table; o->name; o++)
		if (strcmp(o->name, name) == 0)
			return same(o, a, b);
	return true;
}

/* ---- for people ---- */

void settings_describe(const struct worker_options *now, char out[SETTINGS_SHOWN_BYTES]) {
	const struct table t = kept_table();
	struct worker_options kept, defaults;
	char line[LINE_BYTES];
	size_t n = 0;
	out[0] = '\0';
	rv_options_defaults(worker_options_table, &defaults);
	if (read_kept(now->dir, &kept, NULL) != RV_OK)
		return;
	for (int i = 0; i < t.n && n < SETTINGS_SHOWN_BYTES; i++) {
		if (same(&t.options[i], &kept, &defaults) || !same(&t.options[i], &kept, now))
			continue;
		print_line(&t.options[i], now, line);
		line[strcspn(line, "\n")] = '\0';
		n += (size_t)snprintf(out + n, SETTINGS_SHOWN_BYTES - n, "%s%s", n > 0 ? ", " : "", line);
	}
}
