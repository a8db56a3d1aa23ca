/* line_meter.c: see line_meter.h. */
#include "worker/mesh/line_meter.h"

#include "base/clock.h"
#include "base/order.h"

#include <string.h>

enum {
	WINDOW_US = 250 * RV_US_PER_MS, /* socket buffers empty and fill in less */
	SHORTEST_US = 20 * RV_US_PER_MS,
	LEAST_BYTES = 65536
};

void line_meter_begin(struct line_meter *m, int64_t now_us, struct line_counts at) {
	if (m->running)
		return;
	m->running = true;
	m->began_us = m->window_us = now_us;
	m->began = m->window = at;
	m->best_up = m->best_down = 0;
}

static uint64_t rate(uint64_t bytes, int64_t us) {
	return (uint64_t)((double)bytes * 1e6 / (double)us);
}

static uint64_t larger(uint64_t a, uint64_t b) {
	return a > b ? a : b;
}

void line_meter_sample(struct line_meter *m, int64_t now_us, struct line_counts at) {
	int64_t us = now_us - m->window_us;
	if (!m->running || us < WINDOW_US)
		return;
	m->best_up = larger(m->best_up, rate(at.tx_bytes - m->window.tx_bytes, us));
	m->best_down = larger(m->best_down, rate(at.rx_bytes - m->window.rx_bytes, us));
	m->window_us = now_us;
	m->window = at;
}

static void remember(uint64_t values[LINE_METER_ROUNDS], uint64_t v) {
	if (v == 0)
		return;
	memmove(&values[1], &values[0], (LINE_METER_ROUNDS - 1) * sizeof values[0]);
	values[0] = v;
}

void line_meter_end(struct line_meter *m, int64_t now_us, struct line_counts at) {
	if (!m->running)
		return;
	line_meter_sample(m, now_us, at);
	m->running = false;
	int64_t us = now_us - m->began_us;
	uint64_t tx = at.tx_bytes - m->began.tx_bytes, rx = at.rx_bytes - m->began.rx_bytes;
	if (us < SHORTEST_US)
		return;
	if (tx >= LEAST_BYTES)
		remember(m->up, larger(m->best_up, rate(tx, us)));
	if (rx >= LEAST_BYTES)
		remember(m->down, larger(m->best_down, rate(rx, us)));
}

/* Of an even number the larger one of the two in the middle. Those that are not there yet are 0. */
static uint64_t median(const uint64_t values[LINE_METER_ROUNDS]) {
	int n = 0;
	for (int i = 0; i < LINE_METER_ROUNDS; i++)
		n += values[i] != 0;
	return n > 0 ? rv_nth_u64(values, LINE_METER_ROUNDS, LINE_METER_ROUNDS - n + n / 2) : 0;
}

static uint64_t capped(uint64_t v, int64_t cap_bytes_per_s) {
	return cap_bytes_per_s > 0 && v > (uint64_t)cap_bytes_per_s ? (uint64_t)cap_bytes_per_s : v;
}

uint64_t line_meter_up(const struct line_meter *m, int64_t cap_bytes_per_s) {
	return capped(median(m->up), cap_bytes_per_s);
}

uint64_t line_meter_down(const struct line_meter *m, int64_t cap_bytes_per_s) {
	return capped(median(m->down), cap_bytes_per_s);
}
