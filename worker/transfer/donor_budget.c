/* donor_budget.c: a bucket for each member (worker/transfer/donor_budget.h). */
#include "worker/transfer/donor_budget.h"

#include "base/assert.h"

enum { STATES = 2 };
static const int64_t hour_us = INT64_C(3600) * 1000 * 1000;

struct donor_budget donor_budget_of(int64_t state_bytes, int64_t entry_bytes) {
	RV_ASSERT(state_bytes >= 0 && entry_bytes >= 0 && state_bytes <= INT64_MAX / STATES);
	return (struct donor_budget){.whole_bytes = STATES * state_bytes, .entry_bytes = entry_bytes};
}

/* Returns the bytes that came back since the budget was counted, at most a debt and all of it. */
static int64_t back_bytes(const struct donor_budget *b, int64_t passed_us, uint64_t rounds) {
	double back =
		(double)b->whole_bytes * ((double)passed_us / (double)hour_us) + (double)b->entry_bytes * (double)rounds;
	double most = 2 * (double)b->whole_bytes; /* a debt and all */
	return (int64_t)(back < most ? back : most);
}

int64_t donor_budget_left(struct donor_budget *b, int64_t now_us, uint64_t round, uint32_t member) {
	RV_ASSERT(member < NET_MAX_MEMBERS);
	if (b->whole_bytes == 0)
		return INT64_MAX;
	bool known = b->member[member].known;
	int64_t left = known ? b->member[member].left_bytes : b->whole_bytes;
	uint64_t then = b->member[member].counted_round;
	int64_t back = known ? back_bytes(b, now_us - b->member[member].counted_us, round > then ? round - then : 0) : 0;
	bool same_round = known && round == then;
	if (same_round && back == 0)
		return left; /* a part of a byte is not forgotten */
	left = left + back < b->whole_bytes ? left + back : b->whole_bytes;
	b->member[member].left_bytes = left;
	b->member[member].counted_us = now_us;
	b->member[member].counted_round = round;
	b->member[member].known = true;
	return left;
}

void donor_budget_charge(struct donor_budget *b, uint32_t member, size_t bytes) {
	RV_ASSERT(member < NET_MAX_MEMBERS);
	b->member[member].left_bytes -= b->whole_bytes > 0 ? (int64_t)bytes : 0;
}

int64_t donor_budget_ready_us(const struct donor_budget *b, uint32_t member) {
	RV_ASSERT(member < NET_MAX_MEMBERS);
	if (b->whole_bytes == 0 || !b->member[member].known || b->member[member].left_bytes > 0)
		return INT64_MIN;
	double lacks = (double)(1 - b->member[member].left_bytes);
	return b->member[member].counted_us + 1 + (int64_t)(lacks * (double)hour_us / (double)b->whole_bytes);
}
