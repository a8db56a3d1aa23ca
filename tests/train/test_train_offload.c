/* test_train_offload.c: weights and moments in the host's memory, on the emulated GPU: gradients
 * are those of a replica without, steps the processor's AdamW, to the bit; states are exchanged
 * between both, and evaluations leave the weights as they are. */
#include "tests/train/train_fixture.h"

#include "kernels/moments.h"
#include "train/device_set.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, HEAD_DIM = 32, HELDOUT_TOKENS = 60 };
#define CLIP_EPS 1e-6 /* replica.c's */

struct pair {
	struct fixture_run run; /* for its data */
	struct run_config cfg;
	struct device_set devices[2];
	struct replica *plain, *offloaded;
};

static struct replica *replica_on_gpu(struct pair *p, int i, const char *device, struct savings savings) {
	struct rv_errtext why = {0};
	const struct backend_options opt = {.threads = 1, .compute = DTYPE_BF16, .isa = "auto"};
	const struct replica_options o = {.n_shards = (uint32_t)p->cfg.data_shards, .savings = savings, .host_threads = 1};
	struct device_choice choice;
	struct replica *r = NULL;
	if (device_choose(device, &choice, &why) != RV_OK ||
		device_set_open(&p->devices[i], &choice, &opt, &why) != RV_OK ||
		replica_new_on(&p->cfg, p->run.data, &o, &p->devices[i], &r, &why) != RV_OK)
		fail_msg("%s", why.text);
	return r;
}

static void pair_init(struct pair *p, const char *model, struct savings savings) {
	p->cfg = fixture_config();
	(void)rv_options_set(run_config_options, &p->cfg, "model", model, NULL);
	(void)rv_options_set(run_config_options, &p->cfg, "dtype", "bf16", NULL);
	p->cfg.n_embd = p->cfg.n_head * HEAD_DIM;
	p->cfg.clip = 0.5;
	fixture_run_init(&p->run, &p->cfg, "cpu");
	p->plain = replica_on_gpu(p, 0, "cuda", savings);
	savings.offload = true;
	p->offloaded = replica_on_gpu(p, 1, "cuda", savings);
	assert_true(replica_savings(p->offloaded).offload && !replica_savings(p->plain).offload);
}

static void pair_release(struct pair *p) {
	replica_free(p->plain);
	replica_free(p->offloaded);
	for (int i = 0; i < 2; i++)
		device_set_close(&p->devices[i]);
	fixture_run_release(&p->run);
}

/* The processor's AdamW over all parameters at once. */
struct reference {
	struct backend *cpu;
	size_t n;
	float *theta, *gradient;
	void *m, *v;
};

static void reference_init(struct reference *f, struct replica *r, enum moments moments) {
	const struct backend_options opt = {.threads = 1, .compute = DTYPE_F32, .isa = "auto"};
	assert_ok(backend_open("cpu", &opt, &f->cpu, &et));
	f->n = replica_n_params(r);
	f->theta = malloc(f->n * sizeof *f->theta);
	f->gradient = malloc(f->n * sizeof *f->gradient);
	assert_ok(f->cpu->ops->alloc(f->cpu, moments_bytes(moments, f->n), &f->m, &et));
	assert_ok(f->cpu->ops->alloc(f->cpu, moments_bytes(moments, f->n), &f->v, &et));
	assert_true(f->theta && f->gradient);
	memcpy(f->theta, replica_theta(r), f->n * sizeof *f->theta);
}

static void reference_release(struct reference *f) {
	f->cpu->ops->free(f->cpu, f->m);
	f->cpu->ops->free(f->cpu, f->v);
	backend_close(f->cpu);
	free(f->theta);
	free(f->gradient);
}

