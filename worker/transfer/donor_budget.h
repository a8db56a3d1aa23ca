/* donor_budget.h: how much of the run's state one member may be given.
 *
 * A member needs a snapshot and the log after it once, and one log entry for each round that it was
 * not part of. So each member has a budget of twice the former, which comes back within an hour,
 * and one log entry more per round: a joiner whose process is killed now and then never meets the
 * limit, and a member that keeps fetching gets no more. Budgets of the NET_MAX_PEERS members that
 * were given most are remembered; all others have a full one. No I/O, no clock, no allocation.
 * One thread. */
#ifndef RV_WORKER_TRANSFER_DONOR_BUDGET_H
#define RV_WORKER_TRANSFER_DONOR_BUDGET_H

#include "net/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rest of one member's budget. */
struct donor_account {
	uint32_t member;
	int64_t left_bytes; /* at counted_us and counted_round; negative: a debt of the last slice */
	int64_t counted_us;
	uint64_t counted_round;
};

struct donor_budget {
	int64_t whole_bytes; /* full budget of each member; 0: no limit */
	int64_t entry_bytes; /* bytes that come back per round */
	int n;
	struct donor_account accounts[NET_MAX_PEERS]; /* of the other members all is left */
};

/* Returns full budgets. `state_bytes`: a snapshot and the log entries up to the next one; 0: no
 * limit. */
struct donor_budget donor_budget_of(int64_t state_bytes, int64_t entry_bytes);
/* Returns how many bytes `member` may be given now, while `round` is open; INT64_MAX: no limit. */
int64_t donor_budget_left(struct donor_budget *b, int64_t now_us, uint64_t round, uint32_t member);
/* Takes `bytes` from the budget of `member`, which may become negative; donor_budget_left was
 * called for it before. */
void donor_budget_charge(struct donor_budget *b, uint32_t member, size_t bytes);
/* Returns when something will be left if no round ends before; INT64_MIN: something is left, as of
 * the latest call. */
int64_t donor_budget_ready_us(struct donor_budget *b, uint32_t member);

#endif
