/* test_train_device_memory.c: what a replica on the CUDA backend, emulated, takes of a device's
 * memory: all of it before the first step, as much as was planned, and where there is too little, a
 * refusal that names what would fit. */
#include "tests/train/train_fixture.h"

#include "kernels/cuda/cuda_backend.h"
#include "tests/emu/runtime.h"
#include "train/device_set.h"
#include "train/memory/plan.h"
#include "train/step_bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TENSOR_HEAD_DIM = 32, HELDOUT_TOKENS = 100, EMU_DEVICES = 2 };

struct on_gpu {
	struct fixture_run run; /* the same on the CPU: the data, and the weights that are evaluated */
	struct device_set devices;
	struct replica *replica;
};

static struct run_config config_of(const char *model, const char *dtype) {
	struct run_config cfg = fixture_config();
	(void)rv_options_set(run_config_options, &cfg, "model", model, NULL);
	(void)rv_options_set(run_config_options, &cfg, "dtype", dtype, NULL);
	cfg.n_embd = cfg.n_head * TENSOR_HEAD_DIM;
	return cfg;
}

static enum rv_err gpu_open(struct on_gpu *g, const struct run_config *cfg, const struct replica_options *options,
							int devices, struct rv_errtext *et) {
	struct device_choice cuda = {.backend = "cuda", .n = devices};
	struct backend_options opt = {.threads = 1, .compute = run_config_compute(cfg, &cuda, NULL)};
	fixture_run_init(&g->run, cfg, "cpu");
	g->replica = NULL;
	g->devices = (struct device_set){.choice = cuda};
	for (int i = 0; i < devices; i++) {
		opt.device = i % EMU_DEVICES;
		assert_int_equal(cuda_ops.open(&opt, &g->devices.be[i], NULL), RV_OK);
	}
	return replica_new_on(cfg, g->run.data, options, &g->devices, &g->replica, et);
}

static void gpu_init(struct on_gpu *g, const struct run_config *cfg) {
	const struct replica_options o = {.n_shards = (uint32_t)cfg->data_shards};
	assert_ok(gpu_open(g, cfg, &o, 1, &et));
}

static void gpu_release(struct on_gpu *g) {
	replica_free(g->replica);
	for (int i = 0; i < g->devices.choice.n; i++)
		g->devices.be[i]->ops->close(g->devices.be[i]);
	fixture_run_release(&g->run);
}

static void one_step(struct replica *r) {
	struct step_stats stats;
	assert_int_equal(replica_step(r, &stats, NULL), RV_OK);
}

/* The weights of the replica on the CPU are other ones: of a step more. The GPU's stay what they
 * are, to the bit. */
static void check_evaluation(const char *dtype) {
	const struct run_config cfg = config_of("gpt2", dtype);
	struct on_gpu g;
	char before[65], after[65];
	double own[2], other, on_cpu;
	gpu_init(&g, &cfg);
	fixture_steps(g.run.replica, 1);
	one_step(g.replica);
	assert_int_equal(replica_eval(g.replica, NULL, HELDOUT_TOKENS, &own[0], NULL), RV_OK);
	fixture_theta_hash(g.replica, before);
	const size_t bytes = emu_count().device_bytes;
	assert_int_equal(replica_eval(g.replica, replica_theta(g.run.replica), HELDOUT_TOKENS, &other, NULL), RV_OK);
	assert_int_equal(emu_count().device_bytes, bytes);
	fixture_theta_hash(g.replica, after);
	assert_string_equal(after, before);
	assert_int_equal(replica_eval(g.replica, NULL, HELDOUT_TOKENS, &own[1], NULL), RV_OK);
	assert_true(own[0] == own[1] && own[0] != other);
	assert_int_equal(replica_eval(g.run.replica, NULL, HELDOUT_TOKENS, &on_cpu, NULL), RV_OK);
	assert_true(other > on_cpu * 0.99 && other < on_cpu * 1.01);
	gpu_release(&g);
}

static void test_an_evaluation_of_other_weights_takes_no_memory(void **state) {
	(void)state;
	check_evaluation("fp32");
	check_evaluation("bf16");
}

