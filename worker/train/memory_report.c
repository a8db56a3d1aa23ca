/* memory_report.c: see memory_report.h. */
#include "worker/train/memory_report.h"

#include <sys/resource.h>

void memory_report_plan(struct rv_events *ev, const struct memory_plan *p) {
	char line[512];
	memory_plan_line(p, line, sizeof line);
	rv_event(ev, RV_INFO, "memory",
			 RV_FIELDS(rv_field_int("total_bytes", (int64_t)memory_plan_total(p)),
					   rv_field_int("activation_bytes", (int64_t)p->activations)),
			 "%s", line);
}

void memory_report_peak(struct rv_events *ev, const struct memory_plan *p) {
	struct rusage used;
	if (getrusage(RUSAGE_SELF, &used) != 0)
		return;
	double peak_mib = (double)used.ru_maxrss / 1024, planned_mib = (double)memory_plan_host(p) / (1 << 20);
	rv_event(ev, RV_INFO, "memory_peak",
			 RV_FIELDS(rv_field_double("peak_mib", peak_mib), rv_field_double("planned_mib", planned_mib)),
			 "memory: peak %.0f MiB, planned %.0f", peak_mib, planned_mib);
}
