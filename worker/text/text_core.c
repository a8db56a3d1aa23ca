/* text_core.c: the wanted files and their sources (worker/text/text_core.h). */
#include "base/assert.h"
#include "worker/text/text_core_state.h"

#include <string.h>

enum {
	FIRST_WINDOW = 2,
	LIE_PAUSE_US = 60 * 1000 * 1000, /* after the first; grows fourfold */
	LIE_GROWTHS_MAX = 3,
	LOOK_US = 250 * 1000, /* while requests are under way: whether one is late */
	RATE_US = 8 * 1000 * 1000,
	RATE_LEAST_US = 50 * 1000 /* of a rate that says something */
};

/* ---- sizes ---- */

uint32_t text_core_ranges(uint64_t bytes) {
	return (uint32_t)((bytes + TEXT_RANGE_BYTES - 1) / TEXT_RANGE_BYTES);
}

uint32_t text_core_range_bytes(uint64_t bytes, uint32_t range) {
	const uint64_t begin = (uint64_t)range * TEXT_RANGE_BYTES;
	RV_ASSERT(begin < bytes);
	return bytes - begin < TEXT_RANGE_BYTES ? (uint32_t)(bytes - begin) : TEXT_RANGE_BYTES;
}

size_t text_core_bytes(const struct text_core_config *cfg) {
	return sizeof(struct text_core) + (size_t)TEXT_FILES_MAX * cfg->ranges_max * sizeof(struct text_range);
}

struct text_core *text_core_init(void *memory, const struct text_core_config *cfg, int64_t now_us) {
	RV_ASSERT(cfg->ranges_max > 0 && cfg->stall_us > 0);
	_Static_assert(sizeof(struct text_core) % _Alignof(struct text_range) == 0, "ranges lie behind the core");
	struct text_core *c = memory;
	struct text_range *ranges = (struct text_range *)(void *)(c + 1);
	memset(c, 0, sizeof *c);
	c->cfg = *cfg;
	c->now_us = now_us;
	for (int i = 0; i < TEXT_FILES_MAX; i++)
		c->files[i].ranges = ranges + (size_t)i * cfg->ranges_max;
	return c;
}

/* ---- what always holds ---- */

static void check_file(const struct text_core *c, const struct text_wanted *f) {
	uint32_t held = 0;
	for (uint32_t r = 0; r < f->n_ranges; r++) {
		held += f->ranges[r].held;
		RV_ASSERT(f->ranges[r].asks <= TEXT_COPIES_MAX);
	}
	RV_ASSERT(held == f->n_held && f->n_ranges <= c->cfg.ranges_max && f->bytes > 0);
	RV_ASSERT(f->complete == (f->n_held == f->n_ranges));
	RV_ASSERT(f->alone == TEXT_NOBODY || f->doubted);
}

void text_check_invariants(const struct text_core *c) {
	int asks[TEXT_SOURCES_MAX] = {0};
	for (int i = 0; i < c->n_order; i++) {
		RV_ASSERT(c->files[c->order[i]].used);
		check_file(c, &c->files[c->order[i]]);
	}
	for (int i = 0; i < TEXT_ASKS_MAX; i++) {
		const struct text_ask *a = &c->asks[i];
		if (a->id == 0 || a->slot == TEXT_NOBODY)
			continue;
		asks[a->source]++;
		RV_ASSERT(c->files[a->slot].used && a->at >= a->first && a->at < a->first + a->n);
		RV_ASSERT(a->got <= text_core_range_bytes(c->files[a->slot].bytes, a->at));
	}
	for (int i = 0; i < c->n_sources; i++) {
		RV_ASSERT(asks[i] == c->sources[i].n_asks && (c->sources[i].here || asks[i] == 0));
		RV_ASSERT(!c->sources[i].questioned || (c->sources[i].here && c->sources[i].kind == TEXT_MEMBER));
	}
}

/* ---- files ---- */

int text_slot(const struct text_core *c, uint64_t id) {
	for (int i = 0; i < TEXT_FILES_MAX; i++)
		if (c->files[i].used && c->files[i].id == id)
			return i;
	return TEXT_NOBODY;
}

