/* gcra.h: a limit on how often something happens: the generic cell rate algorithm (ITU-T I.371,
 * appendix I). At most `burst` events happen at once, and over a longer time one in each_us.
 *
 * All that is remembered is one time, up to which the events so far are paid for: 0 before the
 * first. The caller hands in the time, which is not negative; no clock, no allocation. */
#ifndef RV_BASE_GCRA_H
#define RV_BASE_GCRA_H

#include <stdbool.h>
#include <stdint.h>

struct gcra {
	int64_t each_us; /* time that one event uses */
	int64_t burst;   /* events at once, at least 1 */
};

/* Returns the time from which another event is within the limit; it may be past. */
int64_t gcra_ready_us(const struct gcra *limit, int64_t paid_until_us);
/* Counts an event, within the limit or not. */
void gcra_count(const struct gcra *limit, int64_t *paid_until_us, int64_t now_us);
/* Counts an event if it is within the limit. Returns false, and counts nothing, if it is not. */
bool gcra_take(const struct gcra *limit, int64_t *paid_until_us, int64_t now_us);

#endif
