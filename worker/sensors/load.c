/* load.c: the first line of /proc/stat (proc_stat(5)): time by what it was spent on, in ticks. */
#include "worker/sensors/load.h"

#include "worker/sensors/sysfs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { US_PER_S = 1000000 };
/* A thousand processors reach it after years; in microseconds it fits, also in a broken file. */
#define TICKS_MAX ((UINT64_C(1) << 44) - 1)

/* user, nice, system, idle, iowait, irq, softirq, steal; guests are in user. */
enum { IDLE = 3, IOWAIT = 4, COLUMNS = 8 };

static bool read_ticks(const char *root, int64_t *busy, int64_t *all) {
	char path[SYSFS_PATH_BYTES];
	uint64_t t[COLUMNS] = {0};
	(void)snprintf(path, sizeof path, "%s/proc/stat", root);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	const int n =
		fscanf(f, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
			   &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]);
	(void)fclose(f);
	*busy = *all = 0;
	for (int i = 0; i < COLUMNS; i++) {
		const int64_t ticks = (int64_t)(t[i] & TICKS_MAX);
		*all += ticks;
		*busy += i == IDLE || i == IOWAIT ? 0 : ticks;
	}
	return n == COLUMNS;
}

double load_others_percent(struct load_watch *w, const char *root, int64_t own_us) {
	const long per_s = sysconf(_SC_CLK_TCK);
	int64_t busy, all;
	if (per_s <= 0 || !read_ticks(root, &busy, &all)) {
		w->started = false;
		return NAN;
	}
	const struct load_watch now = {
		.started = true, .busy_us = busy * (US_PER_S / per_s), .all_us = all * (US_PER_S / per_s), .own_us = own_us};
	const struct load_watch then = *w;
	*w = now;
	const int64_t passed_us = now.all_us - then.all_us;
	if (!then.started || passed_us <= 0)
		return NAN;
	const double others = (double)(now.busy_us - then.busy_us - (now.own_us - then.own_us)) * 100 / (double)passed_us;
	return others < 0 ? 0 : others > 100 ? 100 : others;
}
