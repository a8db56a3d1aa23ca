/* evaluation.h: how well a model predicts text that it was not trained on. */
#ifndef RV_LAB_EVALUATION_H
#define RV_LAB_EVALUATION_H

#include "lab/model/loaded_model.h"
#include "train/text/data.h"

#include <stdbool.h>

struct evaluation {
	double loss_sum; /* nats, over all predicted tokens */
	uint64_t tokens; /* predicted */
	uint64_t bytes;  /* of text that they stand for */
};

static inline double evaluation_loss(const struct evaluation *v) { /* nats per token */
	return v->loss_sum / (double)v->tokens;
}
double evaluation_bits_per_byte(const struct evaluation *v);

/* Called between batches: false ends with RV_E_CANCELLED. NULL: nothing. */
typedef bool evaluation_tick_fn(void *ctx, uint64_t done_tokens, uint64_t all_tokens);

/* The held-out split of a dataset, as replica_eval reads it: max_tokens 0: all of it. RV_E_RANGE: the loss is not
 * finite. */
enum rv_err evaluation_heldout(struct loaded_model *m, const struct dataset *data, uint64_t max_tokens,
							   evaluation_tick_fn *tick, void *ctx, struct evaluation *out, struct rv_errtext *et);
/* Every token of a text but the first, each predicted from at most `context` before it: the text is cut into windows
 * that begin `stride` tokens apart (1..context; the tokens that two share count once, in the earlier).
 * RV_E_RANGE: fewer than 2 tokens, or the loss is not finite; RV_E_NOMEM. */
enum rv_err evaluation_text(struct loaded_model *m, const uint32_t *tokens, size_t n, int stride,
							evaluation_tick_fn *tick, void *ctx, struct evaluation *out, struct rv_errtext *et);

#endif
