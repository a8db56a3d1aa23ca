/* test_train_muon.c: Muon's step against its equations in double, on both backends; what its
 * iteration does to singular values; awkward shapes. */
#include "tests/train/train_fixture.h"

#include "base/rng.h"
#include "train/muon.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_MAX = 128, ELEMS_MAX = SIDE_MAX * SIDE_MAX };

struct shape {
	int rows, cols;
};
static const struct shape shapes[] = {{1, 1},   {1, 17},  {17, 1},   {3, 7},    {7, 3},   {16, 16},
									  {64, 16}, {16, 64}, {33, 127}, {127, 33}, {96, 32}, {128, 128}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static struct backend *open_backend(const char *name, enum dtype compute) {
	const struct backend_options opt = {.threads = 1, .compute = compute, .isa = "auto"};
	struct backend *be;
	assert_ok(backend_open(name, &opt, &be, &et));
	return be;
}

/* Random, with a diagonal that keeps the smallest singular value of a square one away from zero. */
static void fill(float *x, struct shape s, uint64_t seed) {
	struct rv_rng r = rv_rng_of(seed, 3);
	for (int i = 0; i < s.rows; i++)
		for (int j = 0; j < s.cols; j++)
			x[i * s.cols + j] = (float)rv_rng_normal(&r) * 0.1f + (i == j ? 3.0f : 0);
}

/* ---- the reference ---- */

/* c (m, n) = a (m, k) b (k, n), or of b^T, stored (n, k). */
static void multiply(double *c, const double *a, const double *b, int m, int n, int k, bool transposed) {
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			double sum = 0;
			for (int l = 0; l < k; l++)
				sum += a[i * k + l] * (transposed ? b[j * k + l] : b[l * n + j]);
			c[i * n + j] = sum;
		}
}

/* The published iteration as it stands: X X^T from the left, whatever the shape. */
static void reference_orthogonalize(double *x, struct shape s) {
	static double gram[ELEMS_MAX], squared[ELEMS_MAX], next[ELEMS_MAX];
	int n = s.rows * s.cols;
	double norm = 0;
	for (int i = 0; i < n; i++)
		norm += x[i] * x[i];
	norm = sqrt(norm) + 1e-7;
	for (int i = 0; i < n; i++)
		x[i] /= norm;
	for (int step = 0; step < 5; step++) {
		multiply(gram, x, x, s.rows, s.rows, s.cols, true);
		multiply(squared, gram, gram, s.rows, s.rows, s.rows, false);
		for (int i = 0; i < s.rows * s.rows; i++)
			gram[i] = -4.7750 * gram[i] + 2.0315 * squared[i];
		multiply(next, gram, x, s.rows, s.cols, s.rows, false);
		for (int i = 0; i < n; i++)
			x[i] = 3.4445 * x[i] + next[i];
	}
}

/* Eigenvalues of the symmetric a (n, n), by Jacobi's rotations; a is spoilt. */
static void eigenvalues(double *a, int n, double *out) {
	for (int sweep = 0; sweep < 30; sweep++)
		for (int p = 0; p < n; p++)
			for (int q = p + 1; q < n; q++) {
				double off = a[p * n + q];
				if (fabs(off) < 1e-15)
					continue;
				double theta = (a[q * n + q] - a[p * n + p]) / (2 * off);
				double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
				double c = 1 / sqrt(t * t + 1), s = t * c;
				for (int k = 0; k < n; k++) {
					double x = a[k * n + p], y = a[k * n + q];
					a[k * n + p] = c * x - s * y;
					a[k * n + q] = s * x + c * y;
				}
				for (int k = 0; k < n; k++) {
					double x = a[p * n + k], y = a[q * n + k];
					a[p * n + k] = c * x - s * y;
					a[q * n + k] = s * x + c * y;
				}
			}
	for (int i = 0; i < n; i++)
		out[i] = a[i * n + i];
}

/* ---- tests ---- */

static void orthogonalize(struct backend *be, float *x, struct shape s) {
	float *scratch = calloc(muon_scratch_floats(s.rows, s.cols), sizeof *scratch);
	assert_non_null(scratch);
	muon_orthogonalize(be, x, s.rows, s.cols, scratch);
	free(scratch);
}

static void check_against_reference(const char *name, enum dtype compute, double tolerance) {
	static double want[ELEMS_MAX];
	static float got[ELEMS_MAX];
	struct backend *be = open_backend(name, compute);
	for (int k = 0; k < N_SHAPES; k++) {
		int n = shapes[k].rows * shapes[k].cols;
		double error = 0, square = 0;
		fill(got, shapes[k], (uint64_t)k);
		for (int i = 0; i < n; i++)
			want[i] = (double)got[i];
		reference_orthogonalize(want, shapes[k]);
		orthogonalize(be, got, shapes[k]);
		for (int i = 0; i < n; i++) {
			error += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
			square += want[i] * want[i];
		}
		if (!(sqrt(error / square) <= tolerance))
			fail_msg("%s, %d x %d: off by %.3g", name, shapes[k].rows, shapes[k].cols, sqrt(error / square));
	}
	backend_close(be);
}

static void test_orthogonalize_is_the_published_iteration(void **state) {
	(void)state;
	check_against_reference("ref", DTYPE_F32, 1e-5);
	check_against_reference("cpu", DTYPE_F32, 2e-5);
	check_against_reference("cpu", DTYPE_BF16, 0.1); /* products of rounded operands: a percent each */
}

