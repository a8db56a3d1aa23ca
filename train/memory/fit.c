/* fit.c: compares a plan with free memory, and searches for a change that fits. */
#include "train/memory/fit.h"

#include "base/os_memory.h"
#include "train/memory/choose.h"
#include "train/step_bounds.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MIB ((double)(1 << 20))

struct memory_room memory_room_now(const struct device_choice *device) {
	return (struct memory_room){
		.device = device_free_bytes(device), .host = os_memory_available(""), .swap = os_swap_available("")};
}

void memory_room_cap(struct memory_room *room, int64_t host_bytes, int64_t device_bytes) {
	const size_t host = (size_t)host_bytes;
	if (host_bytes > 0 && (room->host >= host || room->swap > host - room->host)) {
		room->host = room->host < host ? room->host : host;
		room->swap = host - room->host;
		room->host_capped = true;
	}
	if (device_bytes > 0 && (size_t)device_bytes < room->device) {
		room->device = (size_t)device_bytes;
		room->device_capped = true;
	}
}

/* ---- what is needed ---- */

struct need {
	size_t device, host;
};

/* A backend takes what it can do without where it is free (memory_plan.spare): a person's cap has
 * to hold that, too. */
static enum rv_err need_of(const struct memory_request *q, const struct memory_room *room, struct need *out,
						   struct rv_errtext *et) {
	struct memory_plan p;
	if (q->role != MEMORY_FORWARD)
		RV_TRY(step_check_devices(q->run, q->device->n, et));
	RV_TRY(memory_plan_make(q, &p, et));
	const size_t device = room->device_capped ? memory_plan_device(&p) : memory_plan_least_device(&p);
	out->device = p.on_device ? device + MEMORY_DEVICE_OVERHEAD_BYTES : 0;
	out->host = memory_plan_host(&p) - p.data;
	return RV_OK;
}

static size_t host_bytes(const struct memory_room *room) {
	return room->swap < SIZE_MAX - room->host ? room->host + room->swap : SIZE_MAX;
}

static bool is_within(const struct need *n, const struct memory_room *room) {
	return n->device <= room->device && n->host <= host_bytes(room);
}

/* ---- what would fit ---- */

/* A request that is varied, and its need. */
struct trial {
	struct memory_request q;
	struct run_config run;
	struct device_choice device;
	const struct memory_room *room;
	struct need need;
};

static void trial_init(struct trial *t, const struct memory_request *q, const struct memory_room *room) {
	*t = (struct trial){.q = *q, .run = *q->run, .device = *q->device, .room = room};
	t->q.run = &t->run;
	t->q.device = &t->device;
}

static bool fits(struct trial *t) {
	return need_of(&t->q, t->room, &t->need, NULL) == RV_OK && is_within(&t->need, t->room);
}

/* Reports whether the run may be changed: a worker's batch and types are the run's. */
static bool owns_run(const struct trial *t) {
	return t->q.role != MEMORY_WORKER;
}

enum { CHANGE_BYTES = 128 };

static bool shorter_values(struct trial *t, char out[CHANGE_BYTES]) {
	(void)snprintf(out, CHANGE_BYTES, "--dtype bf16");
	t->run.dtype = RUN_DTYPE_BF16;
	return owns_run(t) && fits(t);
}

/* Tries savings, those that cost least time first. */
static bool savings(struct trial *t, char out[CHANGE_BYTES]) {
	const struct savings_wish any = SAVINGS_WISH_ANY;
	if (t->q.role == MEMORY_FORWARD || !savings_choose(&t->q, &any, t->room, &t->q.savings))
		return false;
	savings_text(&t->q.savings, out, CHANGE_BYTES);
	return fits(t);
}

/* Tries fewer replicas in the lab's process; fewer workers of a run would not help a real one. */
static bool fewer_workers(struct trial *t, char out[CHANGE_BYTES]) {
	while (t->q.role == MEMORY_LAB && --t->q.replicas >= 1) {
		(void)snprintf(out, CHANGE_BYTES, "--workers %d", t->q.replicas);
		if (fits(t))
			return true;
	}
	return false;
}

static bool more_devices(struct trial *t, char out[CHANGE_BYTES]) {
	for (t->device.n *= 2; t->device.n <= DEVICE_MAX; t->device.n *= 2) {
		char with[CHANGE_BYTES / 2];
		const struct savings_wish any = SAVINGS_WISH_ANY;
		const bool found = savings_choose(&t->q, &any, t->room, &t->q.savings);
		savings_text(&t->q.savings, with, sizeof with);
		(void)snprintf(out, CHANGE_BYTES, "%s%son %d such devices", with, with[0] ? " " : "", t->device.n);
		if (found && fits(t))
			return true;
	}
	return false;
}

/* The changes, the cheapest first. */
static bool (*const changes[])(struct trial *t, char out[CHANGE_BYTES]) = {shorter_values, savings, fewer_workers,
																		   more_devices};

enum { ADVICE_BYTES = 224 };

static void advise(const struct memory_request *q, const struct memory_room *room, bool of_device,
				   char out[ADVICE_BYTES]) {
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
		struct trial t;
		char change[CHANGE_BYTES];
		trial_init(&t, q, room);
		if (!changes[i](&t, change))
			continue;
		(void)snprintf(out, ADVICE_BYTES, "%s would fit (%.0f MiB%s)", change,
					   (double)(of_device ? t.need.device : t.need.host) / MIB, t.device.n > 1 ? " each" : "");
		return;
	}
	(void)snprintf(out, ADVICE_BYTES, "no option would make it fit: %sa smaller model",
				   of_device ? "--device cpu, or " : "");
}

/* ---- the verdict ---- */

enum rv_err memory_fit(const struct memory_request *q, const struct memory_room *room, struct rv_errtext *et) {
	struct memory_plan p;
	struct need need;
	char plan[256], advice[ADVICE_BYTES], swap[48] = "";
	RV_TRY(need_of(q, room, &need, et));
	if (is_within(&need, room))
		return RV_OK;
	if (!et)
		return RV_E_NOMEM;
	RV_TRY(memory_plan_make(q, &p, et));
	memory_plan_line(&p, plan, sizeof plan);
	const bool of_device = need.device > room->device;
	const size_t needed = of_device ? need.device : need.host, there = of_device ? room->device : host_bytes(room);
	if (!of_device && room->swap > 0)
		(void)snprintf(swap, sizeof swap, ", swap of %.0f included", (double)room->swap / MIB);
	advise(q, room, of_device, advice);
	if (of_device ? room->device_capped : room->host_capped)
		return rv_fail(et, RV_E_NOMEM, "%s needs %.0f MiB and %s allows %.0f, %.0f too few; %s. %s",
					   of_device ? "a device" : "training", (double)needed / MIB,
					   of_device ? "--gpu-memory" : "--max-memory", (double)there / MIB, (double)(needed - there) / MIB,
					   advice, plan);
	return rv_fail(et, RV_E_NOMEM, "%s needs %.0f MiB and %s %.0f free%s, %.0f too few; %s. %s",
				   of_device ? "a device" : "training", (double)needed / MIB, of_device ? "has" : "there are",
				   (double)there / MIB, swap, (double)(needed - there) / MIB, advice, plan);
}
