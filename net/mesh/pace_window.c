/* pace_window.c: see pace_window.h. */
#include "net/mesh/pace_window.h"

enum {
	FIRST_US = 50 * 1000,   /* an interval at the beginning, when the rate may double from one to the next */
	LATER_US = 500 * 1000,  /* then: acknowledgements come in bunches, slices in turns */
	OPENING_US = 10 * 1000, /* of the line: what may leave at once after a pause */
	US_PER_S = 1000 * 1000
};
static const double grows = 1.25;   /* from one interval to the next, at the beginning */
static const double opens = 1.25;   /* times the line's rate, after a pause */
static const double keeps = 0.9;    /* of an earlier rate, for each full interval that did not reach it */
static const double catches_up = 2; /* a link below its fair share, in one interval */
static const double most_bytes = 1e12;

static void begin(struct pace_flow *f, int64_t now_us, uint64_t delivered) {
	f->since_us = now_us;
	f->since_bytes = delivered;
	f->held = false;
}

void pace_flow_measure(struct pace_flow *f, int64_t now_us, uint64_t delivered, int64_t least_rtt_us) {
	if (f->since_us == 0 || delivered < f->since_bytes) {
		begin(f, now_us, delivered);
		return;
	}
	int64_t us = now_us - f->since_us, least_us = pace_is_found(f) ? LATER_US : FIRST_US;
	if (us < least_us || us < least_rtt_us)
		return;
	double now = (double)(delivered - f->since_bytes) * US_PER_S / (double)us;
	if (f->flat == PACE_FLAT && f->held) { /* the first long interval: short ones saw bursts */
		f->bytes_per_s = now;
		f->flat++;
	}
	if (!pace_is_found(f) && f->held)
		f->flat = now < f->bytes_per_s * grows ? f->flat + 1 : 0;
	double least = f->held ? f->bytes_per_s * keeps : f->bytes_per_s;
	f->bytes_per_s = now > least ? now : least;
	begin(f, now_us, delivered);
}

static size_t whole(double bytes, size_t least) {
	return bytes < (double)least ? least : bytes < most_bytes ? (size_t)bytes : (size_t)most_bytes;
}

static size_t window(const struct pace_flow *f, double bytes_per_s, int64_t least_rtt_us) {
	double queue_us = PACE_QUEUE_US, rtt_us = (double)least_rtt_us;
	if (!pace_is_found(f) && queue_us < 2 * rtt_us)
		queue_us = 2 * rtt_us;
	return whole(bytes_per_s * (rtt_us + queue_us) / US_PER_S + PACE_EXTRA_BYTES, PACE_EXTRA_BYTES);
}

size_t pace_flow_window(const struct pace_flow *all, int64_t least_rtt_us) {
	return window(all, all->bytes_per_s, least_rtt_us);
}

size_t pace_opening_window(const struct pace_flow *all, int64_t us) {
	if (!pace_is_found(all))
		return SIZE_MAX;
	const double lead_us = OPENING_US + opens * (double)us;
	return whole(all->bytes_per_s * lead_us / US_PER_S + PACE_EXTRA_BYTES, PACE_EXTRA_BYTES);
}

size_t pace_link_window(const struct pace_flow *link, const struct pace_flow *all, int n_busy, int64_t least_rtt_us) {
	double rate = link->bytes_per_s, fair = all->bytes_per_s / (n_busy > 0 ? n_busy : 1);
	double most = fair < catches_up * rate ? fair : catches_up * rate;
	return window(link, rate > most ? rate : most, least_rtt_us);
}

size_t pace_slice_bytes(const struct pace_flow *all, const struct pace_flow *link) {
	double theirs = link->bytes_per_s * PACE_SENDERS;
	return whole((theirs < all->bytes_per_s ? theirs : all->bytes_per_s) * PACE_SLICE_US / US_PER_S,
				 PACE_SLICE_LEAST_BYTES);
}

bool pace_is_slow(const struct pace_flow *all, bool was) {
	return pace_is_found(all) && all->bytes_per_s < (was ? PACE_FAST_BYTES_PER_S : PACE_SLOW_BYTES_PER_S);
}
