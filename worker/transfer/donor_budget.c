/* donor_budget.c: a bucket for each member (worker/transfer/donor_budget.h). */
#include "worker/transfer/donor_budget.h"

#include "base/assert.h"
#include "base/planted.h"

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

static struct donor_account *find(struct donor_budget *b, uint32_t member) {
	for (int i = 0; i < b->n; i++)
		if (b->accounts[i].member == member)
			return &b->accounts[i];
	return NULL;
}

/* Returns what came back since the account was counted. */
static int64_t back_now(const struct donor_budget *b, const struct donor_account *a, int64_t now_us, uint64_t round) {
	return back_bytes(b, now_us - a->counted_us, round > a->counted_round ? round - a->counted_round : 0);
}

static int64_t left_now(const struct donor_budget *b, const struct donor_account *a, int64_t now_us, uint64_t round) {
	int64_t left = a->left_bytes + back_now(b, a, now_us, round);
	return left < b->whole_bytes ? left : b->whole_bytes;
}

/* Returns an account for another member: that of the one of whose budget most is left, if none is
 * free. */
static struct donor_account *take_account(struct donor_budget *b, int64_t now_us, uint64_t round) {
	if (b->n < NET_MAX_PEERS)
		return &b->accounts[b->n++];
	struct donor_account *most = &b->accounts[0];
	for (int i = 1; i < b->n; i++)
		if (left_now(b, &b->accounts[i], now_us, round) > left_now(b, most, now_us, round))
			most = &b->accounts[i];
	return most;
}

int64_t donor_budget_left(struct donor_budget *b, int64_t now_us, uint64_t round, uint32_t member) {
	if (b->whole_bytes == 0 || RV_BUG("give-without-end"))
		return INT64_MAX;
	struct donor_account *a = find(b, member);
	if (a == NULL) {
		a = take_account(b, now_us, round);
		*a = (struct donor_account){member, b->whole_bytes, now_us, round};
		return b->whole_bytes;
	}
	if (round == a->counted_round && back_now(b, a, now_us, round) == 0)
		return a->left_bytes; /* a part of a byte is not forgotten */
	*a = (struct donor_account){member, left_now(b, a, now_us, round), now_us, round};
	return a->left_bytes;
}

void donor_budget_charge(struct donor_budget *b, uint32_t member, size_t bytes) {
	struct donor_account *a = b->whole_bytes > 0 ? find(b, member) : NULL;
	if (a != NULL)
		a->left_bytes -= (int64_t)bytes;
}

int64_t donor_budget_ready_us(struct donor_budget *b, uint32_t member) {
	const struct donor_account *a = b->whole_bytes > 0 ? find(b, member) : NULL;
	if (a == NULL || a->left_bytes > 0)
		return INT64_MIN;
	double lacks = (double)(1 - a->left_bytes);
	return a->counted_us + 1 + (int64_t)(lacks * (double)hour_us / (double)b->whole_bytes);
}
