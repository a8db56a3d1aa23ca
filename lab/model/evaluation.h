/* evaluation.h: the loss of a model on text that it was not trained on. */
#ifndef RV_LAB_EVALUATION_H
#define RV_LAB_EVALUATION_H

#include "lab/model/loaded_model.h"
#include "train/text/data.h"

#include <stdbool.h>

struct evaluation {
	double loss_sum; /* nats, over all predicted tokens */
	uint64_t tokens; /* predicted */
	uint64_t bytes;  /* length of the predicted text */
};

static inline double evaluation_loss(const struct evaluation *v) { /* nats per token */
	return v->loss_sum / (double)v->tokens;
}
double evaluation_bits_per_byte(const struct evaluation *v);

/* Called between batches; returns false to end with RV_E_CANCELLED. NULL: nothing. */
typedef bool evaluation_tick_fn(void *ctx, uint64_t done_tokens, uint64_t all_tokens);

/* Evaluates the held-out split of a dataset, as replica_eval does: max_tokens 0: all of it.
 * RV_E_RANGE: the loss is not finite. */
enum rv_err evaluation_heldout(struct loaded_model *m, const struct dataset *data, uint64_t max_tokens,
							   evaluation_tick_fn *tick, void *ctx, struct evaluation *out, struct rv_errtext *et);
/* Evaluates every token of a text but the first, each predicted from at most `context` before it.
 * The text is cut into windows that begin `stride` tokens apart (1..context); a token in two
 * windows counts once, in the earlier. RV_E_RANGE: fewer than 2 tokens, or the loss is not finite;
 * RV_E_NOMEM. */
enum rv_err evaluation_text(struct loaded_model *m, const uint32_t *tokens, size_t n, int stride,
							evaluation_tick_fn *tick, void *ctx, struct evaluation *out, struct rv_errtext *et);

#endif
