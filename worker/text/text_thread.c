/* text_thread.c: see text_thread.h. */
#include "worker/text/text_thread.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/os_threads.h"
#include "worker/text/text_thread_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	STALL_US = 10 * 1000 * 1000,
	LONGEST_MS = 1000,
	TICK_MS = 100,
	NOTICE_US = 30 * 1000 * 1000 /* of waiting, then twice as long */
};

/* ---- calls of any thread ---- */

void text_say(struct text *t, const char *fmt, ...) {
	va_list ap;
	(void)pthread_mutex_lock(&t->lock);
	if (t->n_notices < TEXT_NOTICES) {
		va_start(ap, fmt);
		(void)vsnprintf(t->notices[(t->first_notice + t->n_notices++) % TEXT_NOTICES], TEXT_NOTICE_BYTES, fmt, ap);
		va_end(ap);
	}
	(void)pthread_mutex_unlock(&t->lock);
}

bool text_notice(struct text *t, char out[static TEXT_NOTICE_BYTES]) {
	(void)pthread_mutex_lock(&t->lock);
	const bool is_there = t->n_notices > 0;
	if (is_there) {
		memcpy(out, t->notices[t->first_notice], TEXT_NOTICE_BYTES);
		t->first_notice = (t->first_notice + 1) % TEXT_NOTICES;
		t->n_notices--;
	}
	(void)pthread_mutex_unlock(&t->lock);
	return is_there;
}

static void text_wake(struct text *t) {
	(void)pthread_mutex_lock(&t->lock);
	t->dirty = true;
	(void)pthread_mutex_unlock(&t->lock);
	text_http_wakeup(t->http);
}

void text_want(struct text *t, const uint64_t *shards, int n) {
	RV_ASSERT(n >= 0);
	(void)pthread_mutex_lock(&t->lock);
	t->n_wanted = n < TEXT_FILES_MAX ? n : TEXT_FILES_MAX;
	memcpy(t->wanted, shards, (size_t)t->n_wanted * sizeof *shards);
	(void)pthread_mutex_unlock(&t->lock);
	text_wake(t);
}

void text_want_later(struct text *t, const uint64_t *shards, int n) {
	RV_ASSERT(n >= 0 && n <= TEXT_FILES_MAX);
	const size_t bytes = (size_t)n * sizeof *shards;
	(void)pthread_mutex_lock(&t->lock);
	const bool is_new = n != t->n_later || (n > 0 && memcmp(t->later, shards, bytes) != 0);
	if (is_new) {
		t->n_later = n;
		if (n > 0)
			memcpy(t->later, shards, bytes);
		t->has_later = n == 0;
	}
	(void)pthread_mutex_unlock(&t->lock);
	if (is_new)
		text_wake(t);
}

bool text_has_later(struct text *t) {
	(void)pthread_mutex_lock(&t->lock);
	const bool has = t->has_later;
	(void)pthread_mutex_unlock(&t->lock);
	return has;
}

const char *text_dir(const struct text *t) {
	return text_cache_dir(t->cache);
}

struct text_members *text_members_of(struct text *t) {
	return t->members;
}

const struct manifest *text_manifest(const struct text *t) {
	return text_cache_manifest(t->cache);
}

struct text_stats text_stats(struct text *t) {
	(void)pthread_mutex_lock(&t->lock);
	struct text_stats s = t->stats;
	for (int i = 0; i < TEXT_WAITERS; i++)
		if (t->waiters[i].used && t->waiters[i].file.kind == TEXT_SHARD)
			s.stall_us += rv_clock_monotonic_us() - t->waiters[i].since_us;
	(void)pthread_mutex_unlock(&t->lock);
	return s;
}

void text_pause(struct text *t, bool paused) {
	(void)pthread_mutex_lock(&t->lock);
	t->paused = paused;
	(void)pthread_mutex_unlock(&t->lock);
	text_wake(t);
}

void text_set_most(struct text *t, int64_t most_per_s) {
	(void)pthread_mutex_lock(&t->lock);
	t->most_per_s = most_per_s;
	(void)pthread_mutex_unlock(&t->lock);
	text_wake(t);
}

void text_set_stops(struct text *t, bool (*stops)(void *ctx), void *ctx) {
	(void)pthread_mutex_lock(&t->lock);
	t->stops = stops;
	t->stops_ctx = ctx;
	(void)pthread_mutex_unlock(&t->lock);
}

/* ---- waiting ---- */

static struct text_waiter *add_waiter(struct text *t, const struct text_file *f) {
	const int64_t now_us = rv_clock_monotonic_us();
	for (int i = 0; i < TEXT_WAITERS; i++)
		if (!t->waiters[i].used) {
			t->waiters[i] = (struct text_waiter){
				.used = true, .is_suspect = true, .file = *f, .since_us = now_us, .notice_us = now_us + NOTICE_US};
			t->dirty = true;
			return &t->waiters[i];
		}
	return NULL;
}

