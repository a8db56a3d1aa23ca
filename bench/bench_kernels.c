/* bench_kernels.c: `bench_kernels [--threads N] [--rounds N] [--isa NAME] [--own-product] [--bf16]
 * [--only PART_OF_NAME]`: every kernel of the `cpu` backend against the limit that binds it:
 * multiply-adds of the dtype in registers, oneDNN's product alone (fp32), or memory bandwidth,
 * measured here and now in alternation with it. One JSON line per case, then a table. The shapes
 * are those of one training step of 6 layers x 384 channels, 8 sequences of 256 bytes. */
#include "base/clock.h"
#include "base/rng.h"
#include "bench/bench_report.h"
#include "bench/kernels_peers.h"
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 8, T = 256, HEADS = 6, C = 384, N = B * T, O = 4 * C, V = 256, PARAMS = 32 << 20, ROUNDS_MAX = 101 };
enum { CONTEXT = 32768 };

struct bench {
	struct backend *be;
	int threads, rounds;
	const char *only; /* part of the names of the cases that run */
	bool bf16;
	/* (N, 4C) each; (4C, C); (PARAMS) each */
	float *x, *y, *pre, *w, *bias, *p, *g, *m, *v;
	float *mean, *rstd, *lse, *losses;
	int32_t *tokens;
};

struct kernel_case {
	const char *name, *peer, *unit;
	double work; /* units of 1e9 that one call of `ours` does */
	void (*ours)(struct bench *b);
	/* Returns its own work in units of 1e9; 0: not available here. */
	double (*against)(struct bench *b);
};

static act_t *act(float *p) {
	return (act_t *)(void *)p;
}

static const struct linear_shape up = {N, C, O};
static const struct attention_shape heads = {B, T, HEADS, HEADS, C / HEADS};

#define GFLOP(m, n, k) (2.0 * (m) * (n) * (k)*1e-9)
/* Operations of two products forward and five backward, over half of the T x T scores. */
#define ATTENTION_GFLOP (2.0 * B * HEADS * T * (T + 1) * 0.5 * (C / HEADS) * 1e-9)

static void linear_forward(struct bench *b) {
	b->be->ops->linear_forward(b->be, act(b->y), NULL, act(b->x), b->w, NULL, up, LINEAR_NONE);
}

static void linear_gelu(struct bench *b) {
	b->be->ops->linear_forward(b->be, act(b->y), act(b->pre), act(b->x), b->w, b->bias, up, LINEAR_GELU);
}

static void linear_input(struct bench *b) {
	b->be->ops->linear_backward_input(b->be, act(b->x), act(b->y), b->w, NULL, up, LINEAR_NONE);
}

static void linear_weight(struct bench *b) {
	b->be->ops->linear_backward_weight(b->be, b->g, b->g + O * C, act(b->y), act(b->x), up, GRADIENT_ADD);
}

static double product_forward(struct bench *b) {
	return peer_product(b->threads, false, true, N, O, C, b->x, b->w, false, b->y) ? GFLOP(N, O, C) : 0;
}

static double product_input(struct bench *b) {
	return peer_product(b->threads, false, false, N, C, O, b->y, b->w, false, b->x) ? GFLOP(N, O, C) : 0;
}

static double product_weight(struct bench *b) {
	return peer_product(b->threads, true, false, O, C, N, b->y, b->x, true, b->g) ? GFLOP(N, O, C) : 0;
}

static void attention_forward(struct bench *b) {
	b->be->ops->attention_forward(b->be, act(b->y), b->lse, act(b->x), heads);
}

static void attention_backward(struct bench *b) {
	b->be->ops->attention_backward(b->be, act(b->pre), act(b->y), act(b->x), act(b->y), b->lse, heads);
}

static double multiply_adds(struct bench *b) {
	return (b->bf16 ? peer_bf16_dots : peer_multiply_adds)(b->threads, 400000) * 1e-9;
}

static void classifier(struct bench *b) {
	b->be->ops->classifier(b->be, b->losses, act(b->y), b->g, act(b->x), b->w, b->tokens, N, C, V, V, 1e-3f,
						   GRADIENT_ADD);
}

static void layernorm(struct bench *b) {
	b->be->ops->residual_layernorm_forward(b->be, act(b->y), act(b->pre), b->mean, b->rstd, act(b->x), act(b->p), b->w,
										   b->bias, 4 * N, C);
}

static void layernorm_backward(struct bench *b) {
	b->be->ops->layernorm_backward(b->be, act(b->y), b->g, b->g + C, act(b->pre), act(b->x), b->w, b->mean, b->rstd,
								   4 * N, C);
}

static void rmsnorm(struct bench *b) {
	b->be->ops->residual_rmsnorm_forward(b->be, act(b->y), act(b->pre), b->rstd, act(b->x), act(b->p), b->w, 1e-5f,
										 4 * N, C);
}

