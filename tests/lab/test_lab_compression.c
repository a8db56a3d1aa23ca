/* Contributions that lose something: error feedback, top-k and SparseLoCo, on replicas with AdamW
 * on text. */
#include "lab/methods/averaging.h"
#include "lab/methods/methods.h"
#include "lab/methods/preset.h"
#include "tests/lab/lab_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lab_fixture f;

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	f.cfg.run.outer = OUTER_sgd;
	f.cfg.run.outer_lr = 1;
	return 0;
}

static int teardown(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

static void codec(const char *name, double feedback) {
	(void)rv_options_set(run_config_options, &f.cfg.run, "codec", name, NULL);
	f.cfg.run.error_feedback = feedback;
}

static void sparseloco(void) {
	f.cfg.method = &lab_method_sparseloco;
	method_configure(&f.cfg);
}

/* Identity 12: everything kept, alpha = 1. */
static void test_sparseloco_that_keeps_everything_is_fedavg(void **state) {
	(void)state;
	codec("fp32", 0);
	struct rv_hash fedavg = lab_fixture_result(&f);
	sparseloco();
	assert_true(f.cfg.run.error_feedback == 0.95);
	struct rv_hash all = lab_fixture_result(&f);
	assert_hashes_equal(fedavg, all);
	codec("topk128", 0.95);
	struct rv_hash some = lab_fixture_result(&f);
	assert_hashes_not_equal(fedavg, some);
}

static void test_sparseloco_is_diloco_with_these_options(void **state) {
	(void)state;
	sparseloco();
	assert_int_equal(f.cfg.run.codec, CODEC_topk64);
	assert_int_equal(f.cfg.run.outer, OUTER_sgd);
	assert_int_equal(f.cfg.run.mean_codec, MEAN_CODEC_fp32);
	struct rv_hash method = lab_fixture_result(&f);
	f.cfg.method = &lab_method_diloco;
	struct rv_hash options = lab_fixture_result(&f);
	assert_hashes_equal(method, options);
}

/* One round against the equations in double: theta moves by the mean of what was sent, and what was
 * not stays. */
static void test_sparseloco_is_its_equations(void **state) {
	(void)state;
	struct lab_round round;
	sparseloco();
	struct lab_run *r = lab_fixture_start(&f);
	const size_t n = r->global.cfg.n;
	float *before = malloc(n * sizeof *before), *a = malloc(n * sizeof *a);
	assert_true(before && a);
	for (int t = 0; t < 3; t++) {
		double *mean = calloc(n, sizeof *mean);
		assert_non_null(mean);
		memcpy(before, r->global.theta, n * sizeof *before);
		struct lab_run *copy = lab_fixture_start(&f); /* the same run up to here, then only its inner steps */
		for (int s = 0; s < t; s++)
			assert_int_equal(lab_run_round(copy, &round, NULL), RV_OK);
		assert_int_equal(averaging_train_to(copy, (uint64_t)(t + 1) * 3, NULL), RV_OK);
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		for (int k = 0; k < 4; k++) {
			const float *local = replica_theta(copy->replicas[k]), *old = copy->participants[k].contribution.residual;
			size_t kept = 0;
			for (size_t i = 0; i < n; i++) {
				const float whole = 0.95f * old[i] + (before[i] - local[i]),
							left = r->participants[k].contribution.residual[i];
				mean[i] += ((double)whole - (double)left) / 4;
				kept += whole != left;
			}
			assert_true(kept > 0 && kept <= n / 64 + 2);
		}
		for (size_t i = 0; i < n; i++)
			assert_true(fabs((double)before[i] - mean[i] - (double)r->global.theta[i]) < 1e-7);
		lab_run_free(copy);
		free(mean);
	}
	free(before);
	free(a);
	lab_run_free(r);
}

static void test_sparseloco_refuses_what_it_is_not(void **state) {
	(void)state;
	struct rv_errtext et = {0};
	const struct lab_method *m = &lab_method_sparseloco;
	codec("int4", 0);
	assert_int_equal(method_check(m, &f.cfg.run, 4, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "--method diloco --error-feedback"));
	codec("topk32", 0.5);
	assert_int_equal(method_check(m, &f.cfg.run, 4, &et), RV_OK);
	f.cfg.run.mean_codec = MEAN_CODEC_int8; /* what `new-run` writes for auto */
	assert_int_equal(method_check(m, &f.cfg.run, 4, &et), RV_OK);
	f.cfg.run.mean_codec = MEAN_CODEC_int4;
	assert_int_equal(method_check(m, &f.cfg.run, 4, &et), RV_E_INVALID);
	f.cfg.run.mean_codec = MEAN_CODEC_auto;
	f.cfg.run.outer = OUTER_adam;
	assert_int_equal(method_check(m, &f.cfg.run, 4, &et), RV_E_INVALID);
}

static void mean_codec(const char *name, double feedback) {
	(void)rv_options_set(run_config_options, &f.cfg.run, "mean-codec", name, NULL);
	f.cfg.run.mean_feedback = feedback;
}

/* After a round, what a sparse mean did not say is in the residual, and nowhere else. */
static void test_what_a_mean_lost_is_kept(void **state) {
	(void)state;
	struct lab_round round;
	codec("int8", 0);
	mean_codec("fp32", 0);
	struct lab_run *exact = lab_fixture_start(&f);
	mean_codec("topk64", 1);
	struct lab_run *r = lab_fixture_start(&f);
	assert_int_equal(lab_run_round(exact, &round, NULL), RV_OK);
	assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
	size_t kept = 0;
	for (size_t i = 0; i < r->global.cfg.n; i++) {
		const float whole = r->global.theta[i] - r->mean_residual.kept[i]; /* sgd of rate 1 subtracts means */
		assert_true(fabsf(whole - exact->global.theta[i]) < 1e-6f);
		kept += r->mean_residual.kept[i] != 0;
	}
	assert_true(kept > r->global.cfg.n / 2);
	lab_run_free(exact);
	lab_run_free(r);
}

/* If every chunk has another owner in every round, it is as if nothing were kept; if none has, each
 * round says what the ones before it did not. */
static void test_owners_that_move_lose_residuals(void **state) {
	(void)state;
	codec("topk64", 0.95);
	mean_codec("topk64", 0);
	struct rv_hash without = lab_fixture_result(&f);
	mean_codec("topk64", 1);
	struct rv_hash with = lab_fixture_result(&f);
	f.cfg.move_owners = 0.5;
	struct rv_hash some = lab_fixture_result(&f);
	f.cfg.move_owners = 1;
	struct rv_hash all = lab_fixture_result(&f);
	assert_hashes_equal(without, all);
	assert_hashes_not_equal(without, with);
	assert_hashes_not_equal(some, with);
	assert_hashes_not_equal(some, all);
}

static void test_bytes(void **state) {
	(void)state;
	struct lab_round round;
	f.cfg.run.rounds = 1;
	codec("topk64", 0.95);
	struct lab_run *r = lab_fixture_start(&f);
	round = lab_fixture_finish(r);
	const struct chunking *c = &r->global.cfg.chunks;
	const uint64_t sent = chunking_total_bytes(c, &codec_topk64), mean = chunking_total_bytes(c, &codec_int8);
	assert_ptr_equal(r->global.cfg.codec, &codec_int8);
	assert_int_equal(averaging_payload_bytes(r), sent);
	assert_int_equal(round.bytes, ((sent + mean) * 3 + 3) / 4);
	lab_run_free(r);
	sparseloco();
	r = lab_fixture_start(&f);
	round = lab_fixture_finish(r);
	assert_int_equal(round.bytes, 3 * sent); /* to each of the others: no mean travels */
	lab_run_free(r);
}

static void same_twice(const char *name, double feedback) {
	codec(name, feedback);
	f.cfg.parallel = 1;
	struct rv_hash one = lab_fixture_result(&f);
	f.cfg.parallel = 4;
	struct rv_hash two = lab_fixture_result(&f);
	assert_hashes_equal(one, two);
}

static void test_deterministic(void **state) {
	(void)state;
	same_twice("int4", 0);
	same_twice("int16", 0.9);
	same_twice("topk32", 1);
}

/* Identity 17. */
static void resumed(const struct lab_method *m) {
	char path[300];
	struct lab_round round;
	f.cfg.method = m;
	snprintf(path, sizeof path, "%s/checkpoint", f.dir);
	struct lab_run *straight = lab_fixture_start(&f), *stopped = lab_fixture_start(&f);
	const size_t bytes = straight->global.cfg.n * sizeof(float);
	lab_fixture_finish(straight);
	for (int i = 0; i < 2; i++)
		assert_int_equal(lab_run_round(stopped, &round, NULL), RV_OK);
	assert_int_equal(lab_run_save(stopped, path, NULL), RV_OK);
	lab_run_free(stopped);
	struct lab_run *again = lab_fixture_start(&f);
	struct rv_errtext et = {0};
	if (lab_run_load(again, path, &et) != RV_OK)
		fail_msg("%s", et.text);
	lab_fixture_finish(again);
	struct rv_hash a = m->state_hash(straight), b = m->state_hash(again);
	assert_hashes_equal(a, b);
	for (int i = 0; i < 4; i++)
		assert_memory_equal(straight->participants[i].contribution.residual,
							again->participants[i].contribution.residual, bytes);
	for (int i = 0; i < 4 && eager_is_on(&straight->participants[i].eager); i++)
		assert_memory_equal(straight->participants[i].eager.start, again->participants[i].eager.start, bytes);
	lab_run_free(straight);
	lab_run_free(again);
}

static void test_resumed_is_straight(void **state) {
	(void)state;
	codec("topk64", 0.95);
	resumed(&lab_method_diloco);
	resumed(&lab_method_sparseloco);
	lab_method_eager.configure(&f.cfg);
	resumed(&lab_method_eager);
	f.cfg.run.updates = UPDATES_WAITED;
	codec("int4", 0.9);
	f.cfg.run.overlap_steps = 2;
	f.cfg.run.mix = 0.5;
	resumed(&lab_method_diloco);
}

/* Who misses a round has said nothing: its residual stays. */
static void test_missed_rounds_keep_the_residual(void **state) {
	(void)state;
	struct lab_round round;
	bool part[LAB_MAX_WORKERS];
	int missed = 0;
	codec("topk64", 0.95);
	f.cfg.drop_sync = 0.5;
	struct lab_run *r = lab_fixture_start(&f);
	const size_t n = r->global.cfg.n;
	float *before[4];
	for (int i = 0; i < 4; i++)
		assert_non_null(before[i] = malloc(n * sizeof(float)));
	for (uint64_t t = 0; t < 4; t++) {
		for (int i = 0; i < 4; i++)
			memcpy(before[i], r->participants[i].contribution.residual, n * sizeof(float));
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		averaging_participants(&f.cfg, t, part);
		for (int i = 0; i < 4; i++) {
			const bool same = memcmp(before[i], r->participants[i].contribution.residual, n * sizeof(float)) == 0;
			assert_true(same == !part[i]);
			missed += same;
		}
	}
	assert_true(missed > 0);
	for (int i = 0; i < 4; i++)
		free(before[i]);
	lab_run_free(r);
}

/* With feedback a few values come nearer to what fp32 does than without. */
static void test_feedback_helps(void **state) {
	(void)state;
	double off[2] = {0};
	f.cfg.run.rounds = 12;
	codec("fp32", 0);
	struct lab_run *exact = lab_fixture_finished(&f);
	for (int feedback = 0; feedback < 2; feedback++) {
		codec("topk64", feedback);
		struct lab_run *r = lab_fixture_finished(&f);
		for (size_t i = 0; i < r->global.cfg.n; i++)
			off[feedback] += pow((double)r->global.theta[i] - (double)exact->global.theta[i], 2);
		lab_run_free(r);
	}
	assert_true(off[1] < off[0]);
	lab_run_free(exact);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_sparseloco_that_keeps_everything_is_fedavg),
		TEST(test_sparseloco_is_diloco_with_these_options),
		TEST(test_sparseloco_is_its_equations),
		TEST(test_sparseloco_refuses_what_it_is_not),
		TEST(test_what_a_mean_lost_is_kept),
		TEST(test_owners_that_move_lose_residuals),
		TEST(test_bytes),
		TEST(test_deterministic),
		TEST(test_resumed_is_straight),
		TEST(test_missed_rounds_keep_the_residual),
		TEST(test_feedback_helps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
