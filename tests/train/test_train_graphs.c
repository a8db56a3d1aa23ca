/* test_train_graphs.c: steps on the CUDA backend, emulated, as CUDA graphs and without: the same
 * bits, whenever streams run what they are given; no wait but the step's own ones; and what a graph
 * must not keep. */
#include "tests/train/train_fixture.h"

#include "kernels/cuda/cuda_backend.h"
#include "tests/emu/runtime.h"
#include "train/device_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__ /* a fiber costs ten times as much */
enum { EVERY = 3 };
#else
enum { EVERY = 1 };
#endif
enum { STEPS = 3, ACCUM = CUDA_INPUTS + 1, TENSOR_HEAD_DIM = 32 };

struct on_gpu {
	struct device_set devices;
	struct replica *replica;
};

static void gpu_init(struct on_gpu *g, struct fixture_run *f, const struct run_config *cfg, bool graphs) {
	const struct backend_options opt = {
		.threads = 1, .compute = run_config_compute(cfg, &(struct device_choice){.backend = "cuda"}, NULL)};
	const struct replica_options o = {.n_shards = (uint32_t)cfg->data_shards};
	struct rv_errtext et = {0};
	g->devices = (struct device_set){.choice = {.backend = "cuda", .n = 1}};
	(void)setenv("RIVULET_CUDA_GRAPHS", graphs ? "1" : "0", 1);
	if (cuda_ops.open(&opt, &g->devices.be[0], &et) != RV_OK ||
		replica_new_on(cfg, f->data, &o, &g->devices, &g->replica, &et) != RV_OK)
		fail_msg("%s", et.text);
}

static void gpu_release(struct on_gpu *g) {
	replica_free(g->replica);
	g->devices.be[0]->ops->close(g->devices.be[0]);
}

static struct run_config config_of(const char *model, const char *dtype, int accum) {
	struct run_config cfg = fixture_config();
	(void)rv_options_set(run_config_options, &cfg, "model", model, NULL);
	(void)rv_options_set(run_config_options, &cfg, "dtype", dtype, NULL);
	cfg.grad_accum = accum;
	if (run_config_compute(&cfg, &(struct device_choice){.backend = "cuda"}, NULL) == DTYPE_BF16)
		cfg.n_embd = cfg.n_head * TENSOR_HEAD_DIM;
	return cfg;
}

struct outcome {
	struct step_stats stats[STEPS];
	char hash[65];
	double heldout;
	uint64_t graphs;
};

/* Steps, with an evaluation of other weights and new weights among them: what a graph did not see
 * happening. */
static void train(struct outcome *o, const struct run_config *cfg, bool graphs, enum emu_streams streams) {
	struct fixture_run f;
	struct on_gpu g;
	emu_configure(&(struct emu_options){.streams = streams});
	fixture_run_init(&f, cfg, "cpu");
	gpu_init(&g, &f, cfg, graphs);
	uint64_t before = emu_count().graph_launches;
	memset(o, 0, sizeof *o);
	for (int i = 0; i < STEPS; i++) {
		assert_int_equal(replica_step(g.replica, &o->stats[i], NULL), RV_OK);
		if (i != 1)
			continue;
		size_t n = replica_n_params(g.replica);
		float *theta = malloc(n * sizeof *theta);
		assert_non_null(theta);
		memcpy(theta, replica_theta(g.replica), n * sizeof *theta);
		for (size_t k = 0; k < n; k++)
			theta[k] *= 0.75f;
		assert_int_equal(replica_eval(g.replica, theta, 1, &o->heldout, NULL), RV_OK);
		replica_set_theta(g.replica, theta);
		free(theta);
	}
	double again;
	assert_int_equal(replica_eval(g.replica, NULL, 1, &again, NULL), RV_OK);
	o->heldout += again;
	o->graphs = emu_count().graph_launches - before;
	fixture_theta_hash(g.replica, o->hash);
	gpu_release(&g);
	fixture_run_release(&f);
	emu_configure(&(struct emu_options){.streams = EMU_EAGER});
}

static void check_same(const struct run_config *cfg) {
	struct outcome plain, other;
	train(&plain, cfg, false, EMU_EAGER);
	assert_int_equal(plain.graphs, 0);
	for (int way = 1; way < 4; way++) {
		train(&other, cfg, way & 1, way & 2 ? EMU_LAZY : EMU_EAGER);
		for (int i = 0; i < STEPS; i++)
			assert_memory_equal(&other.stats[i], &plain.stats[i], sizeof plain.stats[i]);
		assert_string_equal(other.hash, plain.hash);
		assert_true(other.heldout == plain.heldout);
		if (way & 1)
			assert_in_range(other.graphs, 1, STEPS * ACCUM - 1); /* the first runs plainly */
		else
			assert_int_equal(other.graphs, 0);
	}
}

