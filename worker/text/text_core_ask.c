/* text_core_ask.c: chooses a source's next request (worker/text/text_core.h). */
#include "base/assert.h"
#include "worker/text/text_core_state.h"

enum {
	GUESS_US = 1000 * 1000,                   /* time for a range, before the first one */
	MARGIN_US = 200 * 1000,                   /* another source must be earlier by this */
	SILENT_US = 3 * 1000 * 1000,              /* without a byte: a request is late */
	SLOWER = 8,                               /* times slower than the best: left alone */
	PROBE_US = 60 * 1000 * 1000,              /* then tried again */
	COORDINATOR_AFTER_US = 20 * 1000 * 1000,  /* of a file that training waits for */
	COORDINATOR_STANDS_US = 10 * 1000 * 1000, /* of which nothing came meanwhile */
	LONGEST_US = 1000 * 1000000               /* limit of an estimate */
};

/* Returns true if the source is here, not paused, and may hold `f`; NULL: whatever the file. */
static bool text_is_usable(const struct text_core *c, const struct text_wanted *f, int source) {
	const struct text_source *s = &c->sources[source];
	return s->here && s->paused_until_us <= c->now_us &&
		   (!f || (f->lacks_until_us[source] <= c->now_us && text_may_hold(c, f, source)));
}

bool text_is_slow(const struct text_core *c, const struct text_wanted *f, int source) {
	const struct text_source *s = &c->sources[source];
	const double rate = text_source_rate(s);
	if (rate <= 0 || s->kind == TEXT_COORDINATOR)
		return false;
	for (int i = 0; i < c->n_sources; i++) {
		const struct text_source *o = &c->sources[i];
		if (o->kind != TEXT_COORDINATOR && text_source_rate(o) > SLOWER * rate && text_is_usable(c, f, i))
			return true;
	}
	return false;
}

/* Reports whether training waits for a file that does not come. */
static bool is_stuck(const struct text_core *c, const struct text_wanted *f) {
	return f->urgent && c->now_us - f->urgent_us >= COORDINATOR_AFTER_US &&
		   c->now_us - f->arrived_us >= COORDINATOR_STANDS_US;
}

/* The coordinator gives what nobody else has, or does not deliver while training waits. */
static bool is_coordinators_turn(const struct text_core *c, const struct text_wanted *f) {
	if (is_stuck(c, f))
		return true;
	for (int i = 0; i < c->n_sources; i++)
		if (c->sources[i].kind != TEXT_COORDINATOR && text_is_usable(c, f, i))
			return false;
	return !text_awaits_members(c, f);
}

static bool gave_before(const struct text_wanted *f, int source) {
	for (uint32_t r = 0; r < f->n_ranges; r++)
		if (f->ranges[r].old_from == source)
			return true;
	return false;
}

/* A doubted file comes from one source: rather from one that had no part in the wrong copy. */
static bool may_be_alone(const struct text_core *c, const struct text_wanted *f, int source) {
	if (!gave_before(f, source))
		return true;
	for (int i = 0; i < c->n_sources; i++)
		if (!gave_before(f, i) && text_is_usable(c, f, i) && !text_is_slow(c, f, i) &&
			(c->sources[i].kind != TEXT_COORDINATOR || is_coordinators_turn(c, f)))
			return false;
	return true;
}

/* A slow source is tried now and then, with one request. */
static bool is_left(const struct text_core *c, const struct text_wanted *f, int source) {
	const struct text_source *s = &c->sources[source];
	return text_is_slow(c, f, source) && (f->doubted || s->n_asks > 0 || s->probe_us > c->now_us);
}

static bool is_open_to(const struct text_core *c, const struct text_wanted *f, int source) {
	if (f->complete || !text_is_usable(c, f, source) || is_left(c, f, source))
		return false;
	if (c->sources[source].kind == TEXT_COORDINATOR && !is_coordinators_turn(c, f))
		return false;
	if (!f->doubted)
		return true;
	return f->alone == source || (f->alone == TEXT_NOBODY && may_be_alone(c, f, source));
}

static struct text_ask *free_ask(struct text_core *c) {
	for (int i = 0; i < TEXT_ASKS_MAX; i++)
		if (c->asks[i].id == 0)
			return &c->asks[i];
	return NULL;
}

static bool ask(struct text_core *c, int slot, int source, uint32_t first, uint32_t n, struct text_request *out) {
	struct text_ask *a = free_ask(c);
	struct text_source *s = &c->sources[source];
	struct text_wanted *f = &c->files[slot];
	if (!a)
		return false;
	if (++c->last_id == 0)
		c->last_id = 1;
	text_source_clock(c, s);
	*a = (struct text_ask){.id = c->last_id,
						   .slot = slot,
						   .source = source,
						   .first = first,
						   .n = n,
						   .at = first,
						   .asked_us = c->now_us,
						   .heard_us = c->now_us};
	s->n_asks++;
	for (uint32_t r = first; r < first + n; r++)
		f->ranges[r].asks++;
	if (f->doubted && f->alone == TEXT_NOBODY) {
		f->alone = source;
		f->alone_us = c->now_us;
	}
	if (text_is_slow(c, f, source))
		s->probe_us = c->now_us + PROBE_US;
	*out = (struct text_request){.id = a->id, .source = source, .file = f->id, .first = first, .n = n};
	return true;
}

