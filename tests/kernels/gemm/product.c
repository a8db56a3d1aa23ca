/* product.c: see product.h. */
#include "tests/kernels/gemm/product.h"
#include "tests/common/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double get(const void *p, size_t i, enum dtype type) {
	float f;
	if (type == DTYPE_F32) {
		memcpy(&f, (const char *)p + i * sizeof f, sizeof f);
		return (double)f;
	}
	uint16_t half;
	memcpy(&half, (const char *)p + i * sizeof half, sizeof half);
	uint32_t bits = (uint32_t)half << 16;
	memcpy(&f, &bits, sizeof f);
	return (double)f;
}

/* Numbers that bf16 holds, so that both types hold the same. */
static void put(void *p, size_t i, enum dtype type, int eighth_bits) {
	float f = (float)eighth_bits / 128;
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	const uint16_t half = (uint16_t)(bits >> 16);
	if (type == DTYPE_F32)
		memcpy((char *)p + i * sizeof f, &f, sizeof f);
	else
		memcpy((char *)p + i * sizeof half, &half, sizeof half);
}

static void *array(void **memory, size_t n, enum dtype type, int shift, uint32_t seed) {
	assert_int_equal(cudaMalloc(memory, (n + (size_t)shift) * dtype_bytes(type)), cudaSuccess);
	char *at = (char *)*memory + (size_t)shift * dtype_bytes(type);
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		put(at, i, type, (int)(seed >> 24) - 128);
	}
	return at;
}

static double inner(double x) {
	return tanh(0.79788456080286536 * (x + 0.044715 * x * x * x));
}

static double gelu(double x) {
	return 0.5 * x * (1 + inner(x));
}

static double gelu_slope(double x) {
	double t = inner(x);
	return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.79788456080286536 * (1 + 3 * 0.044715 * x * x);
}

static double sum_of(const struct gemm_call *c, size_t i, size_t j) {
	double sum = 0;
	for (size_t l = 0; l < (size_t)c->k; l++)
		sum += get(c->a, c->a_transposed ? l * (size_t)c->lda + i : i * (size_t)c->lda + l, c->in) *
			   get(c->b, c->b_transposed ? j * (size_t)c->ldb + l : l * (size_t)c->ldb + j, c->in);
	return sum;
}

/* By gemm.h's definition, from the operands as they are. */
static void expect(struct product_case *p) {
	const struct gemm_call *c = &p->call;
	for (size_t i = 0; i < (size_t)c->m; i++)
		for (size_t j = 0; j < (size_t)c->n; j++) {
			size_t at = i * (size_t)c->ldd + j;
			double x = sum_of(c, i, j);
			if (c->bias && (c->epilogue == GEMM_BIAS || c->epilogue == GEMM_GELU))
				x += get(c->bias, j, c->in);
			if (c->epilogue == GEMM_GELU) {
				p->aux[at] = x;
				x = gelu(x);
			}
			if (c->epilogue == GEMM_DGELU)
				x *= gelu_slope(p->aux[at]);
			p->d[at] = x + (c->accumulate ? p->d[at] : 0);
		}
}

/* What is added to the sums that are there: of each row of op(a). */
static void expect_sums(struct product_case *p) {
	const struct gemm_call *c = &p->call;
	for (size_t i = 0; p->row_sums && i < (size_t)c->m; i++)
		for (size_t l = 0; l < (size_t)c->k; l++)
			p->row_sums[i] += get(c->a, l * (size_t)c->lda + i, c->in);
}

static double *as_doubles(const void *p, size_t n, enum dtype type) {
	double *out = malloc((n ? n : 1) * sizeof *out);
	assert_non_null(out);
	for (size_t i = 0; p && i < n; i++)
		out[i] = get(p, i, type);
	return out;
}

