/* failpoint_worker.c: the real worker, with one difference made by the linker (--wrap=reduce_send): with
 * RIVULET_FAILPOINT=ROUND:MESSAGES it stops dead after so many chunk messages of its first all-reduce in that round or
 * a later one, for the test to kill or freeze it there. */
#include "net/reduce.h"

#include <stdio.h>
#include <stdlib.h>
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
