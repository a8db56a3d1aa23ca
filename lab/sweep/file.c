/* file.c: cuts the text at its section lines; each part is parsed over the lines before the
 * first. */
#include "lab/sweep/file.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A part of the text, from its first line on. */
struct part {
	char name[SWEEP_SECTION_BYTES];
	const char *begin, *end;
};

struct reader {
	const char *path;
	const char *text;
	struct part parts[1 + SWEEP_MAX_SECTIONS]; /* the first: before any section */
	int n;
	struct rv_option table[SWEEP_OPTIONS_MAX];
	struct sweep_options common, section;
};

/* Skips blanks, up to `end`. */
static const char *skip_blanks(const char *at, const char *end) {
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
		at++;
	return at;
}

/* Reads "[name]", perhaps with a comment behind it. */
static enum rv_err read_name(const char *at, const char *end, char name[SWEEP_SECTION_BYTES], struct rv_errtext *et) {
	size_t n = 0;
	for (at++; at < end && (isalnum((unsigned char)*at) || *at == '-' || *at == '_'); at++) {
		if (n + 1 == SWEEP_SECTION_BYTES)
			return rv_fail(et, RV_E_RANGE, "a section's name has more than %d characters", SWEEP_SECTION_BYTES - 1);
		name[n++] = *at;
	}
	name[n] = '\0';
	const char *rest = at < end && *at == ']' ? skip_blanks(at + 1, end) : NULL;
	if (n == 0 || !rest || (rest < end && *rest != '#'))
		return rv_fail(et, RV_E_INVALID, "a section is [name], of letters, digits, - and _");
	return RV_OK;
}

static enum rv_err add_section(struct reader *r, const char *line, const char *end, struct rv_errtext *et) {
	if (r->n == 1 + SWEEP_MAX_SECTIONS)
		return rv_fail(et, RV_E_RANGE, "more than %d sections", SWEEP_MAX_SECTIONS);
	struct part *p = &r->parts[r->n];
	RV_TRY(read_name(line, end, p->name, et));
	for (int i = 1; i < r->n; i++)
		if (strcmp(r->parts[i].name, p->name) == 0)
			return rv_fail(et, RV_E_INVALID, "section [%s] occurs twice", p->name);
	p->begin = end;
	r->n++;
	return RV_OK;
}

static enum rv_err cut(struct reader *r, struct rv_errtext *et) {
	int number = 0;
	r->n = 1;
	r->parts[0] = (struct part){.begin = r->text, .end = r->text};
	for (const char *at = r->text; *at; number++) {
		const char *end = at + strcspn(at, "\n"), *line = skip_blanks(at, end);
		if (*line == '[') {
			r->parts[r->n - 1].end = at;
			enum rv_err e = add_section(r, line, end, et);
			if (e != RV_OK)
				return rv_fail_context(et, e, "%s:%d", r->path, number + 1);
		}
		at = *end ? end + 1 : end;
		r->parts[r->n - 1].end = at;
	}
	return RV_OK;
}

/* Parses a part. The lines before it stay, empty, so that faults name the line. */
static enum rv_err parse_part(const struct reader *r, const struct part *p, struct sweep_options *o,
							  struct rv_errtext *et) {
	size_t n = (size_t)(p->end - r->text);
	char *text = malloc(n + 1);
	if (!text)
		return rv_fail(et, RV_E_NOMEM, "no memory for a sweep");
	memcpy(text, r->text, n);
	text[n] = '\0';
	for (size_t i = 0; i < (size_t)(p->begin - r->text); i++)
		if (text[i] != '\n')
			text[i] = ' ';
	enum rv_err e = rv_options_parse_text(r->table, o, r->path, text, et);
	free(text);
	return e;
}

/* Refuses a section that sets where the sweep goes or how it runs. */
static enum rv_err same_place(const struct sweep_options *a, const struct sweep_options *b, struct rv_errtext *et) {
	const char *name = strcmp(a->out, b->out) != 0 ? "out" : a->jobs != b->jobs ? "jobs" : "print";
	if (strcmp(a->out, b->out) == 0 && a->jobs == b->jobs && a->print == b->print)
		return RV_OK;
	return rv_fail(et, RV_E_INVALID, "section [%s]: %s holds for the whole sweep: put it before the first section",
				   b->section, name);
}

/* Parses part i of the file: the common lines, the section over them, the command line over
 * both. */
static enum rv_err parse_section(struct reader *r, int i, const struct sweep_options *given, struct sweep_options *o,
								 struct rv_errtext *et) {
	r->section = r->common;
	if (i < r->n) {
		memcpy(r->section.section, r->parts[i].name, sizeof r->section.section);
		RV_TRY(parse_part(r, &r->parts[i], &r->section, et));
	}
	RV_TRY(same_place(&r->common, &r->section, et));
	*o = *given;
	sweep_options_fill(o, &r->section);
	sweep_options_settle(o);
	return RV_OK;
}

static enum rv_err parse_parts(struct reader *r, const struct sweep_options *given, struct sweep_file *out,
							   struct rv_errtext *et) {
	rv_options_defaults(r->table, &r->common);
	RV_TRY(parse_part(r, &r->parts[0], &r->common, et));
	for (int i = 0; i < out->n; i++)
		RV_TRY(parse_section(r, 1 + i, given, &out->parts[i], et));
	return RV_OK;
}

static enum rv_err read_text(struct reader *r, const struct sweep_options *given, struct sweep_file *out,
							 struct rv_errtext *et) {
	RV_TRY(cut(r, et));
	out->n = r->n > 1 ? r->n - 1 : 1;
	out->parts = calloc((size_t)out->n, sizeof *out->parts);
	if (!out->parts)
		return rv_fail(et, RV_E_NOMEM, "no memory for %d sections of a sweep", out->n);
	return parse_parts(r, given, out, et);
}

static enum rv_err read_file(struct reader *r, const struct sweep_options *given, struct sweep_file *out,
							 struct rv_errtext *et) {
	char *text;
	RV_TRY(rv_options_read_file(r->path, &text, et));
	r->text = text;
	enum rv_err e = read_text(r, given, out, et);
	free(text);
	return e;
}

enum rv_err sweep_file_read(const char *path, const struct sweep_options *given, struct sweep_file *out,
							struct rv_errtext *et) {
	*out = (struct sweep_file){.n = 0};
	struct reader *r = calloc(1, sizeof *r);
	if (!r)
		return rv_fail(et, RV_E_NOMEM, "no memory for a sweep");
	sweep_options_table(r->table, SWEEP_OPTIONS_MAX);
	r->path = path ? path : "";
	r->text = "";
	enum rv_err e = path ? read_file(r, given, out, et) : read_text(r, given, out, et);
	free(r);
	if (e != RV_OK)
		sweep_file_release(out);
	return e;
}

void sweep_file_release(struct sweep_file *f) {
	free(f->parts);
	*f = (struct sweep_file){.n = 0};
}