void product_init(struct product_case *p, const struct product_kind *k) {
	struct gemm_call c = {.m = k->m,
						  .n = k->n,
						  .k = k->k,
						  .lda = (k->a_transposed ? k->m : k->k) + (k->epilogue == GEMM_SUMS ? 0 : k->padding),
						  .ldb = (k->b_transposed ? k->k : k->n) + k->padding,
						  .ldd = k->n + k->padding,
						  .a_transposed = k->a_transposed,
						  .b_transposed = k->b_transposed,
						  .accumulate = k->accumulate,
						  .in = k->in,
						  .out = k->out,
						  .epilogue = k->epilogue};
	size_t d = (size_t)c.m * (size_t)c.ldd;
	int shift = k->shift, other = k->shift_epilogue ? shift : 0;
	uint32_t seed = (uint32_t)(k->m * 31 + k->n * 17 + k->k);
	*p = (struct product_case){.d = NULL};
	c.a = array(&p->memory[0], (size_t)(k->a_transposed ? k->k : k->m) * (size_t)c.lda, k->in, shift, seed + 1);
	c.b = array(&p->memory[1], (size_t)(k->b_transposed ? k->n : k->k) * (size_t)c.ldb, k->in, shift, seed + 2);
	c.d = array(&p->memory[2], d, k->out, shift, seed + 3);
	if (k->bias)
		c.bias = array(&p->memory[3], (size_t)k->n, k->in, other, seed + 4);
	if (k->epilogue == GEMM_GELU || k->epilogue == GEMM_DGELU)
		c.aux = array(&p->memory[4], d, k->out, other, seed + 5);
	if (k->epilogue == GEMM_SUMS) {
		c.row_sums = array(&p->memory[5], (size_t)k->m, DTYPE_F32, 0, seed + 6);
		c.scratch = array(&p->memory[6], column_sum_scratch_floats(k->k, k->m), DTYPE_F32, other, seed + 7);
	}
	p->call = c;
	p->d = as_doubles(c.d, d, k->out);
	p->aux = as_doubles(c.aux, d, k->out);
	p->row_sums = c.row_sums ? as_doubles(c.row_sums, (size_t)k->m, DTYPE_F32) : NULL;
	expect(p);
	expect_sums(p);
}

void product_release(struct product_case *p) {
	for (size_t i = 0; i < sizeof p->memory / sizeof p->memory[0]; i++)
		assert_int_equal(cudaFree(p->memory[i]), cudaSuccess);
	free(p->d);
	free(p->aux);
	free(p->row_sums);
}

static void check_matrix(const struct gemm_call *c, const char *name, const void *got, const double *want) {
	/* bf16 rounds once in the library, and once more where the epilogue is a kernel behind the
	 * product. */
	double scale = 1, limit = c->out == DTYPE_BF16 ? 0.02 : 4e-6;
	for (size_t at = 0; at < (size_t)c->m * (size_t)c->ldd; at++)
		scale = fmax(scale, fabs(want[at]));
	for (size_t at = 0; at < (size_t)c->m * (size_t)c->ldd; at++) {
		bool between_rows = at % (size_t)c->ldd >= (size_t)c->n;
		double error = fabs(get(got, at, c->out) - want[at]);
		if (!(error <= (between_rows ? 0 : limit * scale)))
			fail_msg("%s: row %zu, column %zu is %g, not %g (m %d n %d k %d, ld %d %d %d, %s%s, epilogue %d)", name,
					 at / (size_t)c->ldd, at % (size_t)c->ldd, get(got, at, c->out), want[at], c->m, c->n, c->k, c->lda,
					 c->ldb, c->ldd, c->a_transposed ? "a^T " : "", c->b_transposed ? "b^T" : "", (int)c->epilogue);
	}
}

static void check_sums(const struct product_case *p) {
	const struct gemm_call *c = &p->call;
	for (size_t i = 0; i < (size_t)c->m; i++)
		if (!(fabs(get(c->row_sums, i, DTYPE_F32) - p->row_sums[i]) <= 4e-6 * (1 + c->k)))
			fail_msg("the sum of row %zu is %g, not %g (m %d n %d k %d)", i, get(c->row_sums, i, DTYPE_F32),
					 p->row_sums[i], c->m, c->n, c->k);
}

void product_check(const struct product_case *p, cudaStream_t stream) {
	assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
	check_matrix(&p->call, "d", p->call.d, p->d);
	if (p->call.aux)
		check_matrix(&p->call, "aux", p->call.aux, p->aux);
	if (p->row_sums)
		check_sums(p);
}

void product_run(struct gemm *g, cudaStream_t stream, const struct product_kind *k) {
	struct product_case p;
	product_init(&p, k);
	assert_true(gemm_run(g, stream, &p.call));
	product_check(&p, stream);
	product_release(&p);
}
