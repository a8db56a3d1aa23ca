/* replica_eval.c: losses of weights on texts, without a step. The first part computes; where parts
 * divide the weights the others give it theirs, section by section. */
#include "train/replica.h"

#include "base/assert.h"
#include "train/replica_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct replica_number replica_number(double v) {
	struct replica_number t = {"not a number"};
	if (isinf(v))
		snprintf(t.text, sizeof t.text, "infinite");
	else if (!isnan(v))
		snprintf(t.text, sizeof t.text, "%g", v);
	return t;
}

uint64_t replica_eval_tokens(const struct replica *r, uint64_t max_tokens) {
	return dataset_heldout_used(r->data, max_tokens) * (uint64_t)r->cfg.context;
}

/* The sequences of an evaluation: `n` held-out ones from number `next` on, of `among` that are
 * spread evenly over all; or, with `reading`, those from number `next` of it on. */
struct eval_text {
	const struct reading *reading;
	uint64_t next, n, among;
	double *losses; /* (n) mean of each sequence; NULL: they are not wanted */
};

/* Reads sequences done to done + b. */
static enum rv_err read_eval(const struct replica *r, struct replica_part *p, const struct eval_text *text,
							 uint64_t done, int b, struct rv_errtext *et) {
	const size_t context = (size_t)r->cfg.context;
	for (size_t i = 0; i < (size_t)b; i++) {
		int32_t *inputs = p->inputs + i * context, *targets = p->targets + i * context;
		if (text->reading)
			RV_TRY(dataset_sequence_at(r->data, reading_position(text->reading, text->next + done + i), inputs, targets,
									   et));
		else
			RV_TRY(dataset_heldout_sequence(
				r->data, dataset_heldout_spread(r->data, text->next + done + i, text->among), inputs, targets, et));
	}
	return RV_OK;
}

/* Tells the other parts whether a batch follows, for which they give weights. */
static void tell_others(struct replica_part *p, bool follows) {
	double value = follows;
	comm_sum(p->comm, &value, 1);
}

/* Ends a forward pass: its broadcasts, waited for one by one, are always done. */
static void end_forward(struct windows *w) {
	const bool done = windows_end(w);
	RV_ASSERT(done);
}

/* Computes the losses of the b sequences that were read. */
static void compute_losses(struct replica *r, struct replica_part *p, const float *params, int b) {
	const bool divided = r->zero == ZERO_WEIGHTS;
	if (divided)
		windows_begin(p->windows, true);
	model_forward(p->model, params, p->inputs, b, (int)r->cfg.context);
	model_loss(p->model, params, p->targets, p->losses);
	if (divided)
		end_forward(p->windows);
}

static enum rv_err mean_loss(struct replica *r, const float *params, const struct eval_text *text, double *loss,
							 struct rv_errtext *et) {
	struct replica_part *p = &r->parts[0];
	size_t context = (size_t)r->cfg.context;
	double sum = 0;
	for (uint64_t done = 0; done < text->n;) {
		if (r->stop && atomic_load(r->stop))
			return rv_fail(et, RV_E_CANCELLED, "the evaluation was stopped");
		uint64_t left = text->n - done;
		int b = (int)(left < (uint64_t)r->micro_batch ? left : (uint64_t)r->micro_batch);
		RV_TRY(read_eval(r, p, text, done, b, et));
		if (r->zero == ZERO_WEIGHTS)
			tell_others(p, true);
		compute_losses(r, p, params, b);
		sum += replica_sum(p->losses, (size_t)b * context);
		for (size_t i = 0; text->losses && i < (size_t)b; i++)
			text->losses[done + i] = replica_sum(p->losses + i * context, context) / (double)context;
		done += (uint64_t)b;
	}
	*loss = sum / ((double)text->n * (double)context);
	if (!isfinite(*loss))
		return rv_fail(et, RV_E_RANGE, "%s loss is %s: the weights are not usable",
					   text->reading ? "their" : "held-out", replica_number(*loss).text);
	return RV_OK;
}

/* ---- parts that divide the weights ---- */

/* The work of the parts' threads. */
struct eval_work {
	struct replica *r;
	const struct eval_text *text;
	double *loss;
	enum rv_err err;
	struct rv_errtext *et;
};

static bool batch_follows(struct replica_part *p) {
	double value = 0;
	comm_sum(p->comm, &value, 1);
	return value > 0;
}

static void eval_of_part(void *ctx, int i) {
	struct eval_work *w = ctx;
	struct replica_part *p = &w->r->parts[i];
	windows_begin_step(p->windows);
	if (i == 0) {
		w->err = mean_loss(w->r, NULL, w->text, w->loss, w->et);
		tell_others(p, false);
		return;
	}
	while (batch_follows(p)) {
		windows_begin(p->windows, true);
		windows_idle(p->windows, false);
		end_forward(p->windows);
	}
}