static void rmsnorm_backward(struct bench *b) {
	b->be->ops->rmsnorm_backward(b->be, act(b->y), b->g, act(b->pre), act(b->x), b->w, b->rstd, 4 * N, C);
}

/* Applies rope with a table of zeros instead of angles: the time is the same, and nothing becomes a
 * denormal. */
static void rope(struct bench *b) {
	b->be->ops->rope(b->be, act(b->m), b->v, heads, 0, false);
}

static void swiglu(struct bench *b) {
	b->be->ops->swiglu_forward(b->be, act(b->y), act(b->x), N, O / 2);
}

static void swiglu_backward(struct bench *b) {
	b->be->ops->swiglu_backward(b->be, act(b->pre), act(b->y), act(b->x), N, O / 2);
}

/* Attends one token over a cache of CONTEXT positions. */
static void attention_cached(struct bench *b) {
	const struct attention_shape one = {1, 1, HEADS, HEADS, C / HEADS};
	b->be->ops->attention_cached(b->be, act(b->y), act(b->p), act(b->m), act(b->x), one, CONTEXT - 1);
}

static double triad_small(struct bench *b) {
	peer_triad(b->threads, b->y, b->x, b->pre, (size_t)N * O);
	return 12.0 * N * O * 1e-9;
}

static void adamw(struct bench *b) {
	const struct decay_span span = {0, PARAMS, true};
	const struct adamw_params a = {1e-4f, 0.9f, 0.95f, 1e-8f, 0.1f, 1, 10};
	b->be->ops->adamw(b->be, b->p, b->g, b->m, b->v, &span, 1, &a);
}

static double triad(struct bench *b) {
	peer_triad(b->threads, b->m, b->g, b->v, PARAMS);
	return 12.0 * PARAMS * 1e-9;
}

static void sum_squares(struct bench *b) {
	(void)b->be->ops->sum_squares(b->be, b->g, PARAMS);
}

static double read_all(struct bench *b) {
	(void)peer_read(b->threads, b->g, PARAMS);
	return 4.0 * PARAMS * 1e-9;
}