/* Of the smaller side's Gram matrix: the squares of the singular values. */
static void test_singular_values_come_near_one(void **state) {
	(void)state;
	static float x[ELEMS_MAX];
	static double gram[ELEMS_MAX], values[SIDE_MAX];
	struct backend *be = open_backend("cpu", DTYPE_F32);
	for (int k = 0; k < N_SHAPES; k++) {
		struct shape s = shapes[k];
		int side = s.rows < s.cols ? s.rows : s.cols;
		fill(x, s, 100 + (uint64_t)k);
		orthogonalize(be, x, s);
		for (int i = 0; i < side; i++)
			for (int j = 0; j < side; j++) {
				double sum = 0;
				for (int l = 0; l < (s.rows < s.cols ? s.cols : s.rows); l++)
					sum += s.rows < s.cols ? (double)x[i * s.cols + l] * (double)x[j * s.cols + l]
										   : (double)x[l * s.cols + i] * (double)x[l * s.cols + j];
				gram[i * side + j] = sum;
			}
		eigenvalues(gram, side, values);
		for (int i = 0; i < side; i++)
			if (!(sqrt(values[i]) > 0.65 && sqrt(values[i]) < 1.2))
				fail_msg("%d x %d: singular value %d is %.4f", s.rows, s.cols, i, sqrt(values[i]));
	}
	backend_close(be);
}

/* Momentum, Nesterov's look ahead, scale and decay: three steps, in double. */
static void test_a_step_is_its_equations(void **state) {
	(void)state;
	enum { ROWS = 24, COLS = 9, N = ROWS * COLS };
	const struct shape s = {ROWS, COLS};
	const struct muon_params a = {.lr = 0.02f, .momentum = 0.9f, .weight_decay = 0.1f, .grad_scale = 0.5f};
	const char *const backends[] = {"ref", "cpu"};
	for (int b = 0; b < 2; b++) {
		struct backend *be = open_backend(backends[b], DTYPE_F32);
		float p[N], m[N] = {0}, g[N];
		double want[N], momentum[N] = {0}, u[N];
		float *scratch = calloc(muon_scratch_floats(ROWS, COLS), sizeof *scratch);
		assert_non_null(scratch);
		fill(p, s, 1);
		for (int i = 0; i < N; i++)
			want[i] = (double)p[i];
		for (uint64_t step = 0; step < 3; step++) {
			fill(g, s, 10 + step);
			for (int i = 0; i < N; i++) {
				momentum[i] = 0.9f * momentum[i] + 0.5 * (double)g[i];
				u[i] = 0.5 * (double)g[i] + 0.9f * momentum[i];
			}
			reference_orthogonalize(u, s);
			for (int i = 0; i < N; i++)
				want[i] = (1 - 0.02f * 0.1f) * want[i] - 0.02f * 0.2 * sqrt(ROWS) * u[i];
			const struct muon_matrix x = {p, m, g, ROWS, COLS};
			muon_step(be, &x, scratch, &a);
		}
		for (int i = 0; i < N; i++)
			assert_true(fabs((double)p[i] - want[i]) < 1e-5 && fabs((double)m[i] - momentum[i]) < 1e-5);
		free(scratch);
		backend_close(be);
	}
}

/* A gradient of zeros: nothing but the decay, and nothing that is not a number. */
static void test_no_gradient(void **state) {
	(void)state;
	struct backend *be = open_backend("cpu", DTYPE_F32);
	for (int k = 0; k < N_SHAPES; k++) {
		size_t n = (size_t)(shapes[k].rows * shapes[k].cols);
		float *p = calloc(n, sizeof *p), *m = calloc(n, sizeof *m), *g = calloc(n, sizeof *g);
		float *scratch = calloc(muon_scratch_floats(shapes[k].rows, shapes[k].cols), sizeof *scratch);
		assert_true(p && m && g && scratch);
		for (size_t i = 0; i < n; i++)
			p[i] = 2;
		const struct muon_matrix x = {p, m, g, shapes[k].rows, shapes[k].cols};
		const struct muon_params a = {.lr = 0.5f, .momentum = 0.95f, .weight_decay = 0.5f, .grad_scale = 1};
		muon_step(be, &x, scratch, &a);
		for (size_t i = 0; i < n; i++)
			assert_true(p[i] == 1.5f && m[i] == 0);
		free(p);
		free(m);
		free(g);
		free(scratch);
	}
	backend_close(be);
}

/* The scale of an update does not depend on the shape, nor on the gradient's. */
static void test_updates_have_the_size_of_adamws(void **state) {
	(void)state;
	static float p[ELEMS_MAX], m[ELEMS_MAX], g[ELEMS_MAX];
	struct backend *be = open_backend("cpu", DTYPE_F32);
	for (int k = 5; k < N_SHAPES; k++) {
		int n = shapes[k].rows * shapes[k].cols;
		float *scratch = calloc(muon_scratch_floats(shapes[k].rows, shapes[k].cols), sizeof *scratch);
		double square = 0;
		assert_non_null(scratch);
		memset(p, 0, sizeof p);
		memset(m, 0, sizeof m);
		fill(g, shapes[k], (uint64_t)k);
		const struct muon_matrix x = {p, m, g, shapes[k].rows, shapes[k].cols};
		const struct muon_params a = {.lr = 1, .momentum = 0.95f, .grad_scale = k % 2 ? 1e-4f : 1e3f};
		muon_step(be, &x, scratch, &a);
		for (int i = 0; i < n; i++)
			square += (double)p[i] * (double)p[i];
		assert_true(sqrt(square / n) > 0.2 * 0.65 && sqrt(square / n) < 0.2 * 1.2);
		free(scratch);
	}
	backend_close(be);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orthogonalize_is_the_published_iteration),
		cmocka_unit_test(test_singular_values_come_near_one),
		cmocka_unit_test(test_a_step_is_its_equations),
		cmocka_unit_test(test_no_gradient),
		cmocka_unit_test(test_updates_have_the_size_of_adamws),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
