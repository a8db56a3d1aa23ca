/* report.c: logs the plan and the peak. */
#include "train/memory/report.h"

#include "base/os_memory.h"

#include <stdio.h>

/* Lists the items of a GPU's workspace: "logits 246, products 64, ..." in MiB. */
static void list_workspace(const struct memory_plan *p, char *out, size_t cap) {
	size_t used = 0;
	out[0] = '\0';
	for (int i = 0; i < p->step.n && used < cap; i++)
		used += (size_t)snprintf(out + used, cap - used, "%s%s %.0f", i ? ", " : "", p->step.items[i].name,
								 (double)p->step.items[i].bytes / (1 << 20));
}

static void report_device(struct rv_events *ev, const struct memory_plan *p) {
	char items[256];
	const double all = (double)memory_plan_device(p), least = (double)memory_plan_least_device(p);
	list_workspace(p, items, sizeof items);
	rv_event(ev, RV_INFO, "device_memory",
			 RV_FIELDS(rv_field_int("bytes", (int64_t)memory_plan_device(p)),
					   rv_field_int("least_bytes", (int64_t)memory_plan_least_device(p))),
			 "memory of a GPU: %.0f MiB, all before the first step (at least %.0f); of its workspace: %s",
			 all / (1 << 20), least / (1 << 20), items);
}

void memory_report_plan(struct rv_events *ev, const struct memory_plan *p) {
	char line[512];
	memory_plan_line(p, line, sizeof line);
	rv_event(ev, RV_INFO, "memory",
			 RV_FIELDS(rv_field_int("total_bytes", (int64_t)memory_plan_total(p)),
					   rv_field_int("activation_bytes", (int64_t)p->activations)),
			 "%s", line);
	if (p->on_device)
		report_device(ev, p);
}

void memory_report_peak(struct rv_events *ev, const struct memory_plan *p) {
	const size_t peak = os_memory_peak();
	if (peak == 0)
		return;
	double peak_mib = (double)peak / (1 << 20), planned_mib = (double)memory_plan_host(p) / (1 << 20);
	rv_event(ev, RV_INFO, "memory_peak",
			 RV_FIELDS(rv_field_double("peak_mib", peak_mib), rv_field_double("planned_mib", planned_mib)),
			 "memory: peak %.0f MiB, planned %.0f", peak_mib, planned_mib);
}