/* Announces a change of weights in the host's memory, of which a copy may be under way. */
static void settle_copies(struct replica *r) {
	if (!r->on_device)
		replica_settle(r);
}

/* Gives parts their slices of other weights; their own wait in the gradients' memory. */
static void lend_slices(struct replica *r, const float *theta) {
	settle_copies(r);
	for (int i = 0; i < r->n_parts; i++) {
		struct replica_part *p = &r->parts[i];
		p->be->ops->add_scaled(p->be, p->grad, 0, 1, p->theta, NULL, p->slice.end - p->slice.begin);
	}
	replica_set_theta(r, theta);
}

static void return_slices(struct replica *r) {
	for (int i = 0; i < r->n_parts; i++) {
		struct replica_part *p = &r->parts[i];
		p->be->ops->add_scaled(p->be, p->theta, 0, 1, p->grad, NULL, p->slice.end - p->slice.begin);
	}
}

static enum rv_err divided_loss_of(struct replica *r, const float *theta, const struct eval_text *text, double *loss,
								   struct rv_errtext *et) {
	struct eval_work w = {.r = r, .text = text, .loss = loss, .et = et};
	if (theta)
		lend_slices(r, theta);
	team_run(r->team, eval_of_part, &w);
	if (theta)
		return_slices(r);
	return w.err;
}

/* ---- whole weights ---- */

/* Lends memory to other weights for an evaluation: the gradient's, which the next step zeroes. A
 * device may keep a bf16 copy of a whole allocation of weights: there they replace the replica's
 * own, which wait in the gradient's memory, so that one copy serves both; or, where gradients are
 * divided, in another part. */
static const float *lend_memory(struct replica *r, const float *theta) {
	struct replica_part *p = &r->parts[0];
	const bool replaces = r->on_device || r->offload || r->zero == ZERO_GRADIENTS;
	if (replaces)
		settle_copies(r);
	if (replaces && r->zero == ZERO_MOMENTS)
		p->be->ops->add_scaled(p->be, p->grad, 0, 1, p->theta, NULL, r->n);
	float *params = replaces ? p->theta : p->grad;
	p->be->ops->upload(p->be, params, theta, r->n * sizeof *theta);
	return params;
}

/* Copies the weights of the second part to the first. */
static void copy_from_another(struct replica *r) {
	const struct replica_part *p = &r->parts[0], *other = &r->parts[1];
	const float *theta = other->theta;
	if (r->on_device) {
		other->be->ops->download(other->be, r->mirror, other->theta, r->n * sizeof *theta);
		theta = r->mirror;
	}
	p->be->ops->upload(p->be, p->theta, theta, r->n * sizeof *theta);
}

static void return_memory(struct replica *r) {
	struct replica_part *p = &r->parts[0];
	if (r->zero == ZERO_GRADIENTS)
		copy_from_another(r);
	else if (r->on_device || r->offload)
		p->be->ops->add_scaled(p->be, p->theta, 0, 1, p->grad, NULL, r->n);
	if (r->offload) /* the host reads them next */
		p->be->ops->sync(p->be);
}

static enum rv_err loss_of(struct replica *r, const float *theta, const struct eval_text *text, double *loss,
						   struct rv_errtext *et) {
	replica_end_update(r);
	if (r->zero == ZERO_WEIGHTS)
		return divided_loss_of(r, theta, text, loss, et);
	if (!theta)
		return mean_loss(r, r->parts[0].theta, text, loss, et);
	const float *params = lend_memory(r, theta);
	enum rv_err e = mean_loss(r, params, text, loss, et);
	return_memory(r);
	return e;
}

enum rv_err replica_eval(struct replica *r, const float *theta, uint64_t max_tokens, double *loss,
						 struct rv_errtext *et) {
	const uint64_t n = dataset_heldout_used(r->data, max_tokens);
	const struct eval_text text = {.n = n, .among = n};
	return loss_of(r, theta, &text, loss, et);
}

enum rv_err replica_heldout_losses(struct replica *r, const float *theta, uint64_t max_tokens, uint64_t next,
								   uint64_t n, double *losses, struct rv_errtext *et) {
	const uint64_t among = dataset_heldout_used(r->data, max_tokens);
	RV_ASSERT(n > 0 && next + n <= among);
	const struct eval_text text = {.next = next, .n = n, .among = among, .losses = losses};
	double mean;
	return loss_of(r, theta, &text, &mean, et);
}

enum rv_err replica_loss_on(struct replica *r, const float *theta, const struct reading *reading, uint64_t next,
							uint64_t n, double *losses, struct rv_errtext *et) {
	RV_ASSERT(n > 0 && reading_has(reading, next, n));
	const struct eval_text text = {.reading = reading, .next = next, .n = n, .losses = losses};
	double mean;
	return loss_of(r, theta, &text, &mean, et);
}