bool text_core_wants(const struct text_core *c, uint64_t id) {
	return text_slot(c, id) != TEXT_NOBODY;
}

void text_release(struct text_core *c, struct text_ask *a) {
	if (a->slot == TEXT_NOBODY)
		return;
	struct text_wanted *f = &c->files[a->slot];
	struct text_source *s = &c->sources[a->source];
	for (uint32_t r = a->at; r < a->first + a->n; r++)
		f->ranges[r].asks--;
	text_source_clock(c, s);
	s->n_asks--;
	a->slot = TEXT_NOBODY;
}

static void drop_asks(struct text_core *c, int slot) {
	for (int i = 0; i < TEXT_ASKS_MAX; i++)
		if (c->asks[i].id != 0 && c->asks[i].slot == slot)
			text_release(c, &c->asks[i]);
}

void text_restart(struct text_core *c, int slot) {
	struct text_wanted *f = &c->files[slot];
	drop_asks(c, slot);
	for (uint32_t r = 0; r < f->n_ranges; r++) {
		f->ranges[r].held = false;
		f->ranges[r].from = TEXT_NOBODY;
	}
	f->n_held = 0;
	f->complete = false;
	f->alone = TEXT_NOBODY;
}

static int new_file(struct text_core *c, const struct text_need *need) {
	int slot = 0;
	while (c->files[slot].used)
		slot++;
	RV_ASSERT(slot < TEXT_FILES_MAX && need->bytes > 0);
	struct text_range *ranges = c->files[slot].ranges;
	c->files[slot] = (struct text_wanted){.used = true,
										  .alone = TEXT_NOBODY,
										  .id = need->id,
										  .bytes = need->bytes,
										  .n_ranges = text_core_ranges(need->bytes),
										  .wanted_us = c->now_us,
										  .urgent_us = c->now_us,
										  .arrived_us = c->now_us,
										  .ranges = ranges};
	RV_ASSERT(c->files[slot].n_ranges <= c->cfg.ranges_max);
	for (uint32_t r = 0; r < c->files[slot].n_ranges; r++)
		ranges[r] = (struct text_range){.from = TEXT_NOBODY, .old_from = TEXT_NOBODY};
	return slot;
}

static bool is_in(const struct text_need *needs, int n, uint64_t id) {
	for (int i = 0; i < n; i++)
		if (needs[i].id == id)
			return true;
	return false;
}

void text_core_want(struct text_core *c, int64_t now_us, const struct text_need *needs, int n) {
	RV_ASSERT(n >= 0 && n <= TEXT_FILES_MAX);
	c->now_us = now_us;
	for (int i = 0; i < TEXT_FILES_MAX; i++)
		if (c->files[i].used && !is_in(needs, n, c->files[i].id)) {
			drop_asks(c, i);
			c->files[i].used = false;
		}
	c->n_order = n;
	for (int i = 0; i < n; i++) {
		int slot = text_slot(c, needs[i].id);
		if (slot == TEXT_NOBODY)
			slot = new_file(c, &needs[i]);
		struct text_wanted *f = &c->files[slot];
		RV_ASSERT(f->bytes == needs[i].bytes);
		if (!f->urgent)
			f->urgent_us = now_us;
		if (needs[i].urgent && !f->urgent)
			text_ask_anew(c, f);
		f->urgent = needs[i].urgent;
		c->order[i] = slot;
	}
	text_check_invariants(c);
}

bool text_core_resume(struct text_core *c, uint64_t id, const uint8_t *held) {
	const int slot = text_slot(c, id);
	RV_ASSERT(slot != TEXT_NOBODY);
	struct text_wanted *f = &c->files[slot];
	for (uint32_t r = 0; r < f->n_ranges; r++) {
		if (held[r] == 0 || f->ranges[r].held)
			continue;
		f->ranges[r].held = true;
		f->ranges[r].from = TEXT_FROM_DISK;
		f->n_held++;
	}
	f->complete = f->n_held == f->n_ranges;
	if (f->complete)
		drop_asks(c, slot);
	return f->complete;
}