static struct step_stats reference_step(struct reference *f, const struct pair *p, enum moments moments, int64_t step) {
	struct step_stats stats;
	const struct model *m = replica_model(p->plain);
	assert_int_equal(replica_gradient(p->plain, f->gradient, &stats, NULL), RV_OK);
	const double scale = p->cfg.clip / ((double)stats.grad_norm + CLIP_EPS);
	const struct adamw_params a = {.lr = stats.lr,
								   .beta1 = (float)p->cfg.beta1,
								   .beta2 = (float)p->cfg.beta2,
								   .eps = (float)p->cfg.eps,
								   .weight_decay = (float)p->cfg.weight_decay,
								   .grad_scale = (float)(scale < 1 ? scale : 1),
								   .step = step};
	if (moments == MOMENTS_INT8)
		f->cpu->ops->adamw8(f->cpu, f->theta, f->gradient, f->m, f->v, m->spans, m->n_spans, &a,
							(struct moments_place){f->n, 0, 0});
	else
		f->cpu->ops->adamw(f->cpu, f->theta, f->gradient, f->m, f->v, m->spans, m->n_spans, &a);
	replica_set_theta(p->plain, f->theta);
	return stats;
}

static void check_steps(const char *model, struct savings savings) {
	struct pair p;
	struct reference f;
	pair_init(&p, model, savings);
	reference_init(&f, p.plain, savings.moments);
	for (int64_t step = 1; step <= STEPS; step++) {
		const struct step_stats want = reference_step(&f, &p, savings.moments, step);
		struct step_stats got;
		assert_int_equal(replica_step(p.offloaded, &got, NULL), RV_OK);
		assert_true(got.loss == want.loss && got.lr == want.lr);
		assert_memory_equal(replica_theta(p.offloaded), f.theta, f.n * sizeof *f.theta);
	}
	reference_release(&f);
	pair_release(&p);
}

static void test_steps_are_the_processors(void **state) {
	(void)state;
	check_steps("gpt2", (struct savings){.moments = MOMENTS_FP32});
	check_steps("llama", (struct savings){.moments = MOMENTS_INT8, .recompute = RECOMPUTE_BLOCK, .micro_batch = 1});
}

static bool has_fused_multiply_adds(void) {
	const struct backend_options opt = {.threads = 1, .compute = DTYPE_F32, .isa = "auto"};
	struct backend *cpu;
	assert_ok(backend_open("cpu", &opt, &cpu, &et));
	const bool has = !strstr(cpu->ops->describe(cpu), "portable");
	backend_close(cpu);
	return has;
}

/* Steps both replicas, then compares their states. */
static void check_same_bits(const char *model, struct savings savings) {
	struct pair p;
	pair_init(&p, model, savings);
	const size_t bytes = replica_state_bytes(p.plain);
	uint8_t *one = malloc(bytes), *two = malloc(bytes);
	assert_true(one && two && bytes == replica_state_bytes(p.offloaded));
	for (int step = 0; step < STEPS; step++) {
		struct step_stats stats[2];
		assert_int_equal(replica_step(p.plain, &stats[0], NULL), RV_OK);
		assert_int_equal(replica_step(p.offloaded, &stats[1], NULL), RV_OK);
		assert_true(stats[0].loss == stats[1].loss && stats[0].grad_norm == stats[1].grad_norm);
	}
	replica_save(p.plain, one);
	replica_save(p.offloaded, two);
	assert_memory_equal(one, two, bytes);
	free(one);
	free(two);
	pair_release(&p);
}

/* The processor's AdamW and the GPU's round alike: weights and moments have the same bits wherever
 * they are. */
static void test_offload_changes_no_bit(void **state) {
	(void)state;
	if (!has_fused_multiply_adds())
		skip();
	check_same_bits("gpt2", (struct savings){.moments = MOMENTS_FP32});
	check_same_bits("llama", (struct savings){.moments = MOMENTS_INT8, .micro_batch = 1});
}

/* Its pieces, where it has them, are its state. */
static void expect_streamed(struct replica *r, const uint8_t *want, size_t bytes, bool own_room) {
	struct replica_stream s;
	size_t at = 0, n = 0;
	uint8_t *room = own_room ? malloc(REPLICA_PIECE_BYTES) : NULL;
	replica_stream_begin(r, &s, room);
	for (const void *piece; (piece = replica_stream_next(&s, &n)) != NULL; at += n) {
		assert_true(n > 0 && n <= bytes - at);
		assert_memory_equal(piece, want + at, n);
	}
	assert_int_equal(at, bytes);
	free(room);
}

