/* stand_in_code.c: modules, kernels and launches of the stand-in driver. Source of the limits:
 * NVIDIA's CUDA programming guide, "Compute capabilities". */
#include "tests/kernels/driver/stand_in_internal.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

enum { EM_CUDA_ = 190, ERROR_NOT_FOUND = 500, BLOCK_THREADS_MAX = 1024, GRID_YZ_MAX = 65535, STATIC_SHARED = 48 << 10 };

struct CUmod_st {
	const unsigned char *image;
	bool is_ptx, is_unloaded;
};
struct CUfunc_st {
	const struct CUmod_st *module;
	char name[256];
	int dynamic_shared_max;
};

/* Counts and prints a refusal. */
static CUresult refuse(CUresult e, const char *what, const char *name) {
	(void)fprintf(stderr, "stand-in driver: %s: %s\n", name, what);
	stand_in.refusals++;
	return e;
}

/* Returns the compute capability of a cubin: in the low byte of its flags, or in the next one (ABI
 * of newer toolkits). */
static int capability_of(const Elf64_Ehdr *elf) {
	int newer = (int)(elf->e_flags >> 8 & 0xff);
	return newer >= 50 ? newer : (int)(elf->e_flags & 0xff);
}

/* Returns the number behind a word such as ".target sm_", or -1. */
static int number_behind(const char *text, const char *word) {
	const char *at = strstr(text, word);
	return at ? atoi(at + strlen(word)) : -1;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image) {
	const int card = stand_in_capability();
	const Elf64_Ehdr *elf = image;
	const bool is_elf = memcmp(elf->e_ident, ELFMAG, SELFMAG) == 0;
	*out = NULL;
	if (is_elf && elf->e_machine != EM_CUDA_)
		return refuse(CUDA_ERROR_INVALID_VALUE, "an ELF file for another machine", "a module");
	const int code = is_elf ? capability_of(elf) : number_behind(image, ".target sm_");
	if (code < 0 || (is_elf ? code / 10 != card / 10 : false) || code > card)
		return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, "no code for this card", "a module");
	*out = calloc(1, sizeof **out);
	**out = (struct CUmod_st){image, !is_elf, false};
	stand_in.modules++;
	stand_in.ptx_modules += !is_elf;
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule m) {
	if (!m || m->is_unloaded)
		return refuse(CUDA_ERROR_INVALID_VALUE, "it is not loaded", "a module");
	m->is_unloaded = true; /* kept: a launch of its kernels is refused */
	stand_in.unloaded++;
	return CUDA_SUCCESS;
}

static bool cubin_has(const unsigned char *image, const char *name) {
	const Elf64_Ehdr *elf = (const void *)image;
	const Elf64_Shdr *sections = (const void *)(image + elf->e_shoff);
	for (int i = 0; i < elf->e_shnum; i++) {
		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		const Elf64_Sym *symbols = (const void *)(image + sections[i].sh_offset);
		const char *names = (const char *)image + sections[sections[i].sh_link].sh_offset;
		for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; k++)
			if (ELF64_ST_TYPE(symbols[k].st_info) == STT_FUNC && strcmp(names + symbols[k].st_name, name) == 0)
				return true;
	}
	return false;
}

static bool ptx_has(const char *text, const char *name) {
	char entry[300];
	(void)snprintf(entry, sizeof entry, ".entry %s(", name);
	return strstr(text, entry) != NULL;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name) {
	bool has = m->is_ptx ? ptx_has((const char *)m->image, name) : cubin_has(m->image, name);
	*out = NULL;
	if (!has)
		return refuse(ERROR_NOT_FOUND, "no such kernel in the module", name);
	*out = calloc(1, sizeof **out);
	(*out)->module = m;
	(void)snprintf((*out)->name, sizeof(*out)->name, "%s", name);
	stand_in.functions++;
	return CUDA_SUCCESS;
}

/* Returns the most shared memory of a block, in bytes. */
static int shared_max(void) {
	const int card = stand_in_capability();
	const int kib = card == 80 || card == 87 ? 163 : card / 10 == 8 || card / 10 == 12 ? 99 : 227;
	return kib << 10;
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute what, int value) {
	if (what != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > shared_max())
		return refuse(CUDA_ERROR_INVALID_VALUE, "more shared memory than the card has", f->name);
	f->dynamic_shared_max = value;
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
						unsigned shared, CUstream s, void **arguments, void **extra) {
	const unsigned long threads = (unsigned long)bx * by * bz;
	if (f->module->is_unloaded)
		return refuse(CUDA_ERROR_INVALID_VALUE, "its module is unloaded", f->name);
	if (!s || extra || !arguments || !arguments[0])
		return refuse(CUDA_ERROR_INVALID_VALUE, "a launch without stream or arguments", f->name);
	if (gx == 0 || gy == 0 || gz == 0 || gx > 0x7fffffffu || gy > GRID_YZ_MAX || gz > GRID_YZ_MAX)
		return refuse(CUDA_ERROR_INVALID_VALUE, "a grid of a size that no card has", f->name);
	if (threads == 0 || threads > BLOCK_THREADS_MAX)
		return refuse(CUDA_ERROR_INVALID_VALUE, "a block of a size that no card has", f->name);
	if (shared > STATIC_SHARED && (int)shared > f->dynamic_shared_max)
		return refuse(CUDA_ERROR_INVALID_VALUE, "shared memory that was not asked for", f->name);
	stand_in.launches++;
	stand_in.captured += stand_in_captures(s);
	return CUDA_SUCCESS;
}
