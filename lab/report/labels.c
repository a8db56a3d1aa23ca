/* labels.c: what a report calls its configurations: by what sets them apart, in as few words as
 * do. */
#include "base/clean_text.h"
#include "lab/options/idle.h"
#include "lab/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_KEPT = 16 }; /* of an option; of more none can be the usual one */

/* The options of the cells of sweeps, and which values they have. */
struct varying {
	struct option_values {
		const char *name;
		struct {
			const char *text;
			int n; /* runs that have it */
		} values[VALUES_KEPT];
		int n_values, n_runs;
	} options[FACTS_MAX];
	int n;
	bool mode, texts;
};

static struct option_values *find_option(struct varying *v, const char *name) {
	for (int i = 0; i < v->n; i++)
		if (strcmp(v->options[i].name, name) == 0)
			return &v->options[i];
	return NULL;
}

static void count_value(struct varying *v, const char *name, const char *value) {
	struct option_values *o = find_option(v, name);
	int i = 0;
	if (!o) {
		if (v->n == FACTS_MAX)
			return;
		o = &v->options[v->n++];
		o->name = name;
	}
	o->n_runs++;
	while (i < o->n_values && strcmp(o->values[i].text, value) != 0)
		i++;
	if (i == VALUES_KEPT)
		return;
	o->values[i].text = value;
	o->values[i].n++;
	o->n_values = i == o->n_values ? i + 1 : o->n_values;
}

/* Returns the value as given: what a method settles follows from its name, and counts as the usual
 * value. */
static const char *as_given(const struct report_run *r, const char *name, const char *value) {
	const char *usual = method_settles(report_method(r), (int)r->evals_of->record.workers, name, value);
	return usual ? usual : value;
}

static void find_varying(const struct lab_report *p, struct varying *v) {
	const struct report_run *first = NULL;
	for (int i = 0; i < p->n_runs; i++) {
		const struct report_run *r = &p->runs[i];
		if (!r->facts.in_sweep)
			continue;
		struct facts_cursor c = facts_begin(&r->facts);
		while (facts_next(&c))
			if (report_fact_counts(c.name))
				count_value(v, c.name, as_given(r, c.name, c.value));
		first = first ? first : r;
		v->mode |= strcmp(first->facts.replicas_mode, r->facts.replicas_mode) != 0;
	}
}

static bool varies(struct varying *v, const char *name) {
	const struct option_values *o = find_option(v, name);
	return o && o->n_values > 1;
}

/* The value that so many runs have that it need not be said; NULL: none. */
static const char *usual_value(struct varying *v, const char *name) {
	const struct option_values *o = find_option(v, name);
	for (int i = 0; o && i < o->n_values; i++)
		if (4 * o->values[i].n >= 3 * o->n_runs)
			return o->values[i].text;
	return NULL;
}

/* 10, where the configuration's own text is 1e+01. */
static void append(char label[REPORT_LABEL_BYTES], const char *name, const char *value) {
	size_t n = strlen(label);
	char plain[32], *end;
	double number = strtod(value, &end);
	if (strchr(value, 'e') && *end == '\0' && isfinite(number)) {
		snprintf(plain, sizeof plain, "%.6g", number);
		value = plain;
	}
	snprintf(label + n, REPORT_LABEL_BYTES - n, "%s%s%s%s", n > 0 ? " " : "", name, *name ? "=" : "", value);
}

/* Returns true for a value that means off, which needs no text beside cells that are on. */
static bool is_off(const char *value) {
	static const char *const words[] = {"0", "no", "none", "", NULL};
	return rv_name_is_one_of(value, words);
}

const char *report_fact_had(const struct report_run *r, const char *name) {
	const struct run_record *record = &r->evals_of->record;
	const char *had = strcmp(name, "codec") == 0 ? record->codec : strcmp(name, "outer") == 0 ? record->outer : "";
	return had[0] ? had : report_fact(&r->facts, name);
}