/* An evaluation that is stopped gives the replica its weights back too. */
static void test_a_stopped_evaluation_leaves_the_weights(void **state) {
	(void)state;
	const struct run_config cfg = config_of("gpt2", "bf16");
	struct on_gpu g;
	struct rv_errtext et = {0};
	char before[65], after[65];
	double loss;
	atomic_bool stop = true;
	gpu_init(&g, &cfg);
	fixture_steps(g.run.replica, 1);
	fixture_theta_hash(g.replica, before);
	replica_watch(g.replica, &stop);
	assert_fault(replica_eval(g.replica, replica_theta(g.run.replica), 0, &loss, &et), RV_E_CANCELLED, &et, "stopped");
	fixture_theta_hash(g.replica, after);
	assert_string_equal(after, before);
	gpu_release(&g);
}

/* ---- everything before the first step ---- */

struct variant {
	const char *model, *dtype, *inner;
	enum recompute recompute;
	int batch, accum, devices, shards;
	int micro_batch;
	enum moments moments;
	bool offload;
	enum zero zero;
	int logits_rows; /* with it 512 tokens, two tiles */
	bool stream;
};

/* Micro-batches of one size and of two (three sequences in batches of two), on one device and on
 * two, whose shares are not the same; logits in two chunks, a state that goes to the disk in
 * pieces, and both. */
static const struct variant variants[] = {
	{"gpt2", "fp32", "adamw", RECOMPUTE_NONE, 2, 1, 1, 1, 0, MOMENTS_FP32, false, ZERO_MOMENTS, 0, false},
	{"gpt2", "bf16", "adamw", RECOMPUTE_BLOCK, 2, 3, 1, 1, 0, MOMENTS_FP32, false, ZERO_MOMENTS, 0, false},
	{"llama", "bf16", "adamw", RECOMPUTE_NONE, 3, 1, 1, 1, 0, MOMENTS_FP32, false, ZERO_MOMENTS, 0, false},
	{"llama", "fp32", "muon", RECOMPUTE_BLOCK, 2, 2, 1, 1, 0, MOMENTS_FP32, false, ZERO_MOMENTS, 0, false},
	{"gpt2", "bf16", "muon", RECOMPUTE_NONE, 2, 1, 1, 1, 0, MOMENTS_FP32, false, ZERO_MOMENTS, 0, false},
	{"gpt2", "bf16", "adamw", RECOMPUTE_NONE, 2, 3, 2, 1, 0, MOMENTS_FP32, false, ZERO_MOMENTS, 0, false},
	{"gpt2", "bf16", "adamw", RECOMPUTE_GELU, 2, 3, 1, 1, 5, MOMENTS_INT8, false, ZERO_MOMENTS, 0, false},
	{"llama", "bf16", "adamw", RECOMPUTE_NORMS, 4, 1, 2, 1, 1, MOMENTS_INT8, false, ZERO_MOMENTS, 0, false},
	{"gpt2", "bf16", "adamw", RECOMPUTE_NONE, 2, 3, 1, 1, 0, MOMENTS_FP32, true, ZERO_MOMENTS, 0, false},
	{"llama", "bf16", "adamw", RECOMPUTE_BLOCK, 2, 1, 1, 1, 1, MOMENTS_INT8, true, ZERO_MOMENTS, 0, false},
	{"gpt2", "fp32", "sgd", RECOMPUTE_NONE, 3, 1, 2, 1, 0, MOMENTS_FP32, false, ZERO_MOMENTS, 0, false},
	{"gpt2", "bf16", "adamw", RECOMPUTE_NONE, 2, 1, 1, 3, 0, MOMENTS_FP32, false, ZERO_MOMENTS, 0, false},
	{"llama", "bf16", "adamw", RECOMPUTE_BLOCK, 2, 2, 3, 1, 1, MOMENTS_INT8, false, ZERO_GRADIENTS, 0, false},
	{"gpt2", "fp32", "sgd", RECOMPUTE_NONE, 3, 1, 2, 1, 0, MOMENTS_FP32, false, ZERO_WEIGHTS, 0, false},
	{"llama", "bf16", "adamw", RECOMPUTE_NORMS, 4, 1, 3, 1, 1, MOMENTS_INT8, false, ZERO_WEIGHTS, 0, false},
	{"gpt2", "bf16", "adamw", RECOMPUTE_NONE, 8, 1, 1, 1, 0, MOMENTS_FP32, false, ZERO_MOMENTS, 256, false},
	{"gpt2", "bf16", "adamw", RECOMPUTE_NONE, 2, 1, 1, 1, 0, MOMENTS_FP32, false, ZERO_MOMENTS, 0, true},
	{"gpt2", "bf16", "adamw", RECOMPUTE_NONE, 8, 1, 1, 1, 0, MOMENTS_INT8, false, ZERO_MOMENTS, 256, true},
};

