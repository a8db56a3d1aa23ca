/* lines.c: see lines.h. */
#include "lab/methods/lines.h"

#include "base/clock.h"
#include "base/option_value.h"
#include "base/slow_lines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool skips(const struct lab_config *c) {
	return c->lines[0] > 0 && c->run.slow_members == SLOW_SKIP;
}

void lines_leave_out(const struct lab_config *c, uint64_t round, uint64_t payload_bytes, bool *takes_part) {
	const struct slow_lines slow = {.payload_bytes = payload_bytes,
									.deadline_us = c->run.slow_deadline_ms * RV_US_PER_MS,
									.fragments = (uint32_t)c->run.fragments};
	uint64_t rates[LAB_MAX_WORKERS];
	bool stays[LAB_MAX_WORKERS];
	int n = 0;
	if (!skips(c))
		return;
	for (int i = 0; i < c->workers; i++)
		rates[i] = (uint64_t)c->lines[i];
	const int64_t deadline_us = slow_lines_deadline_us(&slow, rates, c->workers);
	for (int i = 0; i < c->workers; i++) {
		stays[i] = takes_part[i] && round % slow_lines_every(&slow, deadline_us, rates[i]) == 0;
		n += stays[i];
	}
	if (n >= c->run.min_workers)
		memcpy(takes_part, stays, (size_t)c->workers * sizeof stays[0]);
}

/* Returns the payloads that all of them own together when each is done by `ms`. */
static double owned_by(const double *payload_ms, int n, double ms) {
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += fmax(0, (ms / payload_ms[i] - 1) / (n - 2));
	return sum;
}

double lines_exchange_ms(const struct lab_config *c, uint64_t payload_bytes, const bool *takes_part) {
	enum { HALVINGS = 60 };
	double payload_ms[LAB_MAX_WORKERS], low = 0;
	int n = 0;
	for (int i = 0; i < c->workers && c->lines[0] > 0; i++) {
		if (!takes_part[i])
			continue;
		payload_ms[n] = (double)payload_bytes / (double)c->lines[i] * 1e3;
		low = fmax(low, payload_ms[n++]);
	}
	if (n <= 2)
		return n == 2 ? low : 0;
	double high = 2 * low;
	for (int i = 0; i < HALVINGS && owned_by(payload_ms, n, low) < 1; i++) {
		double middle = (low + high) / 2;
		if (owned_by(payload_ms, n, middle) < 1)
			low = middle;
		else
			high = middle;
	}
	return owned_by(payload_ms, n, low) < 1 ? high : low;
}

enum rv_err lines_parse(const char *text, int64_t lines[LAB_MAX_WORKERS], struct rv_errtext *et) {
	static const struct rv_option rate = {.name = "lines", .type = RV_OPT_RATE, .min = 1, .max = 1e12};
	char one[64];
	int n = 0;
	for (const char *at = text; *at;) {
		size_t length = strcspn(at, ":,");
		if (n == LAB_MAX_WORKERS)
			return rv_fail(et, RV_E_RANGE, "lines: more than %d values", LAB_MAX_WORKERS);
		(void)snprintf(one, sizeof one, "%.*s", (int)(length < sizeof one ? length : sizeof one - 1), at);
		RV_TRY(rv_option_value_parse(&rate, &lines[n], one, et));
		if (lines[n++] == 0)
			return rv_fail(et, RV_E_RANGE, "lines = %.80s: value %d is no rate; as in 100mbit:10mbit", text, n);
		at += length;
		if (*at && !*++at)
			return rv_fail(et, RV_E_INVALID, "lines = %.80s: value %d is missing", text, n + 1);
	}
	for (int i = n; i < LAB_MAX_WORKERS; i++)
		lines[i] = n > 0 ? lines[i % n] : 0;
	return RV_OK;
}
