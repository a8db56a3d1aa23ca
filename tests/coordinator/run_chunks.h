/* run_chunks.h: how many chunks a run of this configuration exchanges in a round: what its workers
 * must report. */
#ifndef RV_TESTS_COORDINATOR_RUN_CHUNKS_H
#define RV_TESTS_COORDINATOR_RUN_CHUNKS_H

#include "base/assert.h"
#include "outer/global.h"

static inline uint32_t run_chunks(const char *config, uint64_t round) {
	struct run_config run;
	struct global_config g;
	RV_ASSERT(run_config_parse(&run, "the test's configuration", config, NULL) == RV_OK);
	RV_ASSERT(global_config_of_run(&run, &(struct rv_hash){{0}}, &g, NULL) == RV_OK);
	return global_round_chunks(&g, round).n_chunks;
}

#endif
