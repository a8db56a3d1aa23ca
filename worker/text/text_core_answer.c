/* text_core_answer.c: what comes of requests (worker/text/text_core.h). */
#include "base/assert.h"
#include "base/planted.h"
#include "worker/text/text_core_state.h"

#include <string.h>

enum {
	QUICK_US = 2 * 1000 * 1000, /* an answer that lets the window grow */
	LATE_US = 6 * 1000 * 1000,  /* one that lets it shrink */
	MIRROR_WINDOW = 6,
	MEMBER_WINDOW = 3,
	CUT_PAUSE_US = 500 * 1000, /* doubles with each failure in a row */
	CUT_PAUSE_MAX_US = 300 * 1000 * 1000,
	BUSY_PAUSE_US = 1000 * 1000,
	BUSY_PAUSE_MAX_US = 600 * 1000 * 1000,
	GONE_PAUSE_US = 30 * 1000 * 1000,
	GONE_PAUSE_MAX_US = 600 * 1000 * 1000,
	DOUBLINGS_MAX = 12
};

static struct text_ask *ask_of(struct text_core *c, uint32_t id) {
	for (int i = 0; i < TEXT_ASKS_MAX; i++)
		if (id != 0 && c->asks[i].id == id && c->asks[i].slot != TEXT_NOBODY)
			return &c->asks[i];
	return NULL;
}

bool text_core_drop(struct text_core *c, uint32_t *id) {
	for (int i = 0; i < TEXT_ASKS_MAX; i++) {
		struct text_ask *a = &c->asks[i];
		if (a->id == 0 || a->slot != TEXT_NOBODY)
			continue;
		*id = a->id;
		a->id = 0;
		return true;
	}
	return false;
}

/* ---- ranges ---- */

static void count_bytes(struct text_core *c, struct text_ask *a, uint32_t got) {
	struct text_source *s = &c->sources[a->source];
	RV_ASSERT(got >= a->got);
	text_source_clock(c, s);
	if (got > a->got)
		a->heard_us = c->now_us;
	s->bytes += got - a->got;
	a->got = got;
}

void text_core_progress(struct text_core *c, int64_t now_us, uint32_t id, uint32_t bytes) {
	struct text_ask *a = ask_of(c, id);
	c->now_us = now_us;
	if (!a)
		return;
	const uint32_t whole = text_core_range_bytes(c->files[a->slot].bytes, a->at);
	RV_ASSERT(bytes <= whole);
	if (bytes > a->got)
		count_bytes(c, a, bytes);
}

static int window_max(const struct text_source *s) {
	if (s->whole || s->kind == TEXT_COORDINATOR)
		return 1;
	return s->kind == TEXT_MEMBER ? MEMBER_WINDOW : MIRROR_WINDOW;
}

/* `took_us`: of the range that has just come. */
static void adapt_window(struct text_source *s, int64_t took_us) {
	if (took_us < QUICK_US && s->n_asks >= s->window && s->window < window_max(s))
		s->window++;
	else if (took_us > LATE_US && s->window > 1)
		s->window--;
}

/* Ends the requests for which nothing is left to come: others have delivered it. */
static void drop_served(struct text_core *c, int slot) {
	const struct text_wanted *f = &c->files[slot];
	for (int i = 0; i < TEXT_ASKS_MAX; i++) {
		struct text_ask *a = &c->asks[i];
		bool lacks = false;
		if (a->id == 0 || a->slot != slot)
			continue;
		for (uint32_t r = a->at; r < a->first + a->n; r++)
			lacks = lacks || !f->ranges[r].held;
		if (!lacks)
			text_release(c, a);
	}
}

static void hold(struct text_core *c, struct text_wanted *f, const struct text_ask *a, uint64_t check) {
	struct text_range *r = &f->ranges[a->at];
	r->held = true;
	r->from = (int8_t)a->source;
	r->check = check;
	f->n_held++;
	f->complete = f->n_held == f->n_ranges;
	f->arrived_us = c->now_us;
}

