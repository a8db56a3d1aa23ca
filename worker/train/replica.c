/* replica.c: inner steps and evaluation. See replica.h. */
#include "worker/train/replica.h"

#include "base/assert.h"
#include "kernels/host_memory.h"
#include "worker/train/replica_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { SHIFT_CHUNK = 4096 };
#define CLIP_EPS 1e-6 /* as torch.nn.utils.clip_grad_norm_ */

static struct schedule schedule_of(const struct run_config *cfg) {
	return (struct schedule){
		.peak = cfg->lr,
		.min_ratio = cfg->min_lr_ratio,
		.warmup_steps = (uint64_t)cfg->warmup_steps,
		.total_steps = (uint64_t)cfg->steps_per_round * (uint64_t)cfg->rounds,
	};
}

static enum rv_err alloc_vector(struct replica *r, float **out, const char *what, struct rv_errtext *et) {
	void *p = NULL;
	enum rv_err e = r->be->ops->alloc(r->be, r->n * sizeof(float), &p, et);
	*out = p;
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s of %zu parameters", what, r->n);
}

static enum rv_err alloc_host(struct replica *r, struct rv_errtext *et) {
	size_t tokens = (size_t)(r->cfg.batch * r->cfg.context);
	r->inputs = calloc(tokens, sizeof *r->inputs);
	r->targets = calloc(tokens, sizeof *r->targets);
	r->losses = calloc(tokens, sizeof *r->losses);
	bool plain_memory = r->be->ops->alloc == host_backend_alloc;
	if (!plain_memory)
		r->mirror = malloc(r->n * sizeof *r->mirror);
	if (!r->inputs || !r->targets || !r->losses || !(plain_memory || r->mirror))
		return rv_fail(et, RV_E_NOMEM, "replica: no memory for a batch of %zu tokens", tokens);
	return RV_OK;
}

static enum rv_err build(struct replica *r, const struct replica_options *o, struct rv_errtext *et) {
	const struct run_config *cfg = &r->cfg;
	const struct model_shape shape = model_shape_of(cfg);
	const struct model_options options = {.max_batch = (int)cfg->batch, .recompute = o->recompute};
	RV_TRY(model_new(cfg->model, &shape, &options, r->be, &r->model, et));
	r->n = r->model->layout.n_params;
	RV_TRY(alloc_vector(r, &r->theta, "weights", et));
	RV_TRY(alloc_vector(r, &r->grad, "gradient", et));
	RV_TRY(alloc_vector(r, &r->m, "first moment", et));
	RV_TRY(alloc_vector(r, &r->v, "second moment", et));
	RV_TRY(alloc_host(r, et));
	if (o->initial_theta)
		replica_set_theta(r, o->initial_theta);
	else
		replica_draw_theta0(r);
	return RV_OK;
}

enum rv_err replica_new(const struct run_config *cfg, const struct dataset *data, const struct replica_options *options,
						struct backend *be, struct replica **out, struct rv_errtext *et) {
	*out = NULL;
	RV_TRY(run_config_validate(cfg, et));
	RV_ASSERT(options->shard < options->n_shards);
	struct replica *r = calloc(1, sizeof *r);
	if (!r)
		return rv_fail(et, RV_E_NOMEM, "replica: no memory");
	r->cfg = *cfg;
	r->data = data;
	r->shard = options->shard;
	r->n_shards = options->n_shards;
	r->be = be;
	r->schedule = schedule_of(cfg);
	enum rv_err e = build(r, options, et);
	if (e != RV_OK) {
		replica_free(r);
		return e;
	}
	*out = r;
	return RV_OK;
}

void replica_free(struct replica *r) {
	if (!r)
		return;
	float *vectors[] = {r->theta, r->grad, r->m, r->v};
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
		if (vectors[i])
			r->be->ops->free(r->be, vectors[i]);
	model_free(r->model);
	free(r->mirror);
	free(r->inputs);
	free(r->targets);
	free(r->losses);
	free(r);
}

size_t replica_n_params(const struct replica *r) {
	return r->n;
}