static struct savings savings_of(const struct variant *v) {
	return (struct savings){.micro_batch = v->micro_batch,
							.recompute = v->recompute,
							.moments = v->moments,
							.offload = v->offload,
							.zero = v->zero,
							.logits_rows = v->logits_rows,
							.stream = v->stream};
}

static struct run_config variant_config(const struct variant *v) {
	struct run_config cfg = config_of(v->model, v->dtype);
	(void)rv_options_set(run_config_options, &cfg, "inner", v->inner, NULL);
	cfg.batch = v->batch;
	cfg.grad_accum = v->accum;
	if (v->logits_rows) {
		cfg.context = 64;
		cfg.n_layer = 1; /* activations below 2 MiB: from there on a plan counts whole huge pages */
	}
	cfg.prox_mu = strcmp(v->inner, "sgd") == 0 ? 0.1 : 0;
	return cfg;
}

/* Steps, with evaluations of the replica's weights and of others between them. */
static void train(struct on_gpu *g, const struct variant *v) {
	static const uint32_t shards[3] = {0};
	struct step_stats stats;
	double loss;
	for (int i = 0; i < 3; i++) {
		struct rv_errtext et = {0};
		if (replica_step_shards(g->replica, shards, v->shards, &stats, &et) != RV_OK)
			fail_msg("%s", et.text);
		const float *other = i == 1 ? replica_theta(g->run.replica) : NULL;
		assert_int_equal(replica_eval(g->replica, other, 50, &loss, NULL), RV_OK);
	}
}

static struct replica_options options_of(const struct run_config *cfg, const struct variant *v) {
	return (struct replica_options){
		.n_shards = (uint32_t)cfg->data_shards, .savings = savings_of(v), .step_shards = v->shards};
}

static void test_steps_allocate_no_device_memory(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
		const struct variant *v = &variants[i];
		const struct run_config cfg = variant_config(v);
		const struct replica_options o = options_of(&cfg, v);
		struct on_gpu g;
		struct rv_errtext et = {0};
		if (gpu_open(&g, &cfg, &o, v->devices, &et) != RV_OK)
			fail_msg("%s", et.text);
		const struct emu_counters before = emu_count();
		train(&g, v);
		const struct emu_counters after = emu_count();
		if (after.allocations != before.allocations)
			fail_msg("variant %zu: %llu allocations after the first step began", i,
					 (unsigned long long)(after.allocations - before.allocations));
		assert_int_equal(after.device_bytes, before.device_bytes);
		gpu_release(&g);
	}
}

/* ---- as much as was planned ---- */

static struct memory_plan plan_of_rows(const struct run_config *cfg, const struct variant *v, int logits_rows) {
	struct savings savings = savings_of(v);
	savings.logits_rows = logits_rows;
	const struct device_choice cuda = {.backend = "cuda", .n = v->devices};
	struct memory_plan p;
	struct rv_errtext et = {0};
	if (memory_plan_make(&(struct memory_request){.run = cfg,
												  .device = &cuda,
												  .savings = savings,
												  .role = v->stream ? MEMORY_WORKER : MEMORY_REPLICA,
												  .replicas = 1,
												  .step_shards = v->shards,
												  .parallel = 1},
						 &p, &et) != RV_OK)
		fail_msg("%s", et.text);
	return p;
}

