/* line_meter.c: see line_meter.h. */
#include "worker/mesh/line_meter.h"

#include "base/clock.h"
#include "base/order.h"

#include <string.h>

enum {
	WINDOW_US = 1000 * RV_US_PER_MS, /* twenty times what a router's queue holds */
	SHORTEST_US = 20 * RV_US_PER_MS,
	LEAST_BYTES = 65536
};

static uint64_t rate(uint64_t bytes, int64_t us) {
	return (uint64_t)((double)bytes * 1e6 / (double)us);
}

static void begin(struct line_way *w, uint64_t bytes) {
	w->began = w->window = bytes;
	w->best = 0;
}

static void sample(struct line_way *w, uint64_t bytes, int64_t us) {
	uint64_t now = rate(bytes - w->window, us);
	w->best = now > w->best ? now : w->best;
	w->window = bytes;
}

static void end(struct line_way *w, uint64_t bytes, int64_t us) {
	uint64_t moved = bytes - w->began, whole = rate(moved, us), best = whole > w->best ? whole : w->best;
	if (moved < LEAST_BYTES || best == 0)
		return;
	memmove(&w->rounds[1], &w->rounds[0], (LINE_METER_ROUNDS - 1) * sizeof w->rounds[0]);
	w->rounds[0] = best;
}

void line_meter_begin(struct line_meter *m, int64_t now_us, struct line_counts at) {
	if (m->running)
		return;
	m->running = true;
	m->began_us = m->window_us = now_us;
	begin(&m->up, at.tx_bytes);
	begin(&m->down, at.rx_bytes);
}

void line_meter_sample(struct line_meter *m, int64_t now_us, struct line_counts at) {
	int64_t us = now_us - m->window_us;
	if (!m->running || us < WINDOW_US)
		return;
	sample(&m->up, at.tx_bytes, us);
	sample(&m->down, at.rx_bytes, us);
	m->window_us = now_us;
}

void line_meter_end(struct line_meter *m, int64_t now_us, struct line_counts at) {
	int64_t us = now_us - m->began_us;
	if (!m->running)
		return;
	line_meter_sample(m, now_us, at);
	m->running = false;
	if (us < SHORTEST_US)
		return;
	end(&m->up, at.tx_bytes, us);
	end(&m->down, at.rx_bytes, us);
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
