/* schedule.h: the inner learning rate as a function of the global inner step. */
#ifndef RV_TRAIN_SCHEDULE_H
#define RV_TRAIN_SCHEDULE_H

#include <stdint.h>

struct schedule {
	double peak, min_ratio;
	uint64_t warmup_steps, total_steps;
};

/* Returns the rate: linear from peak/warmup_steps at step 0 to the peak at step warmup_steps - 1,
 * then half a cosine down to peak * min_ratio at step total_steps - 1, then constant. */
float schedule_lr(const struct schedule *s, uint64_t step);

#endif
