/* bench_step.c: one training step (forward, backward, clipping, AdamW) against PyTorch and llm.c on the CPU.
 *
 * Every contestant is a process of its own; they take turns, a few steps each, so that a slow spell of the machine hits
 * all of them; what counts is the median over the rounds. PyTorch gets the settings under which it is fastest, see
 * fair_torch. llm.c is measured when LLMC_DIR names a checkout of it.
 */
#include "base/err.h"
#include "base/options.h"
#include "base/program.h"
#include "base/rng.h"
#include "bench/bench_report.h"
#include "bench/step_peer.h"
#include "worker/train/replica.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct shape {
	const char *name;
	int layers, heads, channels, vocab, context, batch;
	int steps; /* in a round: about half a second's worth or more */
};

static const struct shape shapes[] = {
	{"a: GPT-2 124M, B4 T64 V50304", 12, 12, 768, 50304, 64, 4, 1},
	{"b: 6L x 384, B8 T256 V256", 6, 6, 384, 256, 256, 8, 2},
	{"c: 4L x 128, B16 T128 V256", 4, 4, 128, 256, 128, 16, 10},
};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0], TEXT_BYTES = 16 * DATA_BLOCK };

struct options {
	char cases[16], dtype[8], isa[16];
	int64_t rounds, threads;
	bool serve, peers;
};

#define OPTION(name, type, field, fallback, lo, hi, choices, help)                                                     \
	{                                                                                                                  \
		name, type, offsetof(struct options, field), sizeof(((struct options *)0)->field), fallback, lo, hi, choices,  \
			help, "Benchmark"                                                                                          \
	}

static const struct rv_option option_table[] = {
	OPTION("cases", RV_OPT_STRING, cases, "abc", 0, 0, NULL, "Which shapes."),
	OPTION("rounds", RV_OPT_INT, rounds, "5", 1, STEP_PEER_MAX_ROUNDS, NULL, "Turns of each contestant."),
	OPTION("threads", RV_OPT_INT, threads, "2", 1, 256, NULL, "Threads of each contestant."),
	OPTION("dtype", RV_OPT_ENUM, dtype, "fp32", 0, 0, "fp32|bf16", "Inputs of the matrix products."),
	OPTION("isa", RV_OPT_STRING, isa, "auto", 0, 0, NULL, "Highest instruction set to use."),
	OPTION("peers", RV_OPT_BOOL, peers, "true", 0, 0, NULL, "Measure the others too."),
	OPTION("serve", RV_OPT_BOOL, serve, "false", 0, 0, NULL, "Be the contestant (used by the benchmark itself)."),
	{NULL, RV_OPT_BOOL, 0, 0, NULL, 0, 0, NULL, NULL, NULL},
};

/* PyTorch 1.13 of Debian 12 at its best: AVX-512 kernels, OpenBLAS with OpenMP and for this processor, huge pages. */
static const char torch_script[] = RV_BENCH_DIR "/step_torch.py";
static const char openblas[] = "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0";
static const char malloc_tunables[] =
	"glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184";

/* --- our own contestant --------------------------------------------------------------------------------------------*/

struct ours {
	struct dataset *data;
	struct backend *be;
	struct replica *replica;
};

static enum rv_err make_dataset(const struct shape *s, struct dataset **out, struct rv_errtext *et) {
	char path[] = "/tmp/rv-bench-step-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!f)
		return rv_fail(et, RV_E_IO, "cannot make %s", path);
	struct rv_rng rng = rv_rng_of(1, 1);
	for (int i = 0; i < TEXT_BYTES; i++)
		putc((int)rv_rng_below(&rng, 256), f);
	fclose(f);
	const struct dataset_config data = {
		.path = path, .n_shards = 1, .holdout_every = 8, .context = (uint32_t)s->context, .seed = 1};
	enum rv_err e = dataset_open(&data, out, et);
	unlink(path); /* it stays mapped */
	return e;
}

static struct run_config config_of(const struct shape *s) {
	struct run_config c;
	run_config_defaults(&c);
	c.n_layer = s->layers;
	c.n_head = s->heads;
	c.n_embd = s->channels;
	c.vocab = s->vocab;
	c.context = s->context;
	c.batch = s->batch;
	c.data_shards = 1;
	c.lr = 1e-4;
	return c;
}

static void our_step(void *ctx) {
	struct ours *o = ctx;
	struct step_stats stats;
	struct rv_errtext et = {0};
	if (replica_step(o->replica, &stats, &et) != RV_OK) {
		fprintf(stderr, "bench_step: %s\n", et.text);
		exit(RV_EXIT_FAULT);
	}
}

