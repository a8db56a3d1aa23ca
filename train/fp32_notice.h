/* fp32_notice.h: logs, at the start of training, what fp32 costs on a GPU. */
#ifndef RV_TRAIN_FP32_NOTICE_H
#define RV_TRAIN_FP32_NOTICE_H

#include "base/event.h"
#include "base/run_config.h"
#include "kernels/device.h"

/* Logs "fp32_on_gpu" if a GPU trains a run of dtype fp32. `remedy`: a sentence on the way out. */
void fp32_notice(struct rv_events *ev, const struct run_config *run, const struct device_choice *device,
				 const char *remedy);

#endif
