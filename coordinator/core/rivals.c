/* rivals.c: which reports count when more than one process has had a member's key: the former
 * process of a worker that was started again, or a second one that runs beside it (a copied
 * directory, a cloned machine).
 *
 * The later boot is followed. One report with an earlier boot proves nothing: it may have been
 * under way for long, and its process be gone. A dead process has only a few of those; one that
 * reports repeatedly, each time after the followed one has reported again, lives beside it. A
 * process that is refused must stay down: started again it would be the later boot, and the two
 * would end each other in turn for ever (RV_EXIT_REFUSED in base/program.h).
 *
 * If the clock of a machine was set back, the process that is gone had the later boot: reports of a
 * process that was followed before count only if they are newer than its last one by then.
 *
 * A machine that was cloned while it runs (a snapshot of its memory) has the same boot: such a pair
 * is not noticed here, and those of its reports with the higher seq count. */
#include "base/assert.h"
#include "base/clock.h"
#include "coordinator/core/internal.h"

#include <string.h>
#include <time.h>

enum { RIVAL_TURNS = 3 }; /* reports of both in turn, after which the earlier one is refused */

/* Returns the process of this boot that was followed before, as it was left last; NULL: none
 * known. */
static const struct core_former *find_former(const struct core_member *m, uint64_t boot) {
	for (int i = 0; i < CORE_FORMERS; i++)
		if (m->formers[i].boot != 0 && report_same_process(boot, m->formers[i].boot))
			return &m->formers[i];
	return NULL;
}

/* Returns true if the report, or a later one of its process, came before another process was
 * followed: the network delayed it. */
static bool is_repeated(const struct core_member *m, const struct report *rep) {
	const struct core_former *f = find_former(m, rep->boot);
	return f != NULL && rep->seq <= f->seq;
}

/* Returns true if its connection was closed after its last report: most likely the process has
 * ended, and another one may have come whose clock was set back; only not one that came before
 * it. */
static bool has_hung_up(const struct core_member *m, const struct report *rep) {
	return m->hung_up_us > m->heard_us && find_former(m, rep->boot) == NULL;
}

bool core_is_stale(const struct core *c, const struct core_member *m, const struct report *rep, int64_t now_us) {
	if (!m->reported)
		return false;
	if (rep->boot == m->last.boot)
		return rep->seq <= m->last.seq;
	bool same = report_same_process(rep->boot, m->last.boot);
	if (!same && is_repeated(m, rep))
		return true;
	if (rep->boot > m->last.boot)
		return false;
	return now_us - m->heard_us < c->cfg.liveness_us && (same || !has_hung_up(m, rep));
}

void core_follow(struct core_member *m, const struct report *rep) {
	if (m->reported && !report_same_process(rep->boot, m->last.boot)) {
		memmove(&m->formers[1], &m->formers[0], (CORE_FORMERS - 1) * sizeof m->formers[0]);
		m->formers[0] = (struct core_former){.boot = m->last.boot, .seq = m->last.seq};
		m->rival = (struct core_rival){0};
		m->was_here = false;
	}
	m->rival.answered = true;
}

/* Replaces the rival if there is none, or an earlier or a silent one: of several the latest is
 * refused first. */
static void meet(const struct core *c, struct core_rival *r, const struct report *rep, int64_t now_us) {
	bool free = r->boot == 0 || rep->boot > r->boot || now_us - r->heard_us >= c->cfg.liveness_us;
	if (free)
		*r = (struct core_rival){.boot = rep->boot, .seq = rep->seq, .heard_us = now_us};
}

/* Counts a report; returns true if its process lives beside the followed one. */
static bool lives(struct core_rival *r, const struct report *rep, int64_t now_us) {
	RV_ASSERT(report_same_process(rep->boot, r->boot));
	bool news = rep->boot > r->boot || (rep->boot == r->boot && rep->seq > r->seq);
	if (!news)
		return false;
	r->boot = rep->boot;
	r->seq = rep->seq;
	r->heard_us = now_us;
	if (!r->answered)
		return false;
	r->answered = false;
	return ++r->turns >= RIVAL_TURNS;
}

static enum rv_err refuse(const struct core_member *m, struct rv_errtext *et) {
	char since[32] = "";
	time_t at = (time_t)(m->last.boot / RV_US_PER_S);
	struct tm tm;
	if (gmtime_r(&at, &tm) != NULL)
		(void)strftime(since, sizeof since, "%Y-%m-%d %H:%M:%S", &tm);
	return rv_fail(et, RV_E_AUTH,
				   "report: another process runs as member %u since %s UTC: on a copy of this directory? Start one of "
				   "them in a new directory, with an invite link of its own",
				   m->number, since);
}

enum rv_err core_stale_report(struct core *c, uint32_t slot, const struct report *rep, int64_t now_us,
							  struct rv_errtext *et) {
	struct core_member *m = &c->members[slot];
	struct core_rival *r = &m->rival;
	RV_ASSERT(m->reported && set_has(c->slots.used, slot)); /* what is stale is older than a report */
	if (report_same_process(rep->boot, m->last.boot) || is_repeated(m, rep))
		return RV_OK;
	if (r->boot == 0 || !report_same_process(rep->boot, r->boot)) {
		meet(c, r, rep, now_us);
		return RV_OK;
	}
	if (!lives(r, rep, now_us))
		return RV_OK;
	if (r->turns == RIVAL_TURNS)
		core_say(c, CORE_EVENT_TWICE, slot, c->round);
	return refuse(m, et);
}
