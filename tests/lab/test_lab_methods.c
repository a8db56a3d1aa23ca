/* Identities of the methods beside DiLoCo, on replicas with AdamW on text: what each is at the ends
 * of its range. */
#include "lab/methods/averaging.h"
#include "lab/methods/methods.h"
#include "lab/methods/preset.h"
#include "tests/lab/lab_fixture.h"
#include "train/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct lab_fixture f;
static size_t n;

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	f.cfg.run.codec = CODEC_fp32;
	return 0;
}

static int teardown(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

static void method(const struct lab_method *m, double mix) {
	f.cfg.method = m;
	f.cfg.run.mix = mix;
	method_configure(&f.cfg);
}

static float *copy(const float *theta) {
	float *out = malloc(n * sizeof *out);
	assert_non_null(out);
	memcpy(out, theta, n * sizeof *out);
	return out;
}

static struct lab_run *finished(void) {
	struct lab_run *r = lab_fixture_finished(&f);
	n = replica_n_params(r->replicas[0]);
	return r;
}

static void test_papa_that_keeps_nothing_is_fedavg(void **state) {
	(void)state;
	lab_fixture_outer(&f, "average", 1, 0);
	struct rv_hash fedavg = lab_fixture_result(&f);
	method(&lab_method_papa, 0);
	struct rv_hash papa = lab_fixture_result(&f);
	assert_hashes_equal(fedavg, papa);
	method(&lab_method_papa, 0.5);
	papa = lab_fixture_result(&f);
	assert_hashes_not_equal(fedavg, papa);
}

/* Worker 0 of the run that is configured is a worker alone: the same shard, and nobody ever moves
 * it. */
static void assert_left_alone(void) {
	struct lab_run *together = finished();
	f.cfg.workers = 1;
	f.cfg.method = &lab_method_ddp;
	struct lab_run *alone = finished();
	assert_memory_equal(replica_theta(together->replicas[0]), replica_theta(alone->replicas[0]), n * sizeof(float));
	lab_run_free(together);
	lab_run_free(alone);
}

static void left_alone(const struct lab_method *m, double mix) {
	f.cfg.workers = 4;
	method(m, mix);
	assert_left_alone();
}

static void test_papa_that_keeps_all_leaves_replicas_alone(void **state) {
	(void)state;
	left_alone(&lab_method_papa, 1);
}

static void test_easgd_without_elasticity_leaves_all_alone(void **state) {
	(void)state;
	left_alone(&lab_method_easgd, 1);
	f.cfg.workers = 4;
	method(&lab_method_easgd, 1);
	struct lab_run *r = lab_fixture_start(&f);
	float *centre = copy(r->global.theta);
	lab_fixture_finish(r);
	assert_memory_equal(centre, r->global.theta, n * sizeof *centre);
	free(centre);
	lab_run_free(r);
}

/* One round, against the two equations written out in double. */
static void test_easgd_is_its_equations(void **state) {
	(void)state;
	const double rho = 0.2;
	struct lab_round round;
	f.cfg.run.rounds = 1;
	method(&lab_method_papa, 1);
	struct lab_run *free_ones = finished(); /* replicas that nobody pulls */
	method(&lab_method_easgd, 1 - rho);
	struct lab_run *r = lab_fixture_start(&f);
	float *centre = copy(r->global.theta);
	assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
	for (size_t i = 0; i < n; i++) {
		double pull = 0;
		for (int k = 0; k < 4; k++) {
			double before = (double)replica_theta(free_ones->replicas[k])[i], c = (double)centre[i];
			pull += rho * (before - c);
			assert_true(fabs((double)replica_theta(r->replicas[k])[i] - (before - rho * (before - c))) < 1e-6);
		}
		assert_true(fabs((double)r->global.theta[i] - ((double)centre[i] + pull)) < 1e-6);
	}
	free(centre);
	lab_run_free(r);
	lab_run_free(free_ones);
}

/* Its own share is then the whole step that is under way. */
static void test_eager_of_one_worker_is_diloco(void **state) {
	(void)state;
	f.cfg.workers = 1;
	lab_fixture_outer(&f, "nesterov", 0.7, 0.9);
	struct lab_run *diloco = finished();
	method(&lab_method_eager, 0);
	assert_true(f.cfg.run.eager_share == 1);
	struct lab_run *eager = finished();
	assert_memory_equal(diloco->global.theta, eager->global.theta, n * sizeof(float));
	assert_memory_equal(diloco->global.state[0], eager->global.state[0], n * sizeof(float));
	lab_run_free(diloco);
	lab_run_free(eager);
}

/* No round comes after it that its exchange could hide behind. */
static void test_the_last_late_step_is_waited_for(void **state) {
	(void)state;
	f.cfg.run.rounds = 1;
	struct rv_hash diloco = lab_fixture_result(&f);
	method(&lab_method_delayed, 0);
	struct rv_hash delayed = lab_fixture_result(&f);
	method(&lab_method_eager, 0);
	struct rv_hash eager = lab_fixture_result(&f);
	assert_hashes_equal(diloco, delayed);
	assert_hashes_equal(diloco, eager);
}

/* After one round nothing shared has moved, and each worker has its own share of the step; after
 * two it is made. */
static void late_rounds(const struct lab_method *m) {
	struct lab_round round;
	lab_fixture_outer(&f, "sgd", 1, 0);
	f.cfg.run.rounds = 3;
	struct lab_run *diloco = lab_fixture_start(&f);
	method(m, 0);
	struct lab_run *late = lab_fixture_start(&f);
	n = replica_n_params(late->replicas[0]);
	float *theta0 = copy(late->global.theta);
	assert_int_equal(lab_run_round(diloco, &round, NULL), RV_OK);
	assert_int_equal(lab_run_round(late, &round, NULL), RV_OK);
	assert_memory_equal(late->global.theta, theta0, n * sizeof *theta0);
	for (int k = 0; k < 4; k++) /* as the first step of the next round does it */
		participant_give_away(&late->participants[k], &late->global);
	for (size_t i = 0; i < n; i++) {
		double ahead = 0, step = (double)diloco->global.theta[i] - (double)theta0[i];
		for (int k = 0; k < 4; k++) {
			assert_true(late->participants[k].eager.start[i] == replica_theta(late->replicas[k])[i]);
			ahead += (double)late->participants[k].eager.start[i] - (double)theta0[i];
		}
		assert_true(fabs(ahead - (m == &lab_method_eager ? step : 0)) < 1e-6);
	}
	assert_int_equal(lab_run_round(late, &round, NULL), RV_OK);
	assert_memory_equal(late->global.theta, diloco->global.theta, n * sizeof(float));
	assert_true(farthest(theta0, diloco->global.theta, n) > 1e-4);
	free(theta0);
	lab_run_free(diloco);
	lab_run_free(late);
}

static void test_eager_rounds(void **state) {
	(void)state;
	late_rounds(&lab_method_eager);
}

static void test_delayed_rounds(void **state) {
	(void)state;
	late_rounds(&lab_method_delayed);
}

/* The name is a setting of DiLoCo's round. */
static void test_eager_by_name_and_by_setting(void **state) {
	(void)state;
	struct rv_hash diloco = lab_fixture_result(&f);
	method(&lab_method_eager, 0);
	struct rv_hash by_name = lab_fixture_result(&f);
	f.cfg.method = &lab_method_diloco;
	struct rv_hash by_setting = lab_fixture_result(&f);
	method(&lab_method_delayed, 0);
	struct rv_hash delayed = lab_fixture_result(&f);
	assert_hashes_equal(by_name, by_setting);
	assert_hashes_not_equal(by_name, delayed);
	assert_hashes_not_equal(by_name, diloco);
}

/* ---- workers that miss a round ---- */

static void test_participants(void **state) {
	(void)state;
	bool first[LAB_MAX_WORKERS], again[LAB_MAX_WORKERS];
	int taken = 0;
	f.cfg.workers = 8;
	f.cfg.drop_sync = 0.25;
	for (uint64_t round = 0; round < 500; round++) {
		int count = averaging_participants(&f.cfg, round, first);
		assert_int_equal(averaging_participants(&f.cfg, round, again), count);
		assert_memory_equal(first, again, 8 * sizeof *first);
		taken += count;
	}
	assert_in_range(taken, 2800, 3200); /* of 4000, expected 3000 with sigma 27 */
	f.cfg.drop_sync = 1;
	for (uint64_t round = 0; round < 20; round++)
		assert_int_equal(averaging_participants(&f.cfg, round, first), 1);
	f.cfg.drop_sync = 0;
	assert_int_equal(averaging_participants(&f.cfg, 3, first), 8);
}

/* The mean over those who are there is the run in which the others never were. */
static void test_survivors_mean(void **state) {
	(void)state;
	bool takes_part[LAB_MAX_WORKERS] = {true, false, true, false};
	struct lab_round round = {0};
	struct lab_run *r = lab_fixture_start(&f);
	n = replica_n_params(r->replicas[0]);
	assert_int_equal(averaging_train_to(r, 3, NULL), RV_OK);
	assert_int_equal(averaging_encode(r, &round, NULL), RV_OK);
	assert_int_equal(averaging_reduce(r, takes_part, NULL), RV_OK);
	const float *a = replica_theta(r->replicas[0]), *b = replica_theta(r->replicas[2]);
	float *mean = malloc(r->global.cfg.chunks.chunk_elems * sizeof *mean);
	assert_non_null(mean);
	const struct chunking *c = &r->global.cfg.chunks;
	for (uint32_t k = 0; k < c->n_chunks; k++) {
		size_t at = k * c->chunk_elems;
		assert_int_equal(r->global.cfg.codec->decode(r->global.cfg.codec,
													 r->reduced + chunking_offset_bytes(c, r->global.cfg.codec, k),
													 chunking_len(c, k), mean, NULL),
						 RV_OK);
		for (size_t i = 0; i < chunking_len(c, k); i++) {
			double want = (double)r->global.theta[at + i] - ((double)a[at + i] + (double)b[at + i]) / 2;
			assert_true(fabs((double)mean[i] - want) < 1e-6);
		}
	}
	free(mean);
	lab_run_free(r);
}

static void test_late_workers_keep_or_discard(void **state) {
	(void)state;
	struct rv_hash result[2];
	f.cfg.drop_sync = 0.5;
	f.cfg.run.weight_by_tokens = true;
	for (int keep = 0; keep < 2; keep++) {
		f.cfg.run.late = keep ? RUN_LATE_KEEP : RUN_LATE_DISCARD;
		struct lab_run *r = lab_fixture_start(&f);
		struct lab_round round;
		bool takes_part[LAB_MAX_WORKERS];
		int missed = 0;
		for (uint64_t at = 0; at < 4; at++) {
			(void)averaging_participants(&f.cfg, at, takes_part);
			assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
			for (int i = 0; i < 4; i++) {
				bool is_theta =
					memcmp(replica_theta(r->replicas[i]), r->global.theta, r->global.cfg.n * sizeof(float)) == 0;
				assert_int_equal(is_theta, takes_part[i] || !keep);
				assert_int_equal(r->participants[i].tokens > 0, keep && !takes_part[i]);
				missed += !takes_part[i];
			}
		}
		assert_true(missed > 0);
		result[keep] = r->cfg.method->state_hash(r);
		lab_run_free(r);
	}
	assert_hashes_not_equal(result[0], result[1]);
}

/* ---- fragments ---- */

static void fragments(int64_t count, int64_t overlap_steps, double mix) {
	f.cfg.run.n_layer = 3;
	f.cfg.run.chunk_elems = 256;
	f.cfg.run.fragments = count;
	f.cfg.run.overlap_steps = overlap_steps;
	f.cfg.run.mix = mix;
	f.cfg.run.steps_per_round = 2;
	f.cfg.run.rounds = 9;
}

/* A worker alone whose every fragment is adopted as it is, at once, trains plainly, however it is
 * cut. */
static void test_fragments_of_one_worker_are_plain_training(void **state) {
	(void)state;
	f.cfg.workers = 1;
	f.cfg.run.eps = 1e-3;
	lab_fixture_outer(&f, "average", 1, 0);
	fragments(1, 0, 0);
	f.cfg.method = &lab_method_ddp;
	struct lab_run *plain = finished();
	f.cfg.method = &lab_method_diloco;
	for (int64_t count = 1; count <= 4; count++) {
		fragments(count, 0, 0);
		struct lab_run *r = finished();
		assert_true(farthest(replica_theta(plain->replicas[0]), replica_theta(r->replicas[0]), n) < 1e-6);
		lab_run_free(r);
	}
	lab_run_free(plain);
}

/* What was exchanged last is the same everywhere, the rest is each replica's own. */
static void test_a_round_exchanges_its_fragment(void **state) {
	(void)state;
	struct lab_round round;
	fragments(3, 0, 0);
	struct lab_run *r = lab_fixture_start(&f);
	n = replica_n_params(r->replicas[0]);
	float *before = copy(r->global.theta);
	for (uint64_t at = 0; at < 4; at++) {
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		const struct chunking c = global_round_chunks(&r->global.cfg, at);
		uint8_t *exchanged = calloc(n, 1);
		assert_non_null(exchanged);
		for (uint32_t i = 0; i < c.n_chunks; i++)
			memset(exchanged + global_round_chunk_at(&r->global.cfg, at, i), 1, chunking_len(&c, i));
		int own = 0;
		for (size_t i = 0; i < n; i++) {
			bool same = replica_theta(r->replicas[0])[i] == r->global.theta[i];
			assert_true(exchanged[i] ? same : r->global.theta[i] == before[i]);
			own += !exchanged[i] && !same;
		}
		assert_true(own > 0);
		assert_true(round.bytes < metrics_allreduce_bytes(n * sizeof(float), 4));
		memcpy(before, r->global.theta, n * sizeof *before);
		free(exchanged);
	}
	free(before);
	lab_run_free(r);
}

static void test_fragments_that_keep_all_leave_replicas_alone(void **state) {
	(void)state;
	fragments(4, 1, 1);
	assert_left_alone();
}

/* Identical workers stay one worker, bit for bit, with fragments, overlap and mixing. */
static void test_identical_workers_stream_as_one(void **state) {
	(void)state;
	f.cfg.run.data_shards = 1;
	lab_fixture_outer(&f, "nesterov", 0.7, 0.9);
	fragments(4, 1, 0.25);
	f.cfg.workers = 1;
	struct rv_hash one = lab_fixture_result(&f);
	f.cfg.workers = 4;
	struct rv_hash four = lab_fixture_result(&f);
	assert_hashes_equal(one, four);
}

/* While a round's exchange is under way the shared state is that of the round before; after the
 * last round it is not. */
static void test_overlap_is_one_round_late_until_the_end(void **state) {
	(void)state;
	struct lab_round round;
	fragments(2, 2, 0);
	struct lab_run *r = lab_fixture_start(&f);
	for (uint64_t at = 0; at < 9; at++) {
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		assert_int_equal(r->global.round, at == 8 ? 9 : at);
	}
	lab_run_free(r);
}

static void test_streaming_is_resumed(void **state) {
	(void)state;
	char path[300];
	struct lab_round round;
	snprintf(path, sizeof path, "%s/checkpoint", f.dir);
	fragments(3, 1, 0.5);
	struct rv_hash straight = lab_fixture_result(&f);
	struct lab_run *r = lab_fixture_start(&f);
	for (int i = 0; i < 4; i++)
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
	assert_int_equal(lab_run_save(r, path, NULL), RV_OK);
	lab_run_free(r);
	r = lab_fixture_start(&f);
	assert_int_equal(lab_run_load(r, path, NULL), RV_OK);
	lab_fixture_finish(r);
	struct rv_hash resumed = r->cfg.method->state_hash(r);
	assert_hashes_equal(straight, resumed);
	lab_run_free(r);
}

static void test_the_registry(void **state) {
	(void)state;
	for (int i = 0; lab_methods[i]; i++)
		assert_ptr_equal(lab_method_find(lab_methods[i]->name), lab_methods[i]);
	assert_null(lab_method_find("diloc"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_papa_that_keeps_nothing_is_fedavg),
		TEST(test_papa_that_keeps_all_leaves_replicas_alone),
		TEST(test_easgd_without_elasticity_leaves_all_alone),
		TEST(test_easgd_is_its_equations),
		TEST(test_eager_of_one_worker_is_diloco),
		TEST(test_the_last_late_step_is_waited_for),
		TEST(test_eager_rounds),
		TEST(test_delayed_rounds),
		TEST(test_eager_by_name_and_by_setting),
		TEST(test_participants),
		TEST(test_survivors_mean),
		TEST(test_late_workers_keep_or_discard),
		TEST(test_fragments_of_one_worker_are_plain_training),
		TEST(test_a_round_exchanges_its_fragment),
		TEST(test_fragments_that_keep_all_leave_replicas_alone),
		TEST(test_identical_workers_stream_as_one),
		TEST(test_overlap_is_one_round_late_until_the_end),
		TEST(test_streaming_is_resumed),
		TEST(test_the_registry),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
