/* step_contestants.c: see step_contestants.h. */
#include "bench/step_contestants.h"

#include <stdlib.h>
#include <unistd.h>

static const char torch_script[] = RV_BENCH_DIR "/step_torch.py";
/* The newest PyTorch of the package registry: ./dev deps judges. */
static const char judges_python[] = RV_BENCH_DIR "/../.cache/judges/venv/bin/python";
static const char judges_libraries[] = RV_BENCH_DIR "/../.cache/judges/stubs";
/* Debian's PyTorch (1.13 in Debian 12) is fastest with OpenBLAS's OpenMP build. */
static const char debian_python[] = "/usr/bin/python3";
static const char openblas[] = "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0";
#define TUNABLES       "GLIBC_TUNABLES"
#define TUNABLES_VALUE "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184"

const char contestant_tunables[] = TUNABLES "=" TUNABLES_VALUE;

#define TORCH_MISSING "PyTorch is missing, or too old to compile: ./dev deps judges, or RIVULET_TORCH_PYTHON"

enum { TORCH = 1, BF16 = 2, COMPILED = 4, TUNED = 8 };

static const struct {
	const char *name, *missing;
	unsigned is;
} about[N_CONTESTANTS] = {
	[OURS_FP32] = {"ours fp32", "", 0},
	[OURS_BF16] = {"ours bf16", "", BF16},
	[BEFORE_FP32] = {"before fp32", "--before must name a bench_step", 0},
	[BEFORE_BF16] = {"before bf16", "--before must name a bench_step", BF16},
	[TORCH_FP32] = {"PyTorch fp32, default malloc", TORCH_MISSING, TORCH},
	[TORCH_FP32_COMPILED] = {"PyTorch fp32 compiled, default malloc", TORCH_MISSING, TORCH | COMPILED},
	[TORCH_FP32_TUNED] = {"PyTorch fp32, tuned malloc", TORCH_MISSING, TORCH | TUNED},
	[TORCH_FP32_COMPILED_TUNED] = {"PyTorch fp32 compiled, tuned malloc", TORCH_MISSING, TORCH | COMPILED | TUNED},
	[TORCH_BF16] = {"PyTorch bf16, default malloc", TORCH_MISSING, TORCH | BF16},
	[TORCH_BF16_COMPILED] = {"PyTorch bf16 compiled, default malloc", TORCH_MISSING, TORCH | BF16 | COMPILED},
	[TORCH_BF16_TUNED] = {"PyTorch bf16, tuned malloc", TORCH_MISSING, TORCH | BF16 | TUNED},
	[TORCH_BF16_COMPILED_TUNED] = {"PyTorch bf16 compiled, tuned malloc", TORCH_MISSING,
								   TORCH | BF16 | COMPILED | TUNED},
	[LLMC] = {"llm.c", "llm.c is missing: set LLMC_DIR to a checkout of it", 0},
};

const char *contestant_name(enum contestant_kind k) {
	return about[k].name;
}

const char *contestant_missing(enum contestant_kind k) {
	return about[k].missing;
}

bool contestant_is_torch(enum contestant_kind k) {
	return about[k].is & TORCH;
}

bool contestant_is_bf16(enum contestant_kind k) {
	return about[k].is & BF16;
}

bool contestant_is_compiled(enum contestant_kind k) {
	return about[k].is & COMPILED;
}

bool contestant_is_tuned(enum contestant_kind k) {
	return about[k].is & TUNED;
}

enum { SHAPE_ARGS = 6, ARG_BYTES = 12 };

static bool start_ours(struct step_peer *p, const char *program, const struct step_shape *s, bool bf16, char *threads,
					   const struct ours_options *o) {
	char cases[2] = {s->letter, 0}, micro_batch[ARG_BYTES];
	snprintf(micro_batch, sizeof micro_batch, "%d", o->savings->micro_batch);
	char *argv[] = {(char *)program, "--serve",      "--cases",   cases,
					"--threads",     threads,        "--dtype",   bf16 ? "bf16" : "fp32",
					"--isa",         (char *)o->isa, "--moments", (char *)moments_name(o->savings->moments),
					"--micro-batch", micro_batch,    NULL};
	return step_peer_start(p, argv, NULL);
}

