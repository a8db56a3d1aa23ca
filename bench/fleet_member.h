/* fleet_member.h: a fake member: everything that a worker says to its coordinator, without
 * training, peers and files. It joins, follows documents with the worker's own client
 * (worker/join/control_client.h), "trains" and "averages" for random times, and reports at every
 * change and every heartbeat; all members vote alike. Single-threaded. */
#ifndef RV_BENCH_FLEET_MEMBER_H
#define RV_BENCH_FLEET_MEMBER_H

#include "bench/fleet_lines.h"
#include "net/invite.h"

/* The times of a phase: `least`, and up to `more` in addition, drawn for each round. */
struct fleet_pace {
	int64_t least_us, more_us;
};

struct fleet_plan {
	struct fleet_pace train, average;
	uint64_t first_round, end_round; /* traffic is counted from the first round until before this one */
	uint64_t seed;
	void (*on_joined)(void); /* a member has the answer to its join */
};

struct fleet_member;

/* Makes a member and lets it join; it goes on from `base`'s events. Borrows `plan` and `invite`. */
enum rv_err fleet_member_new(struct event_base *base, const struct invite *invite, const struct fleet_plan *plan,
							 uint32_t index, struct fleet_member **out, struct rv_errtext *et);
void fleet_member_free(struct fleet_member *m); /* NULL is fine */
/* Returns the traffic of the rounds of the plan, as far as they have passed. */
struct fleet_traffic fleet_member_traffic(const struct fleet_member *m);

#endif
