/* text_sources.c: requests to mirrors, members and the coordinator, and their answers
 * (worker/text/text_thread_state.h). */
#include "base/assert.h"
#include "base/clock.h"
#include "worker/text/text_thread_state.h"

#include <stdio.h>
#include <string.h>

enum { COORDINATOR_TIMEOUT_MS = 600000, BOTH_POLL_MS = 20, NAME_PATH_BYTES = 64 };

/* ---- sources ---- */

static int add(struct text *t, enum text_source_kind kind) {
	const int i = text_core_add(t->core, kind);
	if (i < 0)
		return -1;
	RV_ASSERT(i == t->n_origins);
	t->origins[t->n_origins++] = (struct text_origin){.kind = kind};
	return i;
}

int text_add_mirror(struct text *t, const struct text_mirror *m) {
	for (int i = 0; i < t->n_origins; i++)
		if (t->origins[i].kind == TEXT_MIRROR && strcmp(t->origins[i].mirror.url, m->url) == 0)
			return i;
	const int i = add(t, TEXT_MIRROR);
	if (i < 0)
		return -1;
	t->origins[i].mirror = *m;
	(void)snprintf(t->origins[i].name, sizeof t->origins[i].name, "mirror %.100s", m->url);
	return i;
}

void text_add_coordinator(struct text *t) {
	const int i = add(t, TEXT_COORDINATOR);
	if (i >= 0)
		(void)snprintf(t->origins[i].name, sizeof t->origins[i].name, "the coordinator");
}

/* ---- answers ---- */

static int source_of(const struct text *t, uint32_t ask) {
	for (int i = 0; i < TEXT_ASKS_MAX; i++)
		if (t->asks[i].ask == ask)
			return t->asks[i].source;
	return -1;
}

void text_forget_ask(struct text *t, uint32_t ask) {
	for (int i = 0; i < TEXT_ASKS_MAX; i++)
		if (t->asks[i].ask == ask)
			t->asks[i].ask = 0;
}

static void count(struct text *t, int source, size_t bytes, bool kept) {
	(void)pthread_mutex_lock(&t->lock);
	if (kept)
		t->stats.bytes[t->origins[source].kind] += bytes;
	else
		t->stats.wasted_bytes += bytes;
	(void)pthread_mutex_unlock(&t->lock);
	t->origins[source].fails = false;
}

void text_take_range(struct text *t, uint32_t id, const uint8_t *bytes, size_t n) {
	const int source = source_of(t, id);
	RV_ASSERT(source >= 0);
	const uint64_t check = text_cache_check(bytes, n);
	const struct text_arrival a = text_planner_arrived(&t->planner, rv_clock_monotonic_us(), id, bytes, n, check);
	count(t, source, n, a.keep);
	if (a.ended)
		text_forget_ask(t, id);
}

static bool on_range(void *ctx, uint32_t id, const uint8_t *bytes, size_t n, bool last) {
	struct text *t = ctx;
	(void)last;
	if (source_of(t, id) < 0)
		return false;
	text_take_range(t, id, bytes, n);
	return true;
}

static void on_progress(void *ctx, uint32_t id, uint32_t bytes) {
	struct text *t = ctx;
	text_core_progress(t->core, rv_clock_monotonic_us(), id, bytes);
}

static void on_whole(void *ctx, uint32_t id) {
	struct text *t = ctx;
	const int source = source_of(t, id);
	if (source >= 0)
		text_core_whole(t->core, source);
}

static void text_take_failure(struct text *t, uint32_t id, enum text_failure why, int64_t retry_us, const char *text) {
	const int source = source_of(t, id);
	if (source < 0)
		return;
	struct text_origin *o = &t->origins[source];
	(void)snprintf(o->failure, sizeof o->failure, "%s", text);
	if (!o->fails)
		text_say(t, "%s fails, and is tried again later: %s", o->name, text);
	o->fails = true;
	text_forget_ask(t, id);
	text_core_failed(t->core, rv_clock_monotonic_us(), id, why, retry_us);
}

static void on_failed(void *ctx, uint32_t id, enum text_failure why, int64_t retry_us, const char *text) {
	text_take_failure(ctx, id, why, retry_us, text);
}

struct text_http_owner text_http_owner(struct text *t) {
	return (struct text_http_owner){
		.ctx = t, .on_range = on_range, .on_progress = on_progress, .on_whole = on_whole, .on_failed = on_failed};
}

/* ---- the coordinator ---- */

static enum text_failure failure_of(const struct http_reply *r) {
	if (r->err != RV_OK)
		return r->err == RV_E_RANGE ? TEXT_WRONG : TEXT_CUT;
	if (r->status == 429 || r->status == 503)
		return TEXT_BUSY;
	return r->status >= 400 && r->status < 500 ? TEXT_GONE : TEXT_CUT;
}

static void on_reply(void *ctx, const struct http_reply *r) {
	struct text *t = ctx;
	struct text_origin *o = NULL;
	char text[128];
	for (int i = 0; i < t->n_origins; i++)
		if (t->origins[i].kind == TEXT_COORDINATOR)
			o = &t->origins[i];
	RV_ASSERT(o);
	const uint32_t ask = o->ask;
	o->ask = o->http_id = 0;
	(void)snprintf(text, sizeof text, "status %d, %zu bytes", r->status, r->body_bytes);
	const bool is_good = r->err == RV_OK && (r->status == 200 || r->status == 206);
	if (is_good && r->body_bytes == o->ask_bytes)
		(void)on_range(t, ask, r->body, r->body_bytes, true);
	else
		on_failed(t, ask, is_good ? TEXT_WRONG : failure_of(r), 0, r->err ? r->text : text);
}

