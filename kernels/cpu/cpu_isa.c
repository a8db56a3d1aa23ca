/* cpu_isa.c: the instruction sets of this build, and of this machine. */
#include "kernels/cpu/cpu.h"

#include "base/os_cpus.h"

#include <string.h>

/* Instructions that multiply bf16, of processors with an instruction set. */
struct bf16_units {
	const struct gemm_kernels *gemm;
	const struct attention_kernels *attention;
	bool (*are_there)(void); /* and worth it; NULL: the end of a list */
};

enum { MAX_UNITS = 2 };

struct level {
	const struct isa_kernels *kernels;
	bool (*is_there)(void);                /* NULL: on every processor */
	struct bf16_units bf16[MAX_UNITS + 1]; /* the fastest first */
};

#if defined(RV_X86_KERNELS)
static bool has_avx512(void) {
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

/* Intel's processors (Sapphire Rapids) begin a VDPBF16PS every second cycle, and two multiply-adds
 * of fp32 every cycle: half the rate, where AMD's have twice the rate. */
static bool has_fast_avx512_bf16(void) {
	return __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("intel");
}

static bool has_avx2(void) {
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

static const struct level levels[] = {
#if defined(RV_X86_KERNELS)
	{&isa_kernels_avx512,
	 has_avx512,
	 {{&gemm_bf16_amx, &attention_bf16_amx, os_cpus_allow_amx},
	  {&gemm_bf16_avx512, &attention_bf16_avx512, has_fast_avx512_bf16}}},
	{.kernels = &isa_kernels_avx2, .is_there = has_avx2},
#elif defined(RV_NEON_KERNELS)
	{&isa_kernels_neon, NULL, {{&gemm_bf16_neon, &attention_bf16_neon, os_cpus_have_arm_bf16}}},
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

/* Returns the fastest units for bf16 of this processor that belong to `isa`; NULL: it has none. */
static const struct bf16_units *units_of(const struct isa_kernels *isa) {
	for (int i = 0; i < N_LEVELS; i++)
		for (const struct bf16_units *u = levels[i].bf16; levels[i].kernels == isa && u->are_there; u++)
			if (u->are_there())
				return u;
	return NULL;
}

bool cpu_isa_multiplies_bf16(const char *limit) {
	bool best;
	return units_of(cpu_isa_choose(limit ? limit : "auto", &best)) != NULL;
}

const struct gemm_kernels *cpu_isa_gemm(const struct isa_kernels *isa, enum dtype compute) {
	if (compute == DTYPE_F32)
		return isa->gemm_fp32;
	const struct bf16_units *units = units_of(isa);
	return units ? units->gemm : isa->gemm_rounded;
}

const struct attention_kernels *cpu_isa_attention(const struct isa_kernels *isa, enum dtype compute) {
	if (compute == DTYPE_F32)
		return isa->attention_fp32;
	const struct bf16_units *units = units_of(isa);
	return units ? units->attention : isa->attention_rounded;
}
