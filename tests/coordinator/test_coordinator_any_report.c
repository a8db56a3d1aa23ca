/* Two of six members report whatever a report can hold, at random, in every phase; the others are
 * honest. Nothing that they say ends the coordinator, neither now nor when it starts again from its
 * records, and the honest ones commit rounds. */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/common/check.h"
#include "tests/coordinator/service_bench.h"

enum { HONEST = 4, MEMBERS = 6, STEPS = 400, SEEDS = 12, TICK_US = 200000 };

static struct rv_rng rng;

static uint64_t any(uint64_t most) {
	static const uint64_t edges[] = {0, 1, 2, 63, 64, 65, UINT32_MAX, UINT64_C(1) << 62, UINT64_MAX};
	const uint64_t v =
		rv_rng_below(&rng, 2) ? edges[rv_rng_below(&rng, sizeof edges / sizeof edges[0])] : rv_rng_u64(&rng);
	return most == UINT64_MAX ? v : v % (most + 1);
}

static bool often(void) {
	return rv_rng_below(&rng, 4) == 0;
}

static void claim_of_the_attempt(struct report *rep) {
	rep->n_suspects = (uint16_t)any(8);
	for (int i = 0; i < rep->n_suspects; i++)
		rep->suspects[i] = (uint16_t)(i * (int)(1 + any(3)));
	rep->n_measured = rep->phase == WORKER_VOTED ? (uint16_t)any(NET_MAX_ROW) : 0;
	for (int i = 0; i < rep->n_measured; i++)
		rep->measured[i] = (struct report_measured){3e38f, often() ? 3e38f : -3e38f, (uint32_t)any(rep->n_chunks)};
	rep->mean2 = often() ? 3e38f : 0;
	rep->stands_out = rep->phase == WORKER_VOTED ? (uint32_t)any(rep->n_chunks) : 0;
	if (rep->phase >= WORKER_READY && rep->phase <= WORKER_VOTED) {
		rep->lease_first = any(UINT64_MAX);
		rep->lease_count = (uint32_t)any(UINT32_MAX);
		rep->commitment.n = (uint8_t)any(COMMITMENT_MAX);
		for (int i = 1; i < rep->commitment.n; i++)
			rep->commitment.roots[i].codec = (uint8_t)any(UINT8_MAX);
	}
}

static void claim_a_state(struct report *rep) {
	if (often())
		rep->chain.b[0] ^= 1;
	rep->full_round = any(UINT64_MAX);
	rep->full_hash.b[3] = (uint8_t)any(UINT8_MAX);
	rep->proven_round = rep->round + any(1);
	rep->proven_chain = rep->chain;
	rep->needs_from = any(UINT64_MAX);
	rep->storage = (uint8_t)any(15);
	rep->digest.b[1] = (uint8_t)any(3);
}

static void claim_anything(struct report *rep, uint8_t who) {
	if (who <= HONEST)
		return;
	rep->boot = 1 + any(2);
	rep->phase = (uint8_t)(WORKER_SYNCING + any(WORKER_LEAVING - WORKER_SYNCING));
	rep->attempt = rep->phase == WORKER_REDUCING || rep->phase == WORKER_VOTED
					   ? (often() || rep->attempt == 0 ? 1 + (uint32_t)any(UINT32_MAX - 1) : rep->attempt)
					   : 0;
	rep->commitment.n = 0;
	if (often())
		rep->round = any(UINT64_MAX);
	if (often())
		rep->term = any(NET_MAX_TERM);
	rep->tokens = any(UINT64_MAX);
	if (often())
		rep->n_chunks = 1 + (uint32_t)any(NET_MAX_CHUNKS - 1);
	rep->up_bytes_per_s = any(UINT64_MAX);
	rep->down_bytes_per_s = any(UINT64_MAX);
	rep->loss = often() ? 3e38f : -3e38f;
	rep->inner_step = rep->tx_bytes = rep->rx_bytes = rep->compute_us = rep->reduce_us = any(UINT64_MAX);
	rep->relay = (uint8_t)any(NET_MAX_RELAYS);
	rep->offers_relay = (uint16_t)any(UINT16_MAX);
	rep->n_paths = 0;
	for (uint32_t m = 0; m < MEMBERS; m++)
		report_add_path(rep, m, (uint8_t)any(PATH_RELAYED));
	rep->n_receipts = 0;
	for (uint32_t m = 0; m < MEMBERS; m++)
		if (often())
			rep->receipts[rep->n_receipts++] = (struct report_receipt){m, (uint8_t)(1 + any(UINT8_MAX - 1))};
	claim_of_the_attempt(rep);
	claim_a_state(rep);
}

static void step_honest(struct service_bench *b, uint8_t who) {
	static struct document d;
	bench_document(b, &d);
	enum worker_phase phase = often() ? WORKER_TRAINING : WORKER_READY;
	if (d.phase == RUN_DONE)
		return;
	if (d.phase == RUN_REDUCE)
		phase = document_find(&d, who - 1u) >= 0 ? WORKER_VOTED : WORKER_READY;
	(void)bench_report(b, who, phase, ":70"); /* a member that was left out is not refused either */
}

/* Returns how many rounds were committed. */
static uint64_t play(struct service_bench *b, uint64_t seed) {
	static struct document d;
	struct join_reply reply;
	rng = rv_rng_of(seed, 0);
	b->alter = claim_anything;
	for (uint8_t who = 1; who <= MEMBERS; who++)
		assert_int_equal(bench_join(b, who, &reply), RV_OK);
	for (int i = 0; i < STEPS; i++) {
		const uint8_t who = (uint8_t)(1 + rv_rng_below(&rng, MEMBERS));
		b->now_us += TICK_US;
		if (who <= HONEST)
			step_honest(b, who);
		else
			(void)bench_report(b, who, WORKER_READY, ":70"); /* taken or refused */
		service_tick(b->service, b->now_us);
		if (i == STEPS / 2)
			bench_restart(b);
	}
	bench_document(b, &d);
	return d.round;
}

static void play_all(int (*set_up)(void **state)) {
	uint64_t rounds = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		void *bench;
		assert_int_equal(set_up(&bench), 0);
		rounds += play(bench, seed);
		assert_int_equal(bench_tear_down(&bench), 0);
	}
	print_message("%d runs with two of six that say anything: %d rounds committed\n", (int)SEEDS, (int)rounds);
	assert_true(rounds >= SEEDS);
}

static void test_one_row(void **state) {
	(void)state;
	play_all(bench_set_up);
}

static void test_rows(void **state) {
	(void)state;
	play_all(bench_set_up_rows);
}

static void test_slow_members(void **state) {
	(void)state;
	play_all(bench_set_up_coarser);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_row),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_slow_members),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
