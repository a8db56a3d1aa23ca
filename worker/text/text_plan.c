/* text_plan.c: the planner's store and its news, as the text thread has them
 * (worker/text/text_thread_state.h). */
#include "worker/text/text_thread_state.h"

#include <string.h>

/* ---- the store ---- */

static bool lacks(void *ctx, uint64_t shard, struct text_file *next) {
	return text_cache_lacks(((struct text *)ctx)->cache, shard, next);
}

static bool lacks_page(void *ctx, int level, uint64_t i, struct text_file *next) {
	return text_cache_lacks_page(((struct text *)ctx)->cache, level, i, next);
}

static void prefer(void *ctx, const uint64_t *shards, int n) {
	text_cache_prefer(((struct text *)ctx)->cache, shards, n);
}

static void verify(void *ctx, uint64_t shard) {
	text_cache_verify(((struct text *)ctx)->cache, shard);
}

static uint64_t bytes_of(void *ctx, const struct text_file *f) {
	return text_file_bytes(text_cache_manifest(((struct text *)ctx)->cache), f);
}

static enum rv_err begin(void *ctx, const struct text_file *f, uint8_t *held, bool *waits, struct rv_errtext *et) {
	return text_cache_begin(((struct text *)ctx)->cache, f, held, waits, et);
}

static enum rv_err write_range(void *ctx, const struct text_file *f, uint32_t range, const void *bytes, size_t n,
							   uint64_t check, struct rv_errtext *et) {
	return text_cache_write(((struct text *)ctx)->cache, f, range, bytes, n, check, et);
}

static enum rv_err finish(void *ctx, const struct text_file *f, struct rv_errtext *et) {
	return text_cache_finish(((struct text *)ctx)->cache, f, et);
}

static void leave(void *ctx, const struct text_file *f) {
	text_cache_leave(((struct text *)ctx)->cache, f);
}

/* ---- news ---- */

static void lied(void *ctx, int source, const struct text_file *f) {
	struct text *t = ctx;
	char name[32];
	text_file_name(f, name);
	text_say(t, "%s gave wrong bytes of %s: left alone for a while", t->origins[source].name, name);
	(void)pthread_mutex_lock(&t->lock);
	t->stats.lies++;
	(void)pthread_mutex_unlock(&t->lock);
}

static void refused(void *ctx, const char *why) {
	text_say(ctx, "text cannot be kept: %s; tried again in 10 s", why);
}

void text_plan_init(struct text *t) {
	const struct text_planner_ops ops = {.ctx = t,
										 .lacks = lacks,
										 .lacks_page = lacks_page,
										 .prefer = prefer,
										 .verify = verify,
										 .bytes_of = bytes_of,
										 .begin = begin,
										 .write = write_range,
										 .finish = finish,
										 .leave = leave,
										 .lied = lied,
										 .refused = refused};
	text_planner_init(&t->planner, &ops, t->core, t->held,
					  t->quota_bytes / manifest_shard_bytes(text_cache_manifest(t->cache), 0));
}

/* ---- a plan ---- */

/* What others may change. */
struct shared {
	uint64_t wanted[2 * TEXT_FILES_MAX]; /* those of text_want(), then those of text_want_later() */
	int n_wanted, n_first;
	bool has_later;
	struct text_wait waits[TEXT_WAITERS];
	int n_waits;
};

static void copy_wants(struct text *t, struct shared *s) {
	(void)pthread_mutex_lock(&t->lock);
	t->dirty = false;
	s->n_first = t->n_wanted;
	s->n_wanted = t->n_wanted + t->n_later;
	memcpy(s->wanted, t->wanted, (size_t)t->n_wanted * sizeof *s->wanted);
	memcpy(s->wanted + t->n_wanted, t->later, (size_t)t->n_later * sizeof *s->wanted);
	for (int i = 0; i < TEXT_WAITERS; i++) {
		struct text_waiter *w = &t->waiters[i];
		if (!w->used || w->done)
			continue;
		s->waits[s->n_waits++] = (struct text_wait){.file = w->file, .is_suspect = w->is_suspect};
		w->is_suspect = false;
	}
	(void)pthread_mutex_unlock(&t->lock);
}

/* Returns true if what is wanted later need not be waited for: it is here, or there is never room
 * for it beside the shard that is read and those that are wanted first. */
static bool has_later(const struct text *t, const struct shared *s) {
	struct text_file next;
	if (s->n_wanted + 1 > t->planner.most)
		return true;
	for (int i = s->n_first; i < s->n_wanted; i++)
		if (text_cache_lacks(t->cache, s->wanted[i], &next))
			return false;
	return true;
}

static void answer(struct text *t, const struct shared *s) {
	(void)pthread_mutex_lock(&t->lock);
	if (!t->dirty) /* else others are wanted by now, and the next plan knows */
		t->has_later = s->has_later;
	for (int i = 0; i < TEXT_WAITERS; i++)
		for (int k = 0; k < s->n_waits; k++)
			if (t->waiters[i].used && s->waits[k].is_there &&
				text_file_id(&t->waiters[i].file) == text_file_id(&s->waits[k].file))
				t->waiters[i].done = true;
	t->stats.cached_bytes = text_cache_used(t->cache);
	(void)pthread_cond_broadcast(&t->changed);
	(void)pthread_mutex_unlock(&t->lock);
}

void text_plan(struct text *t, int64_t now_us) {
	struct shared s = {.n_wanted = 0};
	copy_wants(t, &s);
	text_planner_plan(&t->planner, now_us, s.waits, s.n_waits, s.wanted, s.n_wanted);
	s.has_later = has_later(t, &s);
	answer(t, &s);
}
