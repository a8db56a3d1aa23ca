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

enum { NEIGHBOURS = 62, CHUNKS = 4096 };
#define S INT64_C(1000000)

void __sanitizer_cov_trace_pc(void);
static uint64_t blocks;
void __sanitizer_cov_trace_pc(void) {
	blocks++;
}

/* What one thing of each kind has taken. */
enum kind { REPORT, TICK, NOTICE, FREEZE, VOTE, COMMIT, ACCUSATION, NEXT_ATTEMPT, SNAPSHOT, DEATHS, KINDS };
static const char *const kinds[KINDS] = {"report", "tick",       "notice",       "freeze",   "vote",
										 "commit", "accusation", "next attempt", "snapshot", "deaths"};

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

/* Each is linked with its neighbours by number, has tried some others in vain, and lives in a house
 * with two others. */
static struct report report_of(const struct world *w, uint32_t who, enum worker_phase phase) {
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

static void open_world(struct world *w, int n) {
	struct core_config cfg = {.max_here = (uint32_t)n,
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
	*w = (struct world){.n = n, .now_us = 1000 * S, .digest.b = {1}};
	w->core = core_init(malloc(core_size(&cfg)), &cfg, w->now_us);
	for (uint32_t who = 0; who < (uint32_t)n; who++)
		join(w, who);
}

/* Two rounds: one that goes well, one in which some participants die; then most members die. */
static void live(struct world *w) {
	say_all(w, WORKER_TRAINING, REPORT);
	tick(w, S, TICK);
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

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_linear)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
