/* receipts.c: see receipts.h. */
#include "worker/mesh/receipts.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/order.h"

#include <string.h>

enum { LEAST_BYTES = 65536, LEAST_US = 100 * RV_US_PER_MS };

static void drop(struct receipts *r, int at) {
	r->n--;
	memmove(&r->of[at], &r->of[at + 1], (size_t)(r->n - at) * sizeof r->of[0]);
}

static int find_oldest(const struct receipts *r) {
	int oldest = 0;
	for (int i = 1; i < r->n; i++)
		if (r->of[i].exchange < r->of[oldest].exchange)
			oldest = i;
	return oldest;
}

/* Returns the place of the member's entry, or the one that it would have. */
static int place_of(const struct receipts *r, uint32_t member) {
	int at = 0;
	while (at < r->n && r->of[at].member < member)
		at++;
	return at;
}

/* Returns the member's entry; a new one if it has none. */
static struct receipts_of *entry_of(struct receipts *r, uint32_t member) {
	int at = place_of(r, member);
	if (at < r->n && r->of[at].member == member)
		return &r->of[at];
	if (r->n == NET_MAX_ROW) {
		const int oldest = find_oldest(r);
		drop(r, oldest);
		at -= oldest < at;
	}
	memmove(&r->of[at + 1], &r->of[at], (size_t)(r->n - at) * sizeof r->of[0]);
	r->of[at] = (struct receipts_of){.member = member};
	r->n++;
	RV_ASSERT(r->n <= NET_MAX_ROW);
	return &r->of[at];
}

/* Returns the second largest, of fewer than three the largest. */
static uint64_t rate_of(const struct receipts_of *of) {
	int n = 0;
	for (int i = 0; i < RECEIPTS_ROUNDS; i++)
		n += of->rates[i] != 0;
	RV_ASSERT(n > 0);
	return rv_nth_u64(of->rates, RECEIPTS_ROUNDS, RECEIPTS_ROUNDS - (n < 3 ? 1 : 2));
}

/* Returns true if the member counts with a lower rate. */
static bool is_slower(const struct receipts *r, uint32_t member, uint64_t rate) {
	const int at = place_of(r, member);
	return at < r->n && r->of[at].member == member && rate_of(&r->of[at]) < rate;
}

static void note(struct receipts *r, const struct reduce_receipt *list, int n, uint64_t least_bytes, int64_t least_us) {
	r->exchange++;
	for (int i = 0; i < n; i++) {
		const bool instant = list[i].us < least_us;
		const int64_t us = instant ? least_us : list[i].us;
		const uint64_t rate = 1 + (uint64_t)((double)list[i].bytes * 1e6 / (double)us);
		if (list[i].bytes < least_bytes || (instant && !is_slower(r, list[i].member, rate)))
			continue;
		struct receipts_of *of = entry_of(r, list[i].member);
		memmove(&of->rates[1], &of->rates[0], (RECEIPTS_ROUNDS - 1) * sizeof of->rates[0]);
		of->rates[0] = rate;
		of->exchange = r->exchange;
	}
}

void receipts_note(struct receipts *r, const struct reduce_receipt *list, int n) {
	note(r, list, n, LEAST_BYTES, LEAST_US);
}

void receipts_note_all(struct receipts *r, const struct reduce_receipt *list, int n) {
	note(r, list, n, 1, 1);
}

void receipts_report(const struct receipts *r, struct report *out) {
	out->n_receipts = (uint8_t)r->n;
	for (int i = 0; i < r->n; i++)
		out->receipts[i] = (struct report_receipt){.member = r->of[i].member, .band = receipt_band(rate_of(&r->of[i]))};
}
