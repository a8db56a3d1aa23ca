/* flip_worker.c: the real worker, with a bit that flips put in by the linker (--wrap). It exists
 * for tests only.
 *
 * RIVULET_FLIP=ROUND (global_apply): one bit of theta flips, once, as soon as it holds the state of
 * that round. */
#include "outer/global.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum rv_err __real_global_apply(struct global_state *g, const uint8_t *reduced, const struct rv_hash *digest,
								struct rv_errtext *et);
enum rv_err __wrap_global_apply(struct global_state *g, const uint8_t *reduced, const struct rv_hash *digest,
								struct rv_errtext *et);

static void flip_a_bit(struct global_state *g) {
	uint32_t bits;
	float *at = &g->theta[g->cfg.n / 2];
	memcpy(&bits, at, sizeof bits);
	bits ^= 1u << 20;
	memcpy(at, &bits, sizeof bits);
	printf("{\"t\": 0, \"event\": \"flipped\", \"round\": %llu}\n", (unsigned long long)g->round);
	fflush(stdout);
}

enum rv_err __wrap_global_apply(struct global_state *g, const uint8_t *reduced, const struct rv_hash *digest,
								struct rv_errtext *et) {
	static bool flipped; /* applying is one thread's work */
	unsigned long long round;
	const char *when = getenv("RIVULET_FLIP");
	enum rv_err e = __real_global_apply(g, reduced, digest, et);
	if (e != RV_OK || flipped || !when || sscanf(when, "%llu", &round) != 1 || g->round != round)
		return e;
	flipped = true;
	flip_a_bit(g);
	return RV_OK;
}
