/* sim_runner.h: many universes on several processors, each in a process of its own kind: an
 * assertion that fails in a core ends that process, and is a violation like any other. */
#ifndef RV_TESTS_SIM_RUNNER_H
#define RV_TESTS_SIM_RUNNER_H

#include "base/event.h"
#include "tests/sim/sim.h"

struct runner_job {
	uint64_t first_seed, seeds;
	int workers; /* of each universe; 0: by its seed */
	bool leases; /* sim_options.leases */
	bool liars;  /* sim_options.liars */
	bool twenty; /* sim_options_with_twenty */
	bool plots;  /* sim_options.plots */
	bool audits; /* audits_choose() */
	bool scores; /* scores_choose() */
	int processes;
	const char *bug; /* planted; NULL: none */
};

struct runner_result {
	bool failed;
	uint64_t seed; /* failed: the lowest of those that fail */
	char why[1024];
	struct sim_stats sum; /* of the universes that held */
	int64_t took_us, cpu_us;
};

/* Runs the seeds in order until one fails; the result is the same for any number of processes.
 * RV_E_IO: no process or no memory could be had. */
enum rv_err runner_run(const struct runner_job *job, struct rv_events *events, struct runner_result *out,
					   struct rv_errtext *et);

/* One universe in a process of its own, with the chosen faults. *failed; plan->happened is what
 * happened. */
enum rv_err runner_try(const struct sim_options *opt, struct sim_plan *plan, bool *failed, char why[1024],
					   struct rv_errtext *et);

void sim_stats_add(struct sim_stats *sum, const struct sim_stats *one);

/* ---- sim_shrink.c ---- */

/* Takes away what is not needed for `opt`'s universe to fail: plan->chosen in, and out as few as
 * could be found (delta debugging: Zeller and Hildebrandt, "Simplifying and isolating
 * failure-inducing input", 2002). `why` is what the smallest list brings about; *tries is how many
 * universes it took. */
enum rv_err shrink(const struct sim_options *opt, struct sim_plan *plan, struct rv_events *events, char why[1024],
				   int *tries, struct rv_errtext *et);

#endif