const struct model *replica_model(const struct replica *r) {
	return r->model;
}

const float *replica_theta(struct replica *r) {
	if (!r->mirror)
		return r->theta;
	r->be->ops->download(r->be, r->mirror, r->theta, r->n * sizeof *r->theta);
	return r->mirror;
}

void replica_draw_theta0(struct replica *r) {
	model_init_params(r->model, r->theta, (uint64_t)r->cfg.seed);
}

void replica_set_theta(struct replica *r, const float *theta) {
	r->be->ops->upload(r->be, r->theta, theta, r->n * sizeof *theta);
}

void replica_shift_theta(struct replica *r, const float *from, const float *to) {
	float chunk[SHIFT_CHUNK];
	for (size_t at = 0; at < r->n; at += SHIFT_CHUNK) {
		size_t n = r->n - at < SHIFT_CHUNK ? r->n - at : SHIFT_CHUNK;
		r->be->ops->download(r->be, chunk, r->theta + at, n * sizeof *chunk);
		for (size_t i = 0; i < n; i++)
			chunk[i] += to[at + i] - from[at + i];
		r->be->ops->upload(r->be, r->theta + at, chunk, n * sizeof *chunk);
	}
}

uint64_t replica_global_step(const struct replica *r) {
	return r->global_step;
}

void replica_set_global_step(struct replica *r, uint64_t step) {
	r->global_step = step;
}

/* A micro-batch of the shard's stream, beginning at sequence `cursor`. */
static enum rv_err read_batch(struct replica *r, uint32_t shard, uint64_t cursor, struct rv_errtext *et) {
	size_t context = (size_t)r->cfg.context;
	for (size_t i = 0; i < (size_t)r->cfg.batch; i++)
		RV_TRY(
			dataset_train_sequence(r->data, shard, cursor + i, r->inputs + i * context, r->targets + i * context, et));
	return RV_OK;
}

static double sum_of(const float *x, size_t n) {
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return sum;
}

/* Adds the gradient of one shard's share of the step to r->grad, and the sum of its losses to *loss. */
static enum rv_err accumulate_shard(struct replica *r, uint32_t shard, float grad_scale, double *loss,
									struct rv_errtext *et) {
	size_t tokens = (size_t)(r->cfg.batch * r->cfg.context);
	double sum = 0;
	for (uint64_t i = 0; i < (uint64_t)r->cfg.grad_accum; i++) {
		RV_TRY(read_batch(r, shard, r->cursor + i * (uint64_t)r->cfg.batch, et));
		model_forward(r->model, r->theta, r->inputs, (int)r->cfg.batch, (int)r->cfg.context);
		model_backward(r->model, r->theta, r->grad, r->inputs, r->targets, grad_scale, r->losses);
		sum += sum_of(r->losses, tokens);
	}
	*loss += sum;
	return RV_OK;
}

static void update(struct replica *r, float lr, double grad_norm) {
	const struct run_config *cfg = &r->cfg;
	double scale = cfg->clip > 0 ? cfg->clip / (grad_norm + CLIP_EPS) : 1;
	struct adamw_params params = {
		.lr = lr,
		.beta1 = (float)cfg->beta1,
		.beta2 = (float)cfg->beta2,
		.eps = (float)cfg->eps,
		.weight_decay = (float)cfg->weight_decay,
		.grad_scale = (float)(scale < 1 ? scale : 1),
		.step = (int64_t)(r->adam_steps + 1),
	};
	r->be->ops->adamw(r->be, r->theta, r->grad, r->m, r->v, r->model->spans, r->model->n_spans, &params);
}

