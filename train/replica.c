/* replica.c: inner steps and evaluation. */
#include "train/replica.h"

#include "base/assert.h"
#include "base/clock.h"
#include "kernels/host_memory.h"
#include "train/replica_internal.h"
#include "train/step_bounds.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIP_EPS 1e-6 /* as torch.nn.utils.clip_grad_norm_ */

static struct schedule schedule_of(const struct run_config *cfg) {
	return (struct schedule){
		.peak = cfg->lr,
		.min_ratio = cfg->min_lr_ratio,
		.warmup_steps = (uint64_t)cfg->warmup_steps,
		.total_steps = (uint64_t)cfg->steps_per_round * (uint64_t)cfg->rounds,
	};
}

/* Returns the fewer rows of logits; 0: all. */
static int fewer_rows(int a, int b) {
	return a == 0 || (b > 0 && b < a) ? b : a;
}

/* Gives all parts as many rows of logits as the one with the fewest: a sequence's gradient does not
 * depend on its device. */
static enum rv_err agree_on_logits(struct replica *r, struct rv_errtext *et) {
	for (int i = 0; i < r->n_parts; i++)
		r->logits_rows = fewer_rows(r->logits_rows, r->parts[i].logits_rows);
	for (int i = 0; i < r->n_parts; i++)
		if (r->parts[i].logits_rows != r->logits_rows)
			RV_TRY(replica_part_reserve(r, &r->parts[i], et));
	return RV_OK;
}

/* Builds one part after the other, and returns the first fault. */
static enum rv_err init_parts(struct replica *r, struct rv_errtext *et) {
	for (int i = 0; i < r->n_parts; i++)
		RV_TRY(replica_part_init(r, i, et));
	RV_TRY(agree_on_logits(r, et));
	if (!r->on_device && r->zero != ZERO_WEIGHTS)
		return RV_OK;
	r->mirror = malloc(r->n * sizeof *r->mirror);
	return r->mirror ? RV_OK : rv_fail(et, RV_E_NOMEM, "replica: no memory for a copy of %zu weights", r->n);
}

static void join_part(void *ctx, int i) {
	struct replica *r = ctx;
	struct replica_part *p = &r->parts[i];
	comm_join(r->group, i, &p->comm);
	if (p->windows)
		windows_join(p->windows, p->comm, r->n_parts, i);
}

static void leave_part(void *ctx, int i) {
	struct replica *r = ctx;
	comm_leave(r->parts[i].comm);
	r->parts[i].comm = NULL;
}

static enum rv_err first_fault(const struct replica *r, struct rv_errtext *et) {
	for (int i = 0; i < r->n_parts; i++) {
		const struct replica_part *p = &r->parts[i];
		if (p->err != RV_OK)
			return r->n_parts == 1 ? rv_fail(et, p->err, "%s", p->text.text)
								   : rv_fail(et, p->err, "device %d of %d: %.480s", i + 1, r->n_parts, p->text.text);
	}
	return RV_OK;
}

static enum rv_err connect_parts(struct replica *r, struct rv_errtext *et) {
	if (r->n_parts == 1)
		return RV_OK;
	RV_TRY(comm_group_new(r->devices.be, r->n_parts, &r->group, et));
	RV_TRY(team_new(r->n_parts, &r->team, et));
	team_run(r->team, join_part, r);
	return RV_OK;
}

/* Sets the first weights. */
static void draw_or_take(struct replica *r, const float *initial_theta) {
	if (initial_theta)
		replica_set_theta(r, initial_theta);
	else
		replica_draw_theta0(r);
	replica_set_anchor(r, replica_theta(r));
}

/* Checks what the inner optimizer and the devices cannot do without. */
static enum rv_err check_savings(const struct replica *r, struct rv_errtext *et) {
	if (r->moments == MOMENTS_INT8 && !r->inner->has_moments8)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "moments of 8 bits belong to inner = adamw; this run has inner = %s: use --moments fp32",
					   r->inner->name);
	if (r->offload && r->inner->whole_matrices)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "inner = %s multiplies matrices, which a processor does slowly: use --offload no",
					   r->inner->name);
	if (r->zero != ZERO_MOMENTS && r->inner->whole_matrices)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "inner = %s needs whole matrices of gradients on each device: use --zero 1", r->inner->name);
	if (r->offload && r->n_parts > 1)
		return rv_fail(et, RV_E_UNSUPPORTED, "%d GPUs share their optimizer's state: use --offload no", r->n_parts);
	return RV_OK;
}

