/* test_bench_phase_bytes.c: the bytes that phase_backend counts, for activations of 4 bytes and of
 * 2. */
#include "bench/phase_backend.h"
#include "tests/common/check.h"

static void no_close(struct backend *be) {
	(void)be;
}

static void no_sync(struct backend *be) {
	(void)be;
}

static void no_embed_forward(struct backend *be, act_t *out, const int32_t *tokens, const float *wte, const float *wpe,
							 int b, int t, int c) {
	(void)be, (void)out, (void)tokens, (void)wte, (void)wpe, (void)b, (void)t, (void)c;
}

static void no_embed_backward(struct backend *be, float *dwte, float *dwpe, const int32_t *tokens, const act_t *dout,
							  int b, int t, int c) {
	(void)be, (void)dwte, (void)dwpe, (void)tokens, (void)dout, (void)b, (void)t, (void)c;
}

static void no_norm_backward(struct backend *be, act_t *dx, float *dw, float *dbias, const act_t *dout, const act_t *x,
							 const float *w, const float *mean, const float *rstd, int n, int c) {
	(void)be, (void)dx, (void)dw, (void)dbias, (void)dout, (void)x, (void)w, (void)mean, (void)rstd, (void)n, (void)c;
}

static void no_norm_forward(struct backend *be, act_t *sum, act_t *out, float *mean, float *rstd, const act_t *a,
							const act_t *b, const float *w, const float *bias, int n, int c) {
	(void)be, (void)sum, (void)out, (void)mean, (void)rstd, (void)a, (void)b, (void)w, (void)bias, (void)n, (void)c;
}

static void no_adamw(struct backend *be, float *p, const float *g, float *m, float *v, const struct decay_span *spans,
					 int n_spans, const struct adamw_params *a) {
	(void)be, (void)p, (void)g, (void)m, (void)v, (void)spans, (void)n_spans, (void)a;
}

static void no_adamw8(struct backend *be, float *p, const float *g, void *m, void *v, const struct decay_span *spans,
					  int n_spans, const struct adamw_params *a, struct moments_place place) {
	(void)be, (void)p, (void)g, (void)m, (void)v, (void)spans, (void)n_spans, (void)a, (void)place;
}

static const struct backend_ops idle_ops = {.name = "idle",
											.close = no_close,
											.sync = no_sync,
											.embed_forward = no_embed_forward,
											.embed_backward = no_embed_backward,
											.residual_layernorm_forward = no_norm_forward,
											.layernorm_backward = no_norm_backward,
											.adamw = no_adamw,
											.adamw8 = no_adamw8};

/* Bytes of one call of each operation at b 2, t 4, c 8 (n = b * t), and of AdamW over 100
 * parameters. */
static void count(enum dtype act, double bytes[static N_PHASES]) {
	struct backend idle = {.ops = &idle_ops, .act = act, .threads = 1};
	struct backend *be = phase_backend_new(&idle, CLOCK_MONOTONIC);
	const struct decay_span span = {0, 100, true};
	assert_non_null(be);
	be->ops->embed_forward(be, NULL, NULL, NULL, NULL, 2, 4, 8);
	be->ops->embed_backward(be, NULL, NULL, NULL, NULL, 2, 4, 8);
	be->ops->residual_layernorm_forward(be, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 8, 8);
	be->ops->layernorm_backward(be, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 8, 8);
	be->ops->adamw(be, NULL, NULL, NULL, NULL, &span, 1, NULL);
	for (int i = 0; i < N_PHASES; i++)
		bytes[i] = phase_backend_sums(be)[i].work;
	backend_close(be);
}

/* n * c = 64. Embedding: the two weights are fp32 (read: 8 bytes; read and written: 16), the
 * activation is not. */
static void bytes_follow_the_type_of_activations(void **state) {
	(void)state;
	double wide[N_PHASES], narrow[N_PHASES];
	count(DTYPE_F32, wide);
	count(DTYPE_BF16, narrow);
	assert_int_equal(wide[PHASE_EMBEDDING], 64 * (8 + 4 + 16 + 4));
	assert_int_equal(narrow[PHASE_EMBEDDING], 64 * (8 + 2 + 16 + 2));
	assert_int_equal(wide[PHASE_NORM_FORWARD], 64 * 16);
	assert_int_equal(narrow[PHASE_NORM_FORWARD], 64 * 8);
	assert_int_equal(wide[PHASE_NORM_BACKWARD], 64 * 16);
	assert_int_equal(narrow[PHASE_NORM_BACKWARD], 64 * 8);
}

/* p, m and v read and written, g read: 28 bytes; with bf16 activations also the weights' copy. */
static void adamw_counts_the_copy_of_the_weights(void **state) {
	(void)state;
	double wide[N_PHASES], narrow[N_PHASES];
	count(DTYPE_F32, wide);
	count(DTYPE_BF16, narrow);
	assert_int_equal(wide[PHASE_ADAMW], 100 * 28);
	assert_int_equal(narrow[PHASE_ADAMW], 100 * 30);
}

/* p read and written, g read, and the codes of m and v read and written: 16 bytes. */
static void moments_in_8_bits_count_a_byte_each(void **state) {
	(void)state;
	struct backend idle = {.ops = &idle_ops, .act = DTYPE_F32, .threads = 1};
	struct backend *be = phase_backend_new(&idle, CLOCK_MONOTONIC);
	const struct decay_span span = {0, 100, true};
	assert_non_null(be);
	be->ops->adamw8(be, NULL, NULL, NULL, NULL, &span, 1, NULL, (struct moments_place){.n = 100});
	assert_int_equal(phase_backend_sums(be)[PHASE_ADAMW].work, 100 * 16);
	backend_close(be);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(moments_in_8_bits_count_a_byte_each),
									   cmocka_unit_test(bytes_follow_the_type_of_activations),
									   cmocka_unit_test(adamw_counts_the_copy_of_the_weights)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