/* Waits a tick, under the lock. */
static void wait_tick(struct text *t) {
	(void)os_cond_wait_until(&t->changed, &t->lock, rv_clock_monotonic_us() + TICK_MS * RV_US_PER_MS);
}

/* Called with the lock held, which it gives up meanwhile. */
static bool may_go_on(struct text *t, const struct text_config *cfg) {
	bool (*stops)(void *) = t->stops;
	void *ctx = t->stops_ctx;
	(void)pthread_mutex_unlock(&t->lock);
	const bool goes_on = !(stops && stops(ctx)) && (!cfg || !cfg->progress || cfg->progress(cfg->ctx, "text", 0, 0));
	(void)pthread_mutex_lock(&t->lock);
	return goes_on;
}

enum rv_err text_wait(struct text *t, const struct text_file *f, const struct text_config *cfg, struct rv_errtext *et) {
	struct text_waiter *w;
	bool goes_on = true;
	(void)pthread_mutex_lock(&t->lock);
	while (!(w = add_waiter(t, f)) && goes_on) {
		wait_tick(t);
		goes_on = may_go_on(t, cfg);
	}
	text_http_wakeup(t->http);
	while (w && !w->done && goes_on) {
		wait_tick(t);
		goes_on = may_go_on(t, cfg);
	}
	const bool done = w && w->done;
	if (w) {
		t->stats.stall_us += f->kind == TEXT_SHARD ? rv_clock_monotonic_us() - w->since_us : 0;
		w->used = false;
	}
	(void)pthread_mutex_unlock(&t->lock);
	return done ? RV_OK : rv_fail(et, RV_E_CANCELLED, "stopped while waiting for text");
}

enum rv_err text_get(void *text, uint64_t shard, struct rv_errtext *et) {
	const struct text_file f = {.kind = TEXT_SHARD, .i = shard};
	return text_wait(text, &f, NULL, et);
}

/* ---- the thread ---- */

/* Writes why the sources do not give it; "" if nothing is known. */
static void explain(const struct text *t, char out[static TEXT_NOTICE_BYTES]) {
	size_t n = 0;
	out[0] = '\0';
	for (int i = 0; i < t->n_origins && n < TEXT_NOTICE_BYTES - 1; i++)
		if (t->origins[i].fails)
			n += (size_t)snprintf(out + n, TEXT_NOTICE_BYTES - n, "; %.120s", t->origins[i].failure);
}

static void tell_waits(struct text *t, int64_t now_us) {
	char why[TEXT_NOTICE_BYTES], name[32];
	struct text_waiter late = {0};
	(void)pthread_mutex_lock(&t->lock);
	for (int i = 0; i < TEXT_WAITERS; i++) {
		struct text_waiter *w = &t->waiters[i];
		if (!w->used || w->done || now_us < w->notice_us)
			continue;
		late = *w;
		w->notice_us = now_us + (now_us - w->since_us);
	}
	(void)pthread_mutex_unlock(&t->lock);
	if (!late.used)
		return;
	explain(t, why);
	text_file_name(&late.file, name);
	text_say(t, "training waits for %s since %lld s%s", name, (long long)((now_us - late.since_us) / 1000000), why);
}

/* The thread's view of what others have set. */
struct orders {
	bool dirty, ends, paused;
};

/* Returns the bytes a second of one request. */
static int64_t of_one(int64_t most_per_s) {
	return most_per_s > 0 ? most_per_s / TEXT_TRANSFERS_CAPPED + 1 : 0;
}

static struct orders take_orders(struct text *t) {
	(void)pthread_mutex_lock(&t->lock);
	const struct orders o = {.dirty = t->dirty, .ends = t->ends, .paused = t->paused};
	const int64_t most_per_s = t->most_per_s;
	(void)pthread_mutex_unlock(&t->lock);
	t->capped = most_per_s > 0;
	text_http_set_most(t->http, of_one(most_per_s));
	return o;
}

static int wait_ms(const struct text *t, int64_t now_us, bool paused) {
	const int64_t at = text_core_deadline_us(t->core);
	if (paused)
		return LONGEST_MS;
	if (at <= now_us || text_planner_is_due(&t->planner, now_us))
		return 1;
	return at - now_us < LONGEST_MS * INT64_C(1000) ? (int)((at - now_us + 999) / 1000) : LONGEST_MS;
}

static void *run(void *ctx) {
	struct text *t = ctx;
	struct orders o = {.ends = false};
	while (!o.ends) {
		int64_t now_us = rv_clock_monotonic_us();
		o = take_orders(t);
		if (!o.paused && (o.dirty || text_planner_is_due(&t->planner, now_us)))
			text_plan(t, now_us);
		if (!o.paused) {
			text_request_all(t, now_us);
			tell_waits(t, now_us);
		}
		if (!o.ends)
			text_move(t, wait_ms(t, now_us, o.paused));
	}
	return NULL;
}

/* ---- life ---- */

