/* test_train_offload_overlap.c: an offloaded update overlaps with the next forward pass (decision
 * 0117), on the emulated GPU: the same bits as an update that is waited for, whenever streams run
 * what they are given, and layers are computed before the last weights are updated. */
#include "tests/train/train_fixture.h"

#include "kernels/cuda/cuda_backend.h"
#include "tests/emu/runtime.h"
#include "train/device_set.h"

#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__ /* a fiber costs ten times as much */
enum { STEPS = 2, EVERY = 3 };
#else
enum { STEPS = 3, EVERY = 1 };
#endif
enum { HEAD_DIM = 32, HELDOUT_TOKENS = 60, EVENTS = 400 };

/* ---- a device that notes the order of calls ---- */

enum event { EMBEDS, COMPUTES, FETCHED, WRITTEN };

static struct {
	enum event list[EVENTS];
	int n;
} events;

static void note(enum event e) {
	if (events.n < EVENTS)
		events.list[events.n++] = e;
}

static void noted_embed(struct backend *be, act_t *out, const int32_t *tokens, const float *wte, const float *wpe,
						int b, int t, int c) {
	note(EMBEDS);
	cuda_ops.embed_forward(be, out, tokens, wte, wpe, b, t, c);
}

static void noted_linear(struct backend *be, act_t *y, act_t *pre, const act_t *x, const float *w, const float *bias,
						 struct linear_shape s, enum linear_epilogue ep) {
	note(COMPUTES);
	cuda_ops.linear_forward(be, y, pre, x, w, bias, s, ep);
}

static const float *noted_end_fetch(struct backend *be) {
	note(FETCHED);
	return cuda_ops.end_fetch(be);
}

static void noted_host_wrote(struct backend *be, const float *p, size_t n, float *room) {
	note(WRITTEN);
	cuda_ops.host_wrote(be, p, n, room);
}

static int first(enum event e) {
	for (int i = 0; i < events.n; i++)
		if (events.list[i] == e)
			return i;
	fail_msg("no event %d", (int)e);
	return -1;
}

static int last(enum event e) {
	for (int i = events.n - 1; i >= 0; i--)
		if (events.list[i] == e)
			return i;
	fail_msg("no event %d", (int)e);
	return -1;
}

/* ---- replicas ---- */

struct on_gpu {
	struct fixture_run run; /* for its data */
	struct backend_ops noted;
	struct device_set devices;
	struct replica *replica;
};

static struct run_config config_of(const char *model, int accum) {
	struct run_config cfg = fixture_config();
	(void)rv_options_set(run_config_options, &cfg, "model", model, NULL);
	(void)rv_options_set(run_config_options, &cfg, "dtype", "bf16", NULL);
	cfg.n_embd = cfg.n_head * HEAD_DIM;
	cfg.grad_accum = accum;
	cfg.clip = 0.5;
	return cfg;
}

static void gpu_init(struct on_gpu *g, const struct run_config *cfg, struct savings savings, bool graphs) {
	const struct backend_options opt = {.threads = 1, .compute = DTYPE_BF16};
	const struct replica_options o = {.n_shards = (uint32_t)cfg->data_shards, .savings = savings, .host_threads = 1};
	struct rv_errtext why = {0};
	struct backend *be;
	(void)setenv("RIVULET_CUDA_GRAPHS", graphs ? "1" : "0", 1);
	fixture_run_init(&g->run, cfg, "cpu");
	assert_int_equal(cuda_ops.open(&opt, &be, &why), RV_OK);
	g->noted = cuda_ops;
	g->noted.embed_forward = noted_embed;
	g->noted.linear_forward = noted_linear;
	g->noted.end_fetch = noted_end_fetch;
	g->noted.host_wrote = noted_host_wrote;
	be->ops = &g->noted;
	g->devices = (struct device_set){.choice = {.backend = "cuda", .n = 1}, .be = {be}};
	if (replica_new_on(cfg, g->run.data, &o, &g->devices, &g->replica, &why) != RV_OK)
		fail_msg("%s", why.text);
	assert_true(replica_savings(g->replica).offload);
}

static void gpu_release(struct on_gpu *g) {
	replica_free(g->replica);
	g->devices.be[0]->ops->close(g->devices.be[0]);
	fixture_run_release(&g->run);
}

/* ---- the same bits ---- */

struct outcome {
	struct step_stats stats[STEPS];
	double heldout;
	size_t bytes;
	uint8_t *state;
	uint64_t graphs;
};

/* Steps; then an evaluation of the own weights, whose update is under way; another step, and the
 * state. `waits`: each update is ended before anything else. */
