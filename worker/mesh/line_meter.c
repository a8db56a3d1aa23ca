/* line_meter.c: see line_meter.h. */
#include "worker/mesh/line_meter.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/order.h"

#include <string.h>

enum {
	WINDOW_US = 1000 * RV_US_PER_MS, /* twenty times what a router's queue holds */
	SLICE_US = 50 * RV_US_PER_MS,
	SHORTEST_US = 20 * RV_US_PER_MS,
	LEAST_BYTES = 65536,
	FASTEST_SHARE = 3
};

static uint64_t rate(uint64_t bytes, int64_t us) {
	RV_ASSERT(us > 0);
	return (uint64_t)((double)bytes * 1e6 / (double)us);
}

/* Returns the class of a rate: 4 log2, rounded down. */
static int class_of(uint64_t bytes_per_s) {
	enum { QUARTERS = 4, FINEST = 3 };
	if (bytes_per_s < QUARTERS)
		return 0;
	const int octave = 63 - __builtin_clzll(bytes_per_s);
	const int quarter = (int)(bytes_per_s >> (octave - 2) & FINEST); /* the two bits behind the first */
	const int of = QUARTERS * octave + quarter;
	return of < LINE_METER_CLASSES ? of : LINE_METER_CLASSES - 1;
}

/* ---- slices ---- */

static void begin_slice(struct line_way *w, int64_t now_us, uint64_t bytes) {
	w->slice = bytes;
	w->slice_us = w->moved_us = now_us;
}

static void end_slice(struct line_way *w, int64_t now_us, uint64_t bytes, int64_t us) {
	const uint64_t moved = bytes - w->slice;
	if (us >= SHORTEST_US) {
		struct line_class *of = &w->classes[class_of(rate(moved, us))];
		of->bytes += moved;
		of->us += us;
		w->moved += moved;
	}
	begin_slice(w, now_us, bytes);
}

/* Returns the rate of the fastest slices that moved so many bytes; 0: there are none. */
static uint64_t rate_of_fastest(const struct line_way *w, uint64_t bytes) {
	double left = (double)bytes, us = 0;
	for (int i = LINE_METER_CLASSES - 1; i >= 0 && left > 0; i--) {
		const struct line_class *of = &w->classes[i];
		const double part = of->bytes == 0 ? 0 : (double)of->bytes > left ? left / (double)of->bytes : 1;
		us += part * (double)of->us;
		left -= part * (double)of->bytes;
	}
	return us > 0 ? (uint64_t)((double)bytes * 1e6 / us) : 0;
}

/* ---- an all-reduce ---- */

static void begin(struct line_way *w, int64_t now_us, uint64_t bytes) {
	w->window = w->seen = bytes;
	w->moved = w->best = 0;
	memset(w->classes, 0, sizeof w->classes);
	begin_slice(w, now_us, bytes);
}

/* A slice begins with the last sample before its first byte. */
static void sample(struct line_way *w, int64_t now_us, uint64_t bytes) {
	if (bytes != w->seen)
		w->moved_us = now_us;
	w->seen = bytes;
	if (bytes == w->slice)
		begin_slice(w, now_us, bytes);
	else if (now_us - w->slice_us >= SLICE_US)
		end_slice(w, now_us, bytes, now_us - w->slice_us);
}

static void end_window(struct line_way *w, uint64_t bytes, int64_t us) {
	const uint64_t now = rate(bytes - w->window, us);
	w->best = now > w->best ? now : w->best;
	w->window = bytes;
}

static void end(struct line_way *w, int64_t now_us, uint64_t bytes) {
	sample(w, now_us, bytes);
	end_slice(w, now_us, bytes, w->moved_us - w->slice_us);
	const uint64_t fastest = rate_of_fastest(w, w->moved / FASTEST_SHARE), best = fastest > w->best ? fastest : w->best;
	if (w->moved < LEAST_BYTES || best == 0)
		return;
	memmove(&w->rounds[1], &w->rounds[0], (LINE_METER_ROUNDS - 1) * sizeof w->rounds[0]);
	w->rounds[0] = best;
}

void line_meter_begin(struct line_meter *m, int64_t now_us, struct line_counts at) {
	if (m->running)
		return;
	m->running = true;
	m->window_us = now_us;
	begin(&m->up, now_us, at.tx_bytes);
	begin(&m->down, now_us, at.rx_bytes);
}

void line_meter_sample(struct line_meter *m, int64_t now_us, struct line_counts at) {
	const int64_t us = now_us - m->window_us;
	if (!m->running)
		return;
	sample(&m->up, now_us, at.tx_bytes);
	sample(&m->down, now_us, at.rx_bytes);
	if (us < WINDOW_US)
		return;
	end_window(&m->up, at.tx_bytes, us);
	end_window(&m->down, at.rx_bytes, us);
	m->window_us = now_us;
}

void line_meter_end(struct line_meter *m, int64_t now_us, struct line_counts at) {
	if (!m->running)
		return;
	line_meter_sample(m, now_us, at);
	m->running = false;
	end(&m->up, now_us, at.tx_bytes);
	end(&m->down, now_us, at.rx_bytes);
}

/* Returns the second largest, of fewer than three the largest. Those that are not there yet
 * are 0. */
static uint64_t capped_rate(const struct line_way *w, int64_t cap_bytes_per_s) {
	int n = 0;
	for (int i = 0; i < LINE_METER_ROUNDS; i++)
		n += w->rounds[i] != 0;
	uint64_t v = rv_nth_u64(w->rounds, LINE_METER_ROUNDS, LINE_METER_ROUNDS - (n < 3 ? 1 : 2));
	return cap_bytes_per_s > 0 && v > (uint64_t)cap_bytes_per_s ? (uint64_t)cap_bytes_per_s : v;
}

uint64_t line_meter_up(const struct line_meter *m, int64_t cap_bytes_per_s) {
	return capped_rate(&m->up, cap_bytes_per_s);
}

uint64_t line_meter_down(const struct line_meter *m, int64_t cap_bytes_per_s) {
	return capped_rate(&m->down, cap_bytes_per_s);
}
