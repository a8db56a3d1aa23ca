/* text_turns.c: see text_turns.h. */
#include "coordinator/web/text_turns.h"

#include "base/assert.h"
#include "base/planted.h"

#include <string.h>

enum { BURST_PARTS = 4 };

void text_turns_init(struct text_turns *t, int64_t bytes_per_s) {
	*t = (struct text_turns){.n = 0};
	if (bytes_per_s > 0)
		t->limit = (struct gcra){.each_us = (int64_t)((double)TEXT_PART_BYTES * 1e6 / (double)bytes_per_s),
								 .burst = BURST_PARTS};
	TAILQ_INIT(&t->list);
}

static int count_of(const struct text_turns *t, const uint8_t key[NET_KEY_BYTES]) {
	const struct text_turn *turn;
	int n = 0;
	TAILQ_FOREACH(turn, &t->list, link) {
		n += memcmp(turn->key, key, NET_KEY_BYTES) == 0;
	}
	return n;
}

bool text_turns_admits(const struct text_turns *t, const uint8_t key[NET_KEY_BYTES]) {
	return t->n < TEXT_REPLIES_MAX && count_of(t, key) < TEXT_REPLIES_PER_MEMBER;
}

void text_turns_add(struct text_turns *t, struct text_turn *turn, const uint8_t key[NET_KEY_BYTES]) {
	memcpy(turn->key, key, sizeof turn->key);
	turn->number = ++t->last_number;
	turn->leaves = false;
	TAILQ_INSERT_TAIL(&t->list, turn, link);
	t->n++;
}

void text_turns_remove(struct text_turns *t, struct text_turn *turn) {
	RV_ASSERT(t->n > 0);
	TAILQ_REMOVE(&t->list, turn, link);
	t->n--;
}

/* Returns true if an older request of the same member is under way: it comes first. */
static bool waits_for_another(const struct text_turns *t, const struct text_turn *turn) {
	const struct text_turn *o;
	TAILQ_FOREACH(o, &t->list, link) {
		if (o->number < turn->number && memcmp(o->key, turn->key, sizeof o->key) == 0)
			return true;
	}
	return false;
}

static struct text_turn *latest_that_waits(const struct text_turns *t) {
	struct text_turn *turn, *latest = NULL;
	TAILQ_FOREACH(turn, &t->list, link) {
		if (!turn->leaves && waits_for_another(t, turn) && (!latest || turn->number > latest->number))
			latest = turn;
	}
	return latest;
}

static struct text_turn *slowest(const struct text_turns *t, int64_t now_us) {
	struct text_turn *turn, *slow = NULL;
	TAILQ_FOREACH(turn, &t->list, link) {
		if (turn->leaves && now_us - turn->sent_us >= TEXT_SLOW_US && (!slow || turn->sent_us < slow->sent_us))
			slow = turn;
	}
	return slow;
}

struct text_turn *text_turns_gives_way(const struct text_turns *t, const uint8_t key[NET_KEY_BYTES], int64_t now_us) {
	if (t->n < TEXT_REPLIES_MAX || count_of(t, key) > 0)
		return NULL;
	struct text_turn *turn = latest_that_waits(t);
	return turn ? turn : slowest(t, now_us);
}

struct text_turn *text_turns_next(const struct text_turns *t,
								  bool (*may)(const void *ctx, const struct text_turn *turn), const void *ctx) {
	struct text_turn *turn;
	TAILQ_FOREACH(turn, &t->list, link) {
		if (!turn->leaves && !waits_for_another(t, turn) && may(ctx, turn))
			return turn;
	}
	return NULL;
}

int64_t text_turns_ready_us(const struct text_turns *t) {
	return t->limit.each_us > 0 ? gcra_ready_us(&t->limit, t->paid_until_us) : 0;
}

void text_turns_sent(struct text_turns *t, struct text_turn *turn, int64_t now_us) {
	turn->leaves = true;
	turn->sent_us = now_us;
	if (t->limit.each_us > 0 && !RV_BUG("text-uncharged"))
		gcra_count(&t->limit, &t->paid_until_us, now_us);
	TAILQ_REMOVE(&t->list, turn, link);
	TAILQ_INSERT_TAIL(&t->list, turn, link);
}
