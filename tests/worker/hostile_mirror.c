/* hostile_mirror.c: see hostile_mirror.h. */
#include "tests/worker/hostile_mirror.h"

#include "tests/common/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an answer refers to until the next one of the same thread, or its end. */
struct answer {
	char *bytes;
	char headers[256];
};
static _Thread_local struct answer last;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_end;

static void free_bytes(void *answer) {
	free(((struct answer *)answer)->bytes);
}

static void make_key(void) {
	(void)pthread_key_create(&at_end, free_bytes);
}

static bool is(const char *temper, const char *name) {
	return strcmp(temper, name) == 0;
}

/* Answers as a server with ranges does; `shift` and `lengthen` make it lie about them. */
static void give(const struct web_request *rq, struct web_reply *r, size_t n, int shift, int lengthen, int shorten) {
	size_t first = rq->range_start, end = rq->range_end < n ? rq->range_end + 1 : n;
	r->body = last.bytes;
	r->body_bytes = n;
	if (!rq->has_range)
		return;
	end -= (size_t)shorten;
	r->status = 206;
	r->body = last.bytes + first;
	r->body_bytes = end - first;
	(void)snprintf(last.headers, sizeof last.headers, "Content-Range: bytes %zu-%zu/%zu\r\n", first + (size_t)shift,
				   end - 1 + (size_t)shift, n + (size_t)lengthen);
	r->headers = last.headers;
}

static void redirect(struct web_reply *r, const char *site, const char *temper, const char *name) {
	(void)snprintf(last.headers, sizeof last.headers, "Location: %s/%s/%s\r\n", site, temper, name);
	r->status = 302;
	r->headers = last.headers;
	r->body_bytes = 0;
}

/* Answers about a shard of `n` bytes. */
static void misbehave(struct hostile_mirror *m, const char *temper, const char *name, const struct web_request *rq,
					  struct web_reply *r, size_t n) {
	if (is(temper, "lie") || is(temper, "lie-all"))
		last.bytes[rq->range_start + 10] ^= 1;
	give(rq, r, n, is(temper, "shifted") ? 7 : 0, is(temper, "long") ? 3 : 0, is(temper, "short") ? 5 : 0);
	if (is(temper, "whole")) {
		*r = (struct web_reply){.status = 200, .body = last.bytes, .body_bytes = n};
	} else if (is(temper, "busy") && atomic_load(&m->shards) % 2 == 1) {
		*r = (struct web_reply){.status = 503, .headers = "Retry-After: 1\r\n"};
	} else if (is(temper, "cut")) {
		r->cut_after = 300000;
	} else if (is(temper, "gone") || is(temper, "gone-all") || is(temper, "error")) {
		*r = (struct web_reply){.status = is(temper, "error") ? 500 : 404, .body = "no", .body_bytes = 2};
	} else if (is(temper, "hang")) {
		r->hang = true;
	} else if (is(temper, "redirect") || is(temper, "loop")) {
		redirect(r, "", is(temper, "loop") ? "loop" : "ok", name);
	} else if (is(temper, "nowhere")) {
		redirect(r, "http://nowhere.invalid", "landed", name);
	} else if (is(temper, "abroad")) {
		char site[64];
		(void)snprintf(site, sizeof site, "http://localhost:%u", m->server.port);
		redirect(r, site, "landed", name);
	} else if (is(temper, "landed")) {
		(void)atomic_fetch_add(&m->landed, 1);
	}
}

static void handle(void *ctx, const struct web_request *rq, struct web_reply *r) {
	struct hostile_mirror *m = ctx;
	char temper[32], name[64], path[600];
	size_t n;
	const bool is_valid = sscanf(rq->path, "/%31[^/]/%63[^/]", temper, name) == 2;
	(void)atomic_fetch_add(&m->requests, 1);
	free(last.bytes);
	last.bytes = NULL;
	(void)pthread_once(&once, make_key);
	(void)pthread_setspecific(at_end, &last);
	(void)snprintf(path, sizeof path, "%s/%s", m->dir, name);
	if (is_valid)
		last.bytes = scratch_read(path, &n);
	if (!last.bytes) {
		r->status = 404;
	} else if (strncmp(name, "shard-", 6) == 0 || is(temper, "gone-all") || is(temper, "lie-all")) {
		(void)atomic_fetch_add(&m->shards, 1);
		misbehave(m, temper, name, rq, r, n);
	} else {
		give(rq, r, n, 0, 0, 0);
	}
}

void hostile_start(struct hostile_mirror *m, const char *dir, const struct identity *tls) {
	m->dir = dir;
	atomic_init(&m->requests, 0);
	atomic_init(&m->shards, 0);
	atomic_init(&m->landed, 0);
	web_start(&m->server, tls, handle, m);
}

void hostile_stop(struct hostile_mirror *m) {
	web_stop(&m->server);
}

void hostile_url(const struct hostile_mirror *m, const char *temper, char out[128]) {
	(void)snprintf(out, 128, "http://127.0.0.1:%u/%s", m->server.port, temper);
}