static bool is_free(const struct text_range *r) {
	return !r->held && r->asks == 0;
}

static bool ask_free(struct text_core *c, int slot, int source, struct text_request *out) {
	const struct text_wanted *f = &c->files[slot];
	uint32_t first = 0, n = 1;
	while (first < f->n_ranges && !is_free(&f->ranges[first]))
		first++;
	if (first == f->n_ranges)
		return false;
	while (c->sources[source].whole && first + n < f->n_ranges && is_free(&f->ranges[first + n]))
		n++;
	return ask(c, slot, source, first, n, out);
}

/* ---- copies of what is late ---- */

static int64_t time_for(double bytes, const struct text_source *s, int asks) {
	const double rate = text_source_rate(s);
	const double us = rate > 0 ? bytes * asks / rate : GUESS_US;
	return us < LONGEST_US ? (int64_t)us : LONGEST_US;
}

/* Estimates when a request will have range `r`. */
static int64_t left_us(const struct text_core *c, const struct text_ask *a, uint32_t r) {
	const struct text_source *s = &c->sources[a->source];
	if (c->now_us - a->heard_us >= SILENT_US || text_is_slow(c, &c->files[a->slot], a->source))
		return LONGEST_US;
	return time_for((double)(r - a->at + 1) * TEXT_RANGE_BYTES - a->got, s, s->n_asks);
}

static bool covers(const struct text_ask *a, int slot, uint32_t r) {
	return a->id != 0 && a->slot == slot && r >= a->at && r < a->first + a->n;
}

/* Reports whether the source would have range `r` clearly before all that are asked for it. */
static bool is_late(const struct text_core *c, int slot, uint32_t r, int source, int64_t own_us) {
	const struct text_range *range = &c->files[slot].ranges[r];
	int64_t best = INT64_MAX;
	if (range->held || range->asks == 0 || range->asks >= TEXT_COPIES_MAX)
		return false;
	for (int i = 0; i < TEXT_ASKS_MAX; i++) {
		if (!covers(&c->asks[i], slot, r))
			continue;
		if (c->asks[i].source == source)
			return false;
		const int64_t left = left_us(c, &c->asks[i], r);
		best = left < best ? left : best;
	}
	return best > 2 * own_us + MARGIN_US;
}

static bool ask_late(struct text_core *c, int slot, int source, struct text_request *out) {
	const struct text_source *s = &c->sources[source];
	const struct text_wanted *f = &c->files[slot];
	const int64_t own_us = time_for(TEXT_RANGE_BYTES, s, s->n_asks + 1);
	for (uint32_t r = 0; r < f->n_ranges; r++)
		if (is_late(c, slot, r, source, own_us))
			return ask(c, slot, source, r, 1, out);
	return false;
}

/* ---- a request ---- */

/* A source that has a doubted file alone, and keeps training waiting, is left: by drops of bytes it
 * could hold the file up for ever. */
static void leave_stuck(struct text_core *c, const struct text_wanted *f) {
	struct text_source *s = &c->sources[f->alone];
	if (s->kind != TEXT_COORDINATOR && is_stuck(c, f) && c->now_us - f->alone_us >= COORDINATOR_AFTER_US &&
		s->paused_until_us < c->now_us + PROBE_US)
		s->paused_until_us = c->now_us + PROBE_US;
}

/* What a source began alone is begun anew when it pauses or is slow. */
static void free_doubted(struct text_core *c) {
	for (int i = 0; i < c->n_order; i++) {
		const struct text_wanted *f = &c->files[c->order[i]];
		if (f->alone == TEXT_NOBODY || f->complete)
			continue;
		leave_stuck(c, f);
		if (!text_is_usable(c, f, f->alone) || text_is_slow(c, f, f->alone))
			text_restart(c, c->order[i]);
	}
}

static bool choose(struct text_core *c, int source, struct text_request *out) {
	for (int late = 0; late <= 1; late++)
		for (int i = 0; i < c->n_order; i++) {
			const struct text_wanted *f = &c->files[c->order[i]];
			if (!is_open_to(c, f, source))
				continue;
			if (!late && ask_free(c, c->order[i], source, out))
				return true;
			if ((late || f->urgent) && !f->doubted && ask_late(c, c->order[i], source, out))
				return true;
		}
	return false;
}

bool text_core_send(struct text_core *c, int64_t now_us, int source, struct text_request *out) {
	RV_ASSERT(source >= 0 && source < c->n_sources);
	const struct text_source *s = &c->sources[source];
	c->now_us = now_us;
	free_doubted(c);
	if (!s->here || s->paused_until_us > now_us || s->n_asks >= s->window)
		return false;
	const bool asks = choose(c, source, out);
	text_check_invariants(c);
	return asks;
}