static enum rv_err serve(const struct options *opt, const struct shape *s, struct rv_errtext *et) {
	struct ours o = {0};
	struct run_config cfg = config_of(s);
	struct backend_options be = {(int)opt->threads, strcmp(opt->dtype, "bf16") == 0 ? DTYPE_BF16 : DTYPE_F32, opt->isa};
	enum rv_err e = make_dataset(s, &o.data, et);
	if (e == RV_OK)
		e = backend_open(backend_registry[0]->name, &be, &o.be, et);
	if (e == RV_OK)
		e = replica_new(&cfg, o.data, &(struct replica_options){.shard = 0, .n_shards = 1}, o.be, &o.replica, et);
	if (e == RV_OK) {
		fprintf(stderr, "%s: %s\n", s->name, o.be->ops->describe(o.be));
		our_step(&o);
		our_step(&o);
		step_serve(stdout, our_step, &o);
	}
	replica_free(o.replica);
	backend_close(o.be);
	dataset_close(o.data);
	return e;
}

/* --- starting the contestants --------------------------------------------------------------------------------------*/

static bool start_ours(struct step_peer *p, const struct options *opt, char which) {
	char cases[2] = {which, 0}, threads[8];
	snprintf(threads, sizeof threads, "%d", (int)opt->threads);
	char *argv[] = {"/proc/self/exe",   "--serve", "--cases",        cases, "--threads", threads, "--dtype",
					(char *)opt->dtype, "--isa",   (char *)opt->isa, NULL};
	return step_peer_start(p, argv, NULL);
}

enum { SHAPE_ARGS = 6, ARG_BYTES = 12 };

static void shape_arguments(const struct shape *s, char out[SHAPE_ARGS][ARG_BYTES]) {
	const int values[SHAPE_ARGS] = {s->layers, s->heads, s->channels, s->vocab, s->context, s->batch};
	for (int i = 0; i < SHAPE_ARGS; i++)
		snprintf(out[i], ARG_BYTES, "%d", values[i]);
}

static bool start_torch(struct step_peer *p, const struct options *opt, const struct shape *s) {
	char a[SHAPE_ARGS][ARG_BYTES], threads[8];
	shape_arguments(s, a);
	snprintf(threads, sizeof threads, "%d", (int)opt->threads);
	bool preload = access(openblas, R_OK) == 0;
	const struct step_env fair_torch[] = {
		{"OPENBLAS_CORETYPE", NULL},
		{"OPENBLAS_L2_SIZE", NULL},
		{"OMP_PROC_BIND", NULL},
		{"ATEN_CPU_CAPABILITY", __builtin_cpu_supports("avx512f") ? "avx512" : NULL},
		{"OMP_NUM_THREADS", threads},
		{"GLIBC_TUNABLES", malloc_tunables},
		{"LD_PRELOAD", preload ? openblas : NULL},
		{NULL, NULL},
	};
	char *argv[] = {"/usr/bin/python3",
					(char *)torch_script,
					a[0],
					a[1],
					a[2],
					a[3],
					a[4],
					a[5],
					threads,
					strcmp(opt->dtype, "bf16") == 0 ? "bf16" : NULL,
					NULL};
	if (!preload)
		fprintf(stderr, "%s is not installed (libopenblas0-openmp): PyTorch is slower than it could be\n", openblas);
	return step_peer_start(p, argv, fair_torch);
}

static bool start_llmc(struct step_peer *p, const struct options *opt, const struct shape *s) {
	const char *dir = getenv("LLMC_DIR");
	if (!dir || !*dir)
		return false;
	char program[64], command[1600], a[SHAPE_ARGS][ARG_BYTES], threads[8];
	snprintf(program, sizeof program, "/tmp/rv-bench-llmc-%d", (int)getpid());
	snprintf(command, sizeof command,
			 "cc -Ofast -march=native -fopenmp -DOMP -D_GNU_SOURCE -w -I'%s' -I'%s' '%s/step_llmc.c' '%s/step_peer.c' "
			 "-lm -o %s",
			 dir, RV_BENCH_DIR "/..", RV_BENCH_DIR, RV_BENCH_DIR, program);
	bool built = system(command) == 0;
	shape_arguments(s, a);
	snprintf(threads, sizeof threads, "%d", (int)opt->threads);
	const struct step_env env[] = {{"OMP_NUM_THREADS", threads}, {NULL, NULL}};
	char *argv[] = {program, a[0], a[1], a[2], a[3], a[4], a[5], NULL};
	bool started = built && step_peer_start(p, argv, env);
	unlink(program);
	return started;
}

