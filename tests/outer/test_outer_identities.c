/* Identities of the method on quadratics: workers minimise lambda_i/2 |x - c_i|^2 with plain SGD, H
 * steps at a time; the outer loop is the real one (encode, reduce_mean, apply). Each identity has
 * its source or its one-line reason. */
#include "outer/global.h"
#include "tests/common/check.h"
#include "tests/outer/vectors.h"

#include <stdlib.h>
#include <string.h>

enum { N = 700, CHUNK = 256, MAX_WORKERS = 8, BYTES_CAP = 4 * N + 64 };

struct harness {
	int workers, steps_per_round; /* k, H */
	float rate;                   /* eta of the inner SGD */
	float curvature[MAX_WORKERS]; /* lambda_i */
	float centre[MAX_WORKERS][N]; /* c_i */
	struct global_state g;
	float local[MAX_WORKERS][N];
	uint8_t code[MAX_WORKERS][BYTES_CAP], reduced[BYTES_CAP];
};

static struct harness *new_harness(int workers, int steps, const struct codec *c, const struct outer_optimizer *o,
								   struct outer_params p) {
	struct harness *h = calloc(1, sizeof *h);
	assert_non_null(h);
	h->workers = workers;
	h->steps_per_round = steps;
	h->rate = 0.05f;
	struct rv_rng r = rv_rng_of(1, 1);
	for (int i = 0; i < MAX_WORKERS; i++) {
		h->curvature[i] = 0.5f + (float)i;
		for (int j = 0; j < N; j++)
			h->centre[i][j] = (float)rv_rng_normal(&r);
	}
	float theta0[N];
	for (int j = 0; j < N; j++)
		theta0[j] = (float)rv_rng_normal(&r);
	struct global_config cfg = {.n = N, .chunks = chunking_of(N, CHUNK), .codec = c, .optimizer = o, .params = p};
	assert_int_equal(global_init(&h->g, &cfg, theta0, NULL), RV_OK);
	return h;
}

static void free_harness(struct harness *h) {
	global_release(&h->g);
	free(h);
}

static void inner_steps(const struct harness *h, int worker, float *x) {
	for (int s = 0; s < h->steps_per_round; s++)
		for (int j = 0; j < N; j++)
			x[j] -= h->rate * h->curvature[worker] * (x[j] - h->centre[worker][j]);
}

/* One round over the workers whose bit is set in `participants`. */
static void round_of(struct harness *h, unsigned participants) {
	const struct chunking *c = &h->g.cfg.chunks;
	const struct merge_rule rule = global_merge(&h->g.cfg);
	for (int i = 0; i < h->workers; i++) {
		memcpy(h->local[i], h->g.theta, sizeof h->local[i]);
		inner_steps(h, i, h->local[i]);
		assert_int_equal(global_encode_delta(&h->g, h->local[i], h->code[i], NULL), RV_OK);
	}
	for (uint32_t k = 0; k < c->n_chunks; k++) {
		const uint8_t *in[MAX_WORKERS];
		const uint32_t weights[MAX_WORKERS] = {1, 1, 1, 1, 1, 1, 1, 1};
		float scratch[CHUNK];
		int n_in = 0;
		size_t at = chunking_offset_bytes(c, h->g.cfg.codec, k);
		for (int i = 0; i < h->workers; i++)
			if (participants >> i & 1)
				in[n_in++] = h->code[i] + at;
		assert_int_equal(
			merge_chunk(&rule, in, weights, n_in, chunking_len(c, k), scratch, NULL, h->reduced + at, NULL, NULL),
			RV_OK);
	}
	struct rv_hash digest = global_digest(&h->g, h->g.round, h->reduced);
	assert_int_equal(global_apply(&h->g, h->reduced, &digest, NULL), RV_OK);
}

static void rounds(struct harness *h, int n) {
	for (int r = 0; r < n; r++)
		round_of(h, ~0u);
}

/* The mean over the workers of the gradient at x. */
static float mean_gradient(const struct harness *h, float x, int j) {
	double sum = 0;
	for (int i = 0; i < h->workers; i++)
		sum += (double)h->curvature[i] * ((double)x - (double)h->centre[i][j]);
	return (float)(sum / h->workers);
}

static void assert_close(const float *got, const float *want, double tolerance) {
	for (int j = 0; j < N; j++)
		assert_true(fabs((double)got[j] - (double)want[j]) <= tolerance);
}

/* H = 1, outer SGD(1): each worker moves by -eta g_i, the mean of that is a data-parallel step. */
static void test_h1_is_data_parallel_sgd(void **state) {
	(void)state;
	struct harness *h = new_harness(4, 1, &codec_fp32, &outer_sgd, (struct outer_params){.lr = 1});
	float x[N];
	memcpy(x, h->g.theta, sizeof x);
	for (int r = 0; r < 20; r++) {
		rounds(h, 1);
		for (int j = 0; j < N; j++)
			x[j] -= h->rate * mean_gradient(h, x[j], j);
	}
	assert_close(h->g.theta, x, 4e-6);
	free_harness(h);
}

