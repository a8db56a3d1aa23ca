/* test_train_goldens.c: the model, the clipping, AdamW and the schedule against PyTorch, on every
 * backend there is. The goldens hold fp64 results rounded to fp32 (tests/goldens/make_goldens.py),
 * so the tolerances bound our own rounding. Errors are relative to the largest magnitude in the
 * tensor. */
#include "tests/train/golden_file.h"
#include "tests/train/train_fixture.h"

#include "train/model/model.h"
#include "train/schedule.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOGITS_TOLERANCE 2e-6
#define LOSS_TOLERANCE   5e-7
#define GRAD_TOLERANCE   5e-6
#define PARAMS_TOLERANCE 2e-5 /* after ten steps: Adam divides small gradients by themselves */
#define NORM_TOLERANCE   2e-5
#define LR_TOLERANCE     1e-7

enum { LAYERS, HEADS, CHANNELS, VOCAB, CONTEXT, BATCH, STEPS, WARMUP, SHAPE_FIELDS };
enum { KV_HEADS, INNER, GROUP_FIELDS };
enum { THETA, FACTOR, LOW_FREQ, HIGH_FREQ, ORIGINAL_CONTEXT, ROPE_FIELDS };
enum { PEAK_LR, MIN_RATIO, BETA1, BETA2, EPS, DECAY, CLIP, HYPER_FIELDS };

/* Every code path that there is. An instruction set is a limit: with less than AVX2, avx2 means
 * portable. */
static const struct variant {
	const char *backend, *isa;
} variants[] = {{"cpu", "auto"}, {"cpu", "avx2"}, {"cpu", "portable"}, {"ref", "auto"}};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

/* A model family and its file; what its configurations say beyond the shape is filled in from the
 * file. */
struct family {
	const char *name, *path;
	void (*complete)(struct model_shape *s, const struct golden *g);
};

struct fixture {
	char name[64];
	struct golden *golden;
	const int32_t *shape;
	const float *hyper;
	struct backend *be;
	struct model *model;
	size_t tokens; /* of a batch */
	float *params, *grads, *m, *v, *losses;
};

static float *alloc_params(struct backend *be, size_t n) {
	void *p;
	assert_ok(be->ops->alloc(be, n * sizeof(float), &p, &et));
	return p;
}

static void complete_gpt2(struct model_shape *s, const struct golden *g) {
	(void)g;
	s->tied = true;
	s->norm_eps = 1e-5f;
}

static void complete_llama(struct model_shape *s, const struct golden *g) {
	const int32_t *groups = golden_i32(g, "groups", GROUP_FIELDS);
	const float *rope = golden_f32(g, "rope", ROPE_FIELDS);
	s->n_kv_head = groups[KV_HEADS];
	s->n_inner = groups[INNER];
	s->norm_eps = 1e-6f;
	s->rope.theta = rope[THETA];
	s->rope.scaling = ROPE_LLAMA3;
	s->rope.factor = rope[FACTOR];
	s->rope.low_freq = rope[LOW_FREQ];
	s->rope.high_freq = rope[HIGH_FREQ];
	s->rope.original_context = (int)rope[ORIGINAL_CONTEXT];
}

static const struct family families[] = {{"gpt2", GOLDENS_DIR "/gpt2_tiny.bin", complete_gpt2},
										 {"llama", GOLDENS_DIR "/llama_tiny.bin", complete_llama}};
enum { FAMILIES = sizeof families / sizeof families[0] };

