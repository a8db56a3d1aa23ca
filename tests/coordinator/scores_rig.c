#include "tests/coordinator/scores_rig.h"
#include "tests/common/check.h"

#include <string.h>

struct rv_hash scores_inner_root(uint32_t who, uint64_t round) {
	struct rv_hash h = {{(uint8_t)(1 + who), 9}};
	memcpy(h.b + 8, &round, sizeof round);
	return h;
}

static uint32_t lease_of(const struct scores *s) {
	return s->lease > 0 ? s->lease : SCORES_LEASE;
}

static void say_inner(struct scores *s, uint32_t who, struct report *rep) {
	rep->up_bytes_per_s = s->up_bytes_per_s;
	if (!s->commits)
		return;
	rep->commitment.inner_end = scores_inner_root(who, rep->round);
	if (rep->round > 0)
		rep->commitment.inner_begin =
			scores_inner_root(who + (s->breaks_off[who] ? SCORES_MEMBERS : 0), rep->round - 1);
}

void scores_open_of(struct scores *s, uint32_t ppm, uint8_t secret) {
	memset(s->n_said, 0, sizeof s->n_said);
	memset(s->appeals, 0, sizeof s->appeals);
	s->commits = false;
	s->up_bytes_per_s = SCORES_INNER_BYTES;
	memset(s->breaks_off, 0, sizeof s->breaks_off);
	rig_init(&s->r, 1);
	s->r.cfg.final_round = 1000;
	s->r.cfg.audit_ppm = ppm;
	s->r.cfg.repeat_ppm = s->repeat_ppm;
	s->r.cfg.row_size = s->row_size;
	s->r.cfg.probation = s->probation;
	s->r.cfg.inner_bytes = SCORES_INNER_BYTES;
	s->r.cfg.audit_window = SCORES_WINDOW;
	s->r.cfg.lease_round = lease_of(s);
	s->r.cfg.lease_tokens = SCORES_TOKENS;
	memset(&s->r.cfg.audit_secret, secret, sizeof s->r.cfg.audit_secret);
	rig_start(&s->r);
	rig_join(&s->r, SCORES_MEMBERS);
}

void scores_open(struct scores *s, uint32_t ppm) {
	scores_open_of(s, ppm, 7);
}

const struct document *scores_doc(struct scores *s, uint32_t who) {
	static struct document d;
	const int slot = core_find(s->r.core, who);
	assert_true(slot >= 0);
	assert_true(core_document_of(s->r.core, (uint32_t)slot, &d));
	return &d;
}

static void say_apart(struct scores *s, uint32_t who, struct report *rep) {
	if (!(s->apart >> who & 1))
		return;
	rep->n_paths = 1;
	rep->paths[0] = (struct report_path){.member = s->apart_from, .path = PATH_APART};
}

void scores_say(struct scores *s, uint32_t who, enum worker_phase phase) {
	struct report rep = rig_report(&s->r, who, phase);
	rep.n_scores = s->n_said[who];
	memcpy(rep.scores, s->said[who], sizeof s->said[who]);
	rep.appeals = s->appeals[who];
	say_apart(s, who, &rep);
	if (phase >= WORKER_READY) {
		rep.tokens = lease_of(s) * SCORES_TOKENS;
		rep.lease_first = scores_doc(s, who)->lease_first;
		rep.lease_count = lease_of(s);
		say_inner(s, who, &rep);
	}
	rig_send(&s->r, who, &rep);
}

void scores_play(struct scores *s, uint64_t but) {
	static const enum worker_phase phases[] = {WORKER_TRAINING, WORKER_READY, WORKER_REDUCING, WORKER_VOTED};
	for (size_t p = 0; p < sizeof phases / sizeof phases[0]; p++)
		for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
			if (!(but >> m & 1))
				scores_say(s, m, phases[p]);
}

void scores_play_long(struct scores *s) {
	const uint64_t round = rig_doc(&s->r)->round;
	scores_play(s, 0);
	for (uint32_t m = 0; m < SCORES_MEMBERS && round % 16 == 8; m++) {
		struct report rep = rig_report(&s->r, m, WORKER_TRAINING);
		rep.full_round = round;
		rep.full_hash = rv_hash_of(&round, sizeof round);
		rig_send(&s->r, m, &rep);
	}
}

