/* run_chunks.h: what the workers of a run must report: how many chunks one of this configuration
 * exchanges in a round, and the rest of a plain report. */
#ifndef RV_TESTS_COORDINATOR_RUN_CHUNKS_H
#define RV_TESTS_COORDINATOR_RUN_CHUNKS_H

#include "base/assert.h"
#include "net/control/control.h"
#include "outer/global.h"

static inline uint32_t run_chunks(const char *config, uint64_t round) {
	struct run_config run;
	struct global_config g;
	RV_ASSERT(run_config_parse(&run, "the test's configuration", config, NULL) == RV_OK);
	RV_ASSERT(global_config_of_run(&run, &(struct rv_hash){{0}}, &g, NULL) == RV_OK);
	return global_round_chunks(&g, round).n_chunks;
}

/* Returns what a member reports that follows document `d` and is in this phase. */
static inline struct report plain_report(const struct document *d, const char *config, uint64_t seq,
										 enum worker_phase phase) {
	struct report rep = {.boot = 1,
						 .seq = seq,
						 .phase = (uint8_t)phase,
						 .round = d->round,
						 .tokens = 100,
						 .n_chunks = run_chunks(config, d->round),
						 .loss = 2,
						 .n_candidates = 1,
						 .candidates[0].addr = ":7000"};
	if (phase != WORKER_SYNCING)
		rep.chain = d->chain;
	if (phase >= WORKER_READY && phase <= WORKER_VOTED)
		rep.commitment.n = 1;
	if (phase == WORKER_VOTED)
		rep.attempt = d->attempt;
	return rep;
}

#endif
