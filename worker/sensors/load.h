/* load.h: processor time that other programs use. */
#ifndef RV_WORKER_SENSORS_LOAD_H
#define RV_WORKER_SENSORS_LOAD_H

#include <stdbool.h>
#include <stdint.h>

/* Zero before the first call. */
struct load_watch {
	bool started;
	int64_t busy_us, all_us, own_us; /* at the last call: sums since the system or process started */
};

/* Returns the part of all processors' time that programs other than this one used since the last
 * call, in percent, 0..100, by ROOT/proc/stat; NaN at the first call, and where there is no such
 * file. `own_us`: processor time of this process. */
double load_others_percent(struct load_watch *w, const char *root, int64_t own_us);

#endif