static void train(struct outcome *o, const struct run_config *cfg, struct savings savings, bool waits, bool graphs,
				  enum emu_streams streams) {
	struct on_gpu g;
	struct step_stats stats;
	emu_configure(&(struct emu_options){.streams = streams});
	gpu_init(&g, cfg, savings, graphs);
	const uint64_t before = emu_count().graph_launches;
	for (int i = 0; i < STEPS; i++) {
		assert_int_equal(replica_step(g.replica, &o->stats[i], NULL), RV_OK);
		if (waits)
			(void)replica_theta(g.replica);
	}
	assert_int_equal(replica_eval(g.replica, NULL, HELDOUT_TOKENS, &o->heldout, NULL), RV_OK);
	assert_int_equal(replica_step(g.replica, &stats, NULL), RV_OK);
	o->bytes = replica_state_bytes(g.replica);
	o->state = malloc(o->bytes);
	assert_non_null(o->state);
	replica_save(g.replica, o->state);
	o->graphs = emu_count().graph_launches - before;
	gpu_release(&g);
	emu_configure(&(struct emu_options){.streams = EMU_EAGER});
}

static void expect_equal(const struct outcome *a, const struct outcome *b) {
	for (int i = 0; i < STEPS; i++)
		assert_true(a->stats[i].loss == b->stats[i].loss && a->stats[i].grad_norm == b->stats[i].grad_norm);
	assert_true(a->heldout == b->heldout);
	assert_int_equal(a->bytes, b->bytes);
	assert_memory_equal(a->state, b->state, a->bytes);
}

static void check_bits(const char *model, int accum, struct savings savings) {
	const struct run_config cfg = config_of(model, accum);
	struct outcome waited, found;
	savings.offload = true;
	train(&waited, &cfg, savings, true, false, EMU_EAGER);
	for (int kind = 0; kind < 4; kind += EVERY) {
		const bool graphs = kind % 2 == 1;
		train(&found, &cfg, savings, false, graphs, kind < 2 ? EMU_EAGER : EMU_LAZY);
		expect_equal(&waited, &found);
		if (graphs && accum > 1) /* of micro-batches behind a step's first, but the first of all, as ever */
			assert_int_equal(found.graphs, (STEPS + 1) * (accum - 1) - 1);
		else
			assert_int_equal(found.graphs, 0);
		free(found.state);
	}
	free(waited.state);
}

static void test_an_overlapped_update_has_the_same_bits(void **state) {
	(void)state;
	check_bits("gpt2", 1, (struct savings){.moments = MOMENTS_FP32});
	check_bits("gpt2", 3, (struct savings){.moments = MOMENTS_INT8});
	check_bits("llama", 2, (struct savings){.moments = MOMENTS_INT8, .recompute = RECOMPUTE_BLOCK});
}

/* ---- the order ---- */

static void test_layers_are_computed_before_the_last_weights_are_updated(void **state) {
	(void)state;
	const struct run_config cfg = config_of("gpt2", 1);
	struct on_gpu g;
	struct step_stats stats;
	gpu_init(&g, &cfg, (struct savings){.offload = true}, true);
	assert_int_equal(replica_step(g.replica, &stats, NULL), RV_OK);
	events.n = 0;
	assert_int_equal(replica_step(g.replica, &stats, NULL), RV_OK);
	assert_true(first(WRITTEN) < first(EMBEDS));  /* embeddings are updated, and read */
	assert_true(first(COMPUTES) < last(FETCHED)); /* a layer is launched before the last weights are updated */
	/* Each section's weights are written before the operations on them: the embedding's, then one
	 * by one those of the layers, four products each. */
	int written = 0, computed = 0;
	for (int i = 0; i < events.n; i++) {
		written += events.list[i] == WRITTEN;
		computed += events.list[i] == COMPUTES;
		if (events.list[i] == COMPUTES && computed <= 4 * cfg.n_layer)
			assert_int_equal(written, 1 + (computed + 3) / 4);
	}
	assert_true(written == cfg.n_layer + 1 || written == cfg.n_layer + 2); /* what is behind the layers is small */
	/* Reading the weights updates them all. */
	events.n = 0;
	(void)replica_theta(g.replica);
	assert_int_equal(events.n, 2 * written);
	gpu_release(&g);
}

/* A replica may go while an update is under way; its device then works for another one. */
static void test_a_replica_ends_with_an_update_under_way(void **state) {
	(void)state;
	const struct run_config cfg = config_of("gpt2", 1);
	const struct replica_options o = {
		.n_shards = (uint32_t)cfg.data_shards, .savings = {.offload = true}, .host_threads = 1};
	struct on_gpu g;
	struct step_stats stats[2];
	gpu_init(&g, &cfg, (struct savings){.offload = true}, true);
	assert_int_equal(replica_step(g.replica, &stats[0], NULL), RV_OK);
	replica_free(g.replica);
	assert_ok(replica_new_on(&cfg, g.run.data, &o, &g.devices, &g.replica, &et));
	assert_int_equal(replica_step(g.replica, &stats[1], NULL), RV_OK);
	assert_true(stats[0].loss == stats[1].loss);
	gpu_release(&g);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_overlapped_update_has_the_same_bits),
		cmocka_unit_test(test_layers_are_computed_before_the_last_weights_are_updated),
		cmocka_unit_test(test_a_replica_ends_with_an_update_under_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
