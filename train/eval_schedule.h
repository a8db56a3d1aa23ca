/* eval_schedule.h: on which text and how often a run evaluates its held-out loss.
 *
 * Every evaluation of a run, the last one too, predicts the same `eval-tokens` tokens, so that a
 * curve ends in the table's number; the interval follows from the cost of an evaluation. */
#ifndef RV_TRAIN_EVAL_SCHEDULE_H
#define RV_TRAIN_EVAL_SCHEDULE_H

#include "base/options.h"

#define EVAL_TOKENS_DEFAULT "32768"
#define EVAL_TOKENS_HELP                                                                                               \
	"Held-out tokens that an evaluation predicts: the same ones every time, spread over the held-out text; 0: all."

enum { EVAL_EVERY_CHOSEN = -1 };
#define EVAL_EVERY_DEFAULT "-1"

/* Returns the rounds between evaluations in a run of `rounds`: `every`, or for EVAL_EVERY_CHOSEN as
 * many as make evaluations of `eval_tokens` take about a tenth of the time of training on
 * `round_tokens` per round, but few enough for EVAL_LEAST evaluations. A forward pass counts as a
 * third of a training step. 0: only the last evaluation. */
enum { EVAL_LEAST = 4 };
int64_t eval_every_rounds(int64_t every, uint64_t eval_tokens, uint64_t round_tokens, int64_t rounds);

#endif
