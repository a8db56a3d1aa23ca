/* core_rig.c: see core_rig.h. */
#include "tests/coordinator/core_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/chain.h"
#include "coordinator/core/set.h"
#include "tests/common/check.h"
#include "tests/coordinator/rig_seals.h"

static struct core *new_core(const struct rig *r) {
	return core_init(malloc(core_size(&r->cfg)), &r->cfg, r->now_us);
}

void rig_init(struct rig *r, uint32_t min_workers) {
	memset(r, 0, sizeof *r);
	r->cfg = (struct core_config){.max_here = NET_MAX_ROW,
								  .max_roster = NET_MAX_ROW,
								  .final_round = 10,
								  .min_workers = min_workers,
								  .grace_us = 5 * RIG_S,
								  .liveness_us = 10 * RIG_S,
								  .silent_us = 10 * RIG_S,
								  .withheld_us = 4 * RIG_S,
								  .chunk_bytes = 100,
								  .suspect_gather_us = 1 * RIG_S,
								  .round_tokens = RIG_MOST_TOKENS,
								  .missed_tokens = RIG_MISSED_TOKENS};
	for (int i = 0; i < NET_MAX_FRAGMENTS; i++)
		r->cfg.n_chunks[i] = RIG_CHUNKS;
	memset(r->cfg.run_id, 7, sizeof r->cfg.run_id);
	memset(r->cfg.run_hash.b, 9, sizeof r->cfg.run_hash.b);
	r->now_us = 1000 * RIG_S;
}

void rig_start(struct rig *r) {
	r->core = new_core(r);
	r->twin = new_core(r);
	r->last = calloc(RIG_RECORDS_KEPT, sizeof r->last[0]);
	assert_non_null(r->last);
}

void rig_release(struct rig *r) {
	free(r->core);
	free(r->twin);
	free(r->last);
}

void rig_key(uint32_t who, uint8_t key[NET_KEY_BYTES]) {
	memset(key, 0, NET_KEY_BYTES);
	snprintf((char *)key, NET_KEY_BYTES, "worker %u", who);
}

const struct document *rig_doc(const struct rig *r) {
	return core_document(r->core);
}

const struct document *rig_doc_of(const struct rig *r, uint32_t who) {
	static struct document d;
	const int slot = core_find(r->core, who);
	assert_true(slot >= 0);
	assert_true(core_document_of(r->core, (uint32_t)slot, &d));
	return &d;
}

/* What two documents must share when they are of the same records: all that does not depend on who
 * is alive. */
static void check_same_facts(const struct document *a, const struct document *b) {
	assert_int_equal(a->round, b->round);
	assert_memory_equal(&a->chain, &b->chain, sizeof a->chain);
	assert_int_equal(a->snapshot_round, b->snapshot_round);
	assert_memory_equal(&a->snapshot_hash, &b->snapshot_hash, sizeof a->snapshot_hash);
	assert_memory_equal(&a->snapshot_chain, &b->snapshot_chain, sizeof a->snapshot_chain);
	assert_true(banned_equal(&a->banned, &b->banned));
	assert_int_equal(a->n_log, b->n_log);
	assert_memory_equal(a->log, b->log, a->n_log * sizeof a->log[0]);
	assert_int_equal(a->phase == RUN_REDUCE, b->phase == RUN_REDUCE);
	assert_int_equal(a->phase == RUN_DONE, b->phase == RUN_DONE);
	assert_int_equal(a->attempt, b->attempt);
	if (a->phase != RUN_REDUCE)
		return;
	assert_int_equal(a->n_members, b->n_members);
	assert_memory_equal(a->members, b->members, a->n_members * sizeof a->members[0]);
	assert_int_equal(a->n_chunks, b->n_chunks);
	assert_int_equal(a->n_ranges, b->n_ranges);
	for (int i = 0; i < a->n_ranges; i++) {
		assert_int_equal(a->ranges[i].first, b->ranges[i].first);
		assert_int_equal(a->ranges[i].count, b->ranges[i].count);
		assert_int_equal(a->ranges[i].owner, b->ranges[i].owner);
	}
}

static void check_document(struct rig *r) {
	const struct document *d = rig_doc(r);
	static uint8_t bytes[NET_MAX_DOCUMENT_BYTES];
	static struct document decoded;
	struct rv_errtext et = {0};
	assert_true(d->seq >= r->last_seq);
	if (d->seq == r->last_seq)
		return;
	r->last_seq = d->seq;
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	document_encode(d, CONTROL_VERSION, &w);
	assert_false(w.failed);
	if (document_decode(bytes, rv_writer_len(&w), &decoded, &et) != RV_OK)
		fail_msg("the document is not valid: %s", et.text);
	struct rv_hash chain = d->snapshot_chain;
	for (int i = 0; i < d->n_log; i++)
		chain = rv_chain_next(&chain, &d->log[i]);
	assert_memory_equal(&chain, &d->chain, sizeof chain);
}