static void shape_arguments(const struct step_shape *s, char out[SHAPE_ARGS][ARG_BYTES]) {
	const int values[SHAPE_ARGS] = {s->layers, s->heads, s->channels, s->vocab, s->context, s->batch};
	for (int i = 0; i < SHAPE_ARGS; i++)
		snprintf(out[i], ARG_BYTES, "%d", values[i]);
}

/* A Python with PyTorch, and what it needs around it; NULL: nothing. */
struct torch_place {
	const char *python, *libraries, *preload;
};

/* Returns the first of RIVULET_TORCH_PYTHON, the judges', Debian's. */
static struct torch_place find_torch(void) {
	const char *wanted = getenv("RIVULET_TORCH_PYTHON");
	if (wanted && *wanted)
		return (struct torch_place){wanted, NULL, NULL};
	if (access(judges_python, X_OK) == 0)
		return (struct torch_place){judges_python, judges_libraries, NULL};
	if (access(openblas, R_OK) == 0)
		return (struct torch_place){debian_python, NULL, openblas};
	fprintf(stderr, "%s is not installed (libopenblas0-openmp): Debian's PyTorch is slower than it could be\n",
			openblas);
	return (struct torch_place){debian_python, NULL, NULL};
}

static bool start_torch(struct step_peer *p, const struct step_shape *s, enum contestant_kind k, char *threads) {
	char a[SHAPE_ARGS][ARG_BYTES];
	shape_arguments(s, a);
	const struct torch_place place = find_torch();
	const struct step_env fair[] = {
		{"OPENBLAS_CORETYPE", NULL},
		{"OPENBLAS_L2_SIZE", NULL},
		{"OMP_PROC_BIND", NULL},
		{"ATEN_CPU_CAPABILITY", __builtin_cpu_supports("avx512f") ? "avx512" : NULL},
		{"OMP_NUM_THREADS", threads},
		{TUNABLES, contestant_is_tuned(k) ? TUNABLES_VALUE : NULL},
		{"LD_LIBRARY_PATH", place.libraries},
		{"LD_PRELOAD", place.preload},
		{NULL, NULL},
	};
	char *argv[] = {(char *)place.python,
					(char *)torch_script,
					a[0],
					a[1],
					a[2],
					a[3],
					a[4],
					a[5],
					threads,
					contestant_is_bf16(k) ? "bf16" : "fp32",
					contestant_is_compiled(k) ? "compiled" : "eager",
					NULL};
	return step_peer_start(p, argv, fair);
}

static bool start_llmc(struct step_peer *p, const struct step_shape *s, const char *threads) {
	const char *dir = getenv("LLMC_DIR");
	if (!dir || !*dir)
		return false;
	char program[64], command[1600], a[SHAPE_ARGS][ARG_BYTES];
	snprintf(program, sizeof program, "/tmp/rv-bench-llmc-%d", (int)getpid());
	snprintf(command, sizeof command,
			 "cc -Ofast -march=native -fopenmp -DOMP -D_GNU_SOURCE -w -I'%s' -I'%s' '%s/step_llmc.c' '%s/step_peer.c' "
			 "-lm -o %s",
			 dir, RV_BENCH_DIR "/..", RV_BENCH_DIR, RV_BENCH_DIR, program);
	bool built = system(command) == 0;
	shape_arguments(s, a);
	const struct step_env env[] = {{"OMP_NUM_THREADS", threads}, {NULL, NULL}};
	char *argv[] = {program, a[0], a[1], a[2], a[3], a[4], a[5], NULL};
	bool started = built && step_peer_start(p, argv, env);
	unlink(program);
	return started;
}

void contestant_start(struct contestant *c, enum contestant_kind k, const struct step_shape *s, int threads,
					  const struct ours_options *ours) {
	char count[ARG_BYTES];
	snprintf(count, sizeof count, "%d", threads);
	if (k == OURS_FP32 || k == OURS_BF16)
		c->there = start_ours(&c->peer, "/proc/self/exe", s, k == OURS_BF16, count, ours);
	else if (k == BEFORE_FP32 || k == BEFORE_BF16)
		c->there = start_ours(&c->peer, ours->before, s, k == BEFORE_BF16, count, ours);
	else if (contestant_is_torch(k))
		c->there = start_torch(&c->peer, s, k, count);
	else
		c->there = start_llmc(&c->peer, s, count);
}
