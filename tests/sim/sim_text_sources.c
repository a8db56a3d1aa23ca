/* sim_text_sources.c: mirrors that are slow, cut, lie, vanish, lack files or are busy; members that
 * answer from their caches; the coordinator, which gives what is right while it runs. What their
 * connections do is not simulated: an answer takes its time. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define CUT_SHARE 0.5
#define LIE_SHARE 0.4

uint64_t corpus_bytes_of(uint64_t shard, uint32_t range) {
	return (shard * SIM_TEXT_RANGES + range + 1) << 2 | 1;
}

/* ---- who they are ---- */

static enum sim_mirror kind_of(const struct sim *s, int mirror) {
	const float luck = sim_noise(s->opt.seed ^ 0x6d6972726f72, 0, (uint64_t)mirror);
	return (enum sim_mirror)((luck + 1) / 2 * SIM_MIRROR_KINDS);
}

static bool is_coordinator(int source) {
	return source == SIM_MIRRORS;
}

/* Returns the host of a member's source; SIM_NOBODY: it is none, or no longer one. */
static int host_of(const struct sim *s, const struct sim_text *t, int source) {
	return source < SIM_TEXT_SOURCES ? SIM_NOBODY : oracle_host_of(s, text_core_member_of(t->core, source));
}

bool corpus_source_lies(const struct sim *s, const struct sim_text *t, int source) {
	if (source < SIM_MIRRORS)
		return kind_of(s, source) == MIRROR_LIES;
	const int host = is_coordinator(source) ? SIM_NOBODY : host_of(s, t, source);
	return host != SIM_NOBODY && (host == s->liar || host == s->was_liar); /* named once the shard is whole */
}

/* ---- what they answer ---- */

enum answer { ANSWER_RIGHT, ANSWER_WRONG, ANSWER_GONE, ANSWER_BUSY, ANSWER_CUT, ANSWER_SILENCE };

static enum answer mirror_answers(struct sim *s, int host, int mirror) {
	switch (kind_of(s, mirror)) {
	case MIRROR_CUTS:
		return sim_chance(s, host, LUCK_HTTP, CUT_SHARE) ? ANSWER_CUT : ANSWER_RIGHT;
	case MIRROR_LIES:
		return sim_chance(s, host, LUCK_HTTP, LIE_SHARE) ? ANSWER_WRONG : ANSWER_RIGHT;
	case MIRROR_VANISHES: /* for 20 s of 40 */
		return s->now_us / (20 * SIM_S) % 2 != 0 ? ANSWER_SILENCE : ANSWER_RIGHT;
	case MIRROR_LACKS:
		return ANSWER_GONE;
	case MIRROR_BUSY:
		return sim_chance(s, host, LUCK_HTTP, CUT_SHARE) ? ANSWER_BUSY : ANSWER_RIGHT;
	case MIRROR_GOOD:
	case MIRROR_SLOW:
		break;
	}
	return ANSWER_RIGHT;
}

/* Returns the cache of a member that can answer now. */
static const struct sim_text *member_text(const struct sim *s, int peer) {
	const struct sim_worker *w = &s->workers[peer];
	return w->life != 0 && w->text && w->text->running && s->frozen_until_us[peer] <= s->now_us ? w->text : NULL;
}

/* A member checks a shard before it gives it; a liar gives others. */
static enum answer member_answers(struct sim *s, int host, int peer, uint64_t shard) {
	const struct sim_text *t = peer == SIM_NOBODY ? NULL : member_text(s, peer);
	if (!t || !s->workers[host].links[peer].up)
		return ANSWER_SILENCE;
	const struct sim_shard *f = corpus_store_find(t, shard);
	if (!f || !f->whole || !corpus_store_is_right(f))
		return ANSWER_GONE;
	return peer == s->liar && sim_chance(s, host, LUCK_HTTP, LIE_SHARE) ? ANSWER_WRONG : ANSWER_RIGHT;
}

static enum answer answer_of(struct sim *s, int host, int source, uint64_t shard) {
	const struct sim_text *t = s->workers[host].text;
	if (source < SIM_MIRRORS)
		return mirror_answers(s, host, source);
	if (is_coordinator(source))
		return s->coordinator.core && s->frozen_until_us[SIM_COORDINATOR] <= s->now_us ? ANSWER_RIGHT : ANSWER_CUT;
	return member_answers(s, host, host_of(s, t, source), shard);
}

