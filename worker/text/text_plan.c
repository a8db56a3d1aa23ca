/* text_plan.c: which files to fetch, in which order (worker/text/text_thread_state.h). */
#include "base/assert.h"
#include "base/clock.h"
#include "worker/text/text_thread_state.h"

#include <string.h>

enum { DISK_PAUSE_US = 10 * 1000 * 1000 };

/* The shards of a plan, in the order of need. */
struct plan {
	struct text_waiter waiters[TEXT_WAITERS]; /* copies, not done */
	uint64_t wanted[TEXT_FILES_MAX];
	int n_wanted;
	uint64_t shards[TEXT_CACHE_WANTED];
	int n, most;
	int n_needs, n_urgent;
	struct text_need needs[TEXT_FILES_MAX];
};

static void add_shard(struct plan *p, uint64_t shard) {
	for (int i = 0; i < p->n; i++)
		if (p->shards[i] == shard)
			return;
	if (p->n < p->most)
		p->shards[p->n++] = shard;
}

/* ---- those who wait ---- */

/* Copies what others may change. */
static void copy_wants(struct text *t, struct plan *p) {
	(void)pthread_mutex_lock(&t->lock);
	t->dirty = false;
	p->n_wanted = t->n_wanted;
	memcpy(p->wanted, t->wanted, sizeof p->wanted);
	for (int i = 0; i < TEXT_WAITERS; i++)
		if (t->waiters[i].used && !t->waiters[i].done) {
			p->waiters[i] = t->waiters[i];
			t->waiters[i].is_suspect = false;
		}
	(void)pthread_mutex_unlock(&t->lock);
}

/* Looks whether what somebody waits for is there, and right if it could not be read. */
static bool is_there(struct text *t, const struct text_waiter *w) {
	struct text_file next;
	if (w->file.kind == TEXT_PAGE)
		return !text_cache_lacks_page(t->cache, w->file.level, w->file.i, &next);
	if (w->is_suspect)
		text_cache_verify(t->cache, w->file.i);
	return !text_cache_lacks(t->cache, w->file.i, &next);
}

static void answer_waiters(struct text *t, struct plan *p) {
	for (int i = 0; i < TEXT_WAITERS; i++) {
		struct text_waiter *w = &p->waiters[i];
		if (!w->used || !is_there(t, w))
			continue;
		w->used = false;
		if (w->file.kind == TEXT_SHARD) {
			t->has_recent = true;
			t->recent = w->file.i;
		}
		(void)pthread_mutex_lock(&t->lock);
		t->waiters[i].done = t->waiters[i].done || text_file_id(&t->waiters[i].file) == text_file_id(&w->file);
		(void)pthread_cond_broadcast(&t->changed);
		(void)pthread_mutex_unlock(&t->lock);
	}
}

/* ---- files ---- */

static bool is_in(const struct text_need *needs, int n, uint64_t id) {
	for (int i = 0; i < n; i++)
		if (needs[i].id == id)
			return true;
	return false;
}

/* Opens the part of a file that was not wanted before. Returns false if it must wait: for room, or
 * for the disk to work again. */
static bool begin(struct text *t, const struct text_file *f, int64_t now_us) {
	struct rv_errtext et = {0};
	bool waits;
	if (now_us < t->disk_until_us)
		return false;
	if (text_cache_begin(t->cache, f, t->held, &waits, &et) == RV_OK)
		return true;
	if (!waits) {
		t->disk_until_us = now_us + DISK_PAUSE_US;
		text_say(t, "text cannot be kept: %s; tried again in 10 s", et.text);
	}
	return false;
}

static void add_need(struct text *t, struct plan *p, const struct text_file *f, bool urgent) {
	const uint64_t id = text_file_id(f);
	if (p->n_needs < TEXT_FILES_MAX && !is_in(p->needs, p->n_needs, id))
		p->needs[p->n_needs++] =
			(struct text_need){.id = id, .bytes = text_file_bytes(text_cache_manifest(t->cache), f), .urgent = urgent};
}

/* Lists the shards in the order of need, as many as fit into the cache. */
static void list_shards(const struct text *t, struct plan *p) {
	for (int i = 0; i < TEXT_WAITERS; i++)
		if (p->waiters[i].used && p->waiters[i].file.kind == TEXT_SHARD)
			add_shard(p, p->waiters[i].file.i);
	p->n_urgent = p->n;
	if (t->has_recent)
		add_shard(p, t->recent);
	for (int i = 0; i < p->n_wanted; i++)
		add_shard(p, p->wanted[i]);
}

