/* rate.c: the token bucket (net/mesh/rate.h). */
#include "net/mesh/rate.h"

#include "base/assert.h"

enum {
	SCALE = 1000 * 1000, /* tokens per byte: what 1 byte/s brings in a second */
	SEGMENT_BYTES = 1448,
	FRAME_BYTES = 1500, /* what a full packet carries, and what it takes of the line */
	USEFUL_SHARE = 4,   /* of the depth */
	USEFUL_MAX_BYTES = 1 << 16
};
static const int64_t longest_gap_us = 100 * (int64_t)SCALE; /* times the largest rate it still fits in 63 bits */

static int64_t depth(const struct rate *r) {
	int64_t share = r->bytes_per_s * RATE_DEPTH_US, least = 2 * (int64_t)FRAME_BYTES * SCALE;
	return share > least ? share : least;
}

static int64_t useful(const struct rate *r) {
	int64_t share = depth(r) / USEFUL_SHARE, least = (int64_t)FRAME_BYTES * SCALE;
	int64_t most = (int64_t)USEFUL_MAX_BYTES * SCALE;
	return share < least ? least : share < most ? share : most;
}

struct rate rate_of(int64_t bytes_per_s, int64_t now_us) {
	RV_ASSERT(bytes_per_s >= 0 && bytes_per_s <= RATE_MAX_BYTES_PER_S);
	struct rate r = {.bytes_per_s = bytes_per_s, .at_us = now_us};
	r.tokens = rate_is_capped(&r) ? depth(&r) : 0;
	return r;
}

static void refill(struct rate *r, int64_t now_us) {
	int64_t gap_us = now_us - r->at_us;
	if (gap_us <= 0)
		return;
	if (gap_us > longest_gap_us)
		gap_us = longest_gap_us;
	r->at_us = now_us;
	r->tokens += r->bytes_per_s * gap_us;
	if (r->tokens > depth(r))
		r->tokens = depth(r);
}

size_t rate_allowed(struct rate *r, int64_t now_us) {
	if (!rate_is_capped(r))
		return SIZE_MAX;
	refill(r, now_us);
	if (r->tokens < useful(r))
		return 0;
	return (size_t)(r->tokens / SCALE * SEGMENT_BYTES / FRAME_BYTES);
}

void rate_charge(struct rate *r, size_t n) {
	if (rate_is_capped(r))
		r->tokens -= (int64_t)n * FRAME_BYTES / SEGMENT_BYTES * SCALE;
}

int64_t rate_ready_us(const struct rate *r) {
	if (!rate_is_capped(r) || r->tokens >= useful(r))
		return INT64_MIN;
	return r->at_us + (useful(r) - r->tokens + r->bytes_per_s - 1) / r->bytes_per_s;
}
