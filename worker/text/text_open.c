/* text_open.c: the files that come before all others: the manifest, which is known by the run's
 * data-hash, and the tokenizer, known by the manifest (worker/text/text_thread_state.h). They are
 * small, and come whole from one source after another until one is right: the coordinator first. */
#include "base/clock.h"
#include "worker/text/text_thread_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TRIES = 4, /* of all sources, with pauses between */
	PAUSE_US = 1000 * 1000,
	PATIENCE_US = 30 * 1000 * 1000, /* without a byte, of one source */
	COORDINATOR_MS = 600 * 1000,    /* for all of it: it serves newcomers in turn, at a limited rate */
	POLL_MS = 100,
	TOKENIZER_MAX_BYTES = 256 << 20,
	ID = 1
};

/* One file from one source. */
struct first {
	struct text *t;
	const struct text_config *cfg;
	const char *name;
	uint64_t most;
	uint8_t *bytes;
	size_t n;
	bool ended;
	int64_t heard_us;
	struct rv_errtext failure; /* "": it came */
};

static bool on_range(void *ctx, uint32_t id, const uint8_t *bytes, size_t n, bool last) {
	struct first *f = ctx;
	(void)id;
	(void)last;
	f->ended = true;
	f->bytes = malloc(n + 1);
	f->n = n;
	if (!f->bytes)
		(void)rv_fail(&f->failure, RV_E_NOMEM, "no memory for %s", f->name);
	else if (n > 0)
		memcpy(f->bytes, bytes, n);
	return true;
}

static void on_progress(void *ctx, uint32_t id, uint32_t bytes) {
	struct first *f = ctx;
	(void)id;
	(void)bytes;
	f->heard_us = rv_clock_monotonic_us();
}

static void on_whole(void *ctx, uint32_t id) {
	(void)ctx;
	(void)id;
}

static void on_failed(void *ctx, uint32_t id, enum text_failure why, int64_t retry_us, const char *text) {
	struct first *f = ctx;
	(void)id;
	(void)why;
	(void)retry_us;
	f->ended = true;
	(void)snprintf(f->failure.text, sizeof f->failure.text, "%s", text);
}

static void on_reply(void *ctx, const struct http_reply *r) {
	struct first *f = ctx;
	char text[64];
	(void)snprintf(text, sizeof text, "the coordinator: status %d for %s", r->status, f->name);
	if (r->err == RV_OK && r->status == 200)
		(void)on_range(f, ID, r->body, r->body_bytes, true);
	else
		on_failed(f, ID, TEXT_CUT, 0, r->err ? r->text : text);
}

static bool goes_on(const struct first *f) {
	return !f->cfg->progress || f->cfg->progress(f->cfg->ctx, "text", 0, 0);
}

/* Moves one request on until it ends. */
static enum rv_err await(struct first *f, struct text_http *http, struct rv_errtext *et) {
	f->heard_us = rv_clock_monotonic_us();
	while (!f->ended) {
		RV_TRY(http ? text_http_poll(http, POLL_MS, et)
					: http_client_poll(f->t->client, NULL, 0, POLL_MS * INT64_C(1000), et));
		if (!goes_on(f))
			return rv_fail(et, RV_E_CANCELLED, "stopped while fetching %s", f->name);
		if (http && rv_clock_monotonic_us() - f->heard_us > PATIENCE_US)
			on_failed(f, ID, TEXT_CUT, 0, "no answer within 30 s");
	}
	return RV_OK;
}

static enum rv_err from_coordinator(struct first *f, struct rv_errtext *et) {
	char path[96];
	uint32_t id;
	(void)snprintf(path, sizeof path, "/v1/text/%s", f->name);
	const struct http_request rq = {
		.path = path, .max_reply_bytes = f->most, .timeout_ms = COORDINATOR_MS, .done = on_reply, .ctx = f};
	RV_TRY(http_client_start(f->t->client, &rq, &id, et));
	const enum rv_err e = await(f, NULL, et);
	http_client_cancel(f->t->client, id);
	return e;
}

static enum rv_err from_mirror(struct first *f, const char *url, struct rv_errtext *et) {
	struct text_mirror m;
	struct text_http *http;
	const struct text_http_config cfg = {.owner = {.ctx = f,
												   .on_range = on_range,
												   .on_progress = on_progress,
												   .on_whole = on_whole,
												   .on_failed = on_failed},
										 .keys = &f->t->keys,
										 .hosts = f->t->hosts,
										 .met = f->cfg->met};
	const struct text_http_request rq = {.id = ID, .mirror = &m, .name = f->name, .bytes = f->most};
	RV_TRY(text_mirror_parse(url, &f->t->keys, &m, et));
	RV_TRY(text_http_new(&cfg, &http, et));
	enum rv_err e = text_http_start(http, &rq, et);
	if (e == RV_OK)
		e = await(f, http, et);
	text_http_free(http);
	return e;
}

