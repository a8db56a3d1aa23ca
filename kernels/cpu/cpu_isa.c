/* cpu_isa.c: the instruction sets of this machine. */
#include "kernels/cpu/cpu.h"

#include <string.h>

static const struct isa_kernels *const levels[] = {
#if defined(__x86_64__)
	&isa_kernels_avx512,
	&isa_kernels_avx2,
#endif
	&isa_kernels_portable,
};
enum { N_LEVELS = sizeof levels / sizeof levels[0] };

static bool machine_has(const struct isa_kernels *k) {
#if defined(__x86_64__)
	if (k == &isa_kernels_avx512)
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
			   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
	if (k == &isa_kernels_avx2)
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
	return k == &isa_kernels_portable;
}

const struct isa_kernels *cpu_isa_choose(const char *limit, bool *best) {
	bool allowed = strcmp(limit, "auto") == 0;
	*best = true;
	for (int i = 0; i < N_LEVELS; i++) {
		allowed = allowed || strcmp(limit, levels[i]->name) == 0;
		if (!machine_has(levels[i]))
			continue;
		if (allowed)
			return levels[i];
		*best = false;
	}
	return NULL;
}

/* Returns true if the processor multiplies bf16 itself, and `isa` allows its use. */
static bool has_bf16(const struct isa_kernels *isa) {
#if defined(__x86_64__)
	return isa == &isa_kernels_avx512 && __builtin_cpu_supports("avx512bf16");
#else
	(void)isa;
	return false;
#endif
}

bool cpu_isa_multiplies_bf16(const char *limit) {
	bool best;
	return has_bf16(cpu_isa_choose(limit ? limit : "auto", &best));
}

const struct gemm_kernels *cpu_isa_gemm(const struct isa_kernels *isa, enum dtype compute) {
	if (compute == DTYPE_F32)
		return isa->gemm_fp32;
#if defined(__x86_64__)
	if (has_bf16(isa))
		return &gemm_kernels_avx512_bf16;
#endif
	return isa->gemm_rounded;
}

const struct attention_kernels *cpu_isa_attention(const struct isa_kernels *isa, enum dtype compute) {
	if (compute == DTYPE_F32)
		return isa->attention_fp32;
#if defined(__x86_64__)
	if (has_bf16(isa))
		return &attention_kernels_avx512_bf16;
#endif
	return isa->attention_rounded;
}