enum rv_err replica_step_shards(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
								struct rv_errtext *et) {
	RV_ASSERT(n >= 1);
	uint64_t sequences = (uint64_t)(r->cfg.batch * r->cfg.grad_accum);
	uint64_t tokens = (uint64_t)n * sequences * (uint64_t)r->cfg.context;
	double loss = 0;
	r->be->ops->zero(r->be, r->grad, r->n * sizeof *r->grad);
	for (int i = 0; i < n; i++)
		RV_TRY(accumulate_shard(r, shards[i], (float)(1 / (double)tokens), &loss, et));
	loss /= (double)tokens;
	double grad_norm = sqrt(r->be->ops->sum_squares(r->be, r->grad, r->n));
	r->cursor += sequences; /* also past a batch that is refused: it would be refused again */
	if (!isfinite(loss) || !isfinite(grad_norm))
		return rv_fail(et, RV_E_RANGE,
					   "training diverged at inner step %" PRIu64
					   ": loss %g, gradient norm %g; lower lr (now %g) or clip",
					   r->global_step, loss, grad_norm, r->cfg.lr);
	float lr = schedule_lr(&r->schedule, r->global_step);
	update(r, lr, grad_norm);
	r->adam_steps++;
	r->global_step++;
	*out = (struct step_stats){.loss = (float)loss, .grad_norm = (float)grad_norm, .lr = lr, .tokens = tokens};
	return RV_OK;
}

enum rv_err replica_step(struct replica *r, struct step_stats *out, struct rv_errtext *et) {
	return replica_step_shards(r, &r->shard, 1, out, et);
}

enum rv_err replica_step_over(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
							  struct rv_errtext *et) {
	enum rv_err e = RV_E_RANGE;
	for (int i = 0; i < REPLICA_REFUSED_MAX && e == RV_E_RANGE; i++)
		e = shards ? replica_step_shards(r, shards, n, out, et) : replica_step(r, out, et);
	if (e != RV_E_RANGE)
		return e;
	return rv_fail_context(et, e,
						   "%d batches in a row were refused. Start again with the same directory: it goes back to "
						   "the last saved round. If that does not help, or it is the same elsewhere, lr is too high "
						   "or clip is missing: make a new run with other values. The last refusal",
						   REPLICA_REFUSED_MAX);
}

void replica_watch(struct replica *r, const atomic_bool *stop) {
	r->stop = stop;
}

/* How many held-out sequences an evaluation of max_batches reads. */
static uint64_t eval_sequences(const struct replica *r, int max_batches) {
	uint64_t have = dataset_heldout_sequences(r->data), most = (uint64_t)max_batches * (uint64_t)r->cfg.batch;
	return max_batches <= 0 || have < most ? have : most;
}

/* Held-out sequences done to done + b of the `used` that are spread evenly over all. */
static enum rv_err read_heldout(struct replica *r, uint64_t done, int b, uint64_t used, struct rv_errtext *et) {
	size_t context = (size_t)r->cfg.context;
	for (size_t i = 0; i < (size_t)b; i++)
		RV_TRY(dataset_heldout_sequence(r->data, dataset_heldout_spread(r->data, done + i, used),
										r->inputs + i * context, r->targets + i * context, et));
	return RV_OK;
}

enum rv_err replica_eval(struct replica *r, const float *theta, int max_batches, double *loss, struct rv_errtext *et) {
	const float *params = r->theta;
	if (theta) { /* the gradient is zeroed by the next step: between steps it is free */
		r->be->ops->upload(r->be, r->grad, theta, r->n * sizeof *theta);
		params = r->grad;
	}
	uint64_t used = eval_sequences(r, max_batches);
	size_t context = (size_t)r->cfg.context;
	double sum = 0;
	for (uint64_t done = 0; done < used;) {
		if (r->stop && atomic_load(r->stop))
			return rv_fail(et, RV_E_CANCELLED, "the evaluation was stopped");
		uint64_t left = used - done;
		int b = (int)(left < (uint64_t)r->cfg.batch ? left : (uint64_t)r->cfg.batch);
		RV_TRY(read_heldout(r, done, b, used, et));
		model_forward(r->model, params, r->inputs, b, (int)context);
		model_loss(r->model, params, r->targets, r->losses);
		sum += sum_of(r->losses, (size_t)b * context);
		done += (uint64_t)b;
	}
	*loss = sum / ((double)used * (double)context);
	if (!isfinite(*loss))
		return rv_fail(et, RV_E_RANGE, "held-out loss is %g: the weights are not usable", *loss);
	return RV_OK;
}