/* Goes on with the next range of the request. Returns true if that was the last. */
static bool advance(struct text_core *c, struct text_ask *a) {
	c->files[a->slot].ranges[a->at].asks--;
	a->at++;
	a->got = 0;
	a->asked_us = a->heard_us = c->now_us;
	if (a->at < a->first + a->n)
		return false;
	text_release(c, a);
	a->id = 0;
	return true;
}

struct text_arrival text_core_arrived(struct text_core *c, int64_t now_us, uint32_t id, uint64_t check) {
	struct text_ask *a = ask_of(c, id);
	struct text_arrival out = {0};
	c->now_us = now_us;
	if (!a)
		return out;
	const int slot = a->slot;
	struct text_wanted *f = &c->files[slot];
	struct text_source *s = &c->sources[a->source];
	count_bytes(c, a, text_core_range_bytes(f->bytes, a->at));
	adapt_window(s, now_us - a->asked_us);
	s->failures = 0;
	f->lacks_pause_us[a->source] = 0;
	out.file = f->id;
	out.range = a->at;
	out.keep = !f->ranges[a->at].held;
	if (out.keep)
		hold(c, f, a, check);
	out.complete = out.keep && f->complete;
	out.ended = advance(c, a);
	drop_served(c, slot);
	text_check_invariants(c);
	return out;
}

/* ---- failures ---- */

static int64_t doubled(int64_t first_us, int times, int64_t most_us) {
	const int64_t us = first_us << (times < DOUBLINGS_MAX ? times : DOUBLINGS_MAX);
	return us < most_us ? us : most_us;
}

static void pause_source(struct text_core *c, struct text_source *s, int64_t pause_us) {
	if (c->now_us + pause_us > s->paused_until_us)
		s->paused_until_us = c->now_us + pause_us;
	s->failures++;
}

static void busy(struct text_core *c, struct text_source *s, int64_t retry_us) {
	const int64_t own = doubled(BUSY_PAUSE_US, s->failures, BUSY_PAUSE_MAX_US);
	const int64_t named = retry_us < BUSY_PAUSE_MAX_US ? retry_us : BUSY_PAUSE_MAX_US;
	pause_source(c, s, named > own ? named : own);
	s->window = s->window > 1 ? s->window / 2 : 1;
}

static void gone(struct text_core *c, struct text_wanted *f, int source) {
	if (c->sources[source].kind == TEXT_MEMBER) {
		text_lacks(c, f, source);
		return;
	}
	int64_t *pause = &f->lacks_pause_us[source];
	*pause = *pause == 0 ? GONE_PAUSE_US : doubled(*pause, 1, GONE_PAUSE_MAX_US);
	f->lacks_until_us[source] = c->now_us + *pause;
	if (c->sources[source].kind == TEXT_MIRROR) /* one that lacks all is asked ever less often */
		pause_source(c, &c->sources[source], doubled(CUT_PAUSE_US, c->sources[source].failures, CUT_PAUSE_MAX_US));
}

static void fail(struct text_core *c, struct text_ask *a, enum text_failure why, int64_t retry_us) {
	struct text_source *s = &c->sources[a->source];
	struct text_wanted *f = &c->files[a->slot];
	text_release(c, a);
	switch (why) {
	case TEXT_GONE:
		gone(c, f, a->source);
		break;
	case TEXT_BUSY:
		busy(c, s, retry_us);
		break;
	case TEXT_CUT:
		pause_source(c, s, doubled(CUT_PAUSE_US, s->failures, CUT_PAUSE_MAX_US));
		break;
	case TEXT_WRONG:
		text_blame(c, a->source);
		break;
	}
}

