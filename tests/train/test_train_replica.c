/* test_train_replica.c: inner steps: they learn, they are deterministic, accumulation is a larger
 * batch, and a step that diverges changes nothing. */
#include "tests/train/train_fixture.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static float step(struct replica *r) {
	struct step_stats stats;
	assert_ok(replica_step(r, &stats, &et));
	return stats.loss;
}

static double eval(struct replica *r, const float *theta, int batches) {
	double loss = 0;
	assert_ok(replica_eval(r, theta, batches, &loss, &et));
	return loss;
}

static void assert_same_theta(struct replica *a, struct replica *b) {
	assert_memory_equal(replica_theta(a), replica_theta(b), replica_n_params(a) * sizeof(float));
}

static void test_theta0_follows_the_seed_alone(void **state) {
	(void)state;
	struct fixture_run f;
	fixture_run_init(&f, NULL, "ref");
	char hex[65], again[65], other[65];
	fixture_theta_hash(f.replica, hex);
	assert_string_equal(hex, "4bf12cb4563ae3387eb8d9cea43e8a316bf83242aff2642c5f2a20ea6105f4a5");
	struct run_config cfg = f.cfg;
	cfg.lr = 1;
	cfg.batch = 1;
	struct replica *same = fixture_replica(&f, &cfg);
	fixture_theta_hash(same, again);
	assert_string_equal(hex, again);
	cfg.seed++;
	struct replica *differs = fixture_replica(&f, &cfg);
	fixture_theta_hash(differs, other);
	assert_string_not_equal(hex, other);
	replica_free(same);
	replica_free(differs);
	fixture_run_release(&f);
}

static void test_training_lowers_the_heldout_loss(void **state) {
	(void)state;
	for (int i = 0; backend_registry[i]; i++) {
		struct fixture_run f;
		fixture_run_init(&f, NULL, backend_registry[i]->name);
		double before = eval(f.replica, NULL, 4);
		assert_true(fabs(before - log(256)) < 0.5); /* a fresh model knows nothing */
		for (int s = 0; s < 32; s++)
			step(f.replica);
		assert_true(eval(f.replica, NULL, 4) < before - 2);
		fixture_run_release(&f);
	}
}

static void test_statistics_of_a_step(void **state) {
	(void)state;
	struct fixture_run f;
	fixture_run_init(&f, NULL, "ref");
	struct step_stats stats;
	assert_ok(replica_step(f.replica, &stats, &et));
	assert_int_equal(stats.tokens, f.cfg.batch * f.cfg.context);
	assert_float_equal(stats.lr, (float)(f.cfg.lr / 2), 1e-9); /* first of two warm-up steps */
	assert_true(stats.grad_norm > 0 && isfinite(stats.grad_norm));
	assert_true(fabs(stats.loss - log(256)) < 0.5);
	assert_int_equal(replica_global_step(f.replica), 1);
	fixture_run_release(&f);
}

static void test_equal_replicas_stay_equal(void **state) {
	(void)state;
	for (int i = 0; backend_registry[i]; i++) {
		struct fixture_run f;
		fixture_run_init(&f, NULL, backend_registry[i]->name);
		struct replica *twin = fixture_replica(&f, &f.cfg);
		for (int s = 0; s < 5; s++)
			assert_true(step(f.replica) == step(twin));
		assert_same_theta(f.replica, twin);
		replica_free(twin);
		fixture_run_release(&f);
	}
}

/* A step that is abandoned never was: the same one follows, and the same state. */
static void test_an_abandoned_step_leaves_nothing(void **state) {
	(void)state;
	for (int i = 0; backend_registry[i]; i++) {
		struct fixture_run f;
		struct step_stats stats;
		struct rv_errtext why = {0};
		atomic_bool abandons = false;
		fixture_run_init(&f, NULL, backend_registry[i]->name);
		struct replica *twin = fixture_replica(&f, &f.cfg);
		replica_abandon_with(f.replica, &abandons);
		for (int s = 0; s < 3; s++) {
			atomic_store(&abandons, true);
			assert_int_equal(replica_step(f.replica, &stats, &why), RV_E_CANCELLED);
			assert_int_equal(replica_global_step(f.replica), s);
			atomic_store(&abandons, false);
			assert_true(step(f.replica) == step(twin));
		}
		assert_same_theta(f.replica, twin);
		replica_free(twin);
		fixture_run_release(&f);
	}
}

/* Two micro-batches of 2 read the same sequences as one of 4; only the order of summation
 * differs. */
