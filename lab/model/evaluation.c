/* evaluation.c: see evaluation.h. */
#include "lab/model/evaluation.h"

#include "base/assert.h"

#include <math.h>
#include <stdlib.h>

double evaluation_bits_per_byte(const struct evaluation *v) {
	return v->loss_sum / M_LN2 / (double)v->bytes;
}

/* A batch of sequences, and the model's losses on it. */
struct batch {
	int32_t *inputs, *targets; /* (max_batch, context) */
	float *losses;
};

static enum rv_err batch_init(struct batch *b, const struct loaded_model *m, struct rv_errtext *et) {
	size_t n = (size_t)m->model->options.max_batch * (size_t)m->cfg.context;
	b->inputs = calloc(n, sizeof *b->inputs);
	b->targets = calloc(n, sizeof *b->targets);
	b->losses = calloc(n, sizeof *b->losses);
	return b->inputs && b->targets && b->losses ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for %zu tokens", n);
}

static void batch_release(struct batch *b) {
	free(b->losses);
	free(b->targets);
	free(b->inputs);
}

/* Adds the losses of the first `rows` sequences of the batch; targets of -1 are ignored. */
static enum rv_err score(struct loaded_model *m, struct batch *b, int rows, int length, struct evaluation *v,
						 struct rv_errtext *et) {
	size_t n = (size_t)rows * (size_t)length;
	model_forward(m->model, m->params, b->inputs, rows, length);
	model_loss(m->model, m->params, b->targets, b->losses);
	for (size_t i = 0; i < n; i++) {
		v->loss_sum += (double)b->losses[i];
		if (b->targets[i] < 0)
			continue;
		v->tokens++;
		v->bytes += tokenizer_token_bytes(m->tokenizer, (uint32_t)b->targets[i]);
	}
	return isfinite(v->loss_sum) ? RV_OK
								 : rv_fail(et, RV_E_RANGE, "the loss is %g: the weights are unusable", v->loss_sum);
}

static enum rv_err stopped(struct rv_errtext *et) {
	return rv_fail(et, RV_E_CANCELLED, "stopped");
}

static enum rv_err heldout_batches(struct loaded_model *m, const struct dataset *data, uint64_t used,
								   evaluation_tick_fn *tick, void *ctx, struct batch *b, struct evaluation *v,
								   struct rv_errtext *et) {
	uint64_t max_rows = (uint64_t)m->model->options.max_batch;
	size_t context = (size_t)m->cfg.context;
	for (uint64_t done = 0; done < used;) {
		uint64_t rows = used - done < max_rows ? used - done : max_rows;
		for (uint64_t i = 0; i < rows; i++)
			RV_TRY(dataset_heldout_sequence(data, dataset_heldout_spread(data, done + i, used), b->inputs + i * context,
											b->targets + i * context, et));
		RV_TRY(score(m, b, (int)rows, (int)context, v, et));
		done += rows;
		if (tick && !tick(ctx, done * context, used * context))
			return stopped(et);
	}
	return RV_OK;
}

enum rv_err evaluation_heldout(struct loaded_model *m, const struct dataset *data, uint64_t max_tokens,
							   evaluation_tick_fn *tick, void *ctx, struct evaluation *out, struct rv_errtext *et) {
	const uint64_t used = dataset_heldout_used(data, max_tokens);
	struct batch b = {0};
	*out = (struct evaluation){0};
	enum rv_err e = batch_init(&b, m, et);
	if (e == RV_OK)
		e = heldout_batches(m, data, used, tick, ctx, &b, out, et);
	batch_release(&b);
	return e;
}

/* Fills row `row` with the window at `begin`, `length` tokens long; targets before `scored` are not
 * counted. */
static void fill_window(struct batch *b, int row, const uint32_t *tokens, size_t begin, int length, size_t scored) {
	for (int i = 0; i < length; i++) {
		size_t at = begin + (size_t)i, to = (size_t)row * (size_t)length + (size_t)i;
		b->inputs[to] = (int32_t)tokens[at];
		b->targets[to] = at + 1 < scored ? -1 : (int32_t)tokens[at + 1];
	}
}

static enum rv_err text_batches(struct loaded_model *m, const uint32_t *tokens, size_t n, int stride,
								evaluation_tick_fn *tick, void *ctx, struct batch *b, struct evaluation *v,
								struct rv_errtext *et) {
	size_t context = (size_t)m->cfg.context, predicted = n - 1, scored = 1; /* targets [1, scored) are done */
	size_t begin = 0;
	while (scored < n) {
		int rows = 0;
		/* Takes whole windows, as many as fit a batch; the last, shorter one goes alone. */
		while (rows < m->model->options.max_batch && begin + context <= predicted && scored < n) {
			fill_window(b, rows++, tokens, begin, (int)context, scored);
			scored = begin + context + 1;
			begin += (size_t)stride;
		}
		int length = (int)context;
		if (rows == 0) {
			length = (int)(predicted - begin);
			fill_window(b, rows++, tokens, begin, length, scored);
			scored = n;
		}
		RV_TRY(score(m, b, rows, length, v, et));
		if (tick && !tick(ctx, scored, n))
			return stopped(et);
	}
	return RV_OK;
}

enum rv_err evaluation_text(struct loaded_model *m, const uint32_t *tokens, size_t n, int stride,
							evaluation_tick_fn *tick, void *ctx, struct evaluation *out, struct rv_errtext *et) {
	RV_ASSERT(stride >= 1 && stride <= m->cfg.context);
	*out = (struct evaluation){0};
	if (n < 2)
		return rv_fail(et, RV_E_RANGE, "a text of %zu tokens has none to predict; at least 2", n);
	struct batch b = {0};
	enum rv_err e = batch_init(&b, m, et);
	if (e == RV_OK)
		e = text_batches(m, tokens, n, stride, tick, ctx, &b, out, et);
	batch_release(&b);
	return e;
}
