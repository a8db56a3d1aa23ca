/* test_train_nccl.c: a replica on two emulated GPUs whose exchanges go through NCCL, whose place a
 * stand-in takes: as through the host, to the last bit; and wherever NCCL fails training goes on
 * through the host, with the same bits. So it is with gradients and weights that the GPUs divide,
 * whose exchanges go on behind the computation. */
#include "tests/train/train_fixture.h"

#include "kernels/cuda/comm_nccl.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/plugin.h"
#include "tests/train/nccl_stand_in.h"
#include "train/device_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__ /* a fiber costs ten times as much */
enum { SPREAD = 3 };        /* times as far apart are the exchanges that fail */
#else
enum { SPREAD = 1 };
#endif
enum { DEVICES = 2, STEPS = 2, HELDOUT_TOKENS = 20, HEAD_DIM = 32 };

static const struct comm_ops *library; /* of the plugin */

/* In place of the one that loads a file. */
enum rv_err plugin_load(const char *name, const struct backend_plugin **out, struct rv_errtext *et) {
	static struct backend_plugin plugin = {.abi = PLUGIN_ABI, .version = RV_VERSION, .ops = &cuda_ops};
	*out = NULL;
	if (strcmp(name, cuda_ops.name) != 0)
		return rv_fail(et, RV_E_NOTFOUND, "%s is no plugin's", name);
	plugin.comm = library;
	*out = &plugin;
	return RV_OK;
}

struct outcome {
	struct step_stats stats[STEPS];
	double heldout;
	char hash[65];
	char text[4096]; /* what was logged */
	int lines;
};

static void train(struct outcome *o, const struct run_config *cfg, struct savings savings) {
	struct fixture_run f;
	struct device_set devices = {.choice = {.backend = "cuda", .n = DEVICES}};
	struct replica *r;
	struct rv_errtext et = {0};
	fixture_run_init(&f, cfg, "cpu");
	const struct replica_options options = {.n_shards = (uint32_t)cfg->data_shards, .savings = savings};
	const enum dtype compute = run_config_compute(cfg, &devices.choice, NULL);
	for (int i = 0; i < DEVICES; i++) {
		const struct backend_options opt = {.threads = 1, .compute = compute, .device = i};
		assert_int_equal(cuda_ops.open(&opt, &devices.be[i], &et), RV_OK);
	}
	if (replica_new_on(cfg, f.data, &options, &devices, &r, &et) != RV_OK)
		fail_msg("%s", et.text);
	for (int i = 0; i < STEPS; i++)
		if (replica_step(r, &o->stats[i], &et) != RV_OK)
			fail_msg("step %d: %s", i, et.text);
	if (replica_eval(r, NULL, HELDOUT_TOKENS, &o->heldout, &et) != RV_OK)
		fail_msg("%s", et.text);
	fixture_theta_hash(r, o->hash);
	replica_free(r);
	for (int i = 0; i < DEVICES; i++)
		devices.be[i]->ops->close(devices.be[i]);
	fixture_run_release(&f);
}