static struct memory_plan plan_of(const struct run_config *cfg, const struct variant *v) {
	return plan_of_rows(cfg, v, v->logits_rows);
}

static size_t item_bytes(const struct memory_plan *p, const char *name) {
	for (int i = 0; i < p->step.n; i++)
		if (strcmp(p->step.items[i].name, name) == 0)
			return p->step.items[i].bytes;
	return 0;
}

/* Chunks of logits take less of the device; pieces of a state have their pinned memory, whether it
 * streams to the disk in them or is copied. */
static void check_that_it_matters(const struct run_config *cfg, const struct variant *v, const struct memory_plan *p) {
	struct variant plain = *v;
	plain.stream = false;
	const struct memory_plan at_once = plan_of_rows(cfg, &plain, 0);
	const size_t piece = p->n_params < STREAMED_FLOATS ? p->n_params : STREAMED_FLOATS;
	assert_true(p->step.pinned_bytes > FETCHES * piece * sizeof(float));
	assert_int_equal(p->step.pinned_bytes, at_once.step.pinned_bytes);
	assert_int_equal(2 * item_bytes(p, "logits"), (v->logits_rows ? 1 : 2) * item_bytes(&at_once, "logits"));
}

/* To the byte, but for what the emulator has no library for: cuBLASLt, cuDNN, NCCL. */
static void test_a_replica_takes_what_is_planned(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
		const struct variant *v = &variants[i];
		const struct run_config cfg = variant_config(v);
		const struct replica_options o = options_of(&cfg, v);
		const struct memory_plan p = plan_of(&cfg, v);
		const size_t pinned = p.step.pinned_bytes, libraries = item_bytes(&p, "attention") + item_bytes(&p, "trials") +
															   item_bytes(&p, "exchange of devices");
		struct on_gpu g;
		const struct emu_counters before = emu_count();
		assert_int_equal(gpu_open(&g, &cfg, &o, v->devices, NULL), RV_OK);
		const struct emu_counters after = emu_count();
		const size_t planned = p.parameters + p.gradients + p.moments + p.activations + p.workspace;
		if (after.device_bytes - before.device_bytes != planned - libraries * (size_t)v->devices)
			fail_msg("variant %zu: %zu bytes taken, %zu planned", i, after.device_bytes - before.device_bytes,
					 planned - libraries * (size_t)v->devices);
		const size_t weights = v->offload ? replica_n_params(g.replica) * sizeof(float) : 0;
		assert_int_equal(after.pinned_bytes - before.pinned_bytes, pinned * (size_t)v->devices + weights);
		assert_true(memory_plan_least_device(&p) < memory_plan_device(&p));
		check_that_it_matters(&cfg, v, &p);
		gpu_release(&g);
	}
}

/* A program without the plugin counts what the plugin does, and cuBLASLt's workspace, which the
 * emulator has not. */
static void test_a_plan_without_the_plugin_is_the_same(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
		const struct run_config cfg = variant_config(&variants[i]);
		const struct step_bounds s = {.b = (int)cfg.batch,
									  .t = (int)cfg.context,
									  .c = (int)cfg.n_embd,
									  .widest = 4 * (int)cfg.n_embd,
									  .heads = 2,
									  .kv_heads = 1 + (int)(i % 2),
									  .head_dim = TENSOR_HEAD_DIM,
									  .v = 255,
									  .vp = 256,
									  .losses = 700,
									  .n_spans = 1 + 300 * (int)i,
									  .operand = 64 * i};
		const enum dtype act = i % 2 ? DTYPE_BF16 : DTYPE_F32;
		struct step_memory own, plugin;
		struct rv_errtext et = {0};
		cuda_count_step_memory(act, &s, GEMM_WORKSPACE_BYTES, &own);
		assert_int_equal(backend_step_memory("cuda", act, &s, &plugin, &et), RV_OK);
		assert_int_equal(step_memory_bytes(&own), step_memory_bytes(&plugin) + GEMM_WORKSPACE_BYTES);
		assert_int_equal(step_memory_least(&own), step_memory_least(&plugin) + GEMM_WORKSPACE_BYTES);
		assert_int_equal(own.pinned_bytes, plugin.pinned_bytes);
	}
}

