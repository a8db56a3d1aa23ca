/* test_train_memory_plan.c: the plan against what is allocated, to the byte, and against a
 * process's own peak. */
#include "tests/common/process.h"
#include "tests/train/counting_backend.h"
#include "tests/train/train_fixture.h"

#include "train/comm.h"
#include "train/memory/check.h"
#include "train/memory/choose.h"
#include "train/memory/cost.h"
#include "train/memory/plan.h"
#include "train/memory/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 }; /* their shadow memory is most of the peak */
#else
enum { SANITIZED = 0 };
#endif

#define MIB          ((double)(1 << 20))
#define PEAK_PERCENT 10 /* what the printed plan promises */

enum { EVENT_BYTES = 4096 };

static const struct device_choice cpu = {.backend = "cpu", .n = 1}, ref = {.backend = "ref", .n = 1};

static struct memory_plan plan_of(const struct memory_request *q) {
	struct memory_plan p;
	assert_ok(memory_plan_make(q, &p, &et));
	return p;
}

static void check_replica(const struct run_config *cfg, struct savings savings) {
	struct fixture_run f;
	struct counting_backend c;
	struct replica *r;
	fixture_run_init(&f, cfg, "ref");
	counting_backend_open(&c, "ref", 1);
	const struct replica_options options = {.n_shards = (uint32_t)cfg->data_shards, .savings = savings};
	assert_ok(replica_new(cfg, f.data, &options, c.be, &r, &et));
	struct memory_plan p = plan_of(&(struct memory_request){
		.run = cfg, .device = &ref, .savings = savings, .role = MEMORY_REPLICA, .replicas = 1, .parallel = 1});
	assert_int_equal(p.n_params, replica_n_params(r));
	assert_int_equal(p.parameters + p.gradients + p.moments + p.activations, c.bytes);
	replica_free(r);
	counting_backend_close(&c);
	fixture_run_release(&f);
}

static void test_a_replica_allocates_what_is_planned(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	cfg.grad_accum = 3;
	for (enum recompute r = RECOMPUTE_NONE; r <= RECOMPUTE_BLOCK; r++)
		for (enum moments m = MOMENTS_FP32; m <= MOMENTS_INT8; m++)
			for (int micro_batch = 0; micro_batch <= 5; micro_batch += 5)
				check_replica(&cfg, (struct savings){.micro_batch = micro_batch, .recompute = r, .moments = m});
	(void)rv_options_set(run_config_options, &cfg, "inner", "muon", NULL);
	check_replica(&cfg, (struct savings){.recompute = RECOMPUTE_NONE});
	cfg.prox_mu = 0.1;
	check_replica(&cfg, (struct savings){.recompute = RECOMPUTE_NONE});
	(void)rv_options_set(run_config_options, &cfg, "model", "llama", NULL);
	cfg.n_kv_head = 1;
	cfg.tied = false;
	check_replica(&cfg, (struct savings){.recompute = RECOMPUTE_NONE});
	check_replica(&cfg, (struct savings){.recompute = RECOMPUTE_BLOCK});
}

static void test_roles_hold_what_they_should(void **state) {
	(void)state;
	const struct run_config cfg = fixture_config();
	struct memory_request q = {.run = &cfg, .device = &cpu, .role = MEMORY_REPLICA, .replicas = 1, .parallel = 1};
	struct memory_plan alone = plan_of(&q);
	assert_int_equal(alone.outer + alone.exchange + alone.copies + alone.cache, 0);
	q.role = MEMORY_FORWARD;
	struct memory_plan forward = plan_of(&q);
	assert_int_equal(forward.gradients + forward.moments, 0);
	assert_true(forward.activations < alone.activations && forward.cache > 0);
	q.role = MEMORY_WORKER;
	struct memory_plan worker = plan_of(&q);
	assert_int_equal(worker.outer, 2 * alone.parameters);
	assert_true(worker.copies >= worker.outer + 3 * alone.parameters);
	q.role = MEMORY_LAB;
	q.replicas = q.parallel = 3;
	struct memory_plan lab = plan_of(&q);
	assert_int_equal(lab.moments, 3 * alone.moments);
	assert_int_equal(lab.activations, 3 * alone.activations);
	assert_int_equal(lab.outer, 2 * alone.parameters);
	q.parallel = 1;
	assert_true(alone.program < plan_of(&q).program && plan_of(&q).program < worker.program); /* it has a network */
	q.parallel = 3;
	q.savings.recompute = RECOMPUTE_BLOCK;
	assert_true(plan_of(&q).activations < lab.activations);
	assert_int_equal(lab.data, 0);
	q.mapped_bytes = 100000; /* less than the run touches */
	assert_int_equal(plan_of(&q).data, 100000);
	q.mapped_bytes = (uint64_t)1 << 40; /* a page's neighbourhood for every sequence */
	assert_int_equal(plan_of(&q).data,
					 3 * 65536 * (size_t)(cfg.rounds * cfg.steps_per_round * cfg.batch * cfg.grad_accum));
}

/* A start, and with eager a momentum, of every worker's own: held, and written with its replica,
 * twice. */
