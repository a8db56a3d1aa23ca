/* cpu_isa.c: the instruction sets of this build, and of this machine. */
#include "kernels/cpu/cpu.h"

#include "base/os_cpus.h"

#include <string.h>

/* An instruction set, and its products in bf16 where some of its processors multiply that. */
struct level {
	const struct isa_kernels *kernels;
	bool (*is_there)(void); /* NULL: on every processor */
	const struct gemm_kernels *gemm_bf16;
	const struct attention_kernels *attention_bf16;
	bool (*has_bf16)(void); /* NULL: none of its processors */
};

#if defined(__x86_64__)
static bool has_avx512(void) {
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static bool has_avx512_bf16(void) {
	return __builtin_cpu_supports("avx512bf16");
}

static bool has_avx2(void) {
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

static const struct level levels[] = {
#if defined(__x86_64__)
	{&isa_kernels_avx512, has_avx512, &gemm_bf16_avx512, &attention_bf16_avx512, has_avx512_bf16},
	{.kernels = &isa_kernels_avx2, .is_there = has_avx2},
#elif defined(__aarch64__)
	{&isa_kernels_neon, NULL, &gemm_bf16_neon, &attention_bf16_neon, os_cpus_have_arm_bf16},
#endif
	{.kernels = &isa_kernels_portable},
};
enum { N_LEVELS = sizeof levels / sizeof levels[0] };

const char *cpu_isa_name(int i) {
	return i < N_LEVELS ? levels[i].kernels->name : NULL;
}

const struct isa_kernels *cpu_isa_choose(const char *limit, bool *best) {
	bool allowed = strcmp(limit, "auto") == 0;
	*best = true;
	for (int i = 0; i < N_LEVELS; i++) {
		allowed = allowed || strcmp(limit, levels[i].kernels->name) == 0;
		if (levels[i].is_there && !levels[i].is_there())
			continue;
		if (allowed)
			return levels[i].kernels;
		*best = false;
	}
	return NULL;
}

/* Returns the level of `isa` if the processor multiplies bf16 itself there; else NULL. */
static const struct level *bf16_level(const struct isa_kernels *isa) {
	for (int i = 0; i < N_LEVELS; i++)
		if (levels[i].kernels == isa && levels[i].has_bf16 && levels[i].has_bf16())
			return &levels[i];
	return NULL;
}

bool cpu_isa_multiplies_bf16(const char *limit) {
	bool best;
	return bf16_level(cpu_isa_choose(limit ? limit : "auto", &best)) != NULL;
}

const struct gemm_kernels *cpu_isa_gemm(const struct isa_kernels *isa, enum dtype compute) {
	if (compute == DTYPE_F32)
		return isa->gemm_fp32;
	const struct level *own = bf16_level(isa);
	return own ? own->gemm_bf16 : isa->gemm_rounded;
}

const struct attention_kernels *cpu_isa_attention(const struct isa_kernels *isa, enum dtype compute) {
	if (compute == DTYPE_F32)
		return isa->attention_fp32;
	const struct level *own = bf16_level(isa);
	return own ? own->attention_bf16 : isa->attention_rounded;
}