/* ---- sources ---- */

struct text_source text_source_of(const struct text_core *c, enum text_source_kind kind, uint32_t member) {
	return (struct text_source){.kind = kind,
								.member = member,
								.here = true,
								.window = kind == TEXT_COORDINATOR ? 1 : FIRST_WINDOW,
								.clock_us = c->now_us};
}

int text_core_add(struct text_core *c, enum text_source_kind kind) {
	RV_ASSERT(kind != TEXT_MEMBER);
	if (c->n_sources == TEXT_SOURCES_MAX)
		return -1;
	c->sources[c->n_sources] = text_source_of(c, kind, 0);
	return c->n_sources++;
}

void text_core_here(struct text_core *c, int64_t now_us, int source, bool here) {
	RV_ASSERT(source >= 0 && source < c->n_sources);
	c->now_us = now_us;
	if (!here)
		text_leave_source(c, source);
	c->sources[source].here = here;
}

void text_core_whole(struct text_core *c, int source) {
	RV_ASSERT(source >= 0 && source < c->n_sources);
	c->sources[source].whole = true;
	c->sources[source].window = 1;
}

void text_source_clock(struct text_core *c, struct text_source *s) {
	if (s->n_asks > 0)
		s->busy_us += (double)(c->now_us - s->clock_us);
	s->clock_us = c->now_us;
	if (s->busy_us > RATE_US) {
		s->busy_us /= 2;
		s->bytes /= 2;
	}
}

double text_source_rate(const struct text_source *s) {
	return s->busy_us >= RATE_LEAST_US ? s->bytes / s->busy_us : 0;
}

void text_blame(struct text_core *c, int source) {
	struct text_source *s = &c->sources[source];
	const int grown = s->offences < LIE_GROWTHS_MAX ? s->offences : LIE_GROWTHS_MAX;
	const int64_t until = c->now_us + ((int64_t)LIE_PAUSE_US << 2 * grown);
	s->offences++;
	s->window = 1;
	if (until > s->paused_until_us)
		s->paused_until_us = until;
}

struct text_source_view text_core_source(const struct text_core *c, int64_t now_us, int source) {
	RV_ASSERT(source >= 0 && source < c->n_sources);
	const struct text_source *s = &c->sources[source];
	const bool is_paused = s->paused_until_us > now_us;
	return (struct text_source_view){.left = is_paused || text_is_slow(c, NULL, source),
									 .until_us = is_paused ? s->paused_until_us : s->probe_us,
									 .bytes_per_s = text_source_rate(s) * 1e6,
									 .asks = s->n_asks,
									 .offences = s->offences};
}

/* ---- time ---- */

static int64_t earlier(int64_t a, int64_t b) {
	return a < b ? a : b;
}

/* Returns when a source that is left alone may be asked again. */
static int64_t next_source_us(const struct text_core *c) {
	int64_t at = INT64_MAX;
	for (int i = 0; i < c->n_sources; i++) {
		const struct text_source *s = &c->sources[i];
		if (s->here && s->paused_until_us > c->now_us)
			at = earlier(at, s->paused_until_us);
		if (s->here && s->probe_us > c->now_us)
			at = earlier(at, s->probe_us);
		for (int k = 0; k < c->n_order; k++)
			if (c->files[c->order[k]].lacks_until_us[i] > c->now_us)
				at = earlier(at, c->files[c->order[k]].lacks_until_us[i]);
	}
	return at;
}

int64_t text_core_deadline_us(const struct text_core *c) {
	int64_t at = c->n_order > 0 ? next_source_us(c) : INT64_MAX;
	for (int i = 0; i < c->n_order; i++)
		if (text_awaits_members(c, &c->files[c->order[i]]))
			at = earlier(at, c->now_us + LOOK_US);
	for (int i = 0; i < TEXT_ASKS_MAX; i++)
		if (c->asks[i].id != 0)
			at = earlier(at, c->now_us + LOOK_US);
	return at;
}