void rig_pump(struct rig *r) {
	struct core_record rec;
	struct rv_errtext et = {0};
	r->has_more = true;
	check_document(r);
	while (!r->hold && core_next_record(r->core, &rec)) {
		assert_int_equal(rec.id, r->n_records + 1);
		r->n_records++;
		core_record_copy(&r->last[rec.id % RIG_RECORDS_KEPT], &rec);
		if (core_replay(r->twin, &rec, &et) != RV_OK)
			fail_msg("replay: %s", et.text);
		core_replayed(r->twin);
		core_persisted(r->core, rec.id, r->now_us);
		assert_true(rig_doc(r)->seq < rec.doc_seq || rig_doc(r)->seq < core_document(r->twin)->seq);
		if (rig_doc(r)->seq + 1 < rec.doc_seq) /* else it has no durable number left to announce it under */
			check_same_facts(rig_doc(r), core_document(r->twin));
		check_document(r);
	}
}

void rig_restart(struct rig *r) {
	struct core *dead = r->core;
	r->core = r->twin;
	r->twin = dead;
	/* The twin was rebuilt at some earlier time; its members are awaited from now on. */
	struct core *fresh = new_core(r), *fresh_twin = new_core(r);
	assert_true(r->n_records < RIG_RECORDS_KEPT);
	for (uint64_t id = 1; id <= (uint64_t)r->n_records; id++) {
		assert_ok(core_replay(fresh, &r->last[id], &et));
		assert_ok(core_replay(fresh_twin, &r->last[id], &et));
	}
	core_replayed(fresh);
	core_replayed(fresh_twin);
	free(r->core);
	free(r->twin);
	r->core = fresh;
	r->twin = fresh_twin;
	check_document(r);
}

void rig_wait(struct rig *r, int64_t us) {
	while (us > 0) {
		int64_t step = us < RIG_S ? us : RIG_S; /* as the server does: a longer gap is an absence */
		us -= step;
		r->now_us += step;
		core_tick(r->core, r->now_us);
		rig_pump(r);
	}
}

void rig_join_one(struct rig *r, uint32_t who) {
	uint8_t key[NET_KEY_BYTES];
	uint32_t member = NET_NO_MEMBER, token = who + 1;
	struct join_request rq = {.protocol = CONTROL_VERSION, .has_token = true, .name = "w"};
	struct rv_errtext et = {0};
	rig_key(who, key);
	memcpy(rq.run_id, r->cfg.run_id, sizeof rq.run_id);
	memcpy(rq.token, &token, sizeof token);
	if (core_join(r->core, r->now_us, key, &rq, true, &member, &et) != RV_OK)
		fail_msg("join: %s", et.text);
	assert_int_equal(member, who);
	rig_pump(r);
}

void rig_join(struct rig *r, int n) {
	for (int i = 0; i < n; i++)
		rig_join_one(r, (uint32_t)i);
}

void rig_open(struct rig *r, uint32_t min_workers, int n) {
	rig_init(r, min_workers);
	rig_start(r);
	rig_join(r, n);
}

struct rv_hash rig_digest(uint64_t round) {
	return rv_hash_of(&round, sizeof round);
}

struct rv_hash rig_root(uint32_t who, uint64_t boot, uint64_t round, uint8_t codec) {
	const uint64_t of[] = {who, boot, round, codec};
	return merkle_leaf(0, of, sizeof of);
}

static void commit_to(const struct rig *r, uint32_t who, struct report *rep) {
	rep->commitment.n = (uint8_t)(1 + r->cfg.n_slow_codecs);
	for (int i = 0; i < rep->commitment.n; i++) {
		const uint8_t codec = i > 0 ? r->cfg.slow_codecs[i - 1] : 0;
		rep->commitment.roots[i] = (struct commitment_root){codec, rig_root(who, rep->boot, rep->round, codec)};
	}
}

/* Signs what it commits to, where that is checked. */
static void sign(const struct rig *r, uint32_t who, struct report *rep) {
	uint8_t key[NET_KEY_BYTES];
	rig_key(who, key);
	if (r->cfg.seals.verify != NULL)
		rig_sign_report(rep, r->cfg.run_id, key);
}

struct report rig_report(const struct rig *r, uint32_t who, enum worker_phase phase) {
	const struct document *d = rig_doc(r);
	struct report rep = {.version = CONTROL_VERSION,
						 .boot = 1,
						 .term = d->term,
						 .phase = (uint8_t)phase,
						 .round = d->round,
						 .tokens = 1000,
						 .n_chunks = r->cfg.n_chunks[0]};
	if (phase == WORKER_REDUCING || phase == WORKER_VOTED)
		rep.attempt = d->attempt;
	if (phase == WORKER_VOTED)
		rep.digest = rig_digest(d->round);
	if (phase != WORKER_SYNCING)
		rep.chain = d->chain;
	rep.proven_round = rep.round + (phase == WORKER_VOTED);
	rep.proven_chain = phase == WORKER_VOTED ? rv_chain_next(&rep.chain, &rep.digest) : rep.chain;
	if (phase >= WORKER_READY && phase <= WORKER_VOTED)
		commit_to(r, who, &rep);
	rep.n_candidates = 1;
	snprintf(rep.candidates[0].addr, sizeof rep.candidates[0].addr, "10.0.%u.%u:%u", who / 256, who % 256,
			 7000 + who % 100);
	return rep;
}

