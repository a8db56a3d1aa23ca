/* test_train_device_memory.c: what a replica on the CUDA backend, emulated, takes of a device's memory: all of it before
 * the first step. */
#include "tests/worker/train_fixture.h"

#include "kernels/cuda/cuda_backend.h"
#include "kernels/emu/runtime.h"
#include "worker/train/device_set.h"

#include <stdlib.h>
#include <string.h>

enum { TENSOR_HEAD_DIM = 32, HELDOUT_TOKENS = 100 };

struct on_gpu {
	struct fixture_run run; /* the same on the CPU: the data, and the weights that are evaluated */
	struct device_set devices;
	struct replica *replica;
};

static struct run_config config_of(const char *model, const char *dtype) {
	struct run_config cfg = fixture_config();
	(void)snprintf(cfg.model, sizeof cfg.model, "%s", model);
	(void)snprintf(cfg.dtype, sizeof cfg.dtype, "%s", dtype);
	cfg.n_embd = cfg.n_head * TENSOR_HEAD_DIM;
	return cfg;
}

static enum rv_err gpu_open(struct on_gpu *g, const struct run_config *cfg, enum recompute recompute,
							struct rv_errtext *et) {
	const struct device_choice cuda = {.backend = "cuda", .n = 1};
	const struct backend_options opt = {.threads = 1, .compute = run_config_compute(cfg, &cuda, NULL)};
	const struct replica_options o = {.n_shards = (uint32_t)cfg->data_shards, .recompute = recompute};
	fixture_run_init(&g->run, cfg, "cpu");
	g->replica = NULL;
	g->devices = (struct device_set){.choice = cuda};
	assert_int_equal(cuda_ops.open(&opt, &g->devices.be[0], NULL), RV_OK);
	return replica_new_on(cfg, g->run.data, &o, &g->devices, &g->replica, et);
}

static void gpu_init(struct on_gpu *g, const struct run_config *cfg, enum recompute recompute) {
	struct rv_errtext et = {0};
	if (gpu_open(g, cfg, recompute, &et) != RV_OK)
		fail_msg("%s", et.text);
}

static void gpu_release(struct on_gpu *g) {
	replica_free(g->replica);
	g->devices.be[0]->ops->close(g->devices.be[0]);
	fixture_run_release(&g->run);
}

static void one_step(struct replica *r) {
	struct step_stats stats;
	assert_int_equal(replica_step(r, &stats, NULL), RV_OK);
}

/* The weights of the replica on the CPU are other ones: of a step more. The GPU's stay what they are, to the bit. */
static void check_evaluation(const char *dtype) {
	const struct run_config cfg = config_of("gpt2", dtype);
	struct on_gpu g;
	char before[65], after[65];
	double own[2], other, on_cpu;
	gpu_init(&g, &cfg, RECOMPUTE_NONE);
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
	gpu_init(&g, &cfg, RECOMPUTE_NONE);
	fixture_steps(g.run.replica, 1);
	fixture_theta_hash(g.replica, before);
	replica_watch(g.replica, &stop);
	assert_fault(replica_eval(g.replica, replica_theta(g.run.replica), 0, &loss, &et), RV_E_CANCELLED, &et, "stopped");
	fixture_theta_hash(g.replica, after);
	assert_string_equal(after, before);
	gpu_release(&g);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_evaluation_of_other_weights_takes_no_memory),
		cmocka_unit_test(test_a_stopped_evaluation_leaves_the_weights),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