static void test_accumulation_is_a_larger_batch(void **state) {
	(void)state;
	struct run_config large = fixture_config();
	large.batch = 4;
	struct fixture_run f;
	fixture_run_init(&f, &large, "ref");
	struct run_config accumulating = large;
	accumulating.batch = 2;
	accumulating.grad_accum = 2;
	struct replica *r = fixture_replica(&f, &accumulating);
	for (int s = 0; s < 4; s++)
		assert_float_equal(step(f.replica), step(r), 1e-5);
	const float *a = replica_theta(f.replica), *b = replica_theta(r);
	for (size_t i = 0; i < replica_n_params(r); i++)
		assert_true(fabsf(a[i] - b[i]) < 1e-3f); /* Adam amplifies an ulp where a gradient is near zero */
	replica_free(r);
	fixture_run_release(&f);
}

/* n data-parallel workers: the mean over their shards. With one shard it is the plain step, bit for
 * bit; a shard given twice has the gradient of itself. */
static void test_a_step_over_several_shards(void **state) {
	(void)state;
	struct fixture_run f;
	fixture_run_init(&f, NULL, "ref");
	struct replica *own = fixture_replica(&f, &f.cfg), *both = fixture_replica(&f, &f.cfg);
	static const uint32_t zero = 0, zero_twice[] = {0, 0}, all[] = {0, 1};
	struct step_stats plain, stats;
	assert_ok(replica_step(f.replica, &plain, &et));
	assert_ok(replica_step_shards(own, &zero, 1, &stats, &et));
	assert_same_theta(f.replica, own);
	assert_true(plain.loss == stats.loss);
	assert_ok(replica_step_shards(both, zero_twice, 2, &stats, &et));
	assert_float_equal(stats.loss, plain.loss, 1e-6);
	assert_float_equal(stats.grad_norm, plain.grad_norm, 1e-5);
	assert_int_equal(stats.tokens, 2 * plain.tokens);
	assert_ok(replica_step_shards(both, all, 2, &stats, &et));
	assert_true(stats.loss != step(own));
	replica_free(own);
	replica_free(both);
	fixture_run_release(&f);
}

static void test_learning_rate_follows_the_global_step(void **state) {
	(void)state;
	struct fixture_run f;
	fixture_run_init(&f, NULL, "ref");
	struct step_stats stats;
	uint64_t last = (uint64_t)(f.cfg.steps_per_round * f.cfg.rounds) - 1;
	replica_set_global_step(f.replica, last); /* a joiner enters late: its own Adam state starts fresh */
	assert_ok(replica_step(f.replica, &stats, &et));
	assert_float_equal(stats.lr, (float)(f.cfg.lr * f.cfg.min_lr_ratio), 1e-9);
	assert_int_equal(replica_global_step(f.replica), last + 1);
	fixture_run_release(&f);
}

static void test_setting_and_shifting_theta(void **state) {
	(void)state;
	struct fixture_run f;
	fixture_run_init(&f, NULL, "ref");
	size_t n = replica_n_params(f.replica);
	float *from = fixture_copy_theta(f.replica);
	step(f.replica);
	float *local = fixture_copy_theta(f.replica), *to = fixture_copy_theta(f.replica);
	for (size_t i = 0; i < n; i++)
		to[i] = from[i] + (float)(i % 7);
	replica_lay_by(f.replica, from);
	for (size_t at = 0, k; at < n; at += k) {
		float laid_by[REPLICA_SHIFT_MAX];
		k = n - at < REPLICA_SHIFT_MAX ? n - at : REPLICA_SHIFT_MAX;
		replica_laid_by(f.replica, at, k, laid_by);
		assert_memory_equal(laid_by, from + at, k * sizeof *from);
		replica_shift_part(f.replica, at, k, from + at, to + at);
	}
	for (size_t i = 0; i < n; i++)
		assert_true(replica_theta(f.replica)[i] == local[i] + (to[i] - from[i]));
	replica_set_theta(f.replica, from);
	assert_memory_equal(replica_theta(f.replica), from, n * sizeof *from);
	free(from);
	free(local);
	free(to);
	fixture_run_release(&f);
}

/* Rounds of H steps between which the outer loop puts back what it took (one worker, outer SGD with
 * rate 1) are training straight through: moments, schedule and data go on where they were. */
static void test_rounds_that_average_with_nobody_are_plain_training(void **state) {
	(void)state;
	struct fixture_run f;
	fixture_run_init(&f, NULL, "ref");
	struct replica *plain = fixture_replica(&f, &f.cfg);
	uint64_t h = (uint64_t)f.cfg.steps_per_round;
	for (uint64_t round = 0; round < 3; round++) {
		replica_set_global_step(f.replica, round * h);
		for (uint64_t s = 0; s < h; s++)
			assert_true(step(f.replica) == step(plain));
		float *taken = fixture_copy_theta(f.replica);
		replica_set_theta(f.replica, taken);
		free(taken);
	}
	assert_same_theta(f.replica, plain);
	replica_free(plain);
	fixture_run_release(&f);
}

