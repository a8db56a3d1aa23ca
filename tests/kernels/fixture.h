/* fixture.h: `ref` and every variant of `cpu` side by side, arrays of reproducible numbers, and
 * comparisons. */
#ifndef RV_TESTS_KERNELS_FIXTURE_H
#define RV_TESTS_KERNELS_FIXTURE_H

#include "kernels/backend.h"
#include "tests/common/check.h"
#include "tests/kernels/tolerances.h"

/* Which matrix products: those that `cpu` chooses, our own even where it would use oneDNN's, or
 * ours by VDPBF16PS even where others are faster. */
enum products { CHOSEN, OWN, PAIRS };

/* One way to run `cpu`. */
struct variant {
	const char *isa;
	int threads;
	enum products products;
	enum dtype compute;
};

/* Calls body(ref, cpu, ctx) for every variant that this machine has, printing its name first;
 * returns how many. */
int for_each_variant(void (*body)(struct backend *ref, struct backend *cpu, const void *ctx), const void *ctx);
/* The same with products in bf16. */
int for_each_bf16_variant(void (*body)(struct backend *ref, struct backend *cpu, const void *ctx), const void *ctx);
/* NULL when the machine lacks the instruction set. */
struct backend *open_variant(const struct variant *v);
struct backend *open_ref(void);

/* n floats, uniform in [-1, 1) * amplitude, a function of (seed, i) alone; free() them. Allocated
 * to the byte, so that AddressSanitizer sees every stray access. */
float *random_floats(size_t n, uint64_t seed, float amplitude);
float *zero_floats(size_t n);
float *copy_floats(const float *src, size_t n);
/* Rounds in place to values that bf16 holds: products of such numbers are the same in both
 * dtypes. */
void round_to_bf16(float *x, size_t n);
int32_t *random_tokens(size_t n, uint64_t seed, int below);
static inline act_t *as_act(float *p) {
	return (act_t *)(void *)p;
}

/* Fails the test naming `what`, the worst index and both values. NaN must meet NaN. */
void check_close(const char *what, const float *got, const float *want, size_t n, double tolerance);
/* The root mean square of got - want against that of want: errors that are random can be bounded
 * closely by it. */
void check_rms(const char *what, const float *got, const float *want, size_t n, double tolerance);
/* The same bits. */
void check_same(const char *what, const float *got, const float *want, size_t n);

#endif
