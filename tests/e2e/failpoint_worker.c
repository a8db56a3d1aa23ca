/* failpoint_worker.c: the real worker, with what goes wrong put in by the linker (--wrap). It exists for tests only.
 *
 * RIVULET_FAILPOINT=ROUND:MESSAGES (reduce_send): it stops dead after so many chunk messages of its first all-reduce in
 * that round or a later one, for the test to kill or freeze it there.
 * RIVULET_FLIP=ROUND (global_apply): one bit of theta flips, once, as soon as it holds the state of that round. */
#include "net/reduce.h"
#include "outer/global.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool __real_reduce_send(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out);
bool __wrap_reduce_send(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out);

static void stop_here(uint64_t round) {
	printf("{\"t\": 0, \"event\": \"failpoint\", \"round\": %llu}\n", (unsigned long long)round);
	fflush(stdout);
	for (;;)
		pause();
}

bool __wrap_reduce_send(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out) {
	static unsigned long long sent, of_round;
	unsigned long long round, messages;
	const char *where = getenv("RIVULET_FAILPOINT");
	bool any = __real_reduce_send(r, now_us, to, out);
	if (!any || !where || sscanf(where, "%llu:%llu", &round, &messages) != 2 || out->round < round)
		return any;
	if (out->round != of_round)
		sent = 0;
	of_round = out->round;
	if ((out->type == REDUCE_SCATTER || out->type == REDUCE_GATHER) && ++sent > messages)
		stop_here(out->round);
	return any;
}

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