uint64_t scores_auditors(struct scores *s, const struct score_order *o) {
	uint64_t set = 0;
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++) {
		const struct document *d = scores_doc(s, m);
		for (int i = 0; i < d->n_scores; i++)
			if (d->scores[i].round == o->round && d->scores[i].member == o->member)
				set |= 1ull << m;
	}
	return set;
}

bool scores_last_order(struct scores *s, struct score_order *out) {
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		for (int i = 0; i < scores_doc(s, m)->n_scores; i++)
			if (scores_doc(s, m)->scores[i].round + 1 == scores_doc(s, m)->round) {
				*out = scores_doc(s, m)->scores[i];
				return true;
			}
	return false;
}

struct score_order scores_next_order(struct scores *s) {
	struct score_order o;
	do
		scores_play(s, 0);
	while (!scores_last_order(s, &o));
	return o;
}

struct score_order scores_next_order_of(struct scores *s, uint32_t member) {
	struct score_order o;
	do
		o = scores_next_order(s);
	while (o.member != member);
	return o;
}

void scores_note(struct scores *s, uint32_t who, const struct score_order *o, enum score_verdict verdict, float gain) {
	for (uint8_t i = 0; i < s->n_said[who]; i++)
		if (s->said[who][i].round == o->round && s->said[who][i].member == o->member)
			fail();
	if (s->n_said[who] == NET_MAX_SCORES)
		s->n_said[who] = 0;
	s->said[who][s->n_said[who]++] = (struct score_result){.round = o->round,
														   .member = o->member,
														   .verdict = (uint8_t)verdict,
														   .gain = verdict == SCORE_MEASURED ? gain : 0,
														   .own = verdict == SCORE_MEASURED ? 1 : 0};
}

void scores_conclude(struct scores *s, uint32_t who, const struct score_order *o, enum score_verdict verdict,
					 float gain) {
	scores_note(s, who, o, verdict, gain);
	scores_say(s, who, WORKER_TRAINING);
}

uint64_t scores_conclude_all(struct scores *s, const struct score_order *o, uint64_t but, enum score_verdict verdict,
							 float gain) {
	const uint64_t by = scores_auditors(s, o) & ~but;
	for (uint32_t m = 0; m < SCORES_MEMBERS; m++)
		if (by >> m & 1)
			scores_conclude(s, m, o, verdict, gain);
	return by;
}

void scores_measure_all(struct scores *s, const struct score_order *o, float gain) {
	uint64_t done = 0;
	while ((scores_auditors(s, o) & ~done) != 0)
		done |= scores_conclude_all(s, o, done, SCORE_MEASURED, gain);
	assert_int_equal(scores_auditors(s, o), 0);
}

uint64_t scores_strike(struct scores *s, struct score_order *o) {
	*o = scores_next_order(s);
	const uint64_t first = scores_conclude_all(s, o, 0, SCORE_MEASURED, 0.1f);
	assert_int_equal(__builtin_popcountll(first), 1);
	assert_true(rig_saw(&s->r, CORE_EVENT_DOUBTED, o->member));
	assert_int_equal(rig_view(&s->r, o->member).reputation.strikes, 0);
	const uint64_t all = scores_auditors(s, o);
	assert_int_equal(__builtin_popcountll(all & ~first), 2);
	(void)scores_conclude_all(s, o, first, SCORE_MEASURED, -0.2f);
	assert_true(rig_saw(&s->r, CORE_EVENT_WORTHLESS, o->member));
	assert_int_equal(rig_view(&s->r, o->member).reputation.strikes, 1);
	assert_int_equal(rig_view(&s->r, o->member).reputation.reason, CORE_STRIKE_TRAINING);
	assert_int_equal(scores_auditors(s, o), 0);
	return all;
}

uint64_t scores_nobody_gets_it(struct scores *s, const struct score_order *o, uint64_t but,
							   enum score_verdict verdict) {
	uint64_t away = but;
	while ((scores_auditors(s, o) & ~away) != 0)
		away |= scores_conclude_all(s, o, away, verdict, 0);
	return away;
}

void scores_evade(struct scores *s, const struct score_order *o) {
	assert_int_equal(__builtin_popcountll(scores_nobody_gets_it(s, o, 0, SCORE_UNREACHED)), 3);
	while (scores_auditors(s, o) != 0)
		scores_play(s, 0);
	assert_true(rig_doc(&s->r)->round > o->round + SCORES_WINDOW);
}