static void set_savings(struct replica *r, const struct savings *s) {
	const struct backend_ops *ops = r->devices.be[0]->ops;
	r->n_parts = r->devices.choice.n;
	r->micro_batch = savings_micro_batch(s, &r->cfg);
	r->logits_rows = s->logits_rows;
	r->recompute = s->recompute;
	r->moments = s->moments;
	r->offload = s->offload && ops->alloc_on_host;
	r->streams = s->stream;
	r->zero = r->n_parts > 1 ? s->zero : ZERO_MOMENTS;
	r->on_device = ops->alloc != host_backend_alloc && !r->offload;
}

/* Builds and connects the parts, without weights. */
static enum rv_err build(struct replica *r, struct rv_errtext *et) {
	RV_TRY(check_savings(r, et));
	RV_TRY(init_parts(r, et));
	return connect_parts(r, et);
}

static void release_parts(struct replica *r) {
	if (r->team)
		team_run(r->team, leave_part, r);
	team_free(r->team);
	comm_group_free(r->group);
	for (int i = 0; i < r->n_parts; i++)
		replica_part_release(&r->parts[i]);
	free(r->mirror);
	memset(r->parts, 0, sizeof r->parts);
	r->team = NULL;
	r->group = NULL;
	r->mirror = NULL;
}

enum rv_err replica_new_on(const struct run_config *cfg, const struct dataset *data,
						   const struct replica_options *options, const struct device_set *devices,
						   struct replica **out, struct rv_errtext *et) {
	*out = NULL;
	RV_TRY(run_config_validate(cfg, et));
	RV_TRY(step_check_devices(cfg, devices->choice.n, et));
	RV_ASSERT(options->shard < options->n_shards);
	struct replica *r = calloc(1, sizeof *r);
	if (!r)
		return rv_fail(et, RV_E_NOMEM, "replica: no memory");
	r->cfg = *cfg;
	r->data = data;
	r->shard = options->shard;
	r->n_shards = options->n_shards;
	r->devices = *devices;
	r->host_threads = options->host_threads;
	r->step_shards = options->step_shards ? options->step_shards : 1;
	r->schedule = schedule_of(cfg);
	r->inner = inner_registry[cfg->inner];
	set_savings(r, &options->savings);
	enum rv_err e = build(r, et);
	if (e == RV_OK)
		draw_or_take(r, options->initial_theta);
	if (e != RV_OK) {
		replica_free(r);
		return e;
	}
	*out = r;
	return RV_OK;
}

enum rv_err replica_new(const struct run_config *cfg, const struct dataset *data, const struct replica_options *options,
						struct backend *be, struct replica **out, struct rv_errtext *et) {
	const struct device_set one = {.choice = {.backend = be->ops->name, .n = 1}, .be = {be}};
	return replica_new_on(cfg, data, options, &one, out, et);
}

void replica_free(struct replica *r) {
	if (!r)
		return;
	release_parts(r);
	free(r);
}

void replica_give_back(struct replica *r) {
	release_parts(r);
}

enum rv_err replica_remake(struct replica *r, const struct savings *s, struct rv_errtext *et) {
	release_parts(r);
	set_savings(r, s);
	return build(r, et);
}

size_t replica_n_params(const struct replica *r) {
	return r->n;
}

const struct model *replica_model(const struct replica *r) {
	return r->parts[0].model;
}

struct savings replica_savings(const struct replica *r) {
	return (struct savings){.micro_batch = r->micro_batch,
							.logits_rows = r->logits_rows,
							.recompute = r->recompute,
							.moments = r->moments,
							.offload = r->offload,
							.stream = r->streams,
							.zero = r->zero};
}

void replica_set_anchor(struct replica *r, const float *theta) {
	for (int i = 0; i < r->n_parts; i++) {
		const struct replica_part *p = &r->parts[i];
		if (p->anchor)
			p->be->ops->upload(p->be, p->anchor, theta + p->slice.begin,
							   (p->slice.end - p->slice.begin) * sizeof *theta);
	}
}

void replica_read(struct replica *r, const struct reading *reading, uint64_t next) {
	r->has_reading = true;
	r->reading = *reading;
	r->cursor = next;
}

uint64_t replica_next(const struct replica *r) {
	return r->cursor;
}

uint64_t replica_global_step(const struct replica *r) {
	return r->global_step;
}

void replica_set_global_step(struct replica *r, uint64_t step) {
	r->global_step = step;
}

/* The team's work, or the caller's if there is one part. */
struct step_work {
	struct replica *r;
	struct replica_share share;
	struct inner_params params;
};

static void gradient_of_part(void *ctx, int i) {
	const struct step_work *w = ctx;
	replica_part_gradient(w->r, i, &w->share);
}

static void update_of_part(void *ctx, int i) {
	const struct step_work *w = ctx;
	replica_part_update(w->r, i, &w->params);
}

static void on_all_parts(struct replica *r, void (*fn)(void *ctx, int i), struct step_work *w) {
	if (r->team)
		team_run(r->team, fn, w);
	else
		fn(w, 0);
}

