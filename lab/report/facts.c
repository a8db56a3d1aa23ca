/* facts.c: see facts.h. */
#include "lab/report/facts.h"

#include "base/clean_text.h"
#include "base/file.h"
#include "base/json_limits.h"
#include "base/options.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 40, SWEEP_MAX_CONTAINERS = 16, SWEEP_MAX_JSON_VALUES = 2048 };

static char *trimmed(char *text) {
	text += strspn(text, " \t");
	for (size_t n = strlen(text); n > 0 && strchr(" \t\r\"", text[n - 1]); n--)
		text[n - 1] = '\0';
	return text + (*text == '"');
}

static bool is_name(const char *text) {
	size_t n = strlen(text);
	return n > 0 && n < NAME_BYTES && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

/* Moves "name = value" lines together, in place: what remains is never longer than the line. */
static void take_lines(struct report_facts *f, char *text) {
	char *to = text, *rest = text;
	for (char *line; f->n < FACTS_MAX && (line = strsep(&rest, "\n"));) {
		char *value = strchr(line, '=');
		if (!value)
			continue;
		*value++ = '\0';
		const char *name = trimmed(line);
		value = trimmed(value);
		if (!is_name(name))
			continue;
		clean_text(value);
		size_t name_bytes = strlen(name) + 1, value_bytes = strlen(value) + 1;
		memmove(to, name, name_bytes);
		memmove(to + name_bytes, value, value_bytes);
		to += name_bytes + value_bytes;
		f->n++;
	}
}

/* Reads DIR/NAME; *text is NULL if there is none. */
static enum rv_err read_file(const char *dir, const char *name, uint8_t **text, size_t *n, struct rv_errtext *et) {
	char path[640];
	*text = NULL;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	enum rv_err e = rv_file_read(path, FACTS_MAX_FILE_BYTES, text, n, et);
	return e == RV_E_NOTFOUND ? RV_OK : e;
}

static enum rv_err read_conf(const char *dir, struct report_facts *f, struct rv_errtext *et) {
	size_t n;
	RV_TRY(read_file(dir, "run.conf", (uint8_t **)&f->text, &n, et)); /* rv_file_read ends it with a NUL */
	if (f->text)
		take_lines(f, f->text);
	return RV_OK;
}

static enum rv_err read_sweep(const char *dir, struct report_facts *f, struct rv_errtext *et) {
	uint8_t *bytes;
	size_t n;
	json_error_t why = {.text = ""};
	RV_TRY(read_file(dir, "sweep.json", &bytes, &n, et));
	if (!bytes)
		return RV_OK;
	enum rv_err e = rv_json_check_limits(bytes, n, SWEEP_MAX_CONTAINERS, SWEEP_MAX_JSON_VALUES, et);
	json_t *all = e == RV_OK ? json_loadb((const char *)bytes, n, 0, &why) : NULL;
	free(bytes);
	if (!all)
		return rv_fail(et, RV_E_CORRUPT, "%s/sweep.json: not what a sweep writes%s%s; the same sweep writes it again",
					   dir, why.text[0] ? ": " : "", why.text);
	const char *mode = json_string_value(json_object_get(all, "replicas_mode"));
	f->in_sweep = json_is_object(all);
	snprintf(f->replicas_mode, sizeof f->replicas_mode, "%s", mode ? mode : "");
	clean_text(f->replicas_mode);
	json_decref(all);
	return RV_OK;
}

enum rv_err report_facts_read(const char *dir, struct report_facts *out, struct rv_errtext *et) {
	*out = (struct report_facts){0};
	enum rv_err e = read_conf(dir, out, et);
	if (e == RV_OK)
		e = read_sweep(dir, out, et);
	if (e != RV_OK)
		report_facts_release(out);
	return e;
}

void report_facts_release(struct report_facts *f) {
	free(f->text);
	*f = (struct report_facts){0};
}

struct facts_cursor facts_begin(const struct report_facts *f) {
	return (struct facts_cursor){.at = f->text, .left = f->n};
}

bool facts_next(struct facts_cursor *c) {
	if (c->left-- <= 0)
		return false;
	c->name = c->at;
	c->value = c->name + strlen(c->name) + 1;
	c->at = c->value + strlen(c->value) + 1;
	return true;
}

const char *report_fact(const struct report_facts *f, const char *name) {
	struct facts_cursor c = facts_begin(f);
	while (facts_next(&c))
		if (strcmp(c.name, name) == 0)
			return c.value;
	return NULL;
}

double report_fact_number(const struct report_facts *f, const char *name, double otherwise) {
	const char *text = report_fact(f, name);
	char *end;
	double v = text ? strtod(text, &end) : NAN;
	return text && end > text && *end == '\0' && isfinite(v) ? v : otherwise;
}

bool report_fact_counts(const char *name) {
	static const char *const no[] = {"seed",          "out",         "name",          "threads",
									 "parallel",      "save-every",  "run-hash",      "device",
									 "backend",       "isa",         "recompute",     "micro-batch",
									 "eval-every",    "eval-tokens", "eval-replicas", "short-of-memory",
									 "on-record-gap", "data",        "field",         NULL};
	return !rv_name_is_one_of(name, no);
}

static bool is_rounds(const char *name) {
	return strcmp(name, "steps-per-round") == 0 || strcmp(name, "rounds") == 0;
}

/* To the next that sets series apart. */
static bool next_of_series(struct facts_cursor *c) {
	while (facts_next(c))
		if (report_fact_counts(c->name) && !is_rounds(c->name))
			return true;
	return false;
}

/* Numbers before texts, by value. */
static int compare_values(const char *a, const char *b) {
	char *end_a, *end_b;
	double x = strtod(a, &end_a), y = strtod(b, &end_b);
	bool a_number = end_a > a && !*end_a && isfinite(x), b_number = end_b > b && !*end_b && isfinite(y);
	if (a_number != b_number)
		return a_number ? -1 : 1;
	if (a_number && x != y)
		return x < y ? -1 : 1;
	return strcmp(a, b);
}

int report_facts_compare(const struct report_facts *a, const struct report_facts *b) {
	struct facts_cursor x = facts_begin(a), y = facts_begin(b);
	for (;;) {
		bool more_x = next_of_series(&x), more_y = next_of_series(&y);
		if (!more_x || !more_y)
			return more_x - more_y;
		int order = strcmp(x.name, y.name);
		if (order == 0)
			order = compare_values(x.value, y.value);
		if (order != 0)
			return order;
	}
}

struct rv_hash report_facts_hash(const struct report_facts *f, bool but_rounds) {
	struct rv_hasher h = rv_hasher_of("rivulet report facts");
	struct facts_cursor c = facts_begin(f);
	while (facts_next(&c)) {
		if (!report_fact_counts(c.name) || (but_rounds && is_rounds(c.name)))
			continue;
		rv_hash_update(&h, c.name, strlen(c.name) + 1);
		rv_hash_update(&h, c.value, strlen(c.value) + 1);
	}
	rv_hash_update(&h, f->replicas_mode, strlen(f->replicas_mode) + 1);
	return rv_hash_final(&h);
}
