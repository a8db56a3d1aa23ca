/* options.c: the table of options and the values it fills in: defaults, one at a time, required,
 * canonical text. */
#include "base/options.h"

#include "base/assert.h"
#include "base/option_value.h"

#include <stdio.h>
#include <string.h>

/* Returns the number of entries; at most RV_OPTIONS_MAX (asserted). */
static int rv_options_count(const struct rv_option *table) {
	int n = 0;
	while (table[n].name)
		n++;
	RV_ASSERT(n <= RV_OPTIONS_MAX);
	return n;
}

void rv_options_defaults(const struct rv_option *table, void *opts) {
	int n = rv_options_count(table);
	for (int i = 0; i < n; i++) {
		const bool is_empty = rv_option_is_text(&table[i]) && table[i].fallback && !table[i].fallback[0];
		if (!table[i].fallback || is_empty) { /* min = 1 refuses "" only if it was given */
			rv_option_value_unset(&table[i], opts);
			continue;
		}
		enum rv_err e = rv_option_value_parse(&table[i], opts, table[i].fallback, NULL);
		RV_ASSERT(e == RV_OK);
	}
}

int rv_options_find(const struct rv_option *table, const char *prefix, const char *name, const char *const *others,
					struct rv_errtext *et) {
	const char *names[RV_OPTIONS_MAX + RV_OPTIONS_OTHERS_MAX];
	int n = rv_options_count(table);
	for (int i = 0; i < n; i++) {
		if (strcmp(table[i].name, name) == 0)
			return i;
		names[i] = table[i].name;
	}
	for (int i = 0; others && others[i]; i++) {
		RV_ASSERT(i < RV_OPTIONS_OTHERS_MAX);
		names[n++] = others[i];
	}
	const char *near = rv_nearest_name(name, names, n);
	if (near)
		(void)rv_fail(et, RV_E_INVALID, "%s%.100s: unknown option; did you mean %s%s?", prefix, name, prefix, near);
	else
		(void)rv_fail(et, RV_E_INVALID, "%s%.100s: unknown option; --help lists all of them", prefix, name);
	return -1;
}

enum rv_err rv_options_set(const struct rv_option *table, void *opts, const char *name, const char *value,
						   struct rv_errtext *et) {
	int i = rv_options_find(table, "", name, NULL, et);
	return i < 0 ? RV_E_INVALID : rv_option_value_parse(&table[i], opts, value, et);
}

enum rv_err rv_options_check_required(const struct rv_option *table, const void *opts, struct rv_errtext *et) {
	char missing[RV_ERRTEXT_BYTES] = "";
	size_t used = 0;
	int n_missing = 0;
	for (const struct rv_option *o = table; o->name; o++) {
		if (rv_option_value_is_set(o, opts))
			continue;
		n_missing++;
		if (used < sizeof missing)
			used += (size_t)snprintf(missing + used, sizeof missing - used, "%s--%s", used ? ", " : "", o->name);
	}
	if (n_missing == 0)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "missing %s: %.400s", n_missing == 1 ? "a required option" : "required options",
				   missing);
}

/* A sink that counts what does not fit, as snprintf does. */
struct text_out {
	char *out;
	size_t cap, len;
};

static void put(struct text_out *t, const char *s, size_t n) {
	if (t->len + n < t->cap)
		memcpy(t->out + t->len, s, n);
	else if (t->len < t->cap)
		memcpy(t->out + t->len, s, t->cap - 1 - t->len);
	t->len += n;
}

static bool needs_quotes(const char *value) {
	size_t n = strlen(value);
	return n == 0 || value[0] == '"' || value[0] == '#' || value[0] == ' ' || value[n - 1] == ' ' ||
		   strstr(value, " #") != NULL;
}

static void put_quoted(struct text_out *t, const char *value) {
	put(t, "\"", 1);
	for (const char *c = value; *c; c++) {
		if (*c == '"' || *c == '\\')
			put(t, "\\", 1);
		put(t, c, 1);
	}
	put(t, "\"", 1);
}

bool rv_list_next(const char **list, char *out, size_t cap) {
	const size_t n = strcspn(*list, "\n");
	if (n == 0)
		return false;
	(void)snprintf(out, cap, "%.*s", (int)n, *list);
	*list += n + ((*list)[n] != '\0');
	return true;
}

static void put_setting(struct text_out *t, const char *name, const char *value) {
	put(t, name, strlen(name));
	put(t, " = ", 3);
	if (needs_quotes(value))
		put_quoted(t, value);
	else
		put(t, value, strlen(value));
	put(t, "\n", 1);
}

/* Writes a line for each text of a LIST. */
static void put_list(struct text_out *t, const struct rv_option *o, const char *list) {
	char one[RV_OPTION_TEXT_BYTES];
	while (rv_list_next(&list, one, sizeof one))
		put_setting(t, o->name, one);
}

size_t rv_options_print(const struct rv_option *table, const void *opts, char *out, size_t cap) {
	struct text_out t = {.out = out, .cap = cap};
	for (const struct rv_option *o = table; o->name; o++) {
		char value[RV_OPTION_TEXT_BYTES];
		if (!rv_option_value_is_set(o, opts))
			continue;
		rv_option_value_print(o, opts, value);
		if (o->type == RV_OPT_LIST)
			put_list(&t, o, value);
		else
			put_setting(&t, o->name, value);
	}
	if (cap > 0)
		out[t.len < cap ? t.len : cap - 1] = '\0';
	return t.len;
}
