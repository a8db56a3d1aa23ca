/* fp32_notice.c: logs the cost of fp32. */
#include "train/fp32_notice.h"

#include "base/fp32_cost.h"
#include "train/model/model.h"

void fp32_notice(struct rv_events *ev, const struct run_config *run, const struct device_choice *device,
				 const char *remedy) {
	char cost[FP32_COST_TEXT_BYTES];
	if (!device_is_gpu(device) || run_config_compute(run, device, NULL) != DTYPE_F32)
		return;
	fp32_cost_text(run, cost);
	rv_event(ev, RV_WARN, "fp32_on_gpu", RV_FIELDS(rv_field_int("times_slower", fp32_cost_factor(run))),
			 "dtype = fp32: %s. %s", cost, remedy);
}
