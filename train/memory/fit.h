/* fit.h: whether a plan fits the memory that there is, and what would. */
#ifndef RV_TRAIN_MEMORY_FIT_H
#define RV_TRAIN_MEMORY_FIT_H

#include "train/memory/plan.h"

/* Free bytes; SIZE_MAX: not to be looked at. */
struct memory_room {
	size_t device; /* of the device that has least */
	size_t host;
	size_t swap; /* of the host, beside it */
};
/* As it is now: device_free_bytes, memory_available, swap_available. */
struct memory_room memory_room_now(const struct device_choice *device);

/* Pages of mapped text are no need: they are taken back when memory is short. RV_E_NOMEM: not even with swap; the text
 * has the plan, what is short, and the first change that would fit, if one does: what memory_plan_make refuses
 * otherwise. */
enum rv_err memory_fit(const struct memory_request *q, const struct memory_room *room, struct rv_errtext *et);

/* Returns what a replica keeps for its backward pass where nobody says: everything, where that fits memory without swap;
 * else blocks are computed again, where that helps. */
enum recompute memory_choose_recompute(const struct memory_request *q, const struct memory_room *room);

#endif