static enum rv_err ask_coordinator(struct text *t, struct text_origin *o, const struct text_request *q,
								   const char *name, uint64_t size, struct rv_errtext *et) {
	char path[NAME_PATH_BYTES];
	(void)snprintf(path, sizeof path, "/v1/text/%s", name);
	o->ask = q->id;
	o->ask_bytes = text_core_range_bytes(size, q->first);
	const struct http_request rq = {.path = path,
									.range_begin = (uint64_t)q->first * TEXT_RANGE_BYTES,
									.range_bytes = o->ask_bytes < size ? o->ask_bytes : 0,
									.max_reply_bytes = o->ask_bytes,
									.timeout_ms = COORDINATOR_TIMEOUT_MS,
									.done = on_reply,
									.ctx = t};
	const enum rv_err e = http_client_start(t->client, &rq, &o->http_id, et);
	if (e != RV_OK)
		o->ask = 0;
	return e;
}

/* ---- requests ---- */

static enum rv_err ask_mirror(struct text *t, const struct text_origin *o, const struct text_request *q,
							  const char *name, uint64_t size, struct rv_errtext *et) {
	const uint64_t begin = (uint64_t)q->first * TEXT_RANGE_BYTES, end = begin + (uint64_t)q->n * TEXT_RANGE_BYTES;
	const struct text_http_request rq = {.id = q->id,
										 .mirror = &o->mirror,
										 .name = name,
										 .begin = begin,
										 .bytes = (end < size ? end : size) - begin,
										 .size = size};
	return text_http_start(t->http, &rq, et);
}

static enum rv_err ask_source(struct text *t, struct text_origin *o, const struct text_request *q, const char *name,
							  uint64_t size, struct rv_errtext *et) {
	switch (o->kind) {
	case TEXT_COORDINATOR:
		return ask_coordinator(t, o, q, name, size, et);
	case TEXT_MEMBER:
		return text_members_request(t->members, o->member, q, text_core_range_bytes(size, q->first), et);
	default:
		return ask_mirror(t, o, q, name, size, et);
	}
}

static void start(struct text *t, const struct text_request *q) {
	struct text_origin *o = &t->origins[q->source];
	const struct text_file f = text_file_of(q->file);
	const uint64_t size = text_file_bytes(text_cache_manifest(t->cache), &f);
	struct rv_errtext et = {0};
	char name[32];
	int at = 0;
	while (t->asks[at].ask != 0)
		at++;
	RV_ASSERT(at < TEXT_ASKS_MAX);
	t->asks[at].ask = q->id;
	t->asks[at].source = q->source;
	text_file_name(&f, name);
	if (ask_source(t, o, q, name, size, &et) != RV_OK)
		text_take_failure(t, q->id, TEXT_CUT, 0, et.text);
}

/* Returns the requests under way, those to members apart: the mesh has a cap of its own. */
static int transfers(const struct text *t) {
	int n = 0;
	for (int i = 0; i < TEXT_ASKS_MAX; i++)
		n += t->asks[i].ask != 0 && t->origins[t->asks[i].source].kind != TEXT_MEMBER;
	return n;
}

static bool may_ask(struct text *t, const struct text_origin *o) {
	if (o->kind == TEXT_MEMBER)
		return text_members_may_request(t->members, o->member);
	return transfers(t) < (t->capped ? TEXT_TRANSFERS_CAPPED : TEXT_ASKS_MAX);
}

static void drop_all(struct text *t) {
	uint32_t id;
	while (text_core_drop(t->core, &id)) {
		const int source = source_of(t, id);
		text_forget_ask(t, id);
		if (source < 0)
			continue;
		struct text_origin *o = &t->origins[source];
		if (o->kind == TEXT_MIRROR) {
			text_http_cancel(t->http, id);
		} else if (o->kind == TEXT_MEMBER) {
			text_members_cancel(t->members, id);
		} else if (o->ask == id) {
			http_client_cancel(t->client, o->http_id);
			o->ask = o->http_id = 0;
		}
	}
}

void text_request_all(struct text *t, int64_t now_us) {
	struct text_request q;
	text_core_tick(t->core, now_us);
	drop_all(t);
	for (int i = 0; i < t->n_origins; i++) {
		text_question_member(t, i, now_us);
		while (may_ask(t, &t->origins[i]) && text_core_send(t->core, now_us, i, &q)) {
			start(t, &q);
			drop_all(t);
		}
	}
	drop_all(t);
}

static bool coordinator_is_asked(const struct text *t) {
	for (int i = 0; i < t->n_origins; i++)
		if (t->origins[i].kind == TEXT_COORDINATOR && t->origins[i].ask != 0)
			return true;
	return false;
}

/* The two clients wait apart: while the coordinator answers, each waits a little. */
void text_move(struct text *t, int timeout_ms) {
	struct rv_errtext et = {0};
	const bool both = coordinator_is_asked(t);
	if (both && timeout_ms > BOTH_POLL_MS)
		timeout_ms = BOTH_POLL_MS;
	if (text_http_poll(t->http, timeout_ms, &et) != RV_OK)
		text_say(t, "%s", et.text);
	text_hear_members(t);
	if (t->client && http_client_poll(t->client, NULL, 0, 0, &et) != RV_OK)
		text_say(t, "%s", et.text);
}