/* ---- a device that is too small ---- */

/* With `room` bytes the replica is refused with a reason, or trains. */
static enum rv_err try_amount(const struct variant *v, const struct run_config *cfg, size_t room,
							  struct rv_errtext *et) {
	const struct replica_options o = options_of(cfg, v);
	struct on_gpu g;
	emu_limit_memory(emu_count().device_bytes + room);
	enum rv_err e = gpu_open(&g, cfg, &o, 1, et);
	if (e == RV_OK)
		train(&g, v);
	else
		assert_fault(e, RV_E_NOMEM, et, "no memory for ");
	gpu_release(&g);
	emu_limit_memory(EMU_MEMORY_BYTES);
	return e;
}

/* The vectors alone fit; then some of what steps take; then what the plan promises is enough. */
static void check_amounts(const struct variant *v) {
	enum { PARTS = 7 };
	struct run_config cfg = variant_config(v);
	cfg.context = 64;
	const struct memory_plan p = plan_of(&cfg, v);
	const size_t least = memory_plan_least_device(&p), vectors = memory_plan_device(&p) - p.workspace;
	struct rv_errtext et = {0};
	assert_int_equal(try_amount(v, &cfg, vectors / 2, &et), RV_E_NOMEM);
	assert_null(strstr(et.text, " of steps of "));
	for (size_t i = 0; i < PARTS; i++) {
		assert_int_equal(try_amount(v, &cfg, vectors + (least - vectors) * i / PARTS, &et), RV_E_NOMEM);
		assert_non_null(strstr(et.text, " of steps of "));
	}
	assert_int_equal(try_amount(v, &cfg, least - 1, &et), RV_E_NOMEM);
	assert_int_equal(try_amount(v, &cfg, least, &et), RV_OK);
}

static void test_with_any_amount_of_memory_it_trains_or_is_refused(void **state) {
	(void)state;
	check_amounts(&variants[0]);
	check_amounts(&variants[1]);
}

/* CUDA keeps a refusal as the thread's last error, which the next launch would take for its own. */
static void test_a_refused_allocation_spoils_nothing_later(void **state) {
	(void)state;
	const struct run_config cfg = config_of("gpt2", "fp32");
	struct on_gpu g;
	void *p;
	gpu_init(&g, &cfg);
	struct backend *be = g.devices.be[0];
	assert_int_equal(be->ops->alloc(be, EMU_MEMORY_BYTES + 1, &p, NULL), RV_E_NOMEM);
	assert_null(p);
	one_step(g.replica);
	gpu_release(&g);
}

/* Two devices that divide weights are refused by what is missing, window or slice, or made. */
static void test_divided_weights_of_any_amount(void **state) {
	(void)state;
	enum { PARTS = 12 };
	const struct variant v = {"gpt2", "bf16",       "adamw", RECOMPUTE_NONE, 2, 1,    2, 1,
							  0,      MOMENTS_FP32, false,   ZERO_WEIGHTS,   0, false};
	const struct run_config cfg = variant_config(&v);
	const struct replica_options o = options_of(&cfg, &v);
	const struct memory_plan p = plan_of(&cfg, &v);
	const size_t all = p.parameters + p.gradients + p.moments + p.activations + p.workspace;
	int of_windows = 0;
	for (size_t i = 1; i <= PARTS; i++) {
		struct on_gpu g;
		struct rv_errtext et = {0};
		const size_t vectors = all - p.workspace;
		emu_limit_memory(emu_count().device_bytes + (i < PARTS ? vectors * i / PARTS : all));
		const enum rv_err e = gpu_open(&g, &cfg, &o, v.devices, &et);
		gpu_release(&g);
		emu_limit_memory(EMU_MEMORY_BYTES);
		if (i == PARTS) {
			assert_int_equal(e, RV_OK);
			break;
		}
		assert_fault(e, RV_E_NOMEM, &et, "no memory for ");
		of_windows += strstr(et.text, "a window of ") != NULL;
	}
	assert_true(of_windows > 0);
}