static struct inner_params inner_of(const struct replica *r, float lr, double grad_norm) {
	const struct run_config *cfg = &r->cfg;
	double scale = cfg->clip > 0 ? cfg->clip / (grad_norm + CLIP_EPS) : 1;
	return (struct inner_params){.adamw = {.lr = lr,
										   .beta1 = (float)cfg->beta1,
										   .beta2 = (float)cfg->beta2,
										   .eps = (float)cfg->eps,
										   .weight_decay = (float)cfg->weight_decay,
										   .grad_scale = (float)(scale < 1 ? scale : 1),
										   .step = (int64_t)(r->adam_steps + 1)},
								 .muon_momentum = (float)cfg->muon_momentum};
}

/* Checks that the reading has the next `sequences`. */
static enum rv_err check_reading(const struct replica *r, uint64_t sequences, struct rv_errtext *et) {
	if (!r->has_reading || reading_has(&r->reading, r->cursor, sequences))
		return RV_OK;
	return rv_fail(et, RV_E_BUSY,
				   "a step takes %" PRIu64 " sequences, number %" PRIu64 " and later; leased are those from %" PRIu64
				   " to %" PRIu64,
				   sequences, r->cursor, r->reading.first, reading_end(&r->reading));
}

/* Computes the gradient of a step over `shards` in the parts, and *out. */
static enum rv_err take_gradient(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
								 struct rv_errtext *et) {
	RV_ASSERT(n >= 1);
	uint64_t sequences = savings_step_sequences(&r->cfg);
	uint64_t tokens = (uint64_t)n * sequences * (uint64_t)r->cfg.context;
	uint64_t read = r->has_reading ? (uint64_t)n * sequences : sequences;
	RV_TRY(check_reading(r, read, et));
	struct step_work w = {.r = r, .share = {shards, n, (float)(1 / (double)tokens)}};
	on_all_parts(r, gradient_of_part, &w);
	if (r->parts[0].exchange_failed) /* repeated by all, now through the host */
		on_all_parts(r, gradient_of_part, &w);
	RV_TRY(first_fault(r, et));
	double loss = r->parts[0].loss / (double)tokens, grad_norm = sqrt(r->parts[0].squares);
	r->cursor += read; /* also past a refused batch, which would be refused again */
	if (!isfinite(loss) || !isfinite(grad_norm))
		return rv_fail(et, RV_E_RANGE,
					   "training diverged at inner step %" PRIu64
					   ": loss %s, gradient norm %s; lower lr (now %g) or clip",
					   r->global_step, replica_number(loss).text, replica_number(grad_norm).text, r->cfg.lr);
	*out = (struct step_stats){.loss = (float)loss,
							   .grad_norm = (float)grad_norm,
							   .lr = replica_learning_rate(r, r->global_step),
							   .tokens = tokens};
	return RV_OK;
}

enum rv_err replica_step_shards(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
								struct rv_errtext *et) {
	const int64_t began_us = rv_clock_monotonic_us();
	RV_TRY(take_gradient(r, shards, n, out, et));
	r->gradient_us = rv_clock_monotonic_us() - began_us;
	r->batch_us = r->gradient_us / (int64_t)r->parts[0].batches;
	struct step_work w = {.r = r, .params = inner_of(r, out->lr, sqrt(r->parts[0].squares))};
	replica_settle(r);
	on_all_parts(r, update_of_part, &w);
	r->adam_steps++;
	r->global_step++;
	return RV_OK;
}

float replica_learning_rate(const struct replica *r, uint64_t step) {
	return schedule_lr(&r->schedule, step);
}

enum rv_err replica_gradient(struct replica *r, float *gradient, struct step_stats *out, struct rv_errtext *et) {
	RV_TRY(take_gradient(r, &r->shard, 1, out, et));
	for (int i = 0; i < r->n_parts; i++) { /* each part has the sums of its slice */
		const struct replica_part *p = &r->parts[i];
		p->be->ops->download(p->be, gradient + p->slice.begin, replica_part_grad(r, p, p->slice.begin),
							 (p->slice.end - p->slice.begin) * sizeof *gradient);
	}
	r->global_step++;
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
	return rv_fail_context(et, e, "%d batches in a row were refused; the last", REPLICA_REFUSED_MAX);
}

void replica_before_update(struct replica *r, void (*fn)(void *ctx), void *ctx) {
	r->before_update = fn;
	r->before_update_ctx = ctx;
}

void replica_settle(struct replica *r) {
	if (r->before_update)
		r->before_update(r->before_update_ctx);
}

void replica_abandon_with(struct replica *r, const atomic_bool *stop) {
	r->abandons = stop;
}

void replica_watch(struct replica *r, const atomic_bool *stop) {
	r->stop = stop;
}
