/* test_train_emulated.c: replicas on the CUDA plugin, its kernels run by the emulator: they train
 * as on the CPU, two of them make one replica, and their outer gradient and outer step are the
 * CPU's to the bit, so that both kinds share a run. */
#include "tests/train/train_fixture.h"

#include "kernels/plugin.h"
#include "train/outer_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__ /* a fiber costs ten times as much */
enum { STEPS = 4, OUTER_ROUNDS = 2 };
#else
enum { STEPS = 10, OUTER_ROUNDS = 3 };
#endif
enum { TENSOR_HEAD_DIM = 32 }; /* attention by tensor cores */

struct on_gpu {
	struct device_set devices;
	struct replica *replica;
};

static void gpu_init(struct on_gpu *g, struct fixture_run *f, const char *device, const struct run_config *cfg) {
	struct rv_errtext et = {0};
	const struct backend_options opt = {.threads = 1,
										.compute =
											run_config_compute(cfg, &(struct device_choice){.backend = "cuda"}, NULL),
										.isa = "auto"};
	const struct replica_options o = {.n_shards = (uint32_t)cfg->data_shards};
	struct device_choice choice;
	if (device_choose(device, &choice, &et) != RV_OK || device_set_open(&g->devices, &choice, &opt, &et) != RV_OK ||
		replica_new_on(cfg, f->data, &o, &g->devices, &g->replica, &et) != RV_OK)
		fail_msg("%s", et.text);
}

static void gpu_release(struct on_gpu *g) {
	replica_free(g->replica);
	device_set_close(&g->devices);
}

static void check_near(const char *what, int step, double got, double want, double tolerance) {
	if (!(fabs(got - want) <= tolerance * fabs(want)))
		fail_msg("step %d: %s: got %.9g, want %.9g", step, what, got, want);
}

static void configured_trains_alike(struct run_config cfg, const char *model, const char *device, const char *dtype,
									double tolerance) {
	struct fixture_run f;
	struct on_gpu g;
	(void)rv_options_set(run_config_options, &cfg, "model", model, NULL);
	(void)rv_options_set(run_config_options, &cfg, "dtype", dtype, NULL);
	if (run_config_compute(&cfg, &(struct device_choice){.backend = "cuda"}, NULL) == DTYPE_BF16) {
		cfg.n_embd = cfg.n_head * TENSOR_HEAD_DIM;
		cfg.lr *= 0.3; /* a step too large tells roundings apart */
	}
	fixture_run_init(&f, &cfg, "cpu");
	gpu_init(&g, &f, device, &cfg);
	for (int i = 0; i < STEPS; i++) {
		struct step_stats cpu, gpu;
		assert_int_equal(replica_step(f.replica, &cpu, NULL), RV_OK);
		assert_int_equal(replica_step(g.replica, &gpu, NULL), RV_OK);
		check_near("loss", i, (double)gpu.loss, (double)cpu.loss, tolerance);
		check_near("gradient norm", i, (double)gpu.grad_norm, (double)cpu.grad_norm, 20 * tolerance);
	}
	gpu_release(&g);
	fixture_run_release(&f);
}

static void trains_alike(const char *model, const char *device, const char *dtype, double tolerance) {
	configured_trains_alike(fixture_config(), model, device, dtype, tolerance);
}

/* What other optimizers are made of, and FedProx's term; the initial weights are pulled to. */
static void test_inner_optimizers_as_on_the_cpu(void **state) {
	(void)state;
	static const char *const inner[] = {"sgd", "muon"};
	for (int i = 0; i < 2; i++) {
		struct run_config cfg = fixture_config();
		(void)rv_options_set(run_config_options, &cfg, "inner", inner[i], NULL);
		cfg.prox_mu = 0.5;
		configured_trains_alike(cfg, "gpt2", "cuda", "fp32", 1e-4);
		configured_trains_alike(cfg, "llama", "cuda", "bf16", 2e-2);
	}
	struct run_config cfg = fixture_config();
	cfg.prox_mu = 0.5;
	configured_trains_alike(cfg, "gpt2", "cuda:0,1", "fp32", 1e-4);
	(void)rv_options_set(run_config_options, &cfg, "inner", "muon", NULL);
	configured_trains_alike(cfg, "gpt2", "cuda:0,1", "fp32", 1e-4);
}

static void test_steps_as_on_the_cpu(void **state) {
	(void)state;
	trains_alike("gpt2", "cuda", "fp32", 1e-4);
	trains_alike("llama", "cuda", "fp32", 1e-4);
	trains_alike("gpt2", "cuda", "bf16", 2e-2);
	trains_alike("llama", "cuda", "bf16", 2e-2);
}

static void test_two_devices_are_one_replica(void **state) {
	(void)state;
	trains_alike("gpt2", "cuda:0,1", "fp32", 1e-4);
}

static void global_of(struct global_state *g, struct replica *r, const struct run_config *cfg) {
	struct global_config c;
	const struct rv_hash name = rv_hash_of("run", 3);
	assert_int_equal(global_config_of(cfg, replica_n_params(r), &replica_model(r)->layout.layers, &name, &c, NULL),
					 RV_OK);
	assert_int_equal(global_init(g, &c, replica_theta(r), NULL), RV_OK);
}

