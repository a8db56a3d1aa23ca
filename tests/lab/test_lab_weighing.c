/* test_lab_weighing.c: what a worker weighs a member by (worker/audit/weighing.h) is what the lab
 * measures of the same contributions (lab/worker_files/replay_without.h), for every rule. */
#include "base/merkle.h"
#include "lab/worker_files/replay_without.h"
#include "tests/common/check.h"
#include "tests/lab/lab_fixture.h"
#include "worker/audit/weighing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 4, PLACE = 2, H = 3 };
static const uint32_t weights[MEMBERS] = {3, 5, 2, 7};

/* A round whose contributions are here, and what its members know of it. */
static struct {
	struct lab_fixture f;
	struct lab_run *r;
	struct averaging_given given;
	struct auditor_roster roster;
	struct chunking chunks;
	struct rv_hash *leaves;
	uint8_t *without;
	struct weighing w;
} world;

static void copy_state(const struct global_state *from, struct global_state *out) {
	assert_int_equal(global_init(out, &from->cfg, from->theta, NULL), RV_OK);
	for (int k = 0; k < global_states(&from->cfg); k++)
		memcpy(out->state[k], from->state[k], from->cfg.n * sizeof(float));
	out->round = from->round;
	out->chain = from->chain;
}

static size_t chunk_bytes(uint32_t i) {
	const struct codec *c = world.r->global.cfg.codec;
	return c->encoded_bytes(c, chunking_len(&world.chunks, i));
}

/* Plays a round, so that optimizers have momentum, and trains another one up to its mean. */
static void open_world(enum merge_choice merge, int fragments) {
	struct lab_round round;
	lab_fixture_init(&world.f);
	world.f.cfg.run.merge = merge;
	world.f.cfg.run.chunk_elems = 256;
	world.f.cfg.run.fragments = fragments;
	world.f.cfg.run.min_workers = MEMBERS;
	world.r = lab_fixture_start(&world.f);
	struct lab_run *r = world.r;
	assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
	assert_int_equal(averaging_train_to(r, 2 * H, NULL), RV_OK);
	assert_int_equal(averaging_encode(r, &round, NULL), RV_OK);
	world.given = (struct averaging_given){.n = MEMBERS};
	world.chunks = global_round_chunks(&r->global.cfg, r->global.round);
	world.roster = (struct auditor_roster){
		.round = r->global.round, .attempt = 1, .n_chunks = world.chunks.n_chunks, .n = MEMBERS};
	for (uint32_t m = 0; m < MEMBERS; m++) {
		world.given.vectors[m] = r->participants[m].encoded;
		world.given.weights[m] = weights[m];
		world.roster.members[m] = (struct auditor_member){.member = 10 + m, .weight = weights[m]};
	}
	const struct merge_layout layout = {.n_rows = 1, .length = {MEMBERS}};
	assert_int_equal(averaging_reduce_given(r, &layout, &world.given, NULL), RV_OK);
	world.leaves = calloc(world.chunks.n_chunks, sizeof *world.leaves);
	world.without = calloc(1, global_max_payload_bytes(&r->global.cfg));
	for (uint32_t i = 0; i < world.chunks.n_chunks; i++)
		world.leaves[i] =
			merkle_leaf(i, r->reduced + chunking_offset_bytes(&world.chunks, r->global.cfg.codec, i), chunk_bytes(i));
	world.w = (struct weighing){.g = &r->global.cfg,
								.round = r->global.round,
								.member = 10 + PLACE,
								.leaves = world.leaves,
								.without = world.without};
}

static void close_world(void) {
	free(world.leaves);
	free(world.without);
	lab_run_free(world.r);
	lab_fixture_release(&world.f);
}

static enum rv_err take_chunk(uint32_t i, struct rv_errtext *et) {
	struct auditor_case c = {.roster = &world.roster, .chunk = i, .n = MEMBERS};
	for (int m = 0; m < MEMBERS; m++) {
		c.members[m] = &world.roster.members[m];
		c.data[m] = world.given.vectors[m] + chunking_offset_bytes(&world.chunks, world.r->global.cfg.codec, i);
	}
	return weighing_take(&world.w, &c, et);
}

/* Compares the losses of weights over all held-out sequences, in parts of two. */
static void losses_of(const float *theta, double *out, uint64_t n) {
	for (uint64_t i = 0; i < n; i += 2)
		assert_int_equal(
			replica_heldout_losses(world.r->replicas[0], theta, 0, i, n - i < 2 ? n - i : 2, out + i, NULL), RV_OK);
}