/* Pieces that nobody takes leave nothing under way: the next ones are the right ones. */
static void expect_dropped(struct replica *r) {
	struct replica_stream s;
	size_t n = 0;
	replica_stream_begin(r, &s, NULL);
	for (int i = 0; i < 2; i++)
		assert_non_null(replica_stream_next(&s, &n));
	replica_stream_drop(&s);
}

static void check_pieces(const char *device, int64_t channels, struct savings savings) {
	struct pair p = {.cfg = fixture_config()};
	struct step_stats stats;
	p.cfg.n_embd = channels;
	savings.stream = true;
	fixture_run_init(&p.run, &p.cfg, "cpu");
	p.plain = replica_on_gpu(&p, 0, device, savings);
	const size_t bytes = replica_state_bytes(p.plain);
	uint8_t *want = malloc(bytes);
	assert_non_null(want);
	assert_int_equal(replica_step(p.plain, &stats, NULL), RV_OK);
	replica_save(p.plain, want);
	for (int i = 0; i < 2; i++) {
		expect_streamed(p.plain, want, bytes, i > 0);
		expect_dropped(p.plain);
	}
	assert_false(replica_copy_vectors(p.plain, want, 1)); /* a time long ago */
	replica_save(p.plain, want);
	expect_streamed(p.plain, want, bytes, true);
	free(want);
	pair_release(&p);
}

/* A state in devices' memory comes through pinned memory: vectors of more than one piece, codes of
 * moments, slices of two devices. */
static void test_a_state_comes_in_pieces(void **state) {
	enum { LARGE = 128, SMALL = 16 };
	(void)state;
	check_pieces("cuda", LARGE, (struct savings){.zero = ZERO_MOMENTS});
	check_pieces("cuda", SMALL, (struct savings){.moments = MOMENTS_INT8});
	check_pieces("cuda:0,1", SMALL, (struct savings){.moments = MOMENTS_INT8, .zero = ZERO_WEIGHTS});
}

static void note(void *ctx) {
	*(int *)ctx += 1;
}

/* A state of a replica without offload goes on with it, and back. */
static void test_states_are_the_same(void **state) {
	(void)state;
	struct pair p;
	struct step_stats stats;
	double loss[2];
	pair_init(&p, "gpt2", (struct savings){.moments = MOMENTS_FP32});
	const size_t bytes = replica_state_bytes(p.plain);
	uint8_t *one = malloc(bytes), *two = malloc(bytes);
	assert_true(one && two && bytes == replica_state_bytes(p.offloaded));
	assert_int_equal(replica_step(p.plain, &stats, NULL), RV_OK);
	replica_save(p.plain, one);
	assert_int_equal(replica_load(p.offloaded, one, bytes, NULL), RV_OK);
	replica_save(p.offloaded, two);
	assert_memory_equal(one, two, bytes);
	assert_int_equal(replica_eval(p.plain, NULL, HELDOUT_TOKENS, &loss[0], NULL), RV_OK);
	assert_int_equal(replica_eval(p.offloaded, NULL, HELDOUT_TOKENS, &loss[1], NULL), RV_OK);
	assert_true(loss[0] == loss[1]);
	assert_int_equal(replica_step(p.offloaded, &stats, NULL), RV_OK);
	replica_save(p.offloaded, two);
	assert_memory_not_equal(one, two, bytes);
	expect_streamed(p.offloaded, two, bytes, false);
	assert_int_equal(replica_load(p.plain, two, bytes, NULL), RV_OK);
	replica_save(p.plain, one);
	assert_memory_equal(one, two, bytes);
	free(one);
	free(two);
	pair_release(&p);
}

