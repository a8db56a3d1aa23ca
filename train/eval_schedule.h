/* eval_schedule.h: on which text, and how often, a run looks at its held-out loss.
 *
 * Every evaluation of a run, the last one too, predicts the same tokens: a curve ends in the number that a table has.
 * How many is `eval-tokens`; how often follows from what an evaluation costs.
 */
#ifndef RV_TRAIN_EVAL_SCHEDULE_H
#define RV_TRAIN_EVAL_SCHEDULE_H

#include "base/options.h"

#define EVAL_TOKENS_DEFAULT "32768"
#define EVAL_TOKENS_HELP                                                                                               \
	"Held-out tokens that an evaluation predicts: the same ones every time, spread over all held-out text; 0: all of " \
	"it."

enum { EVAL_EVERY_CHOSEN = -1 };
#define EVAL_EVERY_DEFAULT "-1"

/* Returns the rounds from one evaluation to the next in a run of `rounds`: `every`, or, where that is EVAL_EVERY_CHOSEN,
 * as many as make evaluations of `eval_tokens` take about a tenth of the time of training on `round_tokens` a round; in
 * a run so short that this were fewer than EVAL_LEAST, so many that there are. A forward pass is a third of a training
 * step. 0: none but the last. */
enum { EVAL_LEAST = 4 };
int64_t eval_every_rounds(int64_t every, uint64_t eval_tokens, uint64_t round_tokens, int64_t rounds);

#endif
