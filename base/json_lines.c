/* json_lines.c: see json_lines.h. */
#include "base/json_lines.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REAL_DIGITS = 9, TAIL_BYTES = 4096 }; /* a line is some hundred bytes */

struct rv_json_lines {
	int fd;
	json_t *last; /* the last line when it was opened */
	char path[512];
};

static enum rv_err write_all(const struct rv_json_lines *l, const char *text, size_t n, struct rv_errtext *et) {
	return rv_write_all(l->fd, text, n) ? RV_OK : rv_fail_errno(et, errno, "cannot write %s", l->path);
}

/* Ends a line that a crash tore, so that it does not swallow the next one. A file that cannot seek
 * (a pipe) has no former lines. */
static enum rv_err end_torn_line(const struct rv_json_lines *l, struct rv_errtext *et) {
	char last = '\n';
	if (lseek(l->fd, -1, SEEK_END) >= 0 && read(l->fd, &last, 1) < 0)
		return rv_fail_errno(et, errno, "cannot read %s", l->path);
	return last == '\n' ? RV_OK : write_all(l, "\n", 1, et);
}

static json_t *read_last(const struct rv_json_lines *l) {
	char tail[TAIL_BYTES + 1];
	off_t bytes = lseek(l->fd, 0, SEEK_END);
	if (bytes <= 0)
		return NULL;
	off_t begin = bytes > TAIL_BYTES ? bytes - TAIL_BYTES : 0;
	ssize_t n = pread(l->fd, tail, TAIL_BYTES, begin);
	if (n <= 0 || tail[n - 1] != '\n')
		return NULL;
	tail[n - 1] = '\0';
	const char *newline = strrchr(tail, '\n');
	return json_loads(newline ? newline + 1 : tail, 0, NULL);
}

const json_t *rv_json_lines_last(const struct rv_json_lines *l) {
	return l->last;
}

enum rv_err rv_json_lines_open(const char *path, bool append, struct rv_json_lines **out, struct rv_errtext *et) {
	struct rv_json_lines *l = calloc(1, sizeof *l);
	if (!l)
		return rv_fail(et, RV_E_NOMEM, "no memory for %s", path);
	enum rv_err e = RV_OK;
	if ((size_t)snprintf(l->path, sizeof l->path, "%s", path) >= sizeof l->path)
		e = rv_fail(et, RV_E_RANGE, "a path of %zu characters, at most %zu", strlen(path), sizeof l->path - 1);
	l->fd = e == RV_OK ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND | (append ? 0 : O_TRUNC), 0644) : -1;
	if (e == RV_OK && l->fd < 0)
		e = rv_fail_errno(et, errno, "cannot open %s", path);
	if (e == RV_OK && append) {
		l->last = read_last(l);
		e = end_torn_line(l, et);
	}
	if (e != RV_OK) {
		rv_json_lines_close(l);
		return e;
	}
	*out = l;
	return RV_OK;
}

void rv_json_lines_close(struct rv_json_lines *l) {
	if (!l)
		return;
	if (l->fd >= 0)
		close(l->fd);
	json_decref(l->last);
	free(l);
}

enum rv_err rv_json_lines_write(struct rv_json_lines *l, json_t *line, struct rv_errtext *et) {
	char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS)) : NULL;
	json_decref(line);
	if (!text)
		return rv_fail(et, RV_E_NOMEM, "no memory for a line of %s", l->path);
	size_t n = strlen(text);
	text[n] = '\n'; /* in place of the NUL: the length is known */
	enum rv_err e = write_all(l, text, n + 1, et);
	free(text);
	return e;
}

enum rv_err rv_json_lines_sync(struct rv_json_lines *l, struct rv_errtext *et) {
	/* EINVAL: a pipe or a terminal, which has nothing to lose */
	if (fsync(l->fd) != 0 && errno != EINVAL)
		return rv_fail_errno(et, errno, "cannot sync %s", l->path);
	return RV_OK;
}
