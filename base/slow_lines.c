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

uint32_t slow_lines_every(const struct slow_lines *s, int64_t deadline_us, uint64_t rate) {
	RV_ASSERT(deadline_us >= 0);
	uint64_t own_us = rate > 0 ? takes_us(s->payload_bytes, rate) : 0, deadline = (uint64_t)deadline_us;
	if (own_us <= deadline)
		return 1;
	uint64_t turns = deadline > 0 ? (own_us + deadline - 1) / deadline : SLOW_LINES_MOST;
	uint32_t every = turns < SLOW_LINES_MOST ? (uint32_t)turns : SLOW_LINES_MOST;
	while (s->fragments > 1 && common_divisor(every, s->fragments) != 1)
		every++;
	return every;
}
