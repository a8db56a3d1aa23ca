/* schedule.c: warm-up and cosine decay. */
#include "train/schedule.h"

#include <math.h>

float schedule_lr(const struct schedule *s, uint64_t step) {
	if (step < s->warmup_steps)
		return (float)(s->peak * (double)(step + 1) / (double)s->warmup_steps);
	double floor_lr = s->peak * s->min_ratio;
	if (step + 1 >= s->total_steps)
		return (float)floor_lr;
	/* The last warm-up step (or the step before the first) is the peak: progress 0. */
	double progress = (double)(step + 1 - s->warmup_steps) / (double)(s->total_steps - s->warmup_steps);
	return (float)(floor_lr + (s->peak - floor_lr) * 0.5 * (1 + cos(M_PI * progress)));
}