/* Takes what came, if it is right. */
static enum rv_err take(const struct first *f, struct rv_errtext *et) {
	if (f->failure.text[0])
		return rv_fail(et, RV_E_NOTFOUND, "%s", f->failure.text);
	return strcmp(f->name, MANIFEST_NAME) == 0 ? text_cache_take_manifest(f->t->cache, f->bytes, f->n, et)
											   : text_cache_take_tokenizer(f->t->cache, f->bytes, f->n, et);
}

static const char *url_of(const struct text *t, const struct text_config *cfg, int64_t i) {
	const struct manifest *m = text_cache_manifest(t->cache);
	if (i < cfg->n_mirrors)
		return cfg->mirrors[i];
	return m && i - cfg->n_mirrors < m->n_mirrors ? m->mirrors[i - cfg->n_mirrors] : NULL;
}

/* Returns true for mirrors that the worker's owner named, and for those of the manifest at hosts
 * that were agreed to. */
static bool may_ask(const struct text *t, const struct text_config *cfg, int64_t i) {
	return i < cfg->n_mirrors || mirror_hosts_take(t->hosts, text_cache_manifest(t->cache), i - cfg->n_mirrors);
}

/* Asks one source: -1 is the coordinator. */
static enum rv_err try_source(struct first *f, int64_t i, struct rv_errtext *et) {
	const enum rv_err asked = i < 0 ? from_coordinator(f, et) : from_mirror(f, url_of(f->t, f->cfg, i), et);
	const enum rv_err e = asked == RV_OK ? take(f, et) : asked;
	free(f->bytes);
	f->bytes = NULL;
	f->ended = false;
	f->failure.text[0] = '\0';
	return e;
}

static bool is_final(enum rv_err e) {
	return e == RV_OK || e == RV_E_CANCELLED || e == RV_E_NOMEM || e == RV_E_FULL || e == RV_E_IO;
}

/* Asks all sources once. `answers` gets what the last one said. */
static enum rv_err try_all(struct first *f, struct rv_errtext *answer) {
	enum rv_err e = RV_E_NOTFOUND;
	if (f->t->client)
		e = try_source(f, -1, answer);
	for (int64_t i = 0; !is_final(e) && url_of(f->t, f->cfg, i); i++) {
		struct rv_errtext next = {0};
		if (!may_ask(f->t, f->cfg, i))
			continue;
		e = try_source(f, i, &next);
		*answer = next;
	}
	return e;
}

static enum rv_err rest(const struct first *f, int64_t us, struct rv_errtext *et) {
	for (const int64_t end = rv_clock_monotonic_us() + us; rv_clock_monotonic_us() < end;) {
		(void)poll(NULL, 0, POLL_MS);
		if (!goes_on(f))
			return rv_fail(et, RV_E_CANCELLED, "stopped while fetching %s", f->name);
	}
	return RV_OK;
}

static enum rv_err fetch(struct text *t, const struct text_config *cfg, const char *name, uint64_t most,
						 struct rv_errtext *et) {
	struct first f = {.t = t, .cfg = cfg, .name = name, .most = most};
	struct rv_errtext answer = {0};
	enum rv_err e = RV_E_NOTFOUND;
	const int tries = cfg->tries > 0 ? cfg->tries : TRIES;
	for (int i = 0; i < tries && !is_final(e); i++) {
		if (i > 0)
			RV_TRY(rest(&f, (int64_t)PAUSE_US << i, et));
		e = try_all(&f, &answer);
	}
	if (e == RV_OK)
		return RV_OK;
	if (is_final(e))
		return rv_fail(et, e, "%s", answer.text);
	return rv_fail(et, RV_E_NOTFOUND, "%s of the run's text comes from nowhere: %.300s%s", name,
				   answer.text[0] ? answer.text : "there is no mirror",
				   "; look at the mirrors, or bring the text with --data");
}

enum rv_err text_fetch_first(struct text *t, const struct text_config *cfg, struct rv_errtext *et) {
	if (!text_cache_manifest(t->cache))
		RV_TRY(fetch(t, cfg, MANIFEST_NAME, MANIFEST_MAX_BYTES, et));
	const char *tokenizer = text_cache_lacks_tokenizer(t->cache);
	return tokenizer ? fetch(t, cfg, tokenizer, TOKENIZER_MAX_BYTES, et) : RV_OK;
}