static const struct kernel_case cases[] = {
	{"linear forward", "oneDNN", "GFLOP/s", GFLOP(N, O, C), linear_forward, product_forward},
	{"linear + bias + GELU", "oneDNN without", "GFLOP/s", GFLOP(N, O, C), linear_gelu, product_forward},
	{"linear backward input", "oneDNN", "GFLOP/s", GFLOP(N, O, C), linear_input, product_input},
	{"linear backward weight + bias", "oneDNN without", "GFLOP/s", GFLOP(N, O, C), linear_weight, product_weight},
	{"attention forward", "multiply-adds", "GFLOP/s", 2 * ATTENTION_GFLOP, attention_forward, multiply_adds},
	{"attention backward", "multiply-adds", "GFLOP/s", 5 * ATTENTION_GFLOP, attention_backward, multiply_adds},
	{"classifier with gradient", "multiply-adds", "GFLOP/s", 3 * GFLOP(N, V, C), classifier, multiply_adds},
	{"residual + layernorm", "triad, 12 MB", "GB/s", 16.0 * N *O * 1e-9, layernorm, triad_small},
	{"layernorm backward", "triad, 12 MB", "GB/s", 16.0 * N *O * 1e-9, layernorm_backward, triad_small},
	{"residual + RMSNorm", "triad, 12 MB", "GB/s", 16.0 * N *O * 1e-9, rmsnorm, triad_small},
	{"RMSNorm backward", "triad, 12 MB", "GB/s", 16.0 * N *O * 1e-9, rmsnorm_backward, triad_small},
	{"rotary embedding", "triad, 12 MB", "GB/s", 16.0 * N *C * 1e-9, rope, triad_small},
	{"SwiGLU", "triad, 12 MB", "GB/s", 6.0 * N *O * 1e-9, swiglu, triad_small},
	{"SwiGLU backward", "triad, 12 MB", "GB/s", 10.0 * N *O * 1e-9, swiglu_backward, triad_small},
	{"attention over a cache", "read, 128 MB", "GB/s", 8.0 * CONTEXT *C * 1e-9, attention_cached, read_all},
	{"AdamW", "triad, 128 MB", "GB/s", 28.0 * PARAMS * 1e-9, adamw, triad},
	{"sum of squares", "read, 128 MB", "GB/s", 4.0 * PARAMS * 1e-9, sum_squares, read_all},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static int compare_doubles(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *x, int n) {
	qsort(x, (size_t)n, sizeof *x, compare_doubles);
	return x[n / 2];
}

static double rate(double work, int64_t start_us) {
	int64_t us = rv_clock_monotonic_us() - start_us;
	return work / ((double)(us > 0 ? us : 1) * 1e-6);
}

/* Prints medians of alternating rounds, after one of each that is not counted. */
static void run_case(struct bench *b, const struct kernel_case *c, struct bench_report *report) {
	double ours[ROUNDS_MAX], peer[ROUNDS_MAX];
	for (int i = -1; i < b->rounds; i++) {
		int at = i < 0 ? 0 : i;
		int64_t start = rv_clock_monotonic_us();
		c->ours(b);
		ours[at] = rate(c->work, start);
		start = rv_clock_monotonic_us();
		double work = c->against(b);
		peer[at] = rate(work, start);
	}
	double limit = median(peer, b->rounds);
	bench_more_is_better(report, c->name, c->peer, median(ours, b->rounds), limit > 0 ? limit : NAN, c->unit);
}

static float *floats(struct backend *be, size_t n, float amplitude) {
	void *p;
	struct rv_errtext et = {0};
	if (be->ops->alloc(be, n * sizeof(float), &p, &et) != RV_OK) {
		(void)fprintf(stderr, "bench_kernels: %s\n", et.text);
		return NULL;
	}
	float *f = p;
	struct rv_rng r = rv_rng_of(1, n);
	for (size_t i = 0; i < n; i++)
		f[i] = i < (1 << 20) ? (float)(rv_rng_double(&r) - 0.5) * amplitude : f[i - (1 << 20)];
	return f;
}

static bool bench_init(struct bench *b) {
	size_t act_n = (size_t)N * O;
	float **all[] = {&b->x, &b->y, &b->pre,  &b->w,    &b->bias, &b->p,     &b->g,
					 &b->m, &b->v, &b->mean, &b->rstd, &b->lse,  &b->losses};
	const size_t counts[] = {act_n,  act_n, act_n, (size_t)O * C,         O, PARAMS, PARAMS, PARAMS,
							 PARAMS, 4 * N, 4 * N, (size_t)B * HEADS * T, N};
	bool ok = true;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		ok = (*all[i] = floats(b->be, counts[i], 0.2f)) && ok;
	if (!ok)
		return false;
	memset(b->v, 0, PARAMS * sizeof *b->v); /* a second moment is not negative */
	b->tokens = calloc(N, sizeof *b->tokens);
	return b->tokens != NULL;
}

static void bench_release(struct bench *b) {
	float *all[] = {b->x, b->y, b->pre, b->w, b->bias, b->p, b->g, b->m, b->v, b->mean, b->rstd, b->lse, b->losses};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		b->be->ops->free(b->be, all[i]);
	free(b->tokens);
	backend_close(b->be);
}

static bool parse(int argc, char **argv, struct backend_options *opt, struct bench *b, bool *own) {
	b->only = "";
	for (int i = 1; i < argc; i++) {
		bool value = i + 1 < argc;
		if (strcmp(argv[i], "--own-product") == 0)
			*own = true;
		else if (strcmp(argv[i], "--bf16") == 0)
			opt->compute = DTYPE_BF16;
		else if (value && strcmp(argv[i], "--threads") == 0)
			opt->threads = atoi(argv[++i]);
		else if (value && strcmp(argv[i], "--isa") == 0)
			opt->isa = argv[++i];
		else if (value && strcmp(argv[i], "--rounds") == 0)
			b->rounds = atoi(argv[++i]);
		else if (value && strcmp(argv[i], "--only") == 0)
			b->only = argv[++i];
		else
			return false;
	}
	return b->rounds >= 1 && b->rounds <= ROUNDS_MAX;
}

int main(int argc, char **argv) {
	struct bench b = {.rounds = 11};
	struct backend_options opt = {.isa = "auto"};
	struct rv_errtext et = {0};
	bool own = false;
	if (!parse(argc, argv, &opt, &b, &own)) {
		(void)fprintf(stderr,
					  "usage: bench_kernels [--threads N] [--rounds 1..%d] [--isa NAME] [--own-product] [--bf16] "
					  "[--only PART_OF_NAME]\n",
					  ROUNDS_MAX);
		return 2;
	}
	if (backend_open("cpu", &opt, &b.be, &et) != RV_OK) {
		(void)fprintf(stderr, "bench_kernels: %s\n", et.text);
		return 1;
	}
	b.threads = b.be->threads;
	b.bf16 = opt.compute == DTYPE_BF16;
	if (own)
		cpu_of(b.be)->onednn = false;
	struct bench_report report = {.bench = "kernels"};
	bench_warn_if_busy();
	(void)fprintf(stderr, "%s, medians of %d rounds\n", b.be->ops->describe(b.be), b.rounds);
	bool ok = bench_init(&b);
	for (int i = 0; ok && i < N_CASES; i++)
		if (strstr(cases[i].name, b.only))
			run_case(&b, &cases[i], &report);
	if (ok)
		bench_print_table(&report);
	bench_release(&b);
	return ok ? 0 : 1;
}
