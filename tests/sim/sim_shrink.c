/* sim_shrink.c: a failing universe with as few faults as possible. Parts of the list are left out,
 * first halves, then ever smaller ones, as long as the universe still fails; what fails in the end
 * may be another check than at first. */
#include "tests/sim/sim_runner.h"

#include "base/clock.h"

#include <string.h>

enum { MAX_TRIES = 1000 };

struct shrinking {
	const struct sim_options *opt;
	struct sim_plan *plan;
	struct rv_events *events;
	char *why; /* (1024) of the smallest list so far */
	int tries;
	int ids[SIM_MAX_FAULTS], n; /* the smallest list so far */
};

static void choose_ids(struct shrinking *sh) {
	memset(sh->plan->chosen, 0, sizeof sh->plan->chosen);
	for (int i = 0; i < sh->n; i++)
		sh->plan->chosen[sh->ids[i]] = true;
}

static void adopt(struct shrinking *sh, const char why[1024]) {
	sh->n = 0;
	for (int i = 0; i < sh->plan->n; i++)
		if (sh->plan->chosen[i])
			sh->ids[sh->n++] = i;
	memcpy(sh->why, why, 1024);
}

/* Without ids[from] to ids[to - 1]; adopted when it still fails. */
static enum rv_err try_without(struct shrinking *sh, int from, int to, bool *smaller, struct rv_errtext *et) {
	char why[1024];
	choose_ids(sh);
	for (int i = from; i < to; i++)
		sh->plan->chosen[sh->ids[i]] = false;
	sh->tries++;
	rv_progress(sh->events, rv_clock_monotonic_us(), "shrink", (uint64_t)sh->tries, 0, "run", "");
	RV_TRY(runner_try(sh->opt, sh->plan, smaller, why, et));
	if (*smaller)
		adopt(sh, why);
	return RV_OK;
}

/* One pass with parts of that size; *any: something could be left out. */
static enum rv_err pass(struct shrinking *sh, int size, bool *any, struct rv_errtext *et) {
	*any = false;
	for (int from = 0; from < sh->n && sh->tries < MAX_TRIES;) {
		int to = from + size < sh->n ? from + size : sh->n;
		bool smaller = false;
		RV_TRY(try_without(sh, from, to, &smaller, et));
		*any = *any || smaller;
		if (!smaller)
			from = to;
	}
	return RV_OK;
}

enum rv_err shrink(const struct sim_options *opt, struct sim_plan *plan, struct rv_events *events, char why[1024],
				   int *tries, struct rv_errtext *et) {
	struct shrinking sh = {.opt = opt, .plan = plan, .events = events, .why = why};
	bool fails = false;
	for (int i = 0; i < plan->n; i++)
		if (plan->chosen[i])
			sh.ids[sh.n++] = i;
	RV_TRY(try_without(&sh, 0, 0, &fails, et));
	bool any = fails;
	for (int size = (sh.n + 1) / 2; size >= 1 && sh.tries < MAX_TRIES && (any || size > 1);) {
		RV_TRY(pass(&sh, size, &any, et));
		size = size > 1 ? (size + 1) / 2 : any ? 1 : 0;
	}
	rv_progress_clear(events);
	choose_ids(&sh);
	*tries = sh.tries;
	return RV_OK;
}
