/* metrics.c: metrics as JSON lines. Each line is one write(), so a reader never sees half of one for long and a crash
 * leaves at most one torn line at the end, which the next
 * process to append ends. */
#include "worker/train/metrics.h"

#include "base/hex.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REAL_DIGITS = 9, TAIL_BYTES = 4096 }; /* a line is some hundred bytes */

struct metrics {
	int fd;
	bool ended;
	char path[512];
};

static enum rv_err write_all(const struct metrics *m, const char *text, size_t n, struct rv_errtext *et) {
	while (n > 0) {
		ssize_t k = write(m->fd, text, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return rv_fail_errno(et, errno, "cannot write %s", m->path);
		text += k;
		n -= (size_t)k;
	}
	return RV_OK;
}

/* A line that a crash tore must not swallow the next one. What cannot seek (a pipe) has no former lines. */
static enum rv_err end_torn_line(const struct metrics *m, struct rv_errtext *et) {
	char last = '\n';
	if (lseek(m->fd, -1, SEEK_END) >= 0 && read(m->fd, &last, 1) < 0)
		return rv_fail_errno(et, errno, "cannot read %s", m->path);
	return last == '\n' ? RV_OK : write_all(m, "\n", 1, et);
}

/* Is the last line whole, and one of metrics_write_end()? */
static bool ends_with_end(const struct metrics *m) {
	char tail[TAIL_BYTES + 1];
	off_t bytes = lseek(m->fd, 0, SEEK_END);
	if (bytes <= 0)
		return false;
	off_t begin = bytes > TAIL_BYTES ? bytes - TAIL_BYTES : 0;
	ssize_t n = pread(m->fd, tail, TAIL_BYTES, begin);
	if (n <= 0 || tail[n - 1] != '\n')
		return false;
	tail[n - 1] = '\0';
	const char *newline = strrchr(tail, '\n');
	json_t *line = json_loads(newline ? newline + 1 : tail, 0, NULL);
	const char *kind = json_string_value(json_object_get(line, "kind"));
	bool is_end = kind && strcmp(kind, "end") == 0;
	json_decref(line);
	return is_end;
}

enum rv_err metrics_open(const char *path, bool append, struct metrics **out, struct rv_errtext *et) {
	struct metrics *m = calloc(1, sizeof *m);
	if (!m)
		return rv_fail(et, RV_E_NOMEM, "no memory for metrics");
	if ((size_t)snprintf(m->path, sizeof m->path, "%s", path) >= sizeof m->path) {
		free(m);
		return rv_fail(et, RV_E_RANGE, "metrics path of %zu characters, at most %zu", strlen(path), sizeof m->path - 1);
	}
	m->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND | (append ? 0 : O_TRUNC), 0644);
	if (m->fd < 0) {
		enum rv_err e = rv_fail_errno(et, errno, "cannot open %s", path);
		free(m);
		return e;
	}
	m->ended = ends_with_end(m);
	enum rv_err e = append ? end_torn_line(m, et) : RV_OK;
	if (e != RV_OK) {
		metrics_close(m);
		return e;
	}
	*out = m;
	return RV_OK;
}

bool metrics_ended(const struct metrics *m) {
	return m->ended;
}

void metrics_close(struct metrics *m) {
	if (!m)
		return;
	close(m->fd);
	free(m);
}

/* Consumes `line`; NULL means that building it failed. */
static enum rv_err write_line(const struct metrics *m, json_t *line, struct rv_errtext *et) {
	char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS)) : NULL;
	json_decref(line);
	if (!text)
		return rv_fail(et, RV_E_NOMEM, "no memory for a line of %s", m->path);
	size_t n = strlen(text);
	text[n] = '\n'; /* in place of the NUL: the length is known */
	enum rv_err e = write_all(m, text, n + 1, et);
	free(text);
	return e;
}

/* JSON has no NaN: a loss that is not finite is null. */
static json_t *real(double v) {
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *known(double v) {
	return v != 0 ? real(v) : json_null();
}

static json_t *hash(const struct rv_hash *h) {
	char text[2 * RV_HASH_BYTES + 1];
	rv_hex_encode(h->b, sizeof h->b, text);
	return rv_hash_is_zero(h) ? json_null() : json_string(text);
}

static json_t *whole(uint64_t v) {
	return json_integer((json_int_t)v);
}

enum rv_err metrics_write_run(struct metrics *m, const struct metrics_run *r, struct rv_errtext *et) {
	return write_line(m,
					  json_pack("{ss si ss ss ss ss ss so so so so so so so ss}", "kind", "run", "version", 1, "name",
								r->name, "role", r->role, "method", r->method, "codec", r->codec, "outer", r->outer,
								"member", whole(r->member), "workers", whole(r->workers), "n_params",
								whole(r->n_params), "rounds", whole(r->rounds), "steps_per_round",
								whole(r->steps_per_round), "tokens_per_step", whole(r->tokens_per_step),
								"payload_bytes", whole(r->payload_bytes), "device", r->device),
					  et);
}

enum rv_err metrics_write_round(struct metrics *m, const struct metrics_round *r, struct rv_errtext *et) {
	return write_line(m,
					  json_pack("{ss so so so so so so so so so so so so so so so so so}", "kind", "round", "round",
								whole(r->round), "step", whole(r->step), "tokens", whole(r->tokens), "participants",
								whole(r->participants), "train_loss", real(r->train_loss), "lr", real(r->lr),
								"grad_norm", real(r->grad_norm), "bytes_sent", whole(r->bytes_sent), "formula_bytes",
								whole(r->formula_bytes), "compute_us", json_integer(r->compute_us), "reduce_us",
								json_integer(r->reduce_us), "idle_us", json_integer(r->idle_us), "wall_us",
								json_integer(r->wall_us), "checkpoint_us", json_integer(r->checkpoint_us), "chain",
								hash(&r->chain), "delta_norm", known(r->delta_norm), "delta_cosine",
								known(r->delta_cosine)),
					  et);
}

enum rv_err metrics_write_eval(struct metrics *m, const struct metrics_eval *e, struct rv_errtext *et) {
	return write_line(m,
					  json_pack("{ss so so so so so sb}", "kind", "eval", "round", whole(e->round), "step",
								whole(e->step), "tokens", whole(e->tokens), "loss", real(e->loss), "bytes_sent",
								whole(e->bytes_sent), "whole", (int)e->whole),
					  et);
}

enum rv_err metrics_write_end(struct metrics *m, const struct metrics_end *e, struct rv_errtext *et) {
	return write_line(m,
					  json_pack("{ss so so so so so so so so so so so}", "kind", "end", "round", whole(e->round),
								"step", whole(e->step), "tokens", whole(e->tokens), "loss", real(e->loss), "bytes_sent",
								whole(e->bytes_sent), "formula_bytes", whole(e->formula_bytes), "wall_us",
								json_integer(e->wall_us), "chain", hash(&e->chain), "state", hash(&e->state),
								"average_loss", known(e->average_loss), "replica_loss", known(e->replica_loss)),
					  et);
}

uint64_t metrics_allreduce_bytes(uint64_t payload_bytes, uint32_t k) {
	return k < 2 ? 0 : (2 * payload_bytes * (k - 1) + k - 1) / k;
}
