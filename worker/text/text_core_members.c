/* text_core_members.c: members as sources, and what they hold of the wanted files
 * (worker/text/text_core.h). */
#include "base/assert.h"
#include "worker/text/text_core_state.h"

enum {
	ANSWER_US = 3 * 1000 * 1000, /* the coordinator waits no longer for an answer */
	LACKS_PAUSE_US = 2 * 1000 * 1000,
	LACKS_PAUSE_MAX_US = 60 * 1000 * 1000,
	URGENT_PAUSE_MAX_US = 4 * 1000 * 1000
};

/* ---- sources ---- */

void text_leave_source(struct text_core *c, int source) {
	for (int i = 0; i < TEXT_ASKS_MAX; i++)
		if (c->asks[i].id != 0 && c->asks[i].source == source)
			text_release(c, &c->asks[i]);
	c->sources[source].questioned = false;
	for (int i = 0; i < TEXT_FILES_MAX && c->sources[source].kind == TEXT_MEMBER; i++) {
		c->files[i].words[source] = TEXT_UNASKED;
		c->files[i].lacks_until_us[source] = c->files[i].lacks_pause_us[source] = 0;
	}
}

int text_core_source_of(const struct text_core *c, uint32_t member) {
	for (int i = 0; i < c->n_sources; i++)
		if (c->sources[i].kind == TEXT_MEMBER && c->sources[i].member == member)
			return i;
	return -1;
}

uint32_t text_core_member_of(const struct text_core *c, int source) {
	RV_ASSERT(source >= 0 && source < c->n_sources && c->sources[source].kind == TEXT_MEMBER);
	return c->sources[source].member;
}

/* Forgets from whom the ranges of a source came, whose place another one gets. */
static void disown(struct text_core *c, int source) {
	for (int i = 0; i < TEXT_FILES_MAX; i++) {
		struct text_wanted *f = &c->files[i];
		if (f->used && f->alone == source && !f->complete)
			text_restart(c, i);
		for (uint32_t r = 0; f->used && r < f->n_ranges; r++) {
			if (f->ranges[r].from == source)
				f->ranges[r].from = TEXT_FROM_DISK;
			if (f->ranges[r].old_from == source)
				f->ranges[r].old_from = TEXT_NOBODY;
		}
	}
}

/* Returns a place for another source: a new one, or that of a member that is gone. */
static int place(struct text_core *c) {
	if (c->n_sources < TEXT_SOURCES_MAX)
		return c->n_sources++;
	for (int i = 0; i < c->n_sources; i++) {
		const struct text_source *s = &c->sources[i];
		if (s->kind != TEXT_MEMBER || s->here || s->paused_until_us > c->now_us)
			continue;
		disown(c, i);
		return i;
	}
	return -1;
}

int text_core_member(struct text_core *c, int64_t now_us, uint32_t member, bool linked) {
	c->now_us = now_us;
	int source = text_core_source_of(c, member);
	if (source >= 0) {
		if (c->sources[source].here != linked)
			text_core_here(c, now_us, source, linked);
		return source;
	}
	source = linked ? place(c) : -1;
	if (source < 0)
		return -1;
	c->sources[source] = text_source_of(c, TEXT_MEMBER, member);
	text_leave_source(c, source);
	text_check_invariants(c);
	return source;
}

void text_core_expect_members(struct text_core *c, int64_t us) {
	RV_ASSERT(us >= 0);
	c->members_us = us;
}

/* ---- what they hold ---- */

bool text_may_hold(const struct text_core *c, const struct text_wanted *f, int source) {
	return c->sources[source].kind != TEXT_MEMBER || f->words[source] == TEXT_HOLDS;
}

/* Reports whether a member may be expected to say soon what it holds. */
static bool will_answer(const struct text_core *c, const struct text_source *s) {
	return s->kind == TEXT_MEMBER && s->here && s->paused_until_us <= c->now_us &&
		   (!s->questioned || c->now_us - s->question_us < ANSWER_US);
}

bool text_awaits_members(const struct text_core *c, const struct text_wanted *f) {
	if (f->complete)
		return false;
	if (c->now_us - f->wanted_us < c->members_us)
		return true;
	for (int i = 0; i < c->n_sources; i++)
		if (f->words[i] <= TEXT_ASKED && will_answer(c, &c->sources[i]))
			return true;
	return false;
}

void text_lacks(struct text_core *c, struct text_wanted *f, int source) {
	const int64_t most = f->urgent ? URGENT_PAUSE_MAX_US : LACKS_PAUSE_MAX_US;
	int64_t *pause = &f->lacks_pause_us[source];
	*pause = *pause == 0 ? LACKS_PAUSE_US : 2 * *pause;
	if (*pause > most)
		*pause = most;
	f->words[source] = TEXT_LACKS;
	f->lacks_until_us[source] = c->now_us + *pause;
}

void text_ask_anew(struct text_core *c, struct text_wanted *f) {
	for (int i = 0; i < c->n_sources; i++)
		if (c->sources[i].kind == TEXT_MEMBER && f->words[i] == TEXT_LACKS)
			f->lacks_until_us[i] = f->lacks_pause_us[i] = 0;
}

/* ---- questions ---- */

static bool is_to_be_asked(const struct text_core *c, const struct text_wanted *f, int source) {
	if (f->complete || f->lacks_until_us[source] > c->now_us)
		return false;
	return f->words[source] == TEXT_UNASKED || f->words[source] == TEXT_LACKS;
}

int text_core_question(struct text_core *c, int64_t now_us, int source, uint64_t files[TEXT_FILES_MAX]) {
	RV_ASSERT(source >= 0 && source < c->n_sources);
	struct text_source *s = &c->sources[source];
	int n = 0;
	c->now_us = now_us;
	if (s->kind != TEXT_MEMBER || !s->here || s->questioned || s->paused_until_us > now_us)
		return 0;
	for (int i = 0; i < c->n_order; i++) {
		struct text_wanted *f = &c->files[c->order[i]];
		if (!is_to_be_asked(c, f, source))
			continue;
		f->words[source] = TEXT_ASKED;
		files[n++] = f->id;
	}
	s->questioned = n > 0;
	s->question_us = now_us;
	return n;
}

void text_core_answer(struct text_core *c, int64_t now_us, int source, const uint64_t *files, int n, uint64_t held) {
	RV_ASSERT(source >= 0 && source < c->n_sources && n >= 0 && n <= TEXT_FILES_MAX);
	c->now_us = now_us;
	c->sources[source].questioned = false;
	for (int i = 0; i < n; i++) {
		const int slot = text_slot(c, files[i]);
		struct text_wanted *f = slot == TEXT_NOBODY ? NULL : &c->files[slot];
		if (f == NULL || f->words[source] != TEXT_ASKED)
			continue;
		if (held >> i & 1) {
			f->words[source] = TEXT_HOLDS;
			f->lacks_until_us[source] = f->lacks_pause_us[source] = 0;
		} else {
			text_lacks(c, f, source);
		}
	}
	text_check_invariants(c);
}