/* Other weights are evaluated in the replica's memory, which then has its own again. */
static void test_an_evaluation_leaves_the_weights(void **state) {
	(void)state;
	struct pair p;
	struct step_stats stats;
	char before[65], after[65];
	double of_plain, of_offloaded;
	int changes = 0;
	pair_init(&p, "gpt2", (struct savings){.moments = MOMENTS_FP32});
	const size_t n = replica_n_params(p.plain);
	float *other = malloc(n * sizeof *other);
	assert_non_null(other);
	memcpy(other, replica_theta(p.plain), n * sizeof *other);
	assert_int_equal(replica_step(p.offloaded, &stats, NULL), RV_OK);
	fixture_theta_hash(p.offloaded, before);
	replica_before_update(p.offloaded, note, &changes);
	assert_int_equal(replica_eval(p.offloaded, other, HELDOUT_TOKENS, &of_offloaded, NULL), RV_OK);
	assert_int_equal(changes, 1); /* other weights take the place of its own, which may be being read */
	assert_int_equal(replica_eval(p.plain, other, HELDOUT_TOKENS, &of_plain, NULL), RV_OK);
	fixture_theta_hash(p.offloaded, after);
	assert_true(of_offloaded == of_plain);
	assert_string_equal(before, after);
	free(other);
	pair_release(&p);
}

/* Resets moments that a fault spoiled, wherever they are. */
static void test_spoiled_moments_are_reset(void **state) {
	(void)state;
	struct pair p;
	struct step_stats stats;
	pair_init(&p, "gpt2", (struct savings){.moments = MOMENTS_FP32});
	assert_int_equal(replica_step(p.offloaded, &stats, NULL), RV_OK);
	assert_false(replica_heal(p.offloaded));
	const size_t bytes = replica_state_bytes(p.offloaded), n = replica_n_params(p.offloaded);
	uint8_t *saved = malloc(bytes);
	assert_non_null(saved);
	replica_save(p.offloaded, saved);
	memset(saved + 64 + n * sizeof(float), 0xff, sizeof(float)); /* the first moment's first: NaN */
	replica_seal(saved, bytes);
	assert_int_equal(replica_load(p.offloaded, saved, bytes, NULL), RV_OK);
	assert_true(replica_heal(p.offloaded));
	assert_false(replica_heal(p.offloaded));
	free(saved);
	pair_release(&p);
}

static enum rv_err refused(struct run_config cfg, const char *device, enum dtype compute, struct rv_errtext *why) {
	struct fixture_run run;
	struct device_set devices;
	struct device_choice choice;
	struct replica *r = NULL;
	const struct backend_options opt = {.threads = 1, .compute = compute, .isa = "auto"};
	const struct replica_options o = {.n_shards = (uint32_t)cfg.data_shards, .savings = {.offload = true}};
	fixture_run_init(&run, &cfg, "cpu");
	assert_ok(device_choose(device, &choice, &et));
	assert_ok(device_set_open(&devices, &choice, &opt, &et));
	const enum rv_err e = replica_new_on(&cfg, run.data, &o, &devices, &r, why);
	replica_free(r);
	device_set_close(&devices);
	fixture_run_release(&run);
	return e;
}

static void test_what_cannot_be_offloaded(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	struct rv_errtext why = {0};
	assert_fault(refused(cfg, "cuda", DTYPE_F32, &why), RV_E_UNSUPPORTED, &why, "need products in bf16");
	assert_fault(refused(cfg, "cuda:0,1", DTYPE_BF16, &why), RV_E_UNSUPPORTED, &why, "use --offload no");
	assert_ok(refused(cfg, "cpu", DTYPE_F32, &et)); /* a processor has nowhere to offload to: nothing changes */
	(void)rv_options_set(run_config_options, &cfg, "inner", "muon", NULL);
	assert_fault(refused(cfg, "cuda", DTYPE_BF16, &why), RV_E_UNSUPPORTED, &why, "inner = muon");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_are_the_processors),  cmocka_unit_test(test_offload_changes_no_bit),
		cmocka_unit_test(test_states_are_the_same),       cmocka_unit_test(test_an_evaluation_leaves_the_weights),
		cmocka_unit_test(test_spoiled_moments_are_reset), cmocka_unit_test(test_what_cannot_be_offloaded),
		cmocka_unit_test(test_a_state_comes_in_pieces),
	};
	(void)setenv("RIVULET_CUDA_PLUGIN", EMULATED_PLUGIN, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
