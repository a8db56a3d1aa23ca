/* eval_schedule.c: balances evaluation against training. */
#include "train/eval_schedule.h"

enum { STEP_FORWARDS = 3, TRAINING_SHARE = 10 };

int64_t eval_every_rounds(int64_t every, uint64_t eval_tokens, uint64_t round_tokens, int64_t rounds) {
	if (every != EVAL_EVERY_CHOSEN)
		return every;
	const uint64_t affordable = STEP_FORWARDS * (round_tokens > 0 ? round_tokens : 1);
	const int64_t cheap = (int64_t)((eval_tokens * TRAINING_SHARE + affordable - 1) / affordable);
	const int64_t most = rounds >= EVAL_LEAST ? rounds / EVAL_LEAST : 1;
	return cheap < most ? cheap : most;
}