static void test_graphs_give_the_same_bits(void **state) {
	(void)state;
	static const char *const models[] = {"gpt2", "llama"}, *const dtypes[] = {"fp32", "bf16"};
	for (int i = 0; i < 4; i += EVERY) {
		struct run_config cfg = config_of(models[i / 2], dtypes[i % 2], ACCUM);
		check_same(&cfg);
	}
}

/* ---- the next input ---- */

enum { CALLS_CAP = 64 };
/* The backend's calls in their order: s(tep), p(repare), w(ait). */
static char spied[CALLS_CAP];
static int n_calls, n_known; /* n_known: steps whose input was prepared */

/* Sequences that were read, if need be by waiting for them. */
static uint64_t n_waiting_reads;

enum rv_err __real_dataset_train_sequence(const struct dataset *d, uint32_t shard, uint64_t cursor, int32_t *inputs,
										  int32_t *targets, struct rv_errtext *text);
enum rv_err __wrap_dataset_train_sequence(const struct dataset *d, uint32_t shard, uint64_t cursor, int32_t *inputs,
										  int32_t *targets, struct rv_errtext *text);

enum rv_err __wrap_dataset_train_sequence(const struct dataset *d, uint32_t shard, uint64_t cursor, int32_t *inputs,
										  int32_t *targets, struct rv_errtext *text) {
	n_waiting_reads++;
	return __real_dataset_train_sequence(d, shard, cursor, inputs, targets, text);
}

static void note(char call) {
	assert_in_range(n_calls, 0, CALLS_CAP - 2);
	spied[n_calls++] = call;
	spied[n_calls] = '\0';
}

static void spied_step(struct backend *be, const struct micro_batch *batch, void (*pass)(void *ctx), void *ctx) {
	const struct cuda_micro *m = &((struct cuda_backend *)be)->micro;
	const int32_t *pinned = m->inputs[m->next_input].pinned;
	const size_t n = (size_t)batch->b * (size_t)batch->t;
	n_known += m->inputs[m->next_input].prepared == n && memcmp(pinned, batch->tokens, n * sizeof *pinned) == 0;
	note('s');
	cuda_ops.micro_step(be, batch, pass, ctx);
}

static void spied_prepare(struct backend *be, const struct micro_batch *batch) {
	note('p');
	cuda_ops.micro_prepare(be, batch);
}

static const float *spied_losses(struct backend *be, size_t *n, const float *x, size_t x_n, double *squares) {
	note('w');
	return cuda_ops.micro_losses(be, n, x, x_n, squares);
}

/* The first micro-batch of the next step is sorted and on its way before the host waits for this
 * one, and is the one that the next step takes, unless it reads elsewhere. It is read only if
 * nobody has to wait for it: this step's losses do not wait for the next one's text. */
static void test_the_next_batch_is_prepared_before_the_wait(void **state) {
	(void)state;
	struct backend_ops spies = cuda_ops;
	struct run_config cfg = config_of("gpt2", "fp32", 2);
	struct fixture_run f;
	struct on_gpu g, plain;
	struct step_stats got, want;
	char hashes[2][65];
	spies.micro_step = spied_step;
	spies.micro_prepare = spied_prepare;
	spies.micro_losses = spied_losses;
	fixture_run_init(&f, &cfg, "cpu");
	gpu_init(&g, &f, &cfg, true);
	gpu_init(&plain, &f, &cfg, true);
	struct backend_ops never = cuda_ops;
	never.micro_prepare = NULL;
	plain.devices.be[0]->ops = &never;
	g.devices.be[0]->ops = &spies;
	n_calls = n_known = 0;
	n_waiting_reads = 0;
	emu_configure(&(struct emu_options){.order = EMU_FORWARD, .streams = EMU_LAZY});
	uint8_t *saved = malloc(replica_state_bytes(g.replica));
	assert_non_null(saved);
	for (int i = 0; i < STEPS; i++) {
		if (i == STEPS - 1) { /* back to where it was: other sequences than those prepared */
			replica_save(plain.replica, saved);
			assert_ok(replica_step(g.replica, &got, &et));
			assert_ok(replica_load(g.replica, saved, replica_state_bytes(g.replica), &et));
		}
		assert_ok(replica_step(g.replica, &got, &et));
		assert_ok(replica_step(plain.replica, &want, &et));
		assert_true(got.loss == want.loss && got.grad_norm == want.grad_norm);
	}
	assert_string_equal(spied, "sspwsspwsspwsspw");
	assert_int_equal(n_known, STEPS - 1);
	assert_int_equal(n_waiting_reads, (2 * STEPS + 1) * savings_step_sequences(&cfg));
	fixture_theta_hash(g.replica, hashes[0]);
	fixture_theta_hash(plain.replica, hashes[1]);
	assert_string_equal(hashes[0], hashes[1]);
	free(saved);
	emu_configure(&(struct emu_options){.order = EMU_FORWARD, .streams = EMU_EAGER});
	gpu_release(&g);
	gpu_release(&plain);
	fixture_run_release(&f);
}

