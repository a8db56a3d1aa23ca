/* How much the core computes: the executed basic blocks of coordinator/core, which is compiled for
 * this test with -fsanitize-coverage=trace-pc. A report, a tick and each decision are linear in the
 * number of members here: with twice as many they take at most a little more than twice as many
 * blocks. No time is measured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/chain.h"
#include "coordinator/core/core.h"
#include "tests/common/check.h"

enum { NEIGHBOURS = 62, CHUNKS = 4096, LEASE_ROUND = 40 };
#define S INT64_C(1000000)

void __sanitizer_cov_trace_pc(void);
static uint64_t blocks;
void __sanitizer_cov_trace_pc(void) {
	blocks++;
}

/* What one thing of each kind has taken. */
enum kind {
	REPORT,
	TICK,
	SILENCE,
	RETURN,
	NOTICE,
	FREEZE,
	VOTE,
	COMMIT,
	ACCUSATION,
	NEXT_ATTEMPT,
	SNAPSHOT,
	DEATHS,
	KINDS
};
static const char *const kinds[KINDS] = {"report", "tick",   "silence",    "return",       "notice",   "freeze",
										 "vote",   "commit", "accusation", "next attempt", "snapshot", "deaths"};

struct world {
	struct core *core;
	int n;
	int64_t now_us;
	uint64_t seq;
	struct rv_hash digest;
	uint64_t most[KINDS];
};

static void key_of(uint32_t who, uint8_t key[NET_KEY_BYTES]) {
	memset(key, 0, NET_KEY_BYTES);
	(void)snprintf((char *)key, NET_KEY_BYTES, "worker %u", who);
}

static void note(struct world *w, enum kind kind, uint64_t since) {
	const uint64_t took = blocks - since;
	w->most[kind] = took > w->most[kind] ? took : w->most[kind];
}

/* Makes all records durable; those of decisions are counted by their kind. */
static void pump(struct world *w) {
	static struct core_record rec;
	static const enum kind of[] = {
		[CORE_ROSTER] = FREEZE, [CORE_COMMIT] = COMMIT, [CORE_SNAPSHOT] = SNAPSHOT, [CORE_AWAY] = TICK};
	while (core_next_record(w->core, &rec)) {
		const uint64_t since = blocks;
		core_persisted(w->core, rec.id, w->now_us);
		if (rec.type == CORE_ROSTER && rec.attempt > 1)
			note(w, NEXT_ATTEMPT, since);
		else if (rec.type == CORE_ROSTER || rec.type == CORE_COMMIT || rec.type == CORE_SNAPSHOT)
			note(w, of[rec.type], since);
	}
}

static void join(struct world *w, uint32_t who) {
	uint8_t key[NET_KEY_BYTES];
	uint32_t member;
	struct join_request rq = {.protocol = CONTROL_VERSION, .has_token = true, .name = "w"};
	key_of(who, key);
	memcpy(rq.token, &who, sizeof who);
	assert_ok(core_join(w->core, w->now_us, key, &rq, true, &member, &et));
	pump(w);
}

/* Each contribution reads a round's sequences of what its member holds. */
static void read_lease(struct world *w, uint32_t who, struct report *rep) {
	static struct document own;
	while (!core_document_of(w->core, (uint32_t)core_find(w->core, who), &own)) /* lists wait for their turn */
		core_tick(w->core, w->now_us += S / 8);
	rep->lease_first = own.lease_first;
	rep->lease_count = LEASE_ROUND;
}

/* Each is linked with its neighbours by number, has tried some others in vain, and lives in a house
 * with two others. */
