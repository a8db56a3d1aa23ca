/* text_planner.c: see text_planner.h. */
#include "worker/text/text_planner.h"

#include "base/planted.h"

#include <string.h>

enum { DISK_PAUSE_US = 10 * 1000 * 1000 };

/* What is to be fetched, in the order of need. */
struct plan {
	uint64_t shards[TEXT_SHELF_WANTED];
	int n, n_urgent;
	struct text_need needs[TEXT_FILES_MAX];
	int n_needs;
};

void text_planner_init(struct text_planner *p, const struct text_planner_ops *ops, struct text_core *core,
					   uint8_t *held, uint64_t quota_shards) {
	*p = (struct text_planner){.ops = *ops,
							   .core = core,
							   .held = held,
							   .most = quota_shards < TEXT_SHELF_WANTED ? (int)quota_shards : TEXT_SHELF_WANTED};
}

static bool is_in(const struct text_need *needs, int n, uint64_t id) {
	for (int i = 0; i < n; i++)
		if (needs[i].id == id)
			return true;
	return false;
}

/* ---- those who wait ---- */

/* Looks whether what somebody waits for is there, and right if it could not be read. */
static bool is_there(struct text_planner *p, const struct text_wait *w) {
	struct text_file next;
	if (w->file.kind == TEXT_PAGE)
		return !p->ops.lacks_page(p->ops.ctx, w->file.level, w->file.i, &next);
	if (w->is_suspect && !RV_BUG("believe-a-suspect"))
		p->ops.verify(p->ops.ctx, w->file.i);
	return !p->ops.lacks(p->ops.ctx, w->file.i, &next);
}

static void answer(struct text_planner *p, struct text_wait *waits, int n) {
	for (int i = 0; i < n; i++) {
		waits[i].is_there = is_there(p, &waits[i]);
		if (!waits[i].is_there || waits[i].file.kind != TEXT_SHARD)
			continue;
		p->has_recent = true;
		p->recent = waits[i].file.i;
	}
}

/* ---- the order of need ---- */

static void add_shard(const struct text_planner *p, struct plan *plan, uint64_t shard) {
	for (int i = 0; i < plan->n; i++)
		if (plan->shards[i] == shard)
			return;
	if (plan->n < p->most)
		plan->shards[plan->n++] = shard;
}

/* Lists the shards in the order of need, as many as fit into the cache. */
static void list_shards(const struct text_planner *p, struct plan *plan, const struct text_wait *waits, int n_waits,
						const uint64_t *wanted, int n_wanted) {
	for (int i = 0; i < n_waits; i++)
		if (!waits[i].is_there && waits[i].file.kind == TEXT_SHARD)
			add_shard(p, plan, waits[i].file.i);
	plan->n_urgent = plan->n;
	if (p->has_recent && !RV_BUG("forget-what-is-read"))
		add_shard(p, plan, p->recent);
	for (int i = 0; i < n_wanted; i++)
		add_shard(p, plan, wanted[i]);
}

static void add_need(const struct text_planner *p, struct plan *plan, const struct text_file *f, bool urgent) {
	const uint64_t id = text_file_id(f);
	if (plan->n_needs < TEXT_FILES_MAX && !is_in(plan->needs, plan->n_needs, id))
		plan->needs[plan->n_needs++] =
			(struct text_need){.id = id, .bytes = p->ops.bytes_of(p->ops.ctx, f), .urgent = urgent};
}

static void list_files(const struct text_planner *p, struct plan *plan, const struct text_wait *waits, int n_waits) {
	struct text_file f;
	for (int i = 0; i < n_waits; i++) {
		const struct text_wait *w = &waits[i];
		if (!w->is_there && w->file.kind == TEXT_PAGE && p->ops.lacks_page(p->ops.ctx, w->file.level, w->file.i, &f))
			add_need(p, plan, &f, true);
	}
	for (int i = 0; i < plan->n; i++)
		if (p->ops.lacks(p->ops.ctx, plan->shards[i], &f))
			add_need(p, plan, &f, i < plan->n_urgent);
}

/* ---- what the core fetches ---- */

static void disk_failed(struct text_planner *p, int64_t now_us, const char *why) {
	p->disk_until_us = now_us + DISK_PAUSE_US;
	p->ops.refused(p->ops.ctx, why);
}

/* Opens the part of a file that was not wanted before. Returns false if it must wait: for room, or
 * for the disk to work again. */
static bool begin(struct text_planner *p, const struct text_file *f, int64_t now_us) {
	struct rv_errtext et = {0};
	bool waits = false;
	if (now_us < p->disk_until_us)
		return false;
	if (p->ops.begin(p->ops.ctx, f, p->held, &waits, &et) == RV_OK)
		return true;
	if (!waits)
		disk_failed(p, now_us, et.text);
	return false;
}

static void set_needs(struct text_planner *p, int64_t now_us, int n) {
	p->n_needs = n;
	text_core_want(p->core, now_us, p->needs, n);
}