/* The same, with what goes to stderr in o->text. */
static void train_logged(struct outcome *o, const struct run_config *cfg, struct savings savings) {
	FILE *log = tmpfile();
	memset(o, 0, sizeof *o);
	assert_non_null(log);
	(void)fflush(stderr);
	int kept = dup(STDERR_FILENO);
	assert_true(kept >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
	train(o, cfg, savings);
	(void)fflush(stderr);
	(void)dup2(kept, STDERR_FILENO);
	close(kept);
	rewind(log);
	o->text[fread(o->text, 1, sizeof o->text - 1, log)] = '\0';
	(void)fclose(log);
	for (const char *p = o->text; (p = strchr(p, '\n')); p++)
		o->lines++;
}

static struct run_config config_of(const char *inner) {
	struct run_config cfg = fixture_config();
	(void)rv_options_set(run_config_options, &cfg, "inner", inner, NULL);
	cfg.grad_accum = 2;
	return cfg;
}

static void check_outcome(const struct outcome *got, const struct outcome *want) {
	for (int i = 0; i < STEPS; i++)
		assert_memory_equal(&got->stats[i], &want->stats[i], sizeof want->stats[i]);
	assert_true(got->heldout == want->heldout);
	assert_string_equal(got->hash, want->hash);
}

/* Exchanges of a run in which nothing fails. */
static int run_without_failures(struct outcome *want, const struct run_config *cfg, struct savings savings) {
	struct outcome nccl;
	nccl_stand_in_reset();
	library = NULL;
	train_logged(want, cfg, savings);
	assert_int_equal(nccl_stand_in.joined, 0);
	library = &comm_nccl_ops;
	train_logged(&nccl, cfg, savings);
	check_outcome(&nccl, want);
	assert_int_equal(nccl.lines, 0);
	assert_int_equal(nccl_stand_in.joined, DEVICES);
	assert_int_equal(nccl_stand_in.destroyed, DEVICES);
	assert_int_equal(nccl_stand_in.aborted, 0);
	assert_true(nccl_stand_in.exchanges > 0);
	return nccl_stand_in.exchanges;
}

static void check_failing(const struct run_config *cfg, struct savings savings, const struct outcome *want,
						  enum nccl_failure fails, int rank, int after) {
	struct outcome got;
	nccl_stand_in_reset();
	nccl_stand_in.fails = fails;
	nccl_stand_in.failing_rank = rank;
	nccl_stand_in.fails_after = after;
	train_logged(&got, cfg, savings);
	check_outcome(&got, want);
	if (got.lines != 1 || !strstr(got.text, "devices exchange through host memory from now on: device ") ||
		!strstr(got.text, " of 2: NCCL") || !strstr(got.text, "the stand-in's"))
		fail_msg("failure %d of device %d after %d exchanges: not one line that says so:\n%s", (int)fails, rank, after,
				 got.text);
	if (fails != NCCL_LATER)
		assert_int_equal(nccl_stand_in.exchanges, after);
	assert_int_equal(nccl_stand_in.aborted, nccl_stand_in.joined);
	assert_int_equal(nccl_stand_in.destroyed, 0);
}

static const struct savings plain = {.zero = ZERO_MOMENTS};

static void check_every(const struct run_config *cfg, struct savings savings, int every) {
	struct outcome want;
	const int exchanges = run_without_failures(&want, cfg, savings);
	print_message("%d exchanges\n", exchanges);
	for (int k = 0, rank = 0; k < exchanges; k += SPREAD * every, rank++) {
		check_failing(cfg, savings, &want, NCCL_CALL, rank % DEVICES, k);
		check_failing(cfg, savings, &want, NCCL_LATER, (rank + 1) % DEVICES, k);
	}
}

static void any_exchange_may_fail(void **state) {
	(void)state;
	static const char *const optimizers[] = {"adamw", "muon"};
	for (int o = 0; o < 2; o++) {
		const struct run_config cfg = config_of(optimizers[o]);
		check_every(&cfg, plain, 1 + 2 * o);
	}
}

/* Sums and copies, of two micro-batches on each device: windows hold some sections from one to the
 * next. */
static void any_exchange_of_divided_ones_may_fail(void **state) {
	(void)state;
	const struct run_config cfg = config_of("adamw");
	check_every(&cfg, (struct savings){.zero = ZERO_WEIGHTS, .micro_batch = 1}, 11);
}

static void divided_in_the_bits_of_all(void **state) {
	(void)state;
	static const char *const dtypes[] = {"fp32", "bf16"};
	for (int i = 0; i < 2; i++) {
		struct run_config cfg = config_of("adamw");
		struct outcome want, got;
		(void)rv_options_set(run_config_options, &cfg, "dtype", dtypes[i], NULL);
		(void)rv_options_set(run_config_options, &cfg, "model", i ? "llama" : "gpt2", NULL);
		cfg.n_embd = i ? cfg.n_head * HEAD_DIM : cfg.n_embd;
		nccl_stand_in_reset();
		library = &comm_nccl_ops;
		train_logged(&want, &cfg, plain);
		for (enum zero zero = ZERO_GRADIENTS; zero <= ZERO_WEIGHTS; zero++) {
			nccl_stand_in_reset();
			train_logged(&got, &cfg, (struct savings){.zero = zero});
			check_outcome(&got, &want);
			assert_true(got.lines == 0 && nccl_stand_in.exchanges > 0);
		}
	}
}

static void joining_may_fail(void **state) {
	(void)state;
	const struct run_config cfg = config_of("adamw");
	struct outcome want;
	(void)run_without_failures(&want, &cfg, plain);
	for (int rank = 0; rank < DEVICES; rank++)
		check_failing(&cfg, plain, &want, NCCL_JOIN, rank, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_exchange_may_fail),
		cmocka_unit_test(any_exchange_of_divided_ones_may_fail),
		cmocka_unit_test(divided_in_the_bits_of_all),
		cmocka_unit_test(joining_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