static void fixture_init(struct fixture *f, const struct family *family, const struct variant *variant) {
	struct backend_options opt = {.threads = 2, .compute = DTYPE_F32, .isa = variant->isa};
	snprintf(f->name, sizeof f->name, "%s, %s %s", family->name, variant->backend, variant->isa);
	assert_ok(backend_open(variant->backend, &opt, &f->be, &et));
	f->golden = golden_open(family->path);
	f->shape = golden_i32(f->golden, "shape", SHAPE_FIELDS);
	f->hyper = golden_f32(f->golden, "hyper", HYPER_FIELDS);
	f->tokens = (size_t)f->shape[BATCH] * (size_t)f->shape[CONTEXT];
	struct model_shape s = {.n_layer = f->shape[LAYERS],
							.n_head = f->shape[HEADS],
							.n_embd = f->shape[CHANNELS],
							.vocab = f->shape[VOCAB],
							.context = f->shape[CONTEXT]};
	family->complete(&s, f->golden);
	const struct model_options options = {.max_batch = f->shape[BATCH]};
	const struct model_ops *ops = NULL;
	assert_ok(model_family_find(family->name, &ops, &et));
	assert_ok(model_new(ops, &s, &options, f->be, &f->model, &et));
	size_t n = f->model->layout.n_params;
	f->params = alloc_params(f->be, n);
	f->grads = alloc_params(f->be, n);
	f->m = alloc_params(f->be, n);
	f->v = alloc_params(f->be, n);
	f->losses = calloc(f->tokens, sizeof *f->losses);
	assert_non_null(f->losses);
	for (int i = 0; i < f->model->layout.n_tensors; i++) {
		const struct model_tensor *t = &f->model->layout.tensors[i];
		char name[80];
		snprintf(name, sizeof name, "init/%s", t->name);
		f->be->ops->upload(f->be, f->params + t->offset, golden_f32(f->golden, name, t->elems),
						   t->elems * sizeof(float));
	}
}

static void fixture_release(struct fixture *f) {
	float *blocks[] = {f->params, f->grads, f->m, f->v};
	for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
		f->be->ops->free(f->be, blocks[i]);
	free(f->losses);
	model_free(f->model);
	backend_close(f->be);
	golden_close(f->golden);
}

/* Largest difference, relative to the largest expected magnitude. */
static double relative_error(const float *got, const float *want, size_t n) {
	double worst = 0, largest = 0;
	for (size_t i = 0; i < n; i++) {
		double difference = fabs((double)got[i] - want[i]);
		if (!(difference <= worst))
			worst = difference; /* also when it is NaN */
		largest = fmax(largest, fabs(want[i]));
	}
	return worst / fmax(largest, 1e-12);
}

static void assert_close(const char *variant, const char *what, const float *got, const float *want, size_t n,
						 double tolerance, double *worst) {
	double e = relative_error(got, want, n);
	if (!(e <= tolerance))
		fail_msg("%s, %s: error %.3g, at most %.3g", variant, what, e, tolerance);
	*worst = fmax(*worst, e);
}

/* Every tensor of a flat block against the records "prefix/NAME"; padding must be zero. */
static double check_block(const struct fixture *f, const char *prefix, const float *block, double tolerance) {
	const struct model_layout *l = &f->model->layout;
	float *host = malloc(l->n_params * sizeof *host);
	assert_non_null(host);
	f->be->ops->download(f->be, host, block, l->n_params * sizeof *host);
	double worst = 0;
	for (int i = 0; i < l->n_tensors; i++) {
		const struct model_tensor *t = &l->tensors[i];
		char name[80];
		snprintf(name, sizeof name, "%s/%s", prefix, t->name);
		assert_close(f->name, name, host + t->offset, golden_f32(f->golden, name, t->elems), t->elems, tolerance,
					 &worst);
		size_t end = i + 1 < l->n_tensors ? t[1].offset : l->n_params;
		for (size_t p = t->offset + t->elems; p < end; p++)
			assert_true(host[p] == 0);
	}
	free(host);
	return worst;
}

static double mean_loss(const struct fixture *f) {
	double sum = 0;
	for (size_t i = 0; i < f->tokens; i++)
		sum += f->losses[i];
	return sum / (double)f->tokens;
}

static const int32_t *batch_of(const struct fixture *f, const char *name, size_t step) {
	return golden_i32(f->golden, name, (size_t)f->shape[STEPS] * f->tokens) + step * f->tokens;
}

/* Forward, and gradients += d(mean loss). */
static double run_batch(struct fixture *f, size_t step) {
	const int32_t *tokens = batch_of(f, "tokens", step), *targets = batch_of(f, "targets", step);
	model_forward(f->model, f->params, tokens, f->shape[BATCH], f->shape[CONTEXT]);
	model_backward(f->model, f->params, f->grads, tokens, targets, 1 / (float)f->tokens, f->losses, GRADIENT_ADD);
	return mean_loss(f);
}