struct trainer {
	struct replica *replica;
	int steps;
};

static void *train_on_a_thread(void *arg) {
	struct trainer *t = arg;
	struct step_stats stats;
	while (t->steps > 0 && replica_step(t->replica, &stats, NULL) == RV_OK)
		t->steps--;
	return NULL;
}

/* Replicas on threads of their own, each with its backend, over one dataset: as if one after the
 * other. */
static void test_replicas_on_threads_do_not_disturb_each_other(void **state) {
	(void)state;
	enum { THREADS = 3, STEPS = 4 };
	struct fixture_run f;
	fixture_run_init(&f, NULL, backend_registry[0]->name);
	struct backend_options opt = {.threads = 1, .compute = DTYPE_F32, .isa = "auto"};
	struct backend *be[THREADS];
	struct trainer trainers[THREADS];
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(backend_open(backend_registry[0]->name, &opt, &be[i], NULL), RV_OK);
		trainers[i].steps = STEPS;
		assert_int_equal(replica_new(&f.cfg, f.data, &(struct replica_options){.shard = 0, .n_shards = 2}, be[i],
									 &trainers[i].replica, NULL),
						 RV_OK);
		assert_int_equal(pthread_create(&threads[i], NULL, train_on_a_thread, &trainers[i]), 0);
	}
	for (int s = 0; s < STEPS; s++)
		step(f.replica);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(trainers[i].steps, 0);
		assert_same_theta(trainers[i].replica, f.replica);
		replica_free(trainers[i].replica);
		backend_close(be[i]);
	}
	fixture_run_release(&f);
}

/* Evaluating other weights gives what a replica with those weights gives, and disturbs nothing. */
static void test_eval_of_given_weights_leaves_the_replica_alone(void **state) {
	(void)state;
	struct fixture_run f;
	fixture_run_init(&f, NULL, "ref");
	struct replica *twin = fixture_replica(&f, &f.cfg);
	float *theta0 = fixture_copy_theta(f.replica);
	double loss0 = eval(f.replica, NULL, 3);
	step(f.replica);
	step(twin);
	assert_true(eval(f.replica, theta0, 3) == loss0);
	assert_true(eval(f.replica, NULL, 3) != loss0);
	step(f.replica);
	step(twin);
	assert_same_theta(f.replica, twin);
	/* More batches than there are: all of the split, once. */
	assert_true(eval(f.replica, NULL, 1 << 20) == eval(f.replica, NULL, 0));
	free(theta0);
	replica_free(twin);
	fixture_run_release(&f);
}

/* A refused batch would be refused for ever if it were read again. */
static void test_a_diverged_step_goes_on_to_other_data(void **state) {
	(void)state;
	struct fixture_run f;
	fixture_run_init(&f, NULL, "ref");
	struct replica *twin = fixture_replica(&f, &f.cfg);
	struct step_stats stats, want;
	float *good = fixture_copy_theta(f.replica), *broken = fixture_copy_theta(f.replica);
	broken[3] = NAN;
	replica_set_theta(f.replica, broken);
	assert_int_equal(replica_step(f.replica, &stats, NULL), RV_E_RANGE);
	replica_set_theta(f.replica, good);
	assert_int_equal(replica_step(f.replica, &stats, NULL), RV_OK);
	assert_int_equal(replica_step(twin, &want, NULL), RV_OK);
	replica_set_theta(twin, good);
	float first_loss = want.loss;
	assert_int_equal(replica_step(twin, &want, NULL), RV_OK);
	assert_true(stats.loss == want.loss);
	assert_true(stats.loss != first_loss);
	free(good);
	free(broken);
	replica_free(twin);
	fixture_run_release(&f);
}

