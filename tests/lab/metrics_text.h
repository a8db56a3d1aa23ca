/* metrics_text.h: metrics.jsonl files of made-up runs. */
#ifndef RV_TESTS_LAB_METRICS_TEXT_H
#define RV_TESTS_LAB_METRICS_TEXT_H

#include "train/metrics.h"

/* A finished run: `rounds` rounds of H = 10, 1000 parameters, loss falling from 5; worker `member`
 * of `workers`. */
void write_metrics(const char *path, const char *name, const char *role, const char *method, uint32_t member,
				   uint32_t workers, uint64_t rounds);

#endif