static void test_late_updates_keep_vectors_of_their_own(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	struct memory_request q = {.run = &cfg, .device = &cpu, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	cfg.overlap_steps = cfg.steps_per_round;
	const struct memory_plan overlapped = plan_of(&q);
	const size_t vector = overlapped.outer / 2;
	cfg.overlap_steps = 0;
	for (int eager = 0; eager < 2; eager++) {
		cfg.updates = eager ? UPDATES_EAGER : UPDATES_DELAYED;
		cfg.eager_share = 0.25;
		const size_t own = (size_t)(1 + eager) * vector;
		q.role = MEMORY_WORKER;
		q.replicas = q.parallel = 1;
		assert_int_equal(plan_of(&q).outer, overlapped.outer + own);
		assert_int_equal(plan_of(&q).copies, overlapped.copies + 2 * own);
		q.role = MEMORY_LAB;
		q.replicas = q.parallel = 3;
		assert_int_equal(plan_of(&q).outer, overlapped.outer + 3 * own);
	}
}

static void test_impossible_models_are_refused(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	struct memory_request q = {.run = &cfg, .device = &cpu, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	struct memory_plan p;
	struct rv_errtext et = {0};
	cfg.norm_eps = 1e-3;
	assert_fault(memory_plan_make(&q, &p, &et), RV_E_RANGE, &et, "norm-eps");
	cfg = fixture_config();
	cfg.n_layer = 24;
	cfg.n_embd = 1024;
	cfg.chunk_elems = 256;
	assert_fault(memory_plan_make(&q, &p, &et), RV_E_RANGE, &et, "must be 1..1048576 chunks");
}

static void test_the_line(void **state) {
	(void)state;
	const size_t mib = 1 << 20;
	struct memory_plan p = {.parameters = 3 * mib, .moments = 6 * mib, .program = 20 * mib + mib / 4};
	char line[200];
	memory_plan_line(&p, line, sizeof line);
	assert_string_equal(line, "memory: 29 MiB: parameters 3, moments 6, program 20");
	memory_plan_line(&p, line, 12); /* cut, not overrun */
	assert_int_equal(strlen(line), 11);
}

static struct run_config measured_config(bool recompute) {
	struct run_config c = fixture_config();
	c.n_layer = recompute ? 8 : 4;
	c.n_embd = 128;
	c.context = 128;
	c.batch = 16;
	return c;
}

/* The other process: two steps, then its peak in MiB. */
static int measure(bool recompute) {
	struct fixture_run f;
	struct run_config cfg = measured_config(recompute);
	struct step_stats stats;
	struct rv_errtext et = {0};
	struct rusage usage;
	const struct replica_options options = {.n_shards = (uint32_t)cfg.data_shards,
											.savings.recompute = recompute ? RECOMPUTE_BLOCK : RECOMPUTE_NONE};
	fixture_run_init(&f, NULL, "cpu");
	struct dataset *data;
	char path[300];
	snprintf(path, sizeof path, "%s/text", f.dir);
	const struct dataset_config d = dataset_config_of(&cfg, path);
	replica_free(f.replica);
	f.replica = NULL;
	bool ok = dataset_open(&d, &data, &et) == RV_OK &&
			  replica_new(&cfg, data, &options, f.be, &f.replica, &et) == RV_OK &&
			  replica_step(f.replica, &stats, &et) == RV_OK && replica_step(f.replica, &stats, &et) == RV_OK;
	getrusage(RUSAGE_SELF, &usage);
	printf("%.1f %s\n", ok ? (double)usage.ru_maxrss * 1024 / MIB : 0, et.text);
	fixture_run_release(&f);
	dataset_close(data);
	return 0;
}

static void check_peak(const char *how, bool recompute) {
	char line[256];
	assert_int_equal(process_shell(line, sizeof line, "/proc/%d/exe %s", (int)getpid(), how), 0);
	const struct run_config cfg = measured_config(recompute);
	struct memory_plan p =
		plan_of(&(struct memory_request){.run = &cfg,
										 .device = &cpu,
										 .savings.recompute = recompute ? RECOMPUTE_BLOCK : RECOMPUTE_NONE,
										 .role = MEMORY_REPLICA,
										 .replicas = 1,
										 .threads = 1,
										 .parallel = 1});
	double peak = strtod(line, NULL), planned = (double)memory_plan_total(&p) / MIB;
	print_message("%s: planned %.1f MiB, peak %.1f MiB\n", how, planned, peak);
	if (!(planned >= peak * (100 - PEAK_PERCENT) / 100 && planned <= peak * (100 + PEAK_PERCENT) / 100))
		fail_msg("planned %.1f MiB, the peak was %s", planned, line);
}

static void test_the_plan_is_near_the_peak(void **state) {
	(void)state;
	if (SANITIZED)
		skip();
	check_peak("--measure", false);
	check_peak("--measure-recompute", true);
}

/* What a plan for a GPU asks; without an emulator in this build there is nothing to ask. */
static void need_plugin(void) {
#ifdef EMULATED_PLUGIN
	(void)setenv("RIVULET_CUDA_PLUGIN", EMULATED_PLUGIN, 1);
#else
	skip();
#endif
}

static enum rv_err fit(const struct memory_request *q, size_t device, size_t host, struct rv_errtext *et) {
	const struct memory_room room = {.device = device, .host = host};
	return memory_fit(q, &room, et);
}

/* A GPU's part of the plan, and what is advised when it does not fit. */
static void test_a_device_that_is_too_small(void **state) {
	(void)state;
	const struct device_choice gpu = {.backend = "cuda", .n = 1}, four = {.backend = "cuda", .n = 4};
	struct run_config cfg = fixture_config();
	struct rv_errtext et = {0};
	need_plugin();
	cfg.n_layer = 24;
	cfg.n_embd = 1024;
	cfg.n_head = 16;
	cfg.context = 1024;
	cfg.batch = 8;
	struct memory_request q = {.run = &cfg, .device = &gpu, .role = MEMORY_LAB, .replicas = 1, .parallel = 1};
	struct memory_plan one = plan_of(&q);
	assert_true(one.on_device && memory_plan_device(&one) + memory_plan_host(&one) == memory_plan_total(&one));
	size_t need = memory_plan_least_device(&one) + ((size_t)512 << 20);
	assert_true(need < memory_plan_device(&one) + ((size_t)512 << 20));
	assert_int_equal(fit(&q, need, SIZE_MAX, NULL), RV_OK);
	assert_int_equal(fit(&q, SIZE_MAX, SIZE_MAX, NULL), RV_OK);
	assert_fault(fit(&q, need - 1, SIZE_MAX, &et), RV_E_NOMEM, &et, "--dtype bf16 would fit");
	(void)rv_options_set(run_config_options, &cfg, "dtype", "bf16", NULL);
	const struct memory_plan bf16 = plan_of(&q);
	const size_t all = memory_plan_least_device(&bf16) + ((size_t)512 << 20);
	assert_fault(fit(&q, all - 1, SIZE_MAX, &et), RV_E_NOMEM, &et, "--logits 4096 would fit");
	assert_fault(fit(&q, one.n_params * 18 + ((size_t)900 << 20), SIZE_MAX, &et), RV_E_NOMEM, &et, "--micro-batch");
	assert_fault(fit(&q, one.n_params * 13 + ((size_t)900 << 20), SIZE_MAX, &et), RV_E_NOMEM, &et, "--moments int8");
	assert_fault(fit(&q, 1 << 20, SIZE_MAX, &et), RV_E_NOMEM, &et, "--device cpu");
	q.role = MEMORY_WORKER; /* the run's values are not a worker's to change; its micro-batch is */
	cfg.dtype = RUN_DTYPE_FP32;
	assert_fault(fit(&q, need / 2, SIZE_MAX, &et), RV_E_NOMEM, &et, "--micro-batch");
	assert_null(strstr(et.text, "--dtype"));
	cfg.dtype = RUN_DTYPE_BF16;
	q.device = &four;
	q.role = MEMORY_LAB;
	struct memory_plan divided = plan_of(&q);
	assert_true(divided.moments >= 8 * divided.n_params && divided.moments <= 8 * divided.n_params + (64 << 20));
}

/* More devices are advised as long as each has a sequence of a step; with more none is planned. */
static void test_as_many_devices_as_sequences(void **state) {
	(void)state;
	struct device_choice device = {.backend = "cuda", .n = 2};
	struct run_config cfg = fixture_config();
	struct rv_errtext et = {0};
	struct memory_request q = {.run = &cfg, .device = &device, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	need_plugin();
	cfg.n_layer = 24;
	cfg.n_embd = 1024;
	cfg.n_head = 16;
	cfg.batch = 4;
	cfg.dtype = RUN_DTYPE_BF16;
	q.savings =
		(struct savings){.micro_batch = 1, .recompute = RECOMPUTE_BLOCK, .moments = MOMENTS_INT8, .zero = ZERO_WEIGHTS};
	for (cfg.batch = 4; cfg.batch >= 2; cfg.batch -= 2) {
		const struct memory_plan plan = plan_of(&q);
		const size_t room = memory_plan_least_device(&plan) + MEMORY_DEVICE_OVERHEAD_BYTES - 1;
		assert_fault(fit(&q, room, SIZE_MAX, &et), RV_E_NOMEM, &et,
					 cfg.batch == 4 ? "on 4 such devices would fit" : "no option would make it fit");
	}
	cfg.batch = 2;
	device.n = 3;
	assert_fault(fit(&q, SIZE_MAX, SIZE_MAX, &et), RV_E_RANGE, &et, "3 devices, but a step has 2 sequences");
}

/* What memory_report_plan logs. */
static void report(const struct memory_plan *p, char said[EVENT_BYTES]) {
	FILE *f = tmpfile();
	struct rv_events *ev;
	assert_non_null(f);
	const struct rv_events_config c = {.out = f, .json = true, .level = RV_INFO};
	assert_int_equal(rv_events_new(&c, &ev, NULL), RV_OK);
	memory_report_plan(ev, p);
	rv_events_free(ev);
	rewind(f);
	said[fread(said, 1, EVENT_BYTES - 1, f)] = '\0';
	(void)fclose(f);
}

/* What a plan lists of a GPU's workspace, in numbers of a model that everybody knows: GPT-2 124M at
 * 16 x 1024 tokens. */
static void test_a_gpus_workspace(void **state) {
	(void)state;
	const struct device_choice gpu = {.backend = "cuda", .n = 1}, two = {.backend = "cuda", .n = 2};
	struct run_config cfg = fixture_config();
	need_plugin();
	cfg.n_layer = cfg.n_head = 12;
	cfg.n_embd = 768;
	cfg.vocab = 50257;
	cfg.context = 1024;
	cfg.batch = 16;
	(void)rv_options_set(run_config_options, &cfg, "dtype", "bf16", NULL);
	struct memory_request q = {.run = &cfg, .device = &gpu, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	char said[EVENT_BYTES];
	const struct memory_plan at_once = plan_of(&q);
	report(&at_once, said);
	assert_non_null(strstr(said, "logits 1572, ")); /* 16384 rows of 50304 bf16 values */
	assert_int_equal(at_once.spare, 0);             /* nor do they take the room of what makes steps faster */
	q.savings.logits_rows = 2560;
	const struct memory_plan plan = plan_of(&q);
	assert_true(plan.spare > 0);
	assert_in_range(plan.parameters, 6 * plan.n_params, 6 * plan.n_params + (4 << 20)); /* fp32 and the bf16 copy */
	report(&plan, said);
	static const char *const items[] = {"logits 246, ",   /* 2560 of the rows */
										"trials 147, ",   /* 50304 x 768 fp32 */
										"attention 99, ", /* 48 of dQ's sum, 0.8 of rows, 50 of a workspace */
										"partial sums ",  "input and losses ", "\"event\":\"device_memory\""};
	for (size_t i = 0; i < sizeof items / sizeof items[0]; i++)
		if (!strstr(said, items[i]))
			fail_msg("no \"%s\" in: %s", items[i], said);
	q.device = &two;
	assert_true(plan_of(&q).workspace >= 2 * (plan.workspace + ((size_t)200 << 20))); /* what NCCL has */
}

/* The largest micro-batch that fits, or a smaller one that takes no more parts. */
static void test_the_largest_micro_batch_is_advised(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	struct rv_errtext et = {0};
	cfg.context = 512;
	cfg.n_embd = 256;
	cfg.batch = 15;
	struct memory_request q = {.run = &cfg,
							   .device = &cpu,
							   .savings = {.micro_batch = 7, .recompute = RECOMPUTE_BLOCK, .moments = MOMENTS_INT8},
							   .role = MEMORY_LAB,
							   .replicas = 1,
							   .parallel = 1};
	const struct memory_plan seven = plan_of(&q);
	q.savings = (struct savings){.recompute = RECOMPUTE_BLOCK, .moments = MOMENTS_INT8};
	const struct savings_wish wish = {.recompute = RECOMPUTE_BLOCK, .moments = MOMENTS_INT8};
	const struct memory_room room = {.device = SIZE_MAX, .host = memory_plan_total(&seven)};
	struct savings chosen;
	assert_true(savings_choose(&q, &wish, &room, &chosen));
	assert_int_equal(chosen.micro_batch, 5); /* 7, 7 and 1 are three parts, too */
	assert_fault(fit(&q, 0, memory_plan_total(&seven), &et), RV_E_NOMEM, &et, "--micro-batch ");
}

/* The host's memory: of all replicas of the lab, or of one worker, without the text, whose pages
 * are taken back. */
static void test_a_machine_that_is_too_small(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	struct rv_errtext et = {0};
	cfg.n_layer = 8;
	cfg.n_embd = 512;
	cfg.n_head = 8;
	cfg.context = 512;
	cfg.batch = 8;
	cfg.rounds = 1000000;
	struct memory_request q = {.run = &cfg,
							   .device = &cpu,
							   .role = MEMORY_LAB,
							   .replicas = 8,
							   .parallel = 1,
							   .mapped_bytes = (uint64_t)1 << 32};
	const struct memory_plan plan = plan_of(&q);
	assert_true(plan.data > 0);
	const size_t need = memory_plan_total(&plan) - plan.data;
	assert_int_equal(fit(&q, 0, need, NULL), RV_OK);
	assert_fault(fit(&q, 0, need - 1, &et), RV_E_NOMEM, &et, "--recompute gelu would fit");
	assert_non_null(strstr(et.text, "memory: "));
	q.savings.recompute = RECOMPUTE_BLOCK;
	const struct memory_plan block = plan_of(&q);
	assert_fault(fit(&q, 0, block.n_params * sizeof(float) * 40, &et), RV_E_NOMEM, &et, "--workers ");
	assert_fault(fit(&q, 0, 1 << 20, &et), RV_E_NOMEM, &et, "no option would make it fit: a smaller model");
	q.role = MEMORY_WORKER;
	q.replicas = 1;
	assert_int_equal(fit(&q, 0, 1 << 20, &et), RV_E_NOMEM);
	assert_null(strstr(et.text, "--workers"));
}

/* What is fastest by the model among what fits without swap; then with it; then what was asked. */
static void test_savings_follow_the_memory(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	cfg.n_layer = 8;
	cfg.n_embd = 256;
	cfg.context = 256;
	cfg.batch = 8;
	struct memory_request q = {.run = &cfg, .device = &cpu, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	const struct savings_wish any = SAVINGS_WISH_ANY;
	struct savings chosen,
		least = {.micro_batch = 1, .recompute = RECOMPUTE_BLOCK, .moments = MOMENTS_INT8, .stream = true};
	size_t last = SIZE_MAX;
	double last_cost = -1;
	q.savings = least;
	const struct memory_plan smallest = plan_of(&q);
	q.savings = (struct savings){.micro_batch = 0};
	const struct memory_plan none = plan_of(&q);
	for (size_t host = memory_plan_host(&none); host >= memory_plan_host(&smallest); host -= host / 40) {
		const struct memory_room room = {.device = SIZE_MAX, .host = host};
		assert_true(savings_choose(&q, &any, &room, &chosen));
		struct memory_request with = q;
		with.savings = chosen;
		const struct memory_plan p = plan_of(&with);
		const double cost = memory_cost(&with, p.n_params);
		assert_true(memory_plan_host(&p) <= host && memory_plan_host(&p) <= last);
		assert_true(cost + 0.05 >= last_cost); /* less memory is never faster, but for moments of 8 bits */
		assert_true(host < memory_plan_host(&none) || (chosen.micro_batch == 0 && chosen.recompute == RECOMPUTE_NONE &&
													   chosen.moments == MOMENTS_FP32 && !chosen.stream));
		last = host;
		last_cost = cost;
	}
	const size_t few = memory_plan_host(&smallest);
	assert_true(savings_choose(&q, &any, &(struct memory_room){.device = SIZE_MAX, .host = few}, &chosen));
	assert_true(chosen.micro_batch == 1 && chosen.moments == MOMENTS_INT8);
	assert_true(
		savings_choose(&q, &any, &(struct memory_room){.device = SIZE_MAX, .host = few - 1, .swap = 1}, &chosen));
	const struct savings_wish fixed = {.micro_batch = 3, .recompute = RECOMPUTE_GELU, .moments = SAVINGS_ANY};
	assert_false(savings_choose(&q, &fixed, &(struct memory_room){.device = SIZE_MAX, .host = few - 1}, &chosen));
	assert_true(chosen.micro_batch == 3 && chosen.recompute == RECOMPUTE_GELU && chosen.moments == MOMENTS_FP32);
	(void)rv_options_set(run_config_options, &cfg, "inner", "muon", NULL); /* has no moments of 8 bits */
	assert_false(savings_choose(&q, &any, &(struct memory_room){.device = SIZE_MAX, .host = few}, &chosen));
}

/* Where the disk would be waited for in every short round, other savings are made. */
static void test_streams_are_for_long_rounds(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	cfg.n_layer = 8;
	cfg.n_embd = 256;
	cfg.context = 32;
	cfg.batch = 2;
	struct memory_request q = {.run = &cfg, .device = &cpu, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	const struct savings_wish any = SAVINGS_WISH_ANY,
							  wanted = {.recompute = SAVINGS_ANY, .moments = SAVINGS_ANY, .stream = 1};
	struct savings chosen;
	q.savings = (struct savings){.micro_batch = 1, .recompute = RECOMPUTE_BLOCK, .moments = MOMENTS_INT8};
	const struct memory_plan others = plan_of(&q);
	q.savings = (struct savings){.stream = true};
	const struct memory_plan streamed = plan_of(&q);
	const size_t host[] = {memory_plan_host(&others), memory_plan_host(&streamed)};
	const struct memory_room room = {.device = SIZE_MAX, .host = host[0] > host[1] ? host[0] : host[1]};
	cfg.steps_per_round = 500;
	assert_true(memory_cost(&q, streamed.n_params) < 0.05);
	assert_true(savings_choose(&q, &any, &room, &chosen));
	assert_true(chosen.stream && chosen.moments == MOMENTS_FP32 && chosen.recompute == RECOMPUTE_NONE);
	cfg.round_ms = 40; /* whatever H is */
	assert_true(memory_cost(&q, streamed.n_params) > 0.5);
	assert_true(savings_choose(&q, &any, &room, &chosen));
	assert_true(!chosen.stream && chosen.moments == MOMENTS_INT8);
	assert_true(savings_choose(&q, &wanted, &room, &chosen)); /* as a person says */
	assert_true(chosen.stream && chosen.moments == MOMENTS_FP32);
	cfg.round_ms = 0;
	cfg.steps_per_round = 2;
	assert_true(savings_choose(&q, &any, &room, &chosen));
	assert_false(chosen.stream);
}

/* A GPU's state comes to the host through two pieces of pinned memory, which are planned, whether
 * it is copied or streamed; the copies of one that is streamed are not. */
static void test_a_gpu_s_state_needs_no_copies(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	struct device_choice device = {.backend = "cuda", .n = 2};
	struct memory_request q = {.run = &cfg, .device = &device, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	const struct memory_plan copied = plan_of(&q);
	q.savings.stream = true;
	const struct memory_plan streamed = plan_of(&q);
	assert_true(copied.copies > 0 && streamed.copies == 0);
	const size_t vector = copied.n_params * sizeof(float), piece = REPLICA_PIECE_BYTES;
	assert_true(copied.step.pinned_bytes >= FETCHES * (vector < piece ? vector : piece));
	assert_int_equal(streamed.host, copied.host);
	assert_int_equal(memory_plan_device(&streamed), memory_plan_device(&copied));
}

/* Weights and moments leave a card where nothing else makes the model fit, and only a card. */
/* Exchanges through the host have their pieces in the plan, whether NCCL is there or not. */
static void test_pieces_of_exchanges_through_the_host_are_counted(void **state) {
	enum { GPUS = 2 };
	(void)state;
	struct run_config cfg = fixture_config();
	struct device_choice device = {.backend = "cuda", .n = 1};
	struct memory_request q = {.run = &cfg, .device = &device, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	const struct memory_plan one = plan_of(&q);
	device.n = GPUS;
	const struct memory_plan two = plan_of(&q);
	assert_int_equal(comm_staged_bytes(GPUS), (size_t)GPUS << 24);
	assert_true(two.host >= comm_staged_bytes(GPUS) && one.host < comm_staged_bytes(GPUS));
}

/* An update on the host is hidden as far as the first micro-batch's forward pass is long. */
static void test_an_offloaded_update_costs_what_no_forward_pass_hides(void **state) {
	enum { SEQUENCES = 16, CONTEXT = 1024, N_PARAMS = 1000000000 };
	(void)state;
	struct run_config cfg = fixture_config();
	cfg.dtype = RUN_DTYPE_BF16;
	cfg.context = CONTEXT;
	cfg.batch = SEQUENCES;
	cfg.grad_accum = 1;
	struct device_choice device = {.backend = "cuda", .n = 1};
	struct memory_request q = {.run = &cfg, .device = &device, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	q.savings = (struct savings){.micro_batch = SEQUENCES, .moments = MOMENTS_INT8, .offload = true};
	const double whole = memory_cost(&q, N_PARAMS);
	q.savings.micro_batch = 1;
	const double small = memory_cost(&q, N_PARAMS);
	assert_true(whole <= 0);  /* not even the card's own update is left */
	assert_true(small > 0.1); /* the forward pass of one sequence hides little */
}

static void test_offload_is_the_last_to_be_chosen(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	struct savings chosen;
	const struct savings_wish any = SAVINGS_WISH_ANY;
	cfg.n_layer = 12;
	cfg.n_embd = 1024;
	cfg.n_head = 8;
	cfg.dtype = RUN_DTYPE_BF16;
	struct device_choice device = {.backend = "cuda", .n = 1};
	struct memory_request q = {.run = &cfg, .device = &device, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	q.savings = (struct savings){.micro_batch = 1, .recompute = RECOMPUTE_BLOCK, .moments = MOMENTS_INT8};
	const struct memory_plan on_card = plan_of(&q);
	q.savings.offload = true;
	const struct memory_plan off = plan_of(&q);
	assert_true(off.offloaded > 0 && off.moments == 0 && on_card.offloaded == 0);
	assert_true(memory_plan_device(&off) + 5 * off.n_params < memory_plan_device(&on_card));
	struct memory_room room = {.device = memory_plan_least_device(&on_card) + MEMORY_DEVICE_OVERHEAD_BYTES,
							   .host = SIZE_MAX};
	assert_true(savings_choose(&q, &any, &room, &chosen));
	assert_false(chosen.offload);
	room.device--;
	assert_true(savings_choose(&q, &any, &room, &chosen));
	assert_true(chosen.offload);
	const struct savings_wish none = {.recompute = SAVINGS_ANY, .moments = SAVINGS_ANY, .offload = 0};
	assert_false(savings_choose(&q, &none, &room, &chosen));
	cfg.dtype = RUN_DTYPE_FP32;
	assert_false(memory_can_offload(&q));
	cfg.dtype = RUN_DTYPE_BF16;
	device.n = 2;
	assert_false(memory_can_offload(&q));
	device = cpu;
	assert_false(memory_can_offload(&q));
}

/* Returns what is chosen for devices with so much memory each, and its plan. */
static struct savings chosen_for(struct memory_request *q, const struct savings_wish *wish, size_t device_bytes,
								 bool *fits) {
	const struct memory_room room = {.device = device_bytes, .host = SIZE_MAX};
	struct savings chosen;
	*fits = savings_choose(q, wish, &room, &chosen);
	return chosen;
}

static size_t needed_with(struct memory_request *q, struct savings savings) {
	q->savings = savings;
	const struct memory_plan p = plan_of(q);
	return memory_plan_least_device(&p) + MEMORY_DEVICE_OVERHEAD_BYTES;
}

/* Several cards divide gradients, then weights, where nothing cheaper fits; the bytes over their
 * links grow with it. */
static void test_cards_divide_what_does_not_fit(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	const struct savings_wish any = SAVINGS_WISH_ANY;
	struct savings most = {.micro_batch = 1, .recompute = RECOMPUTE_BLOCK, .moments = MOMENTS_INT8};
	struct device_choice device = {.backend = "cuda", .n = 8};
	struct memory_request q = {.run = &cfg, .device = &device, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	size_t need[3];
	double links[3];
	bool fits;
	cfg.n_layer = 24;
	cfg.n_embd = 1024;
	cfg.n_head = 8;
	cfg.batch = 16;
	cfg.dtype = RUN_DTYPE_BF16;
	need_plugin();
	for (most.zero = ZERO_MOMENTS; most.zero <= ZERO_WEIGHTS; most.zero++) {
		need[most.zero] = needed_with(&q, most);
		links[most.zero] = memory_link_bytes(&q, plan_of(&q).n_params);
	}
	assert_true(need[ZERO_GRADIENTS] < need[ZERO_MOMENTS] && need[ZERO_WEIGHTS] < need[ZERO_GRADIENTS]);
	assert_true(links[ZERO_GRADIENTS] > links[ZERO_MOMENTS] && links[ZERO_WEIGHTS] > links[ZERO_GRADIENTS]);
	assert_int_equal(chosen_for(&q, &any, SIZE_MAX, &fits).zero, ZERO_MOMENTS);
	assert_int_equal(chosen_for(&q, &any, need[ZERO_MOMENTS] - 1, &fits).zero, ZERO_GRADIENTS);
	assert_int_equal(chosen_for(&q, &any, need[ZERO_GRADIENTS] - 1, &fits).zero, ZERO_WEIGHTS);
	assert_true(fits);
	(void)chosen_for(&q, &any, need[ZERO_WEIGHTS] - 1, &fits);
	assert_false(fits);
	const struct savings_wish none = {.recompute = SAVINGS_ANY, .moments = SAVINGS_ANY, .zero = ZERO_MOMENTS};
	(void)chosen_for(&q, &none, need[ZERO_MOMENTS] - 1, &fits);
	assert_false(fits);
	(void)rv_options_set(run_config_options, &cfg, "inner", "muon", NULL);
	assert_false(memory_can_divide(&q));
	(void)rv_options_set(run_config_options, &cfg, "inner", "adamw", NULL);
	device.n = 1;
	assert_false(memory_can_divide(&q));
	assert_true(memory_link_bytes(&q, 1000) == 0);
}

/* Of 7 sequences a device has 3, the others 2 and an idle pass. */
static void test_idle_passes_move_as_much(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	const struct device_choice device = {.backend = "cuda", .n = 3};
	struct memory_request q = {.run = &cfg, .device = &device, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	cfg.batch = 7;
	q.savings = (struct savings){.micro_batch = 1, .zero = ZERO_GRADIENTS};
	assert_true(memory_link_bytes(&q, 3000) == 4 * 3000 * 2 / 3 * (3 + 1));
	q.savings.zero = ZERO_WEIGHTS;
	assert_true(memory_link_bytes(&q, 3000) == 4 * 3000 * 2 / 3 * (3 + 2 * 3));
}

static void test_savings_as_options(void **state) {
	(void)state;
	char text[SAVINGS_TEXT_BYTES];
	savings_text(&(struct savings){.micro_batch = 0}, text, sizeof text);
	assert_string_equal(text, "");
	savings_text(&(struct savings){.micro_batch = 2, .recompute = RECOMPUTE_NORMS, .moments = MOMENTS_INT8}, text,
				 sizeof text);
	assert_string_equal(text, "--recompute norms --micro-batch 2 --moments int8");
	savings_text(&(struct savings){.zero = ZERO_WEIGHTS}, text, sizeof text);
	assert_string_equal(text, "--zero 3");
}

/* What memory_check says to `choice` in a room of so much; `said`: its event, "" for none. */
static enum rv_err check(const struct memory_request *q, const struct memory_room *room, enum memory_short choice,
						 char said[EVENT_BYTES], struct rv_errtext *et) {
	FILE *f = tmpfile();
	struct rv_events *ev;
	assert_non_null(f);
	const struct rv_events_config c = {.out = f, .json = true, .level = RV_INFO};
	assert_int_equal(rv_events_new(&c, &ev, NULL), RV_OK);
	enum rv_err e = memory_check(q, room, choice, ev, et);
	rv_events_free(ev);
	rewind(f);
	said[fread(said, 1, EVENT_BYTES - 1, f)] = '\0';
	(void)fclose(f);
	return e;
}

/* Between memory, and memory and swap, it is only warned; so it is beyond, of the host, where that
 * is asked for. */
static void test_short_of_memory(void **state) {
	(void)state;
	const struct device_choice gpu = {.backend = "cuda", .n = 1};
	struct run_config cfg = fixture_config();
	struct rv_errtext et = {0};
	char said[EVENT_BYTES];
	need_plugin();
	struct memory_request q = {.run = &cfg, .device = &cpu, .role = MEMORY_LAB, .replicas = 1, .parallel = 1};
	const struct memory_plan plan = plan_of(&q);
	const size_t need = memory_plan_host(&plan) - plan.data, most = 4096;
	assert_true(need > most);
	assert_int_equal(check(&q, &(struct memory_room){.host = need}, MEMORY_SHORT_REFUSE, said, &et), RV_OK);
	assert_string_equal(said, "");
	const struct memory_room tight = {.host = need - most, .swap = most};
	assert_int_equal(check(&q, &tight, MEMORY_SHORT_REFUSE, said, &et), RV_OK);
	assert_non_null(strstr(said, "\"event\":\"memory_short\""));
	const struct memory_room full = {.host = need - most, .swap = most - 1};
	assert_fault(check(&q, &full, MEMORY_SHORT_REFUSE, said, &et), RV_E_NOMEM, &et, " MiB and there are ");
	assert_string_equal(said, "");
	assert_non_null(strstr(et.text, "swap of 0 included"));
	assert_int_equal(check(&q, &full, MEMORY_SHORT_WARN, said, &et), RV_OK);
	assert_non_null(strstr(said, "\"event\":\"memory_short\""));
	q.device = &gpu; /* what a device has not, it cannot swap */
	assert_fault(check(&q, &full, MEMORY_SHORT_WARN, said, &et), RV_E_NOMEM, &et, "a device needs ");
}

/* What a person allows is kept, whatever is free; the refusal names the option. */
static void test_a_capped_room(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	struct rv_errtext et = {0};
	char said[EVENT_BYTES];
	struct memory_request q = {.run = &cfg, .device = &cpu, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	const struct memory_plan plan = plan_of(&q);
	const size_t need = memory_plan_host(&plan) - plan.data;
	struct memory_room room = {.device = SIZE_MAX, .host = 2 * need, .swap = need};
	memory_room_cap(&room, 0, 0);
	assert_true(!room.host_capped && !room.device_capped && room.host == 2 * need);
	memory_room_cap(&room, (int64_t)need, 0);
	assert_int_equal(memory_fit(&q, &room, &et), RV_OK);
	memory_room_cap(&room, (int64_t)need - 1, 0);
	assert_fault(memory_fit(&q, &room, &et), RV_E_NOMEM, &et, "--max-memory allows");
	assert_int_equal(check(&q, &room, MEMORY_SHORT_WARN, said, &et), RV_E_NOMEM);        /* that is of what is free */
	room = (struct memory_room){.device = SIZE_MAX, .host = need / 2, .swap = 2 * need}; /* swap is memory, too */
	memory_room_cap(&room, (int64_t)need - 1, 0);
	assert_true(room.host == need / 2 && room.host + room.swap == need - 1);
	assert_fault(memory_fit(&q, &room, &et), RV_E_NOMEM, &et, "--max-memory allows");
}

/* A cap on a GPU's memory holds what the backend takes where it is free, not only the least. */
static void test_a_capped_device(void **state) {
	(void)state;
	const struct device_choice gpu = {.backend = "cuda", .n = 1};
	struct run_config cfg = fixture_config();
	struct rv_errtext et = {0};
	need_plugin();
	struct memory_request q = {.run = &cfg, .device = &gpu, .role = MEMORY_WORKER, .replicas = 1, .parallel = 1};
	const struct memory_plan plan = plan_of(&q);
	const size_t all = memory_plan_device(&plan) + ((size_t)512 << 20);
	assert_true(memory_plan_least_device(&plan) < memory_plan_device(&plan));
	struct memory_room room = {.device = SIZE_MAX, .host = SIZE_MAX};
	memory_room_cap(&room, 0, (int64_t)all);
	assert_int_equal(memory_fit(&q, &room, &et), RV_OK);
	memory_room_cap(&room, 0, (int64_t)all - 1);
	assert_fault(memory_fit(&q, &room, &et), RV_E_NOMEM, &et, "--gpu-memory allows");
}

int main(int argc, char **argv) {
	if (argc > 1)
		return measure(strcmp(argv[1], "--measure-recompute") == 0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_replica_allocates_what_is_planned),
		cmocka_unit_test(test_roles_hold_what_they_should),
		cmocka_unit_test(test_late_updates_keep_vectors_of_their_own),
		cmocka_unit_test(test_impossible_models_are_refused),
		cmocka_unit_test(test_the_line),
		cmocka_unit_test(test_the_plan_is_near_the_peak),
		cmocka_unit_test(test_a_device_that_is_too_small),
		cmocka_unit_test(test_as_many_devices_as_sequences),
		cmocka_unit_test(test_a_gpus_workspace),
		cmocka_unit_test(test_the_largest_micro_batch_is_advised),
		cmocka_unit_test(test_a_machine_that_is_too_small),
		cmocka_unit_test(test_savings_follow_the_memory),
		cmocka_unit_test(test_streams_are_for_long_rounds),
		cmocka_unit_test(test_a_gpu_s_state_needs_no_copies),
		cmocka_unit_test(test_pieces_of_exchanges_through_the_host_are_counted),
		cmocka_unit_test(test_an_offloaded_update_costs_what_no_forward_pass_hides),
		cmocka_unit_test(test_offload_is_the_last_to_be_chosen),
		cmocka_unit_test(test_cards_divide_what_does_not_fit),
		cmocka_unit_test(test_idle_passes_move_as_much),
		cmocka_unit_test(test_savings_as_options),
		cmocka_unit_test(test_short_of_memory),
		cmocka_unit_test(test_a_capped_room),
		cmocka_unit_test(test_a_capped_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