static void check_against_the_lab(enum merge_choice merge, int fragments) {
	struct global_state with, without;
	struct replay_without want;
	struct rv_errtext et = {0};
	open_world(merge, fragments);
	struct lab_run *r = world.r;
	assert_true(world.chunks.n_chunks > 2);
	for (uint32_t i = 0; i < world.chunks.n_chunks; i++)
		if (take_chunk(i, &et) != RV_OK)
			fail_msg("%s", et.text);
	copy_state(&r->global, &with);
	copy_state(&r->global, &without);
	const struct rv_hash digest = global_digest(&r->global, r->global.round, r->reduced);
	assert_int_equal(weighing_step(&with, &without, r->reduced, &digest, world.without, NULL), RV_OK);
	const uint64_t n = dataset_heldout_used(world.f.data, 0);
	double *losses[] = {calloc(n, sizeof(double)), calloc(n, sizeof(double))};
	losses_of(with.theta, losses[0], n);
	losses_of(without.theta, losses[1], n);
	const struct weighed found = weighing_compare(losses[0], losses[1], n);
	assert_int_equal(replay_without(r, &world.given, PLACE, &want, NULL), RV_OK);
	assert_true(fabs(found.with - want.with) < 1e-9 && fabs(found.without - want.without) < 1e-9);
	assert_true(found.with != found.without && found.sequences == n);
	assert_int_equal(averaging_step(r, NULL), RV_OK); /* the committed one */
	assert_memory_equal(r->global.theta, with.theta, with.cfg.n * sizeof(float));
	assert_hashes_equal(r->global.chain, with.chain);
	free(losses[0]);
	free(losses[1]);
	global_release(&with);
	global_release(&without);
	close_world();
}

static void every_rule_weighs_as_in_the_lab(void **state) {
	(void)state;
	check_against_the_lab(MERGE_mean, 1);
	check_against_the_lab(MERGE_clipped, 1);
	check_against_the_lab(MERGE_trimmed, 1);
	check_against_the_lab(MERGE_agreed, 1);
	check_against_the_lab(MERGE_clipped, 2);
}

/* An owner lied: what was committed is not what members sent. */
static void a_committed_lie_is_not_weighed(void **state) {
	struct rv_errtext et = {0};
	(void)state;
	open_world(MERGE_clipped, 1);
	world.leaves[1].b[0] ^= 1;
	assert_int_equal(take_chunk(0, &et), RV_OK);
	assert_int_equal(take_chunk(1, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "the committed average of chunk 1 of round 2 is not that of what members sent"));
	close_world();
}

/* With a chunk to which the member alone contributed there is nothing without it. */
static void a_chunk_of_one_has_nothing_without_it(void **state) {
	static uint8_t mean[1 << 16];
	struct rv_errtext et = {0};
	(void)state;
	open_world(MERGE_mean, 1);
	struct auditor_case c = {.roster = &world.roster, .n = 1};
	c.members[0] = &world.roster.members[PLACE];
	c.data[0] = world.given.vectors[PLACE];
	assert_int_equal(weighing_merge(world.w.g, &c, NET_NO_MEMBER, mean, &et), RV_OK);
	assert_int_equal(weighing_merge(world.w.g, &c, 10 + PLACE, mean, &et), RV_E_NOTFOUND);
	close_world();
}

static void verdicts(void **state) {
	const double with[] = {2, 3, 4, 5}, worse[] = {2.1, 3.2, 4.1, 5.2}, alike[] = {2.005, 3.006, 4.005, 5.006},
				 noisy[] = {1, 5, 2, 6.4};
	(void)state;
	struct weighed w = weighing_compare(with, worse, 4);
	assert_true(fabs(w.difference + 0.15) < 1e-12 && fabs(w.with - 3.5) < 1e-12 && fabs(w.without - 3.65) < 1e-12);
	assert_true(fabs(w.error - 0.0288675134594813) < 1e-12);
	assert_int_equal(w.verdict, WEIGHING_BETTER_WITH);
	assert_int_equal(weighing_compare(worse, with, 4).verdict, WEIGHING_BETTER_WITHOUT);
	assert_int_equal(weighing_compare(with, alike, 4).verdict, WEIGHING_NO_DIFFERENCE); /* a share that is too small */
	assert_int_equal(weighing_compare(with, noisy, 4).verdict, WEIGHING_NO_DIFFERENCE);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_weighs_as_in_the_lab),
		cmocka_unit_test(a_committed_lie_is_not_weighed),
		cmocka_unit_test(a_chunk_of_one_has_nothing_without_it),
		cmocka_unit_test(verdicts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
