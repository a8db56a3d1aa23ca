/* link.c: see link.h. */
#include "worker/options/link.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_stdin(const char *text) {
	return strcmp(text, "-") == 0;
}

static const char *argument_of(const struct rv_args *args) {
	return args->n > 0 ? args->at[0] : "";
}

static const char *variable(void) {
	const char *text = getenv(WORKER_LINK_VARIABLE);
	return text ? text : "";
}

bool worker_link_is_given(const struct worker_options *o, const struct rv_args *args) {
	return args->n > 0 || o->link_file[0] || variable()[0];
}

enum rv_err worker_link_check(const struct worker_options *o, const struct rv_args *args, struct rv_errtext *et) {
	struct invite invite;
	if (args->n > 0 && o->link_file[0])
		return rv_fail(et, RV_E_INVALID, "a link and --link-file %s: give one of them", o->link_file);
	if (args->n == 0 || is_stdin(args->at[0]))
		return RV_OK;
	return invite_parse(args->at[0], &invite, et);
}

/* Reads a line from `fd`, byte by byte: what follows on the standard input is the answer to a
 * question. */
static enum rv_err read_line(int fd, const char *name, struct worker_link *out, struct rv_errtext *et) {
	size_t n = 0;
	for (;;) {
		char c;
		const ssize_t got = read(fd, &c, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return rv_fail_errno(et, errno, "%s: the link cannot be read", name);
		if (got == 0 || c == '\n')
			break;
		if (c == '\0' || n == sizeof out->text - 1)
			return rv_fail(et, RV_E_INVALID, "%s: its first line is no invite link (of at most %d characters)", name,
						   INVITE_MAX_BYTES - 1);
		out->text[n++] = c;
	}
	while (n > 0 && strchr(" \t\r", out->text[n - 1]))
		n--;
	out->text[n] = '\0';
	return n > 0 ? RV_OK : rv_fail(et, RV_E_INVALID, "%s: its first line is empty; it must be the invite link", name);
}

static enum rv_err read_file(const char *path, struct worker_link *out, struct rv_errtext *et) {
	if (is_stdin(path))
		return read_line(STDIN_FILENO, "the standard input", out, et);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return rv_fail_errno(et, errno, "--link-file %s", path);
	const enum rv_err e = read_line(fd, path, out, et);
	(void)close(fd);
	return e;
}

/* Copies a link, if it is not too long. */
static enum rv_err copy(const char *text, struct worker_link *out, struct rv_errtext *et) {
	const size_t n = strlen(text);
	if (n >= sizeof out->text)
		return rv_fail(et, RV_E_INVALID, "the invite link has %zu characters, at most %d are possible", n,
					   INVITE_MAX_BYTES - 1);
	memcpy(out->text, text, n + 1);
	return RV_OK;
}

/* Overwrites the token where the system shows it as a part of the command line. */
static void hide_token(const char *link) {
	char *token = strstr((char *)(uintptr_t)link, "t=");
	if (token)
		memset(token + 2, '.', strlen(token + 2));
}

enum rv_err worker_link_find(const struct worker_options *o, const struct rv_args *args, struct worker_link *out,
							 struct rv_errtext *et) {
	const char *argument = argument_of(args), *file = is_stdin(argument) ? argument : o->link_file;
	enum rv_err e = RV_OK;
	out->text[0] = '\0';
	if (file[0])
		e = read_file(file, out, et);
	else
		e = copy(argument[0] ? argument : variable(), out, et);
	if (argument[0] && !file[0])
		hide_token(argument);
	(void)unsetenv(WORKER_LINK_VARIABLE);
	if (e != RV_OK || !out->text[0])
		return e;
	struct invite invite;
	e = invite_parse(out->text, &invite, et);
	sodium_memzero(&invite, sizeof invite);
	return e == RV_OK || argument[0] ? e : rv_fail_context(et, e, "%s", file[0] ? file : "$" WORKER_LINK_VARIABLE);
}