/* Whether the number of rounds follows from H, or the batch from k where tokens are fixed. */
static bool follows(const struct report_run *r, bool h_varies, const char *name) {
	const bool fixed_tokens = strcmp(r->facts.replicas_mode, "fixed-tokens") == 0;
	return (h_varies && strcmp(name, "rounds") == 0) || (fixed_tokens && strcmp(name, "batch") == 0);
}

/* Whether a value is worth a word: it is not the usual one, and neither switched off where none is
 * usual. */
static bool is_told(struct varying *v, const char *name, const char *value) {
	const char *usual = usual_value(v, name);
	return varies(v, name) && (usual ? strcmp(usual, value) != 0 : !is_off(value));
}

/* "diloco nesterov k=4 H=32" */
static void label_cell(const struct report_run *r, struct varying *v, bool with_h, char label[REPORT_LABEL_BYTES]) {
	static const char *const plain[] = {"method", "outer", "codec", NULL};
	static const char *const later[] = {"method", "outer", "codec", "workers", "steps-per-round", NULL};
	const struct lab_method *method = report_method(r);
	const bool h_varies = varies(v, "steps-per-round");
	const char *const *name;
	label[0] = '\0';
	for (name = plain; *name; name++)
		if (varies(v, *name) && report_fact_had(r, *name) && !method_idle(method, *name))
			append(label, "", report_fact_had(r, *name));
	if (varies(v, "workers") && report_fact(&r->facts, "workers"))
		append(label, "k", report_fact(&r->facts, "workers"));
	if (v->mode)
		append(label, "", r->facts.replicas_mode);
	struct facts_cursor c = facts_begin(&r->facts);
	while (facts_next(&c))
		if (!follows(r, h_varies, c.name) && !method_idle(method, c.name) && !rv_name_is_one_of(c.name, later) &&
			report_fact_counts(c.name) && is_told(v, c.name, as_given(r, c.name, c.value)))
			append(label, c.name, c.value);
	if (label[0] == '\0')
		append(label, "", r->evals_of->record.method);
	if (with_h && h_varies && !report_is_data_parallel(r) && report_fact(&r->facts, "steps-per-round"))
		append(label, "H", report_fact(&r->facts, "steps-per-round"));
}

/* "data=book.txt:28209490", where runs are on several texts. */
static void append_data(const struct report_run *r, char label[REPORT_LABEL_BYTES]) {
	const char *path = report_fact(&r->facts, "data"), *slash = path ? strrchr(path, '/') : NULL;
	char hash[REPORT_SHORT_BYTES] = "", name[64];
	if (strchr(r->data, ':'))
		report_short_data(r->data, hash);
	snprintf(name, sizeof name, "%.40s%s%s", slash ? slash + 1 : path ? path : "", path && hash[0] ? ":" : "", hash);
	append(label, "data", name);
}

static void label_group(struct report_group *g, struct varying *v) {
	const struct report_run *r = &g->runs[0];
	if (r->facts.in_sweep) {
		label_cell(r, v, true, g->label);
		label_cell(r, v, false, g->series_label);
	} else {
		snprintf(g->label, sizeof g->label, "%s", r->label);
		snprintf(g->series_label, sizeof g->series_label, "%s", r->label);
	}
	if (v->texts) {
		append_data(r, g->label);
		append_data(r, g->series_label);
	}
	clean_text(g->label); /* they may have been cut */
	clean_text(g->series_label);
}

enum rv_err report_label_groups(struct lab_report *p, struct rv_errtext *et) {
	struct varying *v = calloc(1, sizeof *v);
	if (!v)
		return rv_fail(et, RV_E_NOMEM, "no memory for the names of a report");
	find_varying(p, v);
	v->texts = report_texts_differ(p);
	for (int i = 0; i < p->n_groups; i++)
		label_group(&p->groups[i], v);
	free(v);
	return RV_OK;
}