/* One round: the same bytes from both, and the same state from these bytes. */
static void outer_round(struct on_gpu *g, struct outer_device *d, struct global_state *device,
						struct global_state *host) {
	const struct chunking c = global_round_chunks(&host->cfg, host->round);
	size_t bytes = chunking_total_bytes(&c, host->cfg.codec);
	uint8_t *got = calloc(1, bytes), *want = calloc(1, bytes);
	struct step_stats stats;
	assert_true(got && want);
	for (int i = 0; i < 2; i++)
		assert_int_equal(replica_step(g->replica, &stats, NULL), RV_OK);
	assert_int_equal(outer_device_encode(d, g->replica, device, got, NULL), RV_OK);
	assert_int_equal(global_encode_delta(host, replica_theta(g->replica), want, NULL), RV_OK);
	assert_memory_equal(got, want, bytes);
	struct rv_hash digest = global_digest(host, host->round, want);
	assert_int_equal(outer_device_apply(d, g->replica, device, got, &digest, NULL), RV_OK);
	replica_set_theta(g->replica, device->theta);
	assert_int_equal(global_apply(host, want, &digest, NULL), RV_OK);
	struct rv_hash a = global_full_hash(device), b = global_full_hash(host);
	assert_memory_equal(a.b, b.b, sizeof a.b);
	assert_memory_equal(replica_theta(g->replica), host->theta, host->cfg.n * sizeof(float));
	free(got);
	free(want);
}

static void test_the_outer_path_is_the_hosts(void **state) {
	(void)state;
	static const char *const optimizers[] = {"nesterov", "sgd", "average",
											 "adam" /* the host's, whatever the device */};
	for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; i++) {
		struct run_config cfg = fixture_config();
		struct fixture_run f;
		struct on_gpu g;
		struct global_state device, host;
		struct outer_device d = {.be = NULL};
		(void)rv_options_set(run_config_options, &cfg, "outer", optimizers[i], NULL);
		fixture_run_init(&f, &cfg, "cpu");
		gpu_init(&g, &f, "cuda", &cfg);
		global_of(&device, g.replica, &cfg);
		global_of(&host, g.replica, &cfg);
		for (int k = 0; k < OUTER_ROUNDS; k++)
			outer_round(&g, &d, &device, &host);
		assert_non_null(d.pinned[0]);
		outer_device_unpin(&d);
		global_release(&device);
		global_release(&host);
		gpu_release(&g);
		fixture_run_release(&f);
	}
}

static size_t free_on_the_device(void) {
	const struct backend_plugin *p;
	struct plugin_device info;
	assert_int_equal(plugin_load("cuda", &p, NULL), RV_OK);
	assert_int_equal(p->device(0, &info, NULL), RV_OK);
	return info.free_bytes;
}

static void test_the_outer_path_takes_its_memory_before_the_first_step(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	struct fixture_run f;
	struct on_gpu g;
	struct global_state device, host;
	struct outer_device d = {.be = NULL};
	fixture_run_init(&f, &cfg, "cpu");
	gpu_init(&g, &f, "cuda", &cfg);
	global_of(&device, g.replica, &cfg);
	global_of(&host, g.replica, &cfg);
	const size_t before = free_on_the_device();
	outer_device_reserve(g.replica, &device);
	const size_t reserved = free_on_the_device();
	assert_true(reserved < before);
	for (int k = 0; k < OUTER_ROUNDS; k++)
		outer_round(&g, &d, &device, &host);
	assert_int_equal(free_on_the_device(), reserved);
	outer_device_unpin(&d);
	global_release(&device);
	global_release(&host);
	gpu_release(&g);
	fixture_run_release(&f);
}

static void test_divergence_names_the_parameter(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	struct fixture_run f;
	struct on_gpu g;
	struct global_state global;
	struct outer_device d = {.be = NULL};
	struct rv_errtext et = {0};
	fixture_run_init(&f, &cfg, "cpu");
	gpu_init(&g, &f, "cuda", &cfg);
	global_of(&global, g.replica, &cfg);
	size_t n = replica_n_params(g.replica);
	float *bad = malloc(n * sizeof *bad);
	uint8_t *out = malloc(global_max_payload_bytes(&global.cfg));
	assert_true(bad && out);
	memcpy(bad, global.theta, n * sizeof *bad);
	bad[777] = NAN;
	replica_set_theta(g.replica, bad);
	assert_fault(outer_device_encode(&d, g.replica, &global, out, &et), RV_E_RANGE, &et, "parameter 777");
	free(bad);
	free(out);
	outer_device_unpin(&d);
	global_release(&global);
	gpu_release(&g);
	fixture_run_release(&f);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_as_on_the_cpu),
		cmocka_unit_test(test_two_devices_are_one_replica),
		cmocka_unit_test(test_inner_optimizers_as_on_the_cpu),
		cmocka_unit_test(test_the_outer_path_is_the_hosts),
		cmocka_unit_test(test_the_outer_path_takes_its_memory_before_the_first_step),
		cmocka_unit_test(test_divergence_names_the_parameter),
	};
	(void)setenv("RIVULET_CUDA_PLUGIN", EMULATED_PLUGIN, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
