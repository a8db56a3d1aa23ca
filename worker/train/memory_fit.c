/* memory_fit.c: see memory_fit.h. */
#include "worker/train/memory_fit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MIB ((double)(1 << 20))
/* What a driver and its libraries take of a device beside what is asked for. */
#define DEVICE_OVERHEAD_BYTES ((size_t)512 << 20)

static enum rv_err need(const struct memory_request *q, size_t *bytes, struct rv_errtext *et) {
	struct memory_plan p;
	RV_TRY(memory_plan_make(q, &p, et));
	*bytes = memory_plan_device(&p) + DEVICE_OVERHEAD_BYTES;
	return RV_OK;
}

static bool fits(const struct memory_request *q, size_t free_bytes, size_t *bytes) {
	return need(q, bytes, NULL) == RV_OK && *bytes <= free_bytes;
}

/* What q's owner may change, from what costs least. A worker's batch is the run's: what it may change is less. */
static bool find_change(const struct memory_request *q, size_t free_bytes, char *out, size_t cap) {
	struct memory_request r = *q;
	struct run_config run = *q->run;
	struct device_choice device = *q->device;
	const bool owns_run = q->role != MEMORY_WORKER;
	size_t bytes;
	r.run = &run;
	r.device = &device;
	if (owns_run && strcmp(run.dtype, "bf16") != 0) {
		(void)snprintf(run.dtype, sizeof run.dtype, "bf16");
		if (fits(&r, free_bytes, &bytes)) {
			(void)snprintf(out, cap, "--dtype bf16 would fit (%.0f MiB)", (double)bytes / MIB);
			return true;
		}
	}
	r.recompute = RECOMPUTE_BLOCK;
	if (fits(&r, free_bytes, &bytes)) {
		(void)snprintf(out, cap, "--recompute block would fit (%.0f MiB)", (double)bytes / MIB);
		return true;
	}
	while (owns_run && run.batch > 1) {
		run.batch /= 2;
		run.grad_accum *= 2;
		if (fits(&r, free_bytes, &bytes)) {
			(void)snprintf(out, cap,
						   "--recompute block --batch %" PRId64 " --grad-accum %" PRId64 " would fit (%.0f MiB)",
						   run.batch, run.grad_accum, (double)bytes / MIB);
			return true;
		}
	}
	for (device.n *= 2; device.n <= DEVICE_MAX; device.n *= 2)
		if (fits(&r, free_bytes, &bytes)) {
			(void)snprintf(out, cap, "--recompute block on %d such devices would fit (%.0f MiB each)", device.n,
						   (double)bytes / MIB);
			return true;
		}
	return false;
}

enum rv_err memory_fit(const struct memory_request *q, size_t free_bytes, struct rv_errtext *et) {
	struct memory_plan p;
	char plan[256], change[160] = "no option would make it fit: --device cpu, or a smaller model";
	size_t bytes;
	if (free_bytes == SIZE_MAX)
		return RV_OK;
	RV_TRY(need(q, &bytes, et));
	if (bytes <= free_bytes)
		return RV_OK;
	RV_TRY(memory_plan_make(q, &p, et));
	memory_plan_line(&p, plan, sizeof plan);
	(void)find_change(q, free_bytes, change, sizeof change);
	return rv_fail(et, RV_E_NOMEM, "a device needs %.0f MiB and has %.0f free, %.0f too few; %s. %s",
				   (double)bytes / MIB, (double)free_bytes / MIB, (double)(bytes - free_bytes) / MIB, change, plan);
}