/* Returns how long a range takes. */
static int64_t range_us(struct sim *s, int host, int source) {
	if (source < SIM_MIRRORS && kind_of(s, source) == MIRROR_SLOW)
		return sim_between(s, host, LUCK_HTTP, 800 * SIM_MS, 2500 * SIM_MS);
	if (is_coordinator(source))
		return sim_between(s, host, LUCK_HTTP, 200 * SIM_MS, 1500 * SIM_MS);
	return sim_between(s, host, LUCK_HTTP, 20 * SIM_MS, 300 * SIM_MS);
}

/* ---- requests ---- */

struct flight {
	struct text_request q;
	uint32_t range;
};

static struct text_request *find_ask(struct sim_text *t, uint32_t id) {
	for (int i = 0; i < TEXT_ASKS_MAX; i++)
		if (t->asks[i].id == id)
			return &t->asks[i];
	return NULL;
}

static sim_fire range_comes;

static void fly(struct sim *s, int host, const struct text_request *q, uint32_t range) {
	struct flight *f = sim_alloc(sizeof *f);
	*f = (struct flight){.q = *q, .range = range};
	sim_at(s, s->now_us + range_us(s, host, q->source), host, s->workers[host].life, range_comes, f);
}

static void take(struct sim *s, int host, struct text_request *ask, uint32_t range, bool right) {
	static const uint8_t bytes[1];
	struct sim_text *t = s->workers[host].text;
	const struct text_request q = *ask;
	const uint64_t shard = text_file_of(q.file).i;
	const uint64_t check = corpus_bytes_of(shard, range) ^ (right ? 0 : 2);
	const struct text_arrival a =
		text_planner_arrived(&t->planner, s->now_us, q.id, bytes, text_core_range_bytes(SIM_TEXT_BYTES, range), check);
	s->stats.text_of_members += a.keep && q.source >= SIM_TEXT_SOURCES;
	if (a.ended)
		ask->id = 0;
	else if (ask->id == q.id)
		fly(s, host, &q, range + 1);
}

static void range_comes(struct sim *s, int host, void *arg) {
	static const enum text_failure failures[] = {
		[ANSWER_GONE] = TEXT_GONE, [ANSWER_BUSY] = TEXT_BUSY, [ANSWER_CUT] = TEXT_CUT};
	struct sim_text *t = s->workers[host].text;
	const struct flight f = *(struct flight *)arg;
	free(arg);
	struct text_request *ask = t->running ? find_ask(t, f.q.id) : NULL;
	if (!ask)
		return; /* it was dropped */
	const enum answer a = answer_of(s, host, f.q.source, text_file_of(f.q.file).i);
	if (a == ANSWER_SILENCE)
		return;
	if (a == ANSWER_RIGHT || a == ANSWER_WRONG) {
		take(s, host, ask, f.range, a == ANSWER_RIGHT);
	} else {
		ask->id = 0;
		text_core_failed(t->core, s->now_us, f.q.id, failures[a], a == ANSWER_BUSY ? 2 * SIM_S : 0);
	}
	corpus_turn(s, host);
}

void corpus_source_ask(struct sim *s, int host, const struct text_request *q) {
	struct sim_text *t = s->workers[host].text;
	struct text_request *free_one = find_ask(t, 0);
	RV_ASSERT(free_one);
	*free_one = *q;
	fly(s, host, q, q->first);
}

/* ---- questions ---- */

struct question {
	uint32_t member;
	int n;
	uint64_t files[TEXT_FILES_MAX];
};

static void answer_comes(struct sim *s, int host, void *arg) {
	struct sim_text *t = s->workers[host].text;
	const struct question q = *(struct question *)arg;
	uint64_t held = 0;
	free(arg);
	const int peer = oracle_host_of(s, q.member);
	const int source = t->running ? text_core_source_of(t->core, q.member) : -1;
	const struct sim_text *other = member_text(s, peer);
	if (source < 0 || !other || !s->workers[host].links[peer].up)
		return;
	for (int i = 0; i < q.n; i++) {
		const struct sim_shard *f = corpus_store_find(other, text_file_of(q.files[i]).i);
		held |= (uint64_t)(f && f->whole) << i;
	}
	text_core_answer(t->core, s->now_us, source, q.files, q.n, held);
	corpus_turn(s, host);
}

void corpus_source_question(struct sim *s, int host, int source, const uint64_t *files, int n) {
	struct question *q = sim_alloc(sizeof *q);
	q->member = text_core_member_of(s->workers[host].text->core, source);
	q->n = n;
	memcpy(q->files, files, (size_t)n * sizeof *files);
	sim_at(s, s->now_us + sim_between(s, host, LUCK_HTTP, 10 * SIM_MS, 200 * SIM_MS), host, s->workers[host].life,
		   answer_comes, q);
}