static size_t least_of_steps(struct run_config cfg, const struct variant *v, long batch) {
	cfg.batch = batch;
	const struct memory_plan p = plan_of_rows(&cfg, v, CUDA_LOGITS_TILE);
	return step_memory_least(&p.step);
}

/* A batch that a refusal names is the largest whose steps fit beside the rest. */
static void test_a_refusal_names_a_batch_that_fits(void **state) {
	(void)state;
	const struct variant v = {"gpt2", "bf16",       "adamw", RECOMPUTE_BLOCK, 8, 1,    1, 1,
							  0,      MOMENTS_FP32, false,   ZERO_MOMENTS,    0, false};
	struct run_config cfg = variant_config(&v);
	cfg.context = 64;
	cfg.vocab = 4096; /* what the backend takes is most of it */
	const struct replica_options o = options_of(&cfg, &v);
	const struct memory_plan p = plan_of_rows(&cfg, &v, CUDA_LOGITS_TILE);
	const size_t amount = memory_plan_least_device(&p) - (64 << 10);
	const size_t room = amount - (memory_plan_device(&p) - p.workspace);
	struct on_gpu g;
	struct rv_errtext et = {0};
	emu_limit_memory(emu_count().device_bytes + amount);
	enum rv_err e = gpu_open(&g, &cfg, &o, 1, &et);
	gpu_release(&g);
	assert_fault(e, RV_E_NOMEM, &et, "a batch of ");
	cfg.batch = strtol(strstr(et.text, "a batch of ") + strlen("a batch of "), NULL, 10);
	assert_in_range(cfg.batch, 1, 7);
	assert_true(least_of_steps(cfg, &v, cfg.batch) <= room);
	assert_true(cfg.batch == 7 || least_of_steps(cfg, &v, cfg.batch + 1) > room);
	assert_int_equal(gpu_open(&g, &cfg, &o, 1, &et), RV_OK);
	train(&g, &v);
	gpu_release(&g);
	emu_limit_memory(EMU_MEMORY_BYTES);
}

/* ---- logits ---- */