/* Training tries so many batches, and no more, and leaves the weights. */
static void test_refused_steps_are_tried_over_on_other_data(void **state) {
	(void)state;
	struct fixture_run f;
	fixture_run_init(&f, NULL, "ref");
	struct replica *twin = fixture_replica(&f, &f.cfg);
	struct step_stats stats, want;
	struct rv_errtext et = {0};
	float *good = fixture_copy_theta(f.replica), *broken = fixture_copy_theta(f.replica);
	broken[3] = NAN;
	replica_set_theta(f.replica, broken);
	replica_set_theta(twin, broken);
	assert_fault(replica_step_over(f.replica, NULL, 0, &stats, &et), RV_E_RANGE, &et, "20 batches in a row");
	assert_non_null(strstr(et.text, "the last: training diverged at inner step 0: loss not a number"));
	for (int i = 0; i < REPLICA_REFUSED_MAX; i++)
		assert_int_equal(replica_step(twin, &want, NULL), RV_E_RANGE);
	replica_set_theta(f.replica, good);
	replica_set_theta(twin, good);
	assert_int_equal(replica_step_over(f.replica, (const uint32_t[]){0}, 1, &stats, NULL), RV_OK);
	assert_int_equal(replica_step(twin, &want, NULL), RV_OK);
	assert_true(stats.loss == want.loss);
	assert_same_theta(f.replica, twin);
	free(good);
	free(broken);
	replica_free(twin);
	fixture_run_release(&f);
}

static void test_an_evaluation_can_be_stopped(void **state) {
	(void)state;
	struct fixture_run f;
	fixture_run_init(&f, NULL, "ref");
	struct rv_errtext et = {0};
	atomic_bool stop = true;
	double loss;
	replica_watch(f.replica, &stop);
	assert_fault(replica_eval(f.replica, NULL, 0, &loss, &et), RV_E_CANCELLED, &et, "stopped");
	atomic_store(&stop, false);
	assert_int_equal(replica_eval(f.replica, NULL, 0, &loss, &et), RV_OK);
	fixture_run_release(&f);
}

static void test_a_diverged_step_changes_nothing(void **state) {
	(void)state;
	struct fixture_run f;
	fixture_run_init(&f, NULL, "ref");
	struct step_stats stats;
	struct rv_errtext et = {0};
	float *broken = fixture_copy_theta(f.replica), *good = fixture_copy_theta(f.replica);
	broken[3] = NAN;
	replica_set_theta(f.replica, broken);
	size_t state_bytes = replica_state_bytes(f.replica);
	uint8_t *before = malloc(state_bytes), *after = malloc(state_bytes);
	assert_true(before && after);
	replica_save(f.replica, before);
	assert_fault(replica_step(f.replica, &stats, &et), RV_E_RANGE, &et, "inner step 0");
	replica_save(f.replica, after);
	enum { CURSOR_AT = 48, CURSOR_END = CURSOR_AT + 8 }; /* the only thing that moves */
	assert_memory_equal(before, after, CURSOR_AT);
	assert_memory_equal(before + CURSOR_END, after + CURSOR_END, state_bytes - CURSOR_END - RV_HASH_BYTES);
	double loss;
	assert_fault(replica_eval(f.replica, NULL, 1, &loss, &et), RV_E_RANGE, &et, "held-out loss");
	replica_set_theta(f.replica, good);
	step(f.replica);
	free(before);
	free(after);
	free(broken);
	free(good);
	fixture_run_release(&f);
}

static void test_unusable_configurations_are_refused(void **state) {
	(void)state;
	struct fixture_run f;
	fixture_run_init(&f, NULL, "ref");
	struct rv_errtext et = {0};
	struct replica *r;
	struct run_config cfg = f.cfg;
	cfg.n_head = 3;
	assert_fault(replica_new(&cfg, f.data, &(struct replica_options){.shard = 0, .n_shards = 2}, f.be, &r, &et),
				 RV_E_RANGE, &et, "n-head");
	fixture_run_release(&f);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_theta0_follows_the_seed_alone),
		cmocka_unit_test(test_training_lowers_the_heldout_loss),
		cmocka_unit_test(test_statistics_of_a_step),
		cmocka_unit_test(test_equal_replicas_stay_equal),
		cmocka_unit_test(test_an_abandoned_step_leaves_nothing),
		cmocka_unit_test(test_accumulation_is_a_larger_batch),
		cmocka_unit_test(test_a_step_over_several_shards),
		cmocka_unit_test(test_learning_rate_follows_the_global_step),
		cmocka_unit_test(test_setting_and_shifting_theta),
		cmocka_unit_test(test_rounds_that_average_with_nobody_are_plain_training),
		cmocka_unit_test(test_replicas_on_threads_do_not_disturb_each_other),
		cmocka_unit_test(test_eval_of_given_weights_leaves_the_replica_alone),
		cmocka_unit_test(test_a_diverged_step_changes_nothing),
		cmocka_unit_test(test_a_diverged_step_goes_on_to_other_data),
		cmocka_unit_test(test_refused_steps_are_tried_over_on_other_data),
		cmocka_unit_test(test_an_evaluation_can_be_stopped),
		cmocka_unit_test(test_unusable_configurations_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