/* H = 1, outer Nesterov(alpha, mu): torch.optim.SGD(lr = alpha eta, momentum = mu,
 * nesterov=True). */
static void test_h1_nesterov_is_torch_sgd(void **state) {
	(void)state;
	struct harness *h =
		new_harness(4, 1, &codec_fp32, &outer_nesterov, (struct outer_params){.lr = 0.7f, .momentum = 0.9f});
	double x[N], b[N] = {0};
	for (int j = 0; j < N; j++)
		x[j] = (double)h->g.theta[j];
	for (int r = 0; r < 20; r++) {
		rounds(h, 1);
		for (int j = 0; j < N; j++) {
			double gradient = (double)mean_gradient(h, (float)x[j], j);
			b[j] = 0.9 * b[j] + gradient;
			x[j] -= 0.7 * (double)h->rate * (gradient + 0.9 * b[j]);
		}
	}
	for (int j = 0; j < N; j++)
		assert_true(fabs(x[j] - (double)h->g.theta[j]) < 3e-5);
	free_harness(h);
}

/* One worker, outer SGD(1): plain training for any H; only theta - (theta - local) rounds. */
static void test_one_worker_is_plain_training(void **state) {
	(void)state;
	for (int steps = 1; steps <= 16; steps *= 4) {
		struct harness *h = new_harness(1, steps, &codec_fp32, &outer_sgd, (struct outer_params){.lr = 1});
		float x[N];
		memcpy(x, h->g.theta, sizeof x);
		for (int r = 0; r < 32 / steps; r++) {
			rounds(h, 1);
			inner_steps(h, 0, x);
		}
		assert_close(h->g.theta, x, 1e-6);
		free_harness(h);
	}
}

/* Outer SGD(1), and `average`: theta becomes the mean of the workers' parameters (FedAvg). */
static void test_parameter_mean(void **state) {
	(void)state;
	struct harness *a = new_harness(4, 5, &codec_fp32, &outer_sgd, (struct outer_params){.lr = 1});
	struct harness *b = new_harness(4, 5, &codec_fp32, &outer_average, (struct outer_params){0});
	rounds(a, 3);
	rounds(b, 3);
	assert_memory_equal(a->g.theta, b->g.theta, sizeof a->local[0]);
	float mean[N];
	for (int j = 0; j < N; j++)
		mean[j] = (a->local[0][j] + a->local[1][j] + a->local[2][j] + a->local[3][j]) / 4;
	assert_close(a->g.theta, mean, 1e-6);
	free_harness(a);
	free_harness(b);
}

/* One worker, outer SGD(alpha): Lookahead's slow weights (arXiv 1907.08610); alpha = 0 freezes
 * them. */
static void test_lookahead(void **state) {
	(void)state;
	for (int frozen = 0; frozen < 2; frozen++) {
		float alpha = frozen ? 0 : 0.5f, slow[N];
		struct harness *h = new_harness(1, 6, &codec_fp32, &outer_sgd, (struct outer_params){.lr = alpha});
		memcpy(slow, h->g.theta, sizeof slow);
		for (int r = 0; r < 10; r++) {
			float fast[N];
			rounds(h, 1);
			memcpy(fast, slow, sizeof fast);
			inner_steps(h, 0, fast);
			for (int j = 0; j < N; j++)
				slow[j] += alpha * (fast[j] - slow[j]);
		}
		assert_close(h->g.theta, slow, frozen ? 0 : 1e-6);
		free_harness(h);
	}
}

/* Workers with the same data are one worker: bitwise with block scales for any number of them, with
 * fp32 for 2 and 4. */
static void test_identical_workers_are_one(void **state) {
	(void)state;
	const struct codec *const codecs[] = {&codec_int8, &codec_int16, &codec_fp32, &codec_int4};
	for (size_t c = 0; c < COUNT_OF(codecs); c++)
		for (int k = 2; k <= MAX_WORKERS; k++) {
			if (codecs[c] == &codec_fp32 && k != 2 && k != 4)
				continue;
			struct outer_params p = {.lr = 0.7f, .momentum = 0.9f};
			struct harness *one = new_harness(1, 7, codecs[c], &outer_nesterov, p);
			struct harness *many = new_harness(k, 7, codecs[c], &outer_nesterov, p);
			for (int i = 0; i < k; i++) {
				many->curvature[i] = one->curvature[0];
				memcpy(many->centre[i], one->centre[0], sizeof one->centre[0]);
			}
			rounds(one, 8);
			rounds(many, 8);
			struct rv_hash a = global_full_hash(&one->g), b = global_full_hash(&many->g);
			assert_true(rv_hash_equal(&a, &b));
			free_harness(one);
			free_harness(many);
		}
}