/* How often the host waits for the stream in a step behind the first ones. */
static uint64_t waits_of_a_step(int accum, bool graphs) {
	struct run_config cfg = config_of("gpt2", "fp32", accum);
	struct fixture_run f;
	struct on_gpu g;
	struct step_stats stats;
	fixture_run_init(&f, &cfg, "cpu");
	gpu_init(&g, &f, &cfg, graphs);
	for (int i = 0; i < 2; i++)
		assert_int_equal(replica_step(g.replica, &stats, NULL), RV_OK);
	uint64_t before = emu_count().stream_waits;
	assert_int_equal(replica_step(g.replica, &stats, NULL), RV_OK);
	uint64_t waits = emu_count().stream_waits - before;
	gpu_release(&g);
	fixture_run_release(&f);
	return waits;
}

/* Checks that a step waits once, for the losses and the norm of the gradient together; on a machine
 * on which it takes over half a second, also behind each micro-batch, for the sake of pauses. */
static void check_waits(int accum, bool graphs) {
	uint64_t waits = waits_of_a_step(accum, graphs);
	if (waits != 1 && waits != 1 + (uint64_t)accum)
		fail_msg("%d micro-batches, graphs %d: %d waits", accum, graphs, (int)waits);
}

static void test_a_step_waits_at_its_end_only(void **state) {
	(void)state;
	for (int graphs = 0; graphs < 2; graphs++) {
		check_waits(1, graphs);
		check_waits(5, graphs);
	}
}

static void test_a_diverged_step_changes_nothing(void **state) {
	(void)state;
	struct run_config cfg = config_of("gpt2", "fp32", ACCUM);
	struct fixture_run f;
	struct on_gpu g;
	struct step_stats stats;
	struct rv_errtext et = {0};
	char before[65], after[65];
	fixture_run_init(&f, &cfg, "cpu");
	gpu_init(&g, &f, &cfg, true);
	for (int i = 0; i < 2; i++)
		assert_int_equal(replica_step(g.replica, &stats, NULL), RV_OK);
	const float bad = NAN;
	replica_set_part(g.replica, 0, 1, &bad);
	for (size_t i = 0; i < replica_n_params(g.replica); i += 64)
		replica_set_part(g.replica, i, 1, &bad);
	fixture_theta_hash(g.replica, before);
	assert_fault(replica_step(g.replica, &stats, &et), RV_E_RANGE, &et, "training diverged");
	fixture_theta_hash(g.replica, after);
	assert_string_equal(after, before);
	gpu_release(&g);
	fixture_run_release(&f);
}

/* ---- a capture that fails ---- */

struct waiting_pass {
	struct backend *be;
	int calls;
};

static void wait_inside(void *ctx) {
	struct waiting_pass *w = ctx;
	w->calls++;
	w->be->ops->sync(w->be);
}

static void test_what_cannot_be_captured_runs_plainly(void **state) {
	(void)state;
	const struct backend_options opt = {.threads = 1, .compute = DTYPE_F32};
	const int32_t tokens[4] = {0};
	struct waiting_pass w = {.calls = 0};
	size_t n;
	(void)setenv("RIVULET_CUDA_GRAPHS", "1", 1);
	assert_int_equal(cuda_ops.open(&opt, &w.be, NULL), RV_OK);
	const struct micro_batch batch = {
		.tokens = tokens, .targets = tokens, .b = 1, .t = 4, .grad_scale = 1, .owner = &w, .only_enqueues = true};
	uint64_t before = emu_count().graph_launches;
	static const int calls[] = {1, 3, 5, 6}; /* plainly; captured in vain, and plainly, twice; plainly */
	for (int i = 0; i < 4; i++) {
		w.be->ops->micro_step(w.be, &batch, wait_inside, &w);
		assert_int_equal(w.calls, calls[i]);
	}
	assert_int_equal(emu_count().graph_launches, before);
	(void)w.be->ops->micro_losses(w.be, &n, NULL, 0, NULL);
	assert_int_equal(n, 16);
	w.be->ops->close(w.be);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_graphs_give_the_same_bits),
		cmocka_unit_test(test_a_step_waits_at_its_end_only),
		cmocka_unit_test(test_a_diverged_step_changes_nothing),
		cmocka_unit_test(test_what_cannot_be_captured_runs_plainly),
		cmocka_unit_test(test_the_next_batch_is_prepared_before_the_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
