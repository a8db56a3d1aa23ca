/* time.c: how a member's process spends its time: the bars of the dashboard. Decides nothing. */
#include "coordinator/service/internal.h"

void service_watch_time(struct service *s, uint32_t slot, const struct report *rep, int64_t now_us) {
	struct member_time *t = &s->members[slot].time;
	if (t->since_us == 0 || !report_same_process(t->boot, rep->boot) || rep->compute_us < t->last_compute_us ||
		rep->reduce_us < t->last_reduce_us)
		*t = (struct member_time){.boot = rep->boot,
								  .since_us = now_us,
								  .first_compute_us = rep->compute_us,
								  .first_reduce_us = rep->reduce_us};
	t->until_us = now_us;
	t->last_compute_us = rep->compute_us;
	t->last_reduce_us = rep->reduce_us;
}