void rig_accuse(struct report *rep, uint64_t places) {
	rep->n_suspects = 0;
	for (int at = set_next(&places, 0, 1); at >= 0; at = set_next(&places, at + 1, 1))
		rep->suspects[rep->n_suspects++] = (uint16_t)at;
}

void rig_send(struct rig *r, uint32_t who, const struct report *rep) {
	uint8_t key[NET_KEY_BYTES];
	struct report numbered = *rep;
	struct rv_errtext et = {0};
	rig_key(who, key);
	numbered.seq = ++r->report_seq;
	sign(r, who, &numbered);
	if (core_report(r->core, r->now_us, key, &numbered, &et) != RV_OK)
		fail_msg("report: %s", et.text);
	rig_pump(r);
}

void rig_say(struct rig *r, uint32_t who, enum worker_phase phase) {
	struct report rep = rig_report(r, who, phase);
	rig_send(r, who, &rep);
}

void rig_say_all(struct rig *r, int n, enum worker_phase phase) {
	struct report rep[256];
	assert_in_range(n, 0, sizeof rep / sizeof rep[0]);
	for (int i = 0; i < n; i++)
		rep[i] = rig_report(r, (uint32_t)i, phase);
	for (int i = 0; i < n; i++)
		rig_send(r, (uint32_t)i, &rep[i]);
}

void rig_round(struct rig *r, int n) {
	uint64_t round = rig_doc(r)->round;
	rig_say_all(r, n, WORKER_TRAINING);
	rig_say_all(r, n, WORKER_READY);
	rig_expect(r, RUN_REDUCE, round, 1);
	rig_say_all(r, n, WORKER_VOTED);
	assert_int_equal(rig_doc(r)->round, round + 1);
}

void rig_reducing(struct rig *r, uint32_t min_workers, int n) {
	rig_open(r, min_workers, n);
	rig_say_all(r, n, WORKER_TRAINING);
	rig_say_all(r, n, WORKER_READY);
	rig_expect(r, RUN_REDUCE, 0, 1);
	rig_say_all(r, n, WORKER_REDUCING);
}

const struct core_record *rig_last(const struct rig *r, enum core_record_type type) {
	const struct core_record *rec = &r->last[r->n_records % RIG_RECORDS_KEPT];
	assert_int_equal(rec->type, type);
	return rec;
}

uint64_t rig_blamed(const struct rig *r, enum core_record_type type) {
	const struct core_record *rec = rig_last(r, type);
	uint64_t set = 0;
	for (int i = 0; i < rec->n_blamed; i++)
		set |= 1ull << rec->blamed[i];
	return set;
}

struct core_member_view rig_view(const struct rig *r, uint32_t who) {
	int slot = core_find(r->core, who);
	assert_true(slot >= 0);
	return core_view(r->core, (uint32_t)slot);
}

bool rig_saw(struct rig *r, enum core_event_type type, uint32_t member) {
	bool saw = false;
	r->n_seen = r->has_more ? 0 : r->n_seen;
	r->has_more = false;
	while (r->n_seen < RIG_EVENTS && core_next_event(r->core, &r->seen[r->n_seen]))
		r->n_seen++;
	assert_true(r->n_seen < RIG_EVENTS);
	for (int i = 0; i < r->n_seen; i++)
		saw = saw || (r->seen[i].type == type && r->seen[i].member == member);
	return saw;
}

void rig_read_events(struct rig *r, uint64_t about[CORE_EVENT_COUNT]) {
	struct core_event ev;
	while (core_next_event(r->core, &ev))
		if (ev.member < 64)
			about[ev.type] |= UINT64_C(1) << ev.member;
}

bool rig_takes_part(const struct rig *r, uint32_t who) {
	return document_find(rig_doc(r), who) >= 0;
}

bool rig_owns(const struct rig *r, uint32_t who) {
	const struct document *d = rig_doc(r);
	for (int i = 0; i < d->n_ranges; i++)
		if (d->members[d->ranges[i].owner].member == who)
			return true;
	return false;
}

void rig_expect(const struct rig *r, enum run_phase phase, uint64_t round, uint32_t attempt) {
	assert_int_equal(rig_doc(r)->phase, phase);
	assert_int_equal(rig_doc(r)->round, round);
	assert_int_equal(rig_doc(r)->attempt, attempt);
}

void rig_expect_members(const struct rig *r, int n, const uint32_t *members) {
	const struct document *d = rig_doc(r);
	assert_int_equal(d->n_members, n);
	for (int i = 0; i < n; i++)
		assert_int_equal(d->members[i].member, members[i]);
}