static struct report report_of(struct world *w, uint32_t who, enum worker_phase phase) {
	const struct document *d = core_document(w->core);
	struct report rep = {.boot = 1,
						 .phase = (uint8_t)phase,
						 .round = d->round,
						 .attempt = phase == WORKER_REDUCING || phase == WORKER_VOTED ? d->attempt : 0,
						 .tokens = 1000,
						 .n_chunks = CHUNKS,
						 .chain = d->chain,
						 .proven_round = d->round,
						 .proven_chain = d->chain,
						 .up_bytes_per_s = 1000000 + who,
						 .down_bytes_per_s = 1000000 + who,
						 .full_round = d->round,
						 .full_hash = w->digest,
						 .n_candidates = 2};
	if (d->round == 0)
		rep.full_round = 0;
	rep.commitment.n = phase >= WORKER_READY;
	if (phase >= WORKER_READY)
		read_lease(w, who, &rep);
	if (phase == WORKER_VOTED)
		rep.digest = w->digest;
	uint32_t first = who > NEIGHBOURS / 2 ? who - NEIGHBOURS / 2 : 0;
	for (uint32_t i = first; i < first + NEIGHBOURS && i < (uint32_t)w->n; i++)
		if (i != who)
			report_add_path(&rep, i, PATH_DIALED);
	for (uint32_t i = first + NEIGHBOURS; i < first + NEIGHBOURS + 3 && i < (uint32_t)w->n; i++)
		report_add_path(&rep, i, PATH_APART);
	rep.candidates[1].kind = CANDIDATE_PRIVATE;
	(void)snprintf(rep.candidates[0].addr, NET_ADDR_BYTES, "10.0.%u.%u:%u", who / 3 / 256, who / 3 % 256,
				   7000 + who % 3);
	(void)snprintf(rep.candidates[1].addr, NET_ADDR_BYTES, "192.168.0.%u:7000", who % 3 + 2);
	return rep;
}

static void send(struct world *w, uint32_t who, const struct report *rep, enum kind kind) {
	uint8_t key[NET_KEY_BYTES];
	struct report numbered = *rep;
	struct notice notice;
	numbered.seq = ++w->seq;
	key_of(who, key);
	uint64_t since = blocks;
	assert_ok(core_report(w->core, w->now_us, key, &numbered, &et));
	note(w, kind, since);
	since = blocks;
	(void)core_notice(w->core, key, &notice);
	note(w, NOTICE, since);
	pump(w);
}

static void say_all(struct world *w, enum worker_phase phase, enum kind kind) {
	for (uint32_t who = 0; who < (uint32_t)w->n; who++) {
		const struct report rep = report_of(w, who, phase);
		send(w, who, &rep, kind);
	}
}

static void tick(struct world *w, int64_t us, enum kind kind) {
	w->now_us += us;
	const uint64_t since = blocks;
	core_tick(w->core, w->now_us);
	(void)core_deadline_us(w->core);
	note(w, kind, since);
	pump(w);
}

/* Every participant reports `phase`; the first `silent` of them do not, and are accused. */
static void say_participants(struct world *w, enum worker_phase phase, uint16_t silent, enum kind kind) {
	static struct document d;
	document_copy(&d, core_document(w->core));
	for (int i = silent; i < d.n_members && core_document(w->core)->attempt == d.attempt; i++) {
		struct report rep = report_of(w, d.members[i].member, phase);
		for (uint16_t k = 0; k < silent; k++)
			rep.suspects[rep.n_suspects++] = k;
		send(w, d.members[i].member, &rep, kind);
	}
}

static struct core_config config_of(int n) {
	return (struct core_config){.max_here = (uint32_t)n,
								.lease_round = LEASE_ROUND,
								.lease_tokens = 1,
								.max_roster = NET_MAX_ROW,
								.final_round = 10,
								.min_workers = 2,
								.n_chunks = {CHUNKS},
								.round_tokens = 1000000,
								.chunk_bytes = 1000,
								.grace_us = 5 * S,
								.liveness_us = 10 * S,
								.silent_us = 10 * S,
								.withheld_us = 5 * S,
								.suspect_gather_us = S};
}

static void open_world(struct world *w, int n) {
	const struct core_config cfg = config_of(n);
	*w = (struct world){.n = n, .now_us = 1000 * S, .digest.b = {1}};
	w->core = core_init(malloc(core_size(&cfg)), &cfg, w->now_us);
	for (uint32_t who = 0; who < (uint32_t)n; who++)
		join(w, who);
}

/* In an open round all fall silent at once, and are back at once: none has housemates meanwhile. */
static void all_go_and_return(struct world *w) {
	uint8_t key[NET_KEY_BYTES];
	for (int s = 0; s < 12; s++)
		tick(w, S, SILENCE);
	assert_int_equal(core_document(w->core)->phase, RUN_WAITING);
	for (uint32_t who = 0; who < (uint32_t)w->n; who++) {
		struct report rep = report_of(w, who, WORKER_TRAINING);
		rep.seq = ++w->seq;
		key_of(who, key);
		assert_ok(core_take_report(w->core, w->now_us, key, &rep, &et));
	}
	tick(w, 1, RETURN);
	assert_int_equal(core_document(w->core)->phase, RUN_OPEN);
}