static void check_logits_loss_gradients(const struct family *family, const struct variant *variant) {
	struct fixture f;
	fixture_init(&f, family, variant);
	double want_loss = golden_f32(f.golden, "losses", (size_t)f.shape[STEPS])[0];
	double loss = run_batch(&f, 0);
	assert_true(fabs(loss - want_loss) <= LOSS_TOLERANCE * want_loss);
	double grads = check_block(&f, "grad", f.grads, GRAD_TOLERANCE);

	model_loss(f.model, f.params, batch_of(&f, "targets", 0), f.losses);
	assert_true(fabs(mean_loss(&f) - want_loss) <= LOSS_TOLERANCE * want_loss);

	size_t n = f.tokens * (size_t)f.shape[VOCAB], half = f.tokens / 2 * (size_t)f.shape[VOCAB];
	float *logits = malloc(n * sizeof *logits);
	assert_non_null(logits);
	double worst = 0;
	f.model->ops->logits(f.model, f.params, 0, (int)f.tokens, logits);
	assert_close(f.name, "logits", logits, golden_f32(f.golden, "logits", n), n, LOGITS_TOLERANCE, &worst);
	f.model->ops->logits(f.model, f.params, (int)f.tokens / 2, 1, logits); /* one row in the middle, as sampling does */
	assert_close(f.name, "one row of logits", logits, golden_f32(f.golden, "logits", n) + half, (size_t)f.shape[VOCAB],
				 LOGITS_TOLERANCE, &worst);
	print_message("%s: largest error of logits %.2g, loss %.2g, gradients %.2g\n", f.name, worst,
				  fabs(loss - want_loss) / want_loss, grads);
	free(logits);
	fixture_release(&f);
}

static void adamw_step(struct fixture *f, size_t step, double norm) {
	const struct schedule s = {f->hyper[PEAK_LR], f->hyper[MIN_RATIO], (uint64_t)f->shape[WARMUP],
							   (uint64_t)f->shape[STEPS]};
	double clip = f->hyper[CLIP] / (norm + 1e-6);
	const struct adamw_params a = {.lr = schedule_lr(&s, step),
								   .beta1 = f->hyper[BETA1],
								   .beta2 = f->hyper[BETA2],
								   .eps = f->hyper[EPS],
								   .weight_decay = f->hyper[DECAY],
								   .grad_scale = (float)(clip < 1 ? clip : 1),
								   .step = (int64_t)step + 1};
	double want_lr = golden_f32(f->golden, "rates", (size_t)f->shape[STEPS])[step];
	assert_true(fabs(a.lr - want_lr) <= LR_TOLERANCE * want_lr);
	f->be->ops->adamw(f->be, f->params, f->grads, f->m, f->v, f->model->spans, f->model->n_spans, &a);
}

static void check_ten_steps(const struct family *family, const struct variant *variant) {
	struct fixture f;
	fixture_init(&f, family, variant);
	size_t steps = (size_t)f.shape[STEPS], n = f.model->layout.n_params;
	const float *losses = golden_f32(f.golden, "losses", steps), *norms = golden_f32(f.golden, "norms", steps);
	for (size_t step = 0; step < steps; step++) {
		f.be->ops->zero(f.be, f.grads, n * sizeof(float));
		double loss = run_batch(&f, step), norm = sqrt(f.be->ops->sum_squares(f.be, f.grads, n));
		assert_true(fabs(loss - losses[step]) <= 10 * LOSS_TOLERANCE * losses[step]);
		assert_true(fabs(norm - norms[step]) <= NORM_TOLERANCE * norms[step]);
		adamw_step(&f, step, norm);
	}
	double worst = check_block(&f, "final", f.params, PARAMS_TOLERANCE);
	print_message("%s: largest error of parameters after %zu steps %.2g\n", f.name, steps, worst);
	fixture_release(&f);
}

static void test_logits_loss_and_every_gradient(void **state) {
	(void)state;
	for (int i = 0; i < FAMILIES * VARIANTS; i++)
		check_logits_loss_gradients(&families[i / VARIANTS], &variants[i % VARIANTS]);
}

static void test_ten_adamw_steps_with_clipping_and_schedule(void **state) {
	(void)state;
	for (int i = 0; i < FAMILIES * VARIANTS; i++)
		check_ten_steps(&families[i / VARIANTS], &variants[i % VARIANTS]);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_logits_loss_and_every_gradient),
		cmocka_unit_test(test_ten_adamw_steps_with_clipping_and_schedule),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