/* With H steps each, worker i contracts towards c_i by 1 - w_i, w_i = 1 - (1 - eta lambda_i)^H; so
 * the fixed point of the outer loop is sum w_i c_i / sum w_i, and not the minimum of the mean loss.
 * Any outer optimizer ends there. */
static void check_drift(const struct codec *c, const struct outer_optimizer *o, struct outer_params p,
						double tolerance) {
	struct harness *h = new_harness(4, 10, c, o, p);
	double weight_sum = 0, weights[4];
	float fixed[N], minimum[N];
	for (int i = 0; i < 4; i++)
		weight_sum += weights[i] = 1 - pow(1 - (double)h->rate * (double)h->curvature[i], 10);
	double curvature_sum = 0.5 + 1.5 + 2.5 + 3.5, distance = 0;
	for (int j = 0; j < N; j++) {
		double sum = 0, low = 0;
		for (int i = 0; i < 4; i++) {
			sum += weights[i] * (double)h->centre[i][j];
			low += (double)h->curvature[i] * (double)h->centre[i][j];
		}
		fixed[j] = (float)(sum / weight_sum);
		minimum[j] = (float)(low / curvature_sum);
		distance = fmax(distance, fabs((double)fixed[j] - (double)minimum[j]));
	}
	rounds(h, 250);
	assert_close(h->g.theta, fixed, tolerance);
	assert_true(distance > 0.1); /* the claim is about drift: the two points differ */
	free_harness(h);
}

static void test_drift_fixed_point(void **state) {
	(void)state;
	check_drift(&codec_fp32, &outer_sgd, (struct outer_params){.lr = 1}, 2e-6);
	check_drift(&codec_fp32, &outer_nesterov, (struct outer_params){.lr = 0.4f, .momentum = 0.8f}, 5e-6);
	check_drift(&codec_int8, &outer_sgd, (struct outer_params){.lr = 1},
				0.01); /* contributions do not vanish: +-A/254 */
}

/* The same outer gradient in every round: theta moves by 1.33, 1.897, 2.407 Delta, through the
 * codec as well. */
static void test_constant_delta(void **state) {
	(void)state;
	const double moves[] = {1.33, 1.897, 2.4073};
	struct harness *h =
		new_harness(1, 0, &codec_int8, &outer_nesterov, (struct outer_params){.lr = 0.7f, .momentum = 0.9f});
	for (size_t r = 0; r < COUNT_OF(moves); r++) {
		float before[N];
		memcpy(before, h->g.theta, sizeof before);
		for (int j = 0; j < N; j++)
			h->local[0][j] = before[j] - 0.25f;
		assert_int_equal(global_encode_delta(&h->g, h->local[0], h->reduced, NULL), RV_OK);
		struct rv_hash digest = global_digest(&h->g, h->g.round, h->reduced);
		assert_int_equal(global_apply(&h->g, h->reduced, &digest, NULL), RV_OK);
		for (int j = 0; j < N; j++) /* the scale keeps 17 bits */
			assert_true(fabs((double)(before[j] - h->g.theta[j]) - 0.25 * moves[r]) < 1e-5 + 0.25 * moves[r] * 1e-6);
	}
	free_harness(h);
}

/* A round that a worker did not take part in is a round of a run in which it never was. */
static void test_survivors_mean(void **state) {
	(void)state;
	struct outer_params p = {.lr = 0.7f, .momentum = 0.9f};
	struct harness *four = new_harness(4, 5, &codec_int8, &outer_nesterov, p);
	struct harness *three = new_harness(3, 5, &codec_int8, &outer_nesterov, p);
	for (int r = 0; r < 6; r++) {
		round_of(four, 1u << 0 | 1u << 1 | 1u << 2);
		rounds(three, 1);
	}
	struct rv_hash a = global_full_hash(&four->g), b = global_full_hash(&three->g);
	assert_true(rv_hash_equal(&a, &b));
	free_harness(four);
	free_harness(three);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_h1_is_data_parallel_sgd),
		cmocka_unit_test(test_h1_nesterov_is_torch_sgd),
		cmocka_unit_test(test_one_worker_is_plain_training),
		cmocka_unit_test(test_parameter_mean),
		cmocka_unit_test(test_lookahead),
		cmocka_unit_test(test_identical_workers_are_one),
		cmocka_unit_test(test_drift_fixed_point),
		cmocka_unit_test(test_constant_delta),
		cmocka_unit_test(test_survivors_mean),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
