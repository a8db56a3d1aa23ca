/* test_kernels_threads.c: a training step's operations in a row have the same bits on 1, 2 and 3
 * threads, twice in a row, and when several backends run at once on threads of their own. */
#include "tests/kernels/fixture.h"

#include "kernels/cpu/cpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { B = 3, T = 70, HEADS = 4, KV = 2, HD = 24, C = HEADS * HD, QKV = (HEADS + 2 * KV) * HD, V = 301, N = B * T };
enum { N_RESULTS = N * C * 4 + N * QKV * 2 + QKV * C + QKV + V * C + N + N + B * HEADS * T + 2 * C + 1 };
enum { N_LLAMA_RESULTS = N * C * 5 + N * QKV * 2 + N + C + T * KV * HD * 2 };

/* Every operation once, each on the results of those before it; all results one after the other in
 * `r`. */
static void step(struct backend *be, float *r) {
	const struct backend_ops *o = be->ops;
	struct linear_shape up = {N, C, QKV};
	struct attention_shape at = {B, T, HEADS, KV, HD};
	float *wte = random_floats(V * C, 1, 0.5f), *w = random_floats(QKV * C, 2, 0.2f), *bias = random_floats(QKV, 3, 1);
	float *norm = random_floats(C, 4, 1), *m = zero_floats(V * C), *v = zero_floats(V * C);
	int32_t *tokens = random_tokens(N, 5, V);
	memset(r, 0, N_RESULTS * sizeof *r);
	float *x = r, *y = x + N * C, *out = y + N * C, *dx = out + N * C, *qkv = dx + N * C, *dqkv = qkv + N * QKV;
	float *dw = dqkv + N * QKV, *db = dw + QKV * C, *dwte = db + QKV, *mean = dwte + V * C, *rstd = mean + N;
	float *lse = rstd + N, *dnorm = lse + B * HEADS * T, *sum = dnorm + 2 * C, losses[N];
	o->embed_forward(be, as_act(x), tokens, wte, NULL, B, T, C);
	o->layernorm_forward(be, as_act(y), mean, rstd, as_act(x), norm, norm, N, C);
	o->linear_forward(be, as_act(qkv), NULL, as_act(y), w, bias, up, LINEAR_NONE);
	o->attention_forward(be, as_act(out), lse, as_act(qkv), at);
	o->classifier(be, losses, as_act(dx), dwte, as_act(out), wte, tokens, N, C, V, V, 0.1f, GRADIENT_ADD);
	o->attention_backward(be, as_act(dqkv), as_act(dx), as_act(qkv), as_act(out), lse, at);
	o->linear_backward_weight(be, dw, db, as_act(dqkv), as_act(y), up, GRADIENT_WRITE);
	o->linear_backward_input(be, as_act(y), as_act(dqkv), w, NULL, up, LINEAR_NONE);
	o->layernorm_backward(be, as_act(dx), dnorm, dnorm + C, as_act(y), as_act(x), norm, mean, rstd, N, C);
	o->embed_backward(be, dwte, NULL, tokens, as_act(dx), B, T, C);
	*sum = (float)o->sum_squares(be, dwte, V * C);
	const struct decay_span span = {0, V * C, true};
	const struct adamw_params a = {0.01f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.5f, 1};
	o->adamw(be, dwte, dwte, m, v, &span, 1, &a);
	float *all[] = {wte, w, bias, norm, m, v};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
	free(tokens);
}

/* Likewise for what only the Llama family uses. The table holds no angles: any numbers do. */
static void llama_step(struct backend *be, float *r) {
	const struct backend_ops *o = be->ops;
	struct attention_shape at = {B, T, HEADS, KV, HD}, one = {1, T, HEADS, KV, HD};
	float *x = random_floats(N * C, 1, 1), *norm = random_floats(C, 2, 1), *table = random_floats(T * HD, 3, 1);
	float *source = random_floats(N * QKV, 4, 1);
	memset(r, 0, N_LLAMA_RESULTS * sizeof *r);
	float *sum = r, *y = sum + N * C, *dx = y + N * C, *gated = dx + N * C, *out = gated + N * C, *qkv = out + N * C;
	float *dgate_up = qkv + N * QKV, *rstd = dgate_up + N * QKV, *dnorm = rstd + N, *k = dnorm + C,
		  *v = k + T * KV * HD;
	memcpy(qkv, source, N * QKV * sizeof *qkv);
	o->residual_rmsnorm_forward(be, as_act(sum), as_act(y), rstd, as_act(x), as_act(x), norm, 1e-5f, N, C);
	o->rmsnorm_backward(be, as_act(dx), dnorm, as_act(y), as_act(x), norm, rstd, N, C);
	o->rope(be, as_act(qkv), table, at, 0, false);
	o->swiglu_forward(be, as_act(gated), as_act(source), N, C);
	o->swiglu_backward(be, as_act(dgate_up), as_act(y), as_act(source), N, C);
	o->attention_cached(be, as_act(out), as_act(k), as_act(v), as_act(source), one, 0);
	float *all[] = {x, norm, table, source};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

static void check_thread_counts(void (*run)(struct backend *be, float *r), size_t n_results) {
	float *want = zero_floats(n_results), *got = zero_floats(n_results);
	enum { FP32, BF16, BF16_PAIRS, KINDS };
	for (int i = 0; cpu_isa_name(i / KINDS); i++)
		for (int threads = 1; threads <= 3; threads++) {
			const int kind = i % KINDS;
			const char *isa = cpu_isa_name(i / KINDS);
			enum dtype compute = kind == FP32 ? DTYPE_F32 : DTYPE_BF16;
			struct backend *be =
				open_variant(&(struct variant){isa, threads, kind == BF16_PAIRS ? PAIRS : OWN, compute});
			if (!be)
				continue;
			run(be, threads == 1 ? want : got);
			if (threads > 1)
				check_same(isa, got, want, n_results);
			run(be, got);
			check_same("again", got, want, n_results);
			backend_close(be);
		}
	free(want);
	free(got);
}

static void thread_counts_do_not_change_bits(void **state) {
	(void)state;
	check_thread_counts(step, N_RESULTS);
	check_thread_counts(llama_step, N_LLAMA_RESULTS);
}

static void *concurrent_main(void *arg) {
	struct backend *be = open_variant(&(struct variant){"auto", 2, CHOSEN, DTYPE_F32});
	for (int i = 0; i < 3; i++)
		step(be, arg);
	backend_close(be);
	return NULL;
}

static void backends_on_several_threads_do_not_disturb_each_other(void **state) {
	(void)state;
	enum { REPLICAS = 3 };
	float *want = zero_floats(N_RESULTS), *got[REPLICAS];
	pthread_t threads[REPLICAS];
	concurrent_main(want);
	for (int i = 0; i < REPLICAS; i++) {
		got[i] = zero_floats(N_RESULTS);
		assert_int_equal(pthread_create(&threads[i], NULL, concurrent_main, got[i]), 0);
	}
	for (int i = 0; i < REPLICAS; i++) {
		pthread_join(threads[i], NULL);
		check_same("replica", got[i], want, N_RESULTS);
		free(got[i]);
	}
	free(want);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(thread_counts_do_not_change_bits),
									   cmocka_unit_test(backends_on_several_threads_do_not_disturb_each_other)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