static void test_chunks_of_logits_are_equal_and_whole_tiles(void **state) {
	(void)state;
	static const struct {
		int most, n, want;
	} cases[] = {
		{0, 16384, 16384},   /* all at once */
		{256, 10, 10},       /* fewer than a tile */
		{2560, 2560, 2560},  /* just as many */
		{2560, 16384, 2560}, /* 6.4 chunks, of ten tiles */
		{2669, 2670, 1536},  /* no last one of a single row */
		{300, 1000, 256},    /* whole tiles */
		{1, 1000, 256},      /* at least one */
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_int_equal(cuda_logits_rows(cases[i].most, cases[i].n), cases[i].want);
}

/* 512 tokens: two tiles. */
static struct run_config two_tiles(const struct variant *v) {
	struct run_config cfg = variant_config(v);
	cfg.context = 64;
	return cfg;
}

static const struct variant of_two_tiles = {"gpt2", "fp32",       "adamw", RECOMPUTE_NONE, 8, 1,    1, 1,
											0,      MOMENTS_FP32, false,   ZERO_MOMENTS,   0, false};

/* Makes a replica with `rows` of logits in `room` bytes of the device, steps, and returns the
 * step's figures, the rows that it has, and its weights. */
static struct step_stats step_of_rows(int rows, size_t room, int *has, char theta[65]) {
	const struct run_config cfg = two_tiles(&of_two_tiles);
	struct replica_options o = options_of(&cfg, &of_two_tiles);
	struct on_gpu g;
	struct step_stats stats;
	o.savings.logits_rows = rows;
	emu_limit_memory(room);
	assert_ok(gpu_open(&g, &cfg, &o, 1, &et));
	const struct cuda_backend *cu = (const struct cuda_backend *)g.devices.be[0];
	const size_t row = cuda_logits_row_bytes(DTYPE_F32, model_padded_vocab(&replica_model(g.replica)->shape));
	*has = replica_savings(g.replica).logits_rows;
	assert_int_equal(cu->scratch[SCRATCH_LOGITS].bytes, (*has ? *has : 512) * row);
	assert_ok(replica_step(g.replica, &stats, &et));
	fixture_theta_hash(g.replica, theta);
	gpu_release(&g);
	emu_limit_memory(EMU_MEMORY_BYTES);
	return stats;
}

/* Logits are made at once or in chunks, as the savings say; less memory than was planned makes
 * chunks, which the replica reports, so that they can be repeated to the bit. All are the same
 * steps to rounding. */
static void test_logits_at_once_or_in_chunks(void **state) {
	(void)state;
#ifdef __SANITIZE_ADDRESS__
	print_message("skipped: minutes of emulated attention under AddressSanitizer\n");
	skip();
#endif
	const struct run_config cfg = two_tiles(&of_two_tiles);
	const struct memory_plan p = plan_of(&cfg, &of_two_tiles);
	const size_t scarce = emu_count().device_bytes + memory_plan_least_device(&p);
	char whole[65], chunks[65], short_of_memory[65];
	int has[3];
	const struct step_stats at_once = step_of_rows(0, EMU_MEMORY_BYTES, &has[0], whole);
	const struct step_stats in_two = step_of_rows(256, EMU_MEMORY_BYTES, &has[1], chunks);
	const struct step_stats scarcely = step_of_rows(0, scarce, &has[2], short_of_memory);
	assert_int_equal(has[0], 0);
	assert_int_equal(has[1], 256);
	assert_int_equal(has[2], 256);
	assert_true(at_once.loss == in_two.loss && in_two.loss == scarcely.loss);
	assert_true(fabsf(at_once.grad_norm - in_two.grad_norm) <= 1e-4f * at_once.grad_norm);
	assert_string_not_equal(whole, chunks);
	assert_string_equal(chunks, short_of_memory);
}

/* Exchanges of devices take their memory after a step's is reserved: it is still there. */
static void test_logits_leave_room_for_exchanges(void **state) {
	(void)state;
	enum { MIB = 1 << 20, TOKENS = 2048 };
	struct step_bounds s = {.b = 8,
							.t = TOKENS / 8,
							.c = 32,
							.widest = 128,
							.heads = 1,
							.kv_heads = 1,
							.head_dim = 32,
							.v = 256,
							.vp = 256,
							.losses = TOKENS,
							.n_spans = 4};
	for (int exchanges = 0; exchanges < 2; exchanges++) {
		const struct backend_options opt = {.threads = 1, .compute = DTYPE_F32};
		struct backend *be;
		assert_ok(cuda_ops.open(&opt, &be, &et));
		s.exchange = exchanges ? 64 * MIB : 0;
		emu_limit_memory(emu_count().device_bytes + 160 * MIB);
		assert_ok(be->ops->reserve(be, &s, &et));
		emu_limit_memory(EMU_MEMORY_BYTES);
		assert_int_equal(((const struct cuda_backend *)be)->scratch[SCRATCH_LOGITS].bytes,
						 (exchanges ? CUDA_LOGITS_TILE : TOKENS) * cuda_logits_row_bytes(DTYPE_F32, s.vp));
		backend_close(be);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_evaluation_of_other_weights_takes_no_memory),
		cmocka_unit_test(test_a_stopped_evaluation_leaves_the_weights),
		cmocka_unit_test(test_steps_allocate_no_device_memory),
		cmocka_unit_test(test_a_replica_takes_what_is_planned),
		cmocka_unit_test(test_a_plan_without_the_plugin_is_the_same),
		cmocka_unit_test(test_with_any_amount_of_memory_it_trains_or_is_refused),
		cmocka_unit_test(test_divided_weights_of_any_amount),
		cmocka_unit_test(test_a_refused_allocation_spoils_nothing_later),
		cmocka_unit_test(test_a_refusal_names_a_batch_that_fits),
		cmocka_unit_test(test_chunks_of_logits_are_equal_and_whole_tiles),
		cmocka_unit_test(test_logits_at_once_or_in_chunks),
		cmocka_unit_test(test_logits_leave_room_for_exchanges),
	};
	(void)setenv("RIVULET_CUDA_PLUGIN", EMULATED_PLUGIN,
				 1); /* what the plan asks; replicas here have cuda_ops itself */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
