/* standstill.c: the run stands still because too few present members have its state, and the others
 * do not get it: the files that they need may be damaged on the disks that hold them. A member with
 * the state in memory writes it anew as a snapshot (ROUND_KEEP_SNAPSHOT in worker/round/round.h).
 * Then the electors of a snapshot are those that can have a vote: the last participants that are
 * present without the state have none, others that hold it do. Absent members are waited for as
 * ever. */
#include "coordinator/core/internal.h"

enum { STILL_LIVENESS = 4 }; /* liveness times that it lasts before it counts */

int64_t core_standstill_us(const struct core *c) {
	return STILL_LIVENESS * c->cfg.liveness_us;
}

static bool holds_here(const struct core *c, const struct core_member *m) {
	return core_available(c, m) && (core_in_sync(c, m) || core_spoiled(c, m));
}

static bool reports_here(const struct core *c, const struct core_member *m) {
	return core_available(c, m) && m->reported;
}

/* Returns true if some hold the state, fewer than a round needs, and others are here. */
static bool are_too_few(const struct core *c) {
	if (c->round == 0 || c->roster.n > 0 || core_are_that(c, holds_here, (int)c->cfg.min_workers))
		return false;
	int holders = core_count_that(c, holds_here);
	return holders > 0 && holders < core_count_available(c);
}

void core_watch_standstill(struct core *c) {
	if (!are_too_few(c))
		c->still_since_us = INT64_MAX;
	else if (c->still_since_us == INT64_MAX)
		c->still_since_us = c->now_us;
}

bool core_stands_still(const struct core *c) {
	return c->still_since_us != INT64_MAX && c->now_us - c->still_since_us >= core_standstill_us(c);
}

void core_electors_standing_still(const struct core *c, uint64_t *out) {
	uint64_t absent[CORE_HERE_WORDS], present[CORE_HERE_WORDS];
	(void)core_members_that(c, reports_here, present);
	(void)core_members_that(c, holds_here, out);
	set_copy(absent, c->last_commit, c->words);
	set_less(absent, present, c->words);
	set_join(out, absent, c->words);
}