static enum rv_err start_core(struct text *t, struct rv_errtext *et) {
	const uint64_t shard = manifest_shard_bytes(text_cache_manifest(t->cache), 0);
	const struct text_core_config cfg = {
		.ranges_max = text_core_ranges(shard > INDEX_PAGE_BYTES ? shard : INDEX_PAGE_BYTES), .stall_us = STALL_US};
	t->memory = malloc(text_core_bytes(&cfg));
	t->held = malloc(cfg.ranges_max);
	if (!t->memory || !t->held)
		return rv_fail(et, RV_E_NOMEM, "no memory to fetch text");
	t->core = text_core_init(t->memory, &cfg, rv_clock_monotonic_us());
	text_plan_init(t);
	return RV_OK;
}

static void add_sources(struct text *t, const struct text_config *cfg) {
	const struct manifest *m = text_cache_manifest(t->cache);
	struct text_mirror mirror;
	struct rv_errtext et = {0};
	for (int64_t i = 0; i < cfg->n_mirrors + m->n_mirrors; i++) {
		const char *url = i < cfg->n_mirrors ? cfg->mirrors[i] : m->mirrors[i - cfg->n_mirrors];
		if (i >= cfg->n_mirrors && !mirror_hosts_have(t->hosts, url)) {
			text_say(t, "mirror %.200s is not asked: nobody here has agreed to its host", url);
			continue;
		}
		if (i >= cfg->n_mirrors && !mirror_hosts_take(t->hosts, m, i - cfg->n_mirrors))
			continue;
		if (text_mirror_parse(url, &t->keys, &mirror, &et) == RV_OK)
			(void)text_add_mirror(t, &mirror);
		else
			text_say(t, "%s", et.text);
	}
	if (t->client)
		text_add_coordinator(t);
}

static enum rv_err start_thread(struct text *t, struct rv_errtext *et) {
	const int why = pthread_create(&t->thread, NULL, run, t);
	t->has_thread = why == 0;
	return why == 0 ? RV_OK : rv_fail_errno(et, why, "a thread to fetch text");
}

/* Called by the thread of the mesh. */
static void wake(void *ctx) {
	text_http_wakeup(((struct text *)ctx)->http);
}

static enum rv_err open_parts(struct text *t, const struct text_config *cfg, struct rv_errtext *et) {
	const struct text_http_config http = {.owner = text_http_owner(t),
										  .keys = &t->keys,
										  .hosts = t->hosts,
										  .met = cfg->met,
										  .most_per_s = of_one(cfg->most_per_s)};
	t->members = text_members_new(wake, t);
	if (!t->members)
		return rv_fail(et, RV_E_NOMEM, "no memory to fetch text");
	RV_TRY(text_keys_read(&t->keys, et));
	RV_TRY(text_cache_open(cfg->dir, &cfg->data_hash, cfg->quota_bytes, &t->cache, et));
	if (cfg->coordinator)
		RV_TRY(http_client_new(cfg->coordinator, &t->client, et));
	RV_TRY(text_fetch_first(t, cfg, et));
	RV_TRY(text_http_new(&http, &t->http, et));
	RV_TRY(start_core(t, et));
	add_sources(t, cfg);
	RV_TRY(start_thread(t, et));
	const struct index_shape shape = index_shape_of(text_cache_manifest(t->cache));
	return text_wait(t, &(struct text_file){.kind = TEXT_PAGE, .level = shape.levels - 1}, cfg, et);
}

static struct text *new_text(void) {
	struct text *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->has_later = true;
	(void)pthread_mutex_init(&t->lock, NULL);
	os_cond_init(&t->changed);
	return t;
}

enum rv_err text_open(const struct text_config *cfg, struct text **out, struct rv_errtext *et) {
	struct text *t = new_text();
	*out = NULL;
	if (!t)
		return rv_fail(et, RV_E_NOMEM, "no memory to fetch text");
	(void)snprintf(t->hosts, sizeof t->hosts, "%s", cfg->hosts ? cfg->hosts : "");
	t->quota_bytes = cfg->quota_bytes;
	t->most_per_s = cfg->most_per_s;
	const enum rv_err e = open_parts(t, cfg, et);
	if (e == RV_OK)
		*out = t;
	else
		text_close(t);
	return e;
}

static void end_thread(struct text *t) {
	(void)pthread_mutex_lock(&t->lock);
	t->ends = true;
	(void)pthread_mutex_unlock(&t->lock);
	text_http_wakeup(t->http);
	(void)pthread_join(t->thread, NULL);
}

void text_close(struct text *t) {
	if (!t)
		return;
	if (t->has_thread)
		end_thread(t);
	text_http_free(t->http);
	http_client_free(t->client);
	text_members_free(t->members);
	text_cache_close(t->cache);
	(void)pthread_cond_destroy(&t->changed);
	(void)pthread_mutex_destroy(&t->lock);
	free(t->memory);
	free(t->held);
	free(t);
}