/* Leaves the files that are wanted no more. */
static void leave(struct text_planner *p, const struct plan *plan, int64_t now_us) {
	int n = 0;
	for (int i = 0; i < p->n_needs; i++) {
		const struct text_file f = text_file_of(p->needs[i].id);
		if (is_in(plan->needs, plan->n_needs, p->needs[i].id))
			p->needs[n++] = p->needs[i];
		else
			p->ops.leave(p->ops.ctx, &f);
	}
	set_needs(p, now_us, n);
}

static void drop_need(struct text_planner *p, uint64_t id, int64_t now_us) {
	int n = 0;
	for (int i = 0; i < p->n_needs; i++)
		if (p->needs[i].id != id)
			p->needs[n++] = p->needs[i];
	set_needs(p, now_us, n);
}

static void judge(struct text_planner *p, const struct text_file *f, int64_t now_us, bool good) {
	int liars[TEXT_SOURCES_MAX];
	const int n = text_core_verdict(p->core, now_us, text_file_id(f), good, liars);
	for (int i = 0; i < n; i++)
		p->ops.lied(p->ops.ctx, liars[i], f);
}

/* Checks a file that has all its ranges, and names those who lied. */
static void finish(struct text_planner *p, uint64_t id, int64_t now_us) {
	const struct text_file f = text_file_of(id);
	struct rv_errtext et = {0};
	const enum rv_err e = p->ops.finish(p->ops.ctx, &f, &et);
	if (e == RV_OK || e == RV_E_CORRUPT)
		judge(p, &f, now_us, e == RV_OK);
	if (e != RV_OK && e != RV_E_CORRUPT && e != RV_E_NOTFOUND)
		disk_failed(p, now_us, et.text);
	if (e != RV_E_CORRUPT || !begin(p, &f, now_us))
		drop_need(p, id, now_us);
	p->is_stale = true;
}

/* Gives the core the files whose parts could be opened, and what is in them from before. */
static void want(struct text_planner *p, const struct plan *plan, int64_t now_us) {
	for (int i = 0; i < plan->n_needs; i++) {
		const struct text_file f = text_file_of(plan->needs[i].id);
		if (is_in(p->needs, p->n_needs, plan->needs[i].id) || !begin(p, &f, now_us))
			continue;
		p->needs[p->n_needs] = plan->needs[i];
		set_needs(p, now_us, p->n_needs + 1);
		if (text_core_resume(p->core, plan->needs[i].id, p->held))
			finish(p, plan->needs[i].id, now_us);
	}
}

/* Sets the order, and what is urgent, as planned. */
static void set_order(struct text_planner *p, const struct plan *plan, int64_t now_us) {
	struct text_need needs[TEXT_FILES_MAX];
	int n = 0;
	for (int i = 0; i < plan->n_needs; i++)
		if (is_in(p->needs, p->n_needs, plan->needs[i].id))
			needs[n++] = plan->needs[i];
	memcpy(p->needs, needs, (size_t)n * sizeof *needs);
	set_needs(p, now_us, n);
}

void text_planner_plan(struct text_planner *p, int64_t now_us, struct text_wait *waits, int n_waits,
					   const uint64_t *wanted, int n_wanted) {
	struct plan plan = {.n = 0};
	p->is_stale = false;
	if (now_us >= p->disk_until_us)
		p->disk_until_us = 0;
	answer(p, waits, n_waits);
	list_shards(p, &plan, waits, n_waits, wanted, n_wanted);
	p->ops.prefer(p->ops.ctx, plan.shards, plan.n);
	list_files(p, &plan, waits, n_waits);
	leave(p, &plan, now_us);
	want(p, &plan, now_us);
	set_order(p, &plan, now_us);
}

bool text_planner_is_due(const struct text_planner *p, int64_t now_us) {
	return p->is_stale || (p->disk_until_us != 0 && now_us >= p->disk_until_us);
}

/* ---- what comes ---- */

static void keep(struct text_planner *p, int64_t now_us, const struct text_arrival *a, const void *bytes, size_t n,
				 uint64_t check) {
	struct rv_errtext et = {0};
	const struct text_file f = text_file_of(a->file);
	if (p->ops.write(p->ops.ctx, &f, a->range, bytes, n, check, &et) == RV_OK) {
		if (a->complete)
			finish(p, a->file, now_us);
		return;
	}
	disk_failed(p, now_us, et.text);
	if (RV_BUG("believe-a-failed-write"))
		return;
	p->ops.leave(p->ops.ctx, &f); /* what is written stays: it goes on there when the disk works again */
	drop_need(p, a->file, now_us);
}

struct text_arrival text_planner_arrived(struct text_planner *p, int64_t now_us, uint32_t ask, const void *bytes,
										 size_t n, uint64_t check) {
	const struct text_arrival a = text_core_arrived(p->core, now_us, ask, check);
	if (a.keep)
		keep(p, now_us, &a, bytes, n, check);
	return a;
}