void text_core_failed(struct text_core *c, int64_t now_us, uint32_t id, enum text_failure why, int64_t retry_us) {
	struct text_ask *a = ask_of(c, id);
	c->now_us = now_us;
	if (!a)
		return;
	fail(c, a, why, retry_us);
	a->id = 0;
	text_check_invariants(c);
}

/* The coordinator serves members in turn, and a range of it comes whole or not at all: its client
 * limits the time. */
static bool may_stall(const struct text_core *c, const struct text_ask *a) {
	return c->sources[a->source].kind != TEXT_COORDINATOR;
}

void text_core_tick(struct text_core *c, int64_t now_us) {
	c->now_us = now_us;
	for (int i = 0; i < TEXT_ASKS_MAX; i++) {
		struct text_ask *a = &c->asks[i];
		if (a->id != 0 && a->slot != TEXT_NOBODY && may_stall(c, a) && now_us - a->heard_us >= c->cfg.stall_us)
			fail(c, a, TEXT_CUT, 0);
	}
	text_check_invariants(c);
}

/* ---- verdicts ---- */

/* Returns the source that all ranges came from; TEXT_NOBODY: several. */
static int only_source(const struct text_wanted *f) {
	for (uint32_t r = 1; r < f->n_ranges; r++)
		if (f->ranges[r].from != f->ranges[0].from)
			return TEXT_NOBODY;
	return f->ranges[0].from;
}

static bool add_liar(int liars[TEXT_SOURCES_MAX], int n, int source) {
	for (int i = 0; i < n; i++)
		if (liars[i] == source)
			return false;
	liars[n] = source;
	return true;
}

/* Names those whose ranges of an earlier copy differ from the right ones. */
static int compare(const struct text_wanted *f, int liars[TEXT_SOURCES_MAX]) {
	int n = 0;
	for (uint32_t r = 0; r < f->n_ranges; r++) {
		const struct text_range *range = &f->ranges[r];
		if (range->old_from >= 0 && range->from >= 0 && range->old_check != range->check)
			n += add_liar(liars, n, RV_BUG("name-who-was-right") ? range->from : range->old_from);
	}
	return n;
}

static void keep_for_comparison(struct text_wanted *f) {
	for (uint32_t r = 0; r < f->n_ranges; r++) {
		f->ranges[r].old_from = f->ranges[r].from;
		f->ranges[r].old_check = f->ranges[r].check;
	}
}

static int wrong(struct text_core *c, int slot, int liars[TEXT_SOURCES_MAX]) {
	struct text_wanted *f = &c->files[slot];
	const int only = only_source(f);
	int n = 0;
	if (only >= 0) {
		n += add_liar(liars, n, only);
	} else if (only == TEXT_NOBODY) {
		keep_for_comparison(f);
		f->doubted = true;
	}
	text_restart(c, slot);
	return n;
}

static void forget(struct text_core *c, int slot) {
	int n = 0;
	for (int i = 0; i < c->n_order; i++)
		if (c->order[i] != slot)
			c->order[n++] = c->order[i];
	c->n_order = n;
	c->files[slot].used = false;
}

int text_core_verdict(struct text_core *c, int64_t now_us, uint64_t id, bool good, int liars[TEXT_SOURCES_MAX]) {
	const int slot = text_slot(c, id);
	c->now_us = now_us;
	if (slot == TEXT_NOBODY || !c->files[slot].complete)
		return 0;
	const int n = good ? compare(&c->files[slot], liars) : wrong(c, slot, liars);
	for (int i = 0; i < n; i++)
		text_blame(c, liars[i]);
	if (good)
		forget(c, slot);
	text_check_invariants(c);
	return n;
}

bool text_core_nowhere(const struct text_core *c, int64_t now_us, uint64_t id) {
	const int slot = text_slot(c, id);
	RV_ASSERT(slot != TEXT_NOBODY);
	for (int i = 0; i < c->n_sources; i++)
		if (c->sources[i].here && c->files[slot].lacks_until_us[i] <= now_us)
			return false;
	return true;
}