/* Two rounds: one that goes well, one in which some participants die; then most members die. */
static void live(struct world *w) {
	say_all(w, WORKER_TRAINING, REPORT);
	tick(w, S, TICK);
	all_go_and_return(w);
	say_all(w, WORKER_READY, REPORT);
	assert_int_equal(core_document(w->core)->phase, RUN_REDUCE);
	say_participants(w, WORKER_REDUCING, 0, REPORT);
	tick(w, S / 10, TICK);
	say_participants(w, WORKER_VOTED, 0, VOTE);
	assert_int_equal(core_document(w->core)->round, 1);
	say_all(w, WORKER_TRAINING, REPORT); /* with full hashes, which a majority has */
	assert_int_equal(core_document(w->core)->snapshot_round, 1);
	say_all(w, WORKER_READY, REPORT);
	say_participants(w, WORKER_REDUCING, 8, ACCUSATION);
	tick(w, 2 * S, ACCUSATION);
	assert_int_equal(core_document(w->core)->attempt, 2);
	tick(w, 6 * S, TICK);
	tick(w, 30 * S, TICK); /* away itself: all are forgiven */
	for (int s = 0; s < 12; s++)
		tick(w, S, DEATHS);
}

static void test_linear(void **state) {
	(void)state;
	static struct world small, large;
	open_world(&small, 512);
	live(&small);
	open_world(&large, 1024);
	live(&large);
	for (int k = 0; k < KINDS; k++) {
		print_message("%-12s %8llu blocks with 512 members here, %8llu with 1,024\n", kinds[k],
					  (unsigned long long)small.most[k], (unsigned long long)large.most[k]);
		assert_true(small.most[k] > 0);
		if (large.most[k] > small.most[k] * 22 / 10)
			fail_msg("%s is not linear", kinds[k]);
	}
	free(small.core);
	free(large.core);
}

/* Returns the blocks that one more record of a member takes to replay, of a history in which each
 * of `n` members has moved many times. */
static uint64_t replay(int n) {
	enum { MOVES = 8 };
	const struct core_config cfg = config_of(n);
	struct core *core = core_init(malloc(core_size(&cfg)), &cfg, 0);
	static struct core_record rec;
	rec = (struct core_record){.type = CORE_MEMBER, .doc_seq = 1000, .n_candidates = 1};
	const uint64_t since = blocks;
	for (int i = 0; i < MOVES * n; i++) {
		rec.id = (uint64_t)i + 1;
		rec.member = (uint32_t)(i % n);
		key_of(rec.member, rec.key);
		(void)snprintf(rec.candidates[0].addr, NET_ADDR_BYTES, "10.%d.%d.%d:7434", i / n, i % n / 256, i % n % 256);
		assert_ok(core_replay(core, &rec, &et));
	}
	const uint64_t took = (blocks - since) / (uint64_t)(MOVES * n);
	core_replayed(core);
	assert_int_equal(core_here(core), n);
	free(core);
	return took;
}

/* What one record costs does not depend on how many members there are. */
static void test_a_long_history_is_linear(void **state) {
	(void)state;
	const uint64_t few = replay(512), many = replay(1024);
	print_message("a replayed record: %llu blocks with 512 members here, %llu with 1,024\n", (unsigned long long)few,
				  (unsigned long long)many);
	assert_true(many <= few * 12 / 10);
}

/* A member may join again, and open and close its long poll, as often as it likes: neither looks at
 * the others. */
static void test_what_a_member_repeats_is_cheap(void **state) {
	(void)state;
	enum { MOST = 500 };
	struct world w;
	uint8_t key[NET_KEY_BYTES];
	uint32_t member;
	const struct join_request rq = {.protocol = CONTROL_VERSION, .name = "w"};
	open_world(&w, 1024);
	key_of(7, key);
	const uint64_t since = blocks;
	assert_ok(core_join(w.core, w.now_us, key, &rq, false, &member, &et));
	core_take_listens(w.core, w.now_us, key, true);
	core_take_listens(w.core, w.now_us, key, false);
	assert_int_equal(member, 7);
	assert_in_range(blocks - since, 1, MOST);
	free(w.core);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_linear), cmocka_unit_test(test_a_long_history_is_linear),
									   cmocka_unit_test(test_what_a_member_repeats_is_cheap)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