static void list_files(struct text *t, struct plan *p) {
	struct text_file f;
	for (int i = 0; i < TEXT_WAITERS; i++) {
		const struct text_waiter *w = &p->waiters[i];
		if (w->used && w->file.kind == TEXT_PAGE && text_cache_lacks_page(t->cache, w->file.level, w->file.i, &f))
			add_need(t, p, &f, true);
	}
	for (int i = 0; i < p->n; i++)
		if (text_cache_lacks(t->cache, p->shards[i], &f))
			add_need(t, p, &f, i < p->n_urgent);
}

/* Gives the core the files whose parts could be opened, and what is in them from before. */
static void want(struct text *t, const struct plan *p, int64_t now_us) {
	for (int i = 0; i < p->n_needs; i++) {
		const struct text_file f = text_file_of(p->needs[i].id);
		if (is_in(t->needs, t->n_needs, p->needs[i].id) || !begin(t, &f, now_us))
			continue;
		t->needs[t->n_needs++] = p->needs[i];
		text_core_want(t->core, now_us, t->needs, t->n_needs);
		if (text_core_resume(t->core, p->needs[i].id, t->held))
			text_finish(t, p->needs[i].id, now_us);
	}
}

/* Sets the order, and what is urgent, as planned. */
static void order(struct text *t, const struct plan *p, int64_t now_us) {
	struct text_need needs[TEXT_FILES_MAX];
	int n = 0;
	for (int i = 0; i < p->n_needs; i++)
		if (is_in(t->needs, t->n_needs, p->needs[i].id))
			needs[n++] = p->needs[i];
	memcpy(t->needs, needs, (size_t)n * sizeof *needs);
	t->n_needs = n;
	text_core_want(t->core, now_us, t->needs, n);
}

/* Leaves the files that are wanted no more. */
static void leave(struct text *t, const struct plan *p, int64_t now_us) {
	int n = 0;
	for (int i = 0; i < t->n_needs; i++) {
		const struct text_file f = text_file_of(t->needs[i].id);
		if (is_in(p->needs, p->n_needs, t->needs[i].id))
			t->needs[n++] = t->needs[i];
		else
			text_cache_leave(t->cache, &f);
	}
	t->n_needs = n;
	text_core_want(t->core, now_us, t->needs, n);
}

void text_plan(struct text *t, int64_t now_us) {
	struct plan p = {0};
	const uint64_t fit = t->quota_bytes / manifest_shard_bytes(text_cache_manifest(t->cache), 0);
	p.most = fit < TEXT_CACHE_WANTED ? (int)fit : TEXT_CACHE_WANTED;
	copy_wants(t, &p);
	answer_waiters(t, &p);
	list_shards(t, &p);
	text_cache_prefer(t->cache, p.shards, p.n);
	list_files(t, &p);
	leave(t, &p, now_us);
	want(t, &p, now_us);
	order(t, &p, now_us);
	(void)pthread_mutex_lock(&t->lock);
	t->stats.cached_bytes = text_cache_used(t->cache);
	(void)pthread_mutex_unlock(&t->lock);
}

/* ---- whole files ---- */

static void drop_need(struct text *t, uint64_t id, int64_t now_us) {
	int n = 0;
	for (int i = 0; i < t->n_needs; i++)
		if (t->needs[i].id != id)
			t->needs[n++] = t->needs[i];
	t->n_needs = n;
	text_core_want(t->core, now_us, t->needs, n);
}

static void blame(struct text *t, const struct text_file *f, int64_t now_us, bool good) {
	int liars[TEXT_SOURCES_MAX];
	char name[32];
	text_file_name(f, name);
	const int n = text_core_verdict(t->core, now_us, text_file_id(f), good, liars);
	for (int i = 0; i < n; i++)
		text_say(t, "%s gave wrong bytes of %s: left alone for a while", t->origins[liars[i]].name, name);
	(void)pthread_mutex_lock(&t->lock);
	t->stats.lies += (uint32_t)n;
	(void)pthread_mutex_unlock(&t->lock);
}

void text_finish(struct text *t, uint64_t id, int64_t now_us) {
	const struct text_file f = text_file_of(id);
	struct rv_errtext et = {0};
	const enum rv_err e = text_cache_finish(t->cache, &f, &et);
	if (e == RV_OK || e == RV_E_CORRUPT)
		blame(t, &f, now_us, e == RV_OK);
	if (e != RV_OK && e != RV_E_CORRUPT && e != RV_E_NOTFOUND) {
		t->disk_until_us = now_us + DISK_PAUSE_US;
		text_say(t, "text cannot be kept: %s; tried again in 10 s", et.text);
	}
	if (e != RV_E_CORRUPT || !begin(t, &f, now_us))
		drop_need(t, id, now_us);
	text_wake(t);
}
