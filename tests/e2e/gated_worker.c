/* gated_worker.c: the real worker, whose training stops at a gate, put in by the linker (--wrap).
 * It exists for tests only.
 *
 * RIVULET_GATE=FILE (replica_step_over): FILE holds a number; no inner step is done that begins at
 * so many global steps or more, until it holds a larger one or is gone. All else goes on,
 * heartbeats too: the run waits for it, as for a slow machine, however long a test takes to do what
 * it wants done in the meantime. */
#include "train/replica.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef enum rv_err step_fn(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
							struct rv_errtext *et);
step_fn __real_replica_step_over, __wrap_replica_step_over;

enum { PAUSE_US = 5000 };

static bool is_shut(const char *gate, uint64_t step) {
	uint64_t from = UINT64_MAX;
	FILE *f = fopen(gate, "re");
	bool shut = f != NULL && fscanf(f, "%" SCNu64, &from) == 1 && step >= from;
	if (f != NULL)
		(void)fclose(f);
	return shut;
}

enum rv_err __wrap_replica_step_over(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
									 struct rv_errtext *et) {
	const char *gate = getenv("RIVULET_GATE");
	while (gate != NULL && is_shut(gate, replica_global_step(r)))
		(void)usleep(PAUSE_US);
	return __real_replica_step_over(r, shards, n, out, et);
}
