/* print.c: the commands that make a sweep's cells on this machine, or another with the same
 * paths. */
#include "lab/sweep/run.h"

#include "base/os_program.h"
#include "net/download.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Makes a relative path absolute, in place; `cap` is the size of its buffer. */
static enum rv_err make_absolute(char *path, size_t cap, struct rv_errtext *et) {
	char here[PATH_MAX], whole[2 * PATH_MAX];
	if (path[0] == '/')
		return RV_OK;
	if (!getcwd(here, sizeof here))
		return rv_fail_errno(et, errno, "the working directory has no name");
	int n = snprintf(whole, sizeof whole, "%s/%s", here, path);
	if (n < 0 || (size_t)n >= cap)
		return rv_fail(et, RV_E_RANGE, "%.400s: a path of %d bytes, at most %zu", whole, n, cap - 1);
	snprintf(path, cap, "%s", whole);
	return RV_OK;
}

/* Makes the cell's paths absolute, so that its command works in any directory. */
static enum rv_err place_cell(struct sweep_cell *c, struct rv_errtext *et) {
	struct train_options *o = &c->opts;
	const bool named = strcmp(o->files.tokenizer, "auto") == 0 || strcmp(o->files.tokenizer, "bytes") == 0;
	if (!download_is_remote(o->data))
		RV_TRY(make_absolute(o->data, sizeof o->data, et));
	if (o->files.tokenizer[0] && !named)
		RV_TRY(make_absolute(o->files.tokenizer, sizeof o->files.tokenizer, et));
	return o->files.init[0] ? make_absolute(o->files.init, sizeof o->files.init, et) : RV_OK;
}

void sweep_own_program(char path[PATH_MAX]) {
	if (!os_program_path(path))
		snprintf(path, PATH_MAX, "rivulet");
}

/* Prints a word quoted for a POSIX shell. */
static void print_quoted(const char *word, FILE *out) {
	if (word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%")] == '\0') {
		(void)fputs(word, out);
		return;
	}
	(void)fputc('\'', out);
	for (; *word; word++)
		(void)(*word == '\'' ? fputs("'\\''", out) : fputc(*word, out));
	(void)fputc('\'', out);
}

static enum rv_err print_command(const struct sweep_cell *cell, const char *out_dir, struct sweep_command *c, FILE *out,
								 struct rv_errtext *et) {
	char program[PATH_MAX];
	struct sweep_cell placed = *cell;
	RV_TRY(place_cell(&placed, et));
	sweep_own_program(program);
	sweep_cell_command(&placed, program, out_dir, c);
	for (int w = 0; w < c->n; w++) {
		if (w)
			(void)fputc(' ', out);
		print_quoted(c->words[w], out);
	}
	(void)fputc('\n', out);
	return RV_OK;
}

enum rv_err sweep_print_commands(const struct sweep *s, FILE *out, struct rv_errtext *et) {
	char out_dir[sizeof s->opts->out];
	struct sweep_command *c = malloc(sizeof *c);
	if (!c)
		return rv_fail(et, RV_E_NOMEM, "no memory for a command");
	memcpy(out_dir, s->opts->out, sizeof out_dir);
	enum rv_err e = make_absolute(out_dir, sizeof out_dir, et);
	for (int i = 0; e == RV_OK && i < s->n_cells; i++)
		if (!sweep_row_is_complete(&s->rows[i]))
			e = print_command(&s->cells[i], out_dir, c, out, et);
	free(c);
	return e;
}
