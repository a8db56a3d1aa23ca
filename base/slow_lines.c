/* slow_lines.c: see slow_lines.h. */
#include "base/slow_lines.h"

#include "base/assert.h"
#include "base/capped.h"
#include "base/clock.h"
#include "base/order.h"

static const uint64_t longest_us = INT64_MAX / 4;

/* Returns the microseconds that so many bytes take, rounded up. */
static uint64_t takes_us(uint64_t bytes, uint64_t rate) {
	uint64_t us = rv_add_capped(rv_mul_capped(bytes, RV_US_PER_S), rate - 1) / rate;
	return us < longest_us ? us : longest_us;
}

int64_t slow_lines_deadline_us(const struct slow_lines *s, const uint64_t *rates, int n) {
	int known = 0;
	for (int i = 0; i < n; i++)
		known += rates[i] != 0;
	if (known < 2)
		return INT64_MAX;
	if (s->deadline_us > 0)
		return s->deadline_us;
	uint64_t median = rv_nth_u64(rates, n, n - known + known / 2);
	uint64_t payload_us = takes_us(s->payload_bytes, median);
	uint64_t all_us = rv_mul_capped(payload_us, (uint64_t)(2 * (known - 1))) / (uint64_t)known;
	uint64_t least_us = rv_mul_capped(payload_us, 3) / 2; /* lines that are alike differ by less */
	all_us = all_us > least_us ? all_us : least_us;
	return (int64_t)(all_us < longest_us ? all_us : longest_us);
}

static uint32_t common_divisor(uint32_t a, uint32_t b) {
	while (b != 0) {
		uint32_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

int64_t slow_lines_takes_us(uint64_t bytes, uint64_t rate) {
	return rate > 0 ? (int64_t)takes_us(bytes, rate) : 0;
}

/* Returns how often the deadline fits into `own_us`, rounded up, 1 to SLOW_LINES_MOST; more, if
 * that has a divisor in common with the number of fragments. */
static uint32_t times(const struct slow_lines *s, uint64_t own_us, uint64_t deadline_us) {
	if (own_us <= deadline_us)
		return 1;
	uint64_t turns = deadline_us > 0 ? (own_us + deadline_us - 1) / deadline_us : SLOW_LINES_MOST;
	uint32_t k = turns < SLOW_LINES_MOST ? (uint32_t)turns : SLOW_LINES_MOST;
	while (s->fragments > 1 && common_divisor(k, s->fragments) != 1)
		k++;
	return k;
}

uint32_t slow_lines_every(const struct slow_lines *s, int64_t deadline_us, uint64_t rate) {
	RV_ASSERT(deadline_us >= 0);
	return times(s, (uint64_t)slow_lines_takes_us(s->payload_bytes, rate), (uint64_t)deadline_us);
}

/* Returns how long a member's contribution may take: the deadline, or as long as its mean does. */
static uint64_t limit_us(const struct slow_lines *s, int64_t deadline_us, struct slow_line line) {
	const int64_t mean_us = slow_lines_takes_us(s->mean_bytes, line.down);
	RV_ASSERT(deadline_us >= 0 && mean_us >= 0);
	return (uint64_t)(deadline_us > mean_us ? deadline_us : mean_us);
}

/* Returns true in two of 16 rounds, one after the other. */
static bool shows_uplink(uint32_t member, uint64_t round) {
	return (round / 2 + member) % 8 == 0;
}

static bool shows_downlink(uint32_t member, uint64_t round) {
	return round < SLOW_LINES_FIRST || shows_uplink(member, round);
}

/* Returns the first step by which a contribution takes no longer than that, or the last; -1: it
 * does by the run's codec. */
static int first_within(const struct slow_lines *s, uint64_t up, uint64_t limit) {
	int step = -1;
	RV_ASSERT(s->n_steps >= 0 && s->n_steps <= SLOW_LINES_STEPS);
	for (uint64_t bytes = s->sent_bytes; step + 1 < s->n_steps; bytes = s->step_bytes[step]) {
		if ((uint64_t)slow_lines_takes_us(bytes, up) <= limit)
			break;
		step++;
	}
	return step;
}

int slow_lines_step(const struct slow_lines *s, int64_t deadline_us, struct slow_line line, uint32_t member,
					uint64_t round) {
	const int step = first_within(s, line.up, limit_us(s, deadline_us, line));
	if (step < 0 && shows_downlink(member, round))
		return first_within(s, line.up, (uint64_t)deadline_us);
	return step >= 0 && shows_uplink(member, round) ? step - 1 : step;
}

/* Returns the largest number up to `k` and the number of chunks that has no divisor in common with
 * the number of fragments. */
static uint32_t within_chunks(const struct slow_lines *s, uint32_t k) {
	if (s->chunks == 0 || k <= s->chunks)
		return k;
	k = s->chunks;
	while (s->fragments > 1 && common_divisor(k, s->fragments) != 1)
		k--;
	return k;
}

uint8_t slow_lines_part(const struct slow_lines *s, int64_t deadline_us, struct slow_line line, uint32_t member,
						uint64_t round) {
	const uint64_t own_us = (uint64_t)slow_lines_takes_us(s->sent_bytes, line.up);
	const uint64_t limit = limit_us(s, deadline_us, line);
	uint32_t k = times(s, own_us, limit);
	if (k == 1 && shows_downlink(member, round))
		k = times(s, own_us, (uint64_t)deadline_us);
	else if (k > 1 && shows_uplink(member, round))
		k = times(s, own_us, rv_mul_capped(limit, 2));
	k = within_chunks(s, k);
	RV_ASSERT(k > 0);
	return k > 1 ? (uint8_t)k : 0;
}
