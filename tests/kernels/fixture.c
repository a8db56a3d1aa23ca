/* fixture.c: see fixture.h. */
#include "tests/kernels/fixture.h"

#include "base/rng.h"
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__aarch64__)
#define BEST   "neon"
#define SECOND "neon"
#else
#define BEST   "avx512"
#define SECOND "avx2"
#endif

static const struct variant fp32_variants[] = {
	{"auto", 2, CHOSEN, DTYPE_F32}, {BEST, 1, OWN, DTYPE_F32},       {BEST, 2, OWN, DTYPE_F32},
	{SECOND, 2, OWN, DTYPE_F32},    {"portable", 2, OWN, DTYPE_F32},
};
static const struct variant bf16_variants[] = {
	{"auto", 2, OWN, DTYPE_BF16},
	{BEST, 2, PAIRS, DTYPE_BF16},
	{SECOND, 2, OWN, DTYPE_BF16},
	{"portable", 1, OWN, DTYPE_BF16},
};

/* Makes bf16 products those by VDPBF16PS; returns false if the processor has none. */
static bool use_pairs(struct cpu_backend *c) {
#if defined(__x86_64__)
	if (!__builtin_cpu_supports("avx512bf16") || c->isa != &isa_kernels_avx512)
		return false;
	c->gemm = &gemm_bf16_avx512;
	c->attention = &attention_bf16_avx512;
	return true;
#else
	(void)c;
	return false;
#endif
}

struct backend *open_ref(void) {
	struct rv_errtext et = {0};
	struct backend *be = NULL;
	const struct backend_options opt = {.threads = 1};
	assert_int_equal(backend_open("ref", &opt, &be, &et), RV_OK);
	return be;
}

struct backend *open_variant(const struct variant *v) {
	struct rv_errtext et = {0};
	struct backend *be = NULL;
	const struct backend_options opt = {.threads = v->threads, .compute = v->compute, .isa = v->isa};
	if (backend_open("cpu", &opt, &be, &et) != RV_OK)
		fail_msg("cpu %s: %s", v->isa, et.text);
	struct cpu_backend *c = (struct cpu_backend *)be;
	const bool other = strcmp(v->isa, "auto") != 0 && strcmp(c->isa->name, v->isa) != 0;
	if (other || (v->products == PAIRS && !use_pairs(c))) {
		backend_close(be);
		return NULL;
	}
	if (v->products != CHOSEN)
		c->onednn = false;
	return be;
}

static int run_variants(const struct variant *v, size_t n,
						void (*body)(struct backend *ref, struct backend *cpu, const void *ctx), const void *ctx) {
	struct backend *ref = open_ref();
	int ran = 0;
	for (size_t i = 0; i < n; i++) {
		struct backend *cpu = open_variant(&v[i]);
		if (!cpu)
			continue;
		print_message("%s%s%s\n", cpu->ops->describe(cpu), v[i].products == CHOSEN ? "" : ", own product",
					  v[i].products == PAIRS ? " by VDPBF16PS" : "");
		body(ref, cpu, ctx);
		backend_close(cpu);
		ran++;
	}
	backend_close(ref);
	assert_true(ran >= 2); /* auto and portable are everywhere */
	return ran;
}

int for_each_variant(void (*body)(struct backend *ref, struct backend *cpu, const void *ctx), const void *ctx) {
	return run_variants(fp32_variants, sizeof fp32_variants / sizeof fp32_variants[0], body, ctx);
}

int for_each_bf16_variant(void (*body)(struct backend *ref, struct backend *cpu, const void *ctx), const void *ctx) {
	return run_variants(bf16_variants, sizeof bf16_variants / sizeof bf16_variants[0], body, ctx);
}

void round_to_bf16(float *x, size_t n) {
	for (size_t i = 0; i < n; i++) {
		uint32_t bits;
		memcpy(&bits, &x[i], sizeof bits);
		bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
		memcpy(&x[i], &bits, sizeof bits);
	}
}

float *zero_floats(size_t n) {
	float *p = calloc(n ? n : 1, sizeof *p);
	assert_non_null(p);
	return p;
}

float *random_floats(size_t n, uint64_t seed, float amplitude) {
	float *p = zero_floats(n);
	struct rv_rng r = rv_rng_of(seed, 1);
	for (size_t i = 0; i < n; i++)
		p[i] = (float)(2 * rv_rng_double(&r) - 1) * amplitude;
	return p;
}

float *copy_floats(const float *src, size_t n) {
	float *p = zero_floats(n);
	memcpy(p, src, n * sizeof *p);
	return p;
}

int32_t *random_tokens(size_t n, uint64_t seed, int below) {
	int32_t *p = calloc(n, sizeof *p);
	assert_non_null(p);
	struct rv_rng r = rv_rng_of(seed, 2);
	for (size_t i = 0; i < n; i++)
		p[i] = (int32_t)rv_rng_below(&r, (uint64_t)below);
	return p;
}

void check_close(const char *what, const float *got, const float *want, size_t n, double tolerance) {
	double squares = 0;
	size_t finite = 0;
	for (size_t i = 0; i < n; i++)
		if (isfinite(want[i])) {
			squares += (double)want[i] * (double)want[i];
			finite++;
		}
	double rms = finite ? sqrt(squares / (double)finite) : 0;
	for (size_t i = 0; i < n; i++) {
		if (isnan(want[i]) && isnan(got[i]))
			continue;
		double limit = tolerance * (fabs((double)want[i]) + rms);
		if (!(fabs((double)got[i] - (double)want[i]) <= limit))
			fail_msg("%s[%zu of %zu]: got %.9g, want %.9g (limit %.3g)", what, i, n, (double)got[i], (double)want[i],
					 limit);
	}
}

void check_rms(const char *what, const float *got, const float *want, size_t n, double tolerance) {
	double squares = 0, errors = 0;
	for (size_t i = 0; i < n; i++) {
		double error = (double)got[i] - (double)want[i];
		squares += (double)want[i] * (double)want[i];
		errors += error * error;
	}
	if (!(sqrt(errors) <= tolerance * sqrt(squares)))
		fail_msg("%s: the rms of the error is %.3g of that of %zu values (limit %.3g)", what, sqrt(errors / squares), n,
				 tolerance);
}

void check_same(const char *what, const float *got, const float *want, size_t n) {
	for (size_t i = 0; i < n; i++)
		if (memcmp(got + i, want + i, sizeof *got) != 0)
			fail_msg("%s[%zu of %zu]: got %.9g, want the same bits as %.9g", what, i, n, (double)got[i],
					 (double)want[i]);
}
