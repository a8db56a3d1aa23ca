/* fit.h: whether a plan fits the free memory, and which change would make it fit. */
#ifndef RV_TRAIN_MEMORY_FIT_H
#define RV_TRAIN_MEMORY_FIT_H

#include "train/memory/plan.h"

/* Bytes that a driver and its libraries take of a device beside a plan. */
#define MEMORY_DEVICE_OVERHEAD_BYTES ((size_t)512 << 20)

/* Free bytes; SIZE_MAX: unlimited. */
struct memory_room {
	size_t device; /* bytes of the device with the least */
	size_t host;
	size_t swap;                     /* bytes in addition to host */
	bool device_capped, host_capped; /* it is not what is free, but what a person allows */
};
/* Returns the present room: device_free_bytes, os_memory_available, os_swap_available. */
struct memory_room memory_room_now(const struct device_choice *device);
/* Limits the room to what a person allows, in bytes; 0: no limit. The host's memory and its swap
 * have one limit together. */
void memory_room_cap(struct memory_room *room, int64_t host_bytes, int64_t device_bytes);

/* Checks a plan. Pages of mapped text do not count: the kernel reclaims them. Returns RV_E_NOMEM if
 * it does not fit even with swap (the text has the plan, the shortage and the first change that
 * would fit), RV_E_RANGE for more devices than sequences in a step, and what memory_plan_make
 * returns. */
enum rv_err memory_fit(const struct memory_request *q, const struct memory_room *room, struct rv_errtext *et);

#endif