/* --- one case ------------------------------------------------------------------------------------------------------*/

struct contestant {
	const char *name, *missing;
	bool there;
	struct step_peer peer;
};

/* The figures of every turn go to stderr, to see how noisy the machine is. */
static void take_turns(struct contestant *c, int n, const struct options *opt, int steps) {
	for (int round = 0; round < opt->rounds; round++) {
		fprintf(stderr, "round %d:", round + 1);
		for (int i = 0; i < n; i++) {
			if (!c[i].there)
				continue;
			c[i].there = step_peer_round(&c[i].peer, steps);
			if (c[i].there)
				fprintf(stderr, "  %s %.1f ms", c[i].name, c[i].peer.ms[round]);
			else
				fprintf(stderr, "  %s died", c[i].name);
		}
		fprintf(stderr, "\n");
	}
}

static enum rv_err run_case(struct bench_report *report, const struct options *opt, int which, struct rv_errtext *et) {
	enum { OURS, TORCH, LLMC, CONTESTANTS };
	const struct shape *s = &shapes[which];
	bool bf16 = strcmp(opt->dtype, "bf16") == 0;
	struct contestant c[CONTESTANTS] = {
		[OURS] = {.name = "ours"},
		[TORCH] = {.name = bf16 ? "PyTorch bf16" : "PyTorch fp32",
				   .missing = "PyTorch is not there: install python3-torch"},
		[LLMC] = {.name = "llm.c", .missing = "llm.c is not there: set LLMC_DIR to a checkout of it"},
	};
	c[OURS].there = start_ours(&c[OURS].peer, opt, (char)('a' + which));
	if (!c[OURS].there)
		return rv_fail(et, RV_E_IO, "%s: our own contestant did not start", s->name);
	if (opt->peers) {
		c[TORCH].there = start_torch(&c[TORCH].peer, opt, s);
		c[LLMC].there = start_llmc(&c[LLMC].peer, opt, s);
	}
	take_turns(c, CONTESTANTS, opt, s->steps);
	for (int i = TORCH; i < CONTESTANTS; i++) {
		bool there = c[i].there && c[OURS].there;
		char name[BENCH_NAME_BYTES];
		if (!c[i].there && opt->peers)
			fprintf(stderr, "%s\n", c[i].missing);
		bench_less_is_better(report, s->name, c[i].name, step_peer_ms(&c[OURS].peer),
							 there ? step_peer_ms(&c[i].peer) : NAN, "ms");
		snprintf(name, sizeof name, "%s, peak RSS", s->name);
		bench_less_is_better(report, name, c[i].name, c[OURS].peer.rss_mib, there ? c[i].peer.rss_mib : NAN, "MiB");
	}
	for (int i = 0; i < CONTESTANTS; i++)
		if (c[i].peer.pid > 0)
			step_peer_stop(&c[i].peer);
	return RV_OK;
}

static enum rv_err check(const void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct options *opt = opts;
	for (const char *c = opt->cases; *c; c++)
		if (*c < 'a' || *c >= 'a' + N_SHAPES)
			return rv_fail(et, RV_E_INVALID, "cases = %s: there are a, b and c", opt->cases);
	return opt->cases[0] ? RV_OK : rv_fail(et, RV_E_INVALID, "cases is empty: there are a, b and c");
}

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)args;
	const struct options *opt = opts;
	if (opt->serve)
		return serve(opt, &shapes[opt->cases[0] - 'a'], et);
	signal(SIGPIPE, SIG_IGN); /* a contestant that died is seen as a failed write */
	struct bench_report report = {.bench = "step"};
	bench_warn_if_busy();
	for (const char *c = opt->cases; *c; c++)
		RV_TRY(run_case(&report, opt, *c - 'a', et));
	bench_print_table(&report);
	return RV_OK;
}

int main(int argc, char **argv) {
	const struct rv_command commands[] = {
		{.name = NULL,
		 .synopsis = "",
		 .help = "Time one training step against PyTorch and, with LLMC_DIR set, llm.c.",
		 .options = option_table,
		 .opts_bytes = sizeof(struct options),
		 .check = check,
		 .run = run},
		{.run = NULL},
	};
	const struct rv_program program = {.name = "bench_step", .summary = "The step benchmark.", .commands = commands};
	return rv_program_main(&program, argc, argv);
}
