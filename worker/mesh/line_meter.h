/* line_meter.h: what this worker's line carries, measured on the bytes of its all-reduces.
 *
 * In an all-reduce the fastest window of some hundred milliseconds is taken, in each direction: what the line has
 * carried for so long it can carry. Of the last few all-reduces the median is reported, so that neither a moment of
 * luck nor one of disturbance counts for long. A line that was never the bottleneck has carried less than it can: the
 * value is a lower bound, and grows as soon as the line is given more to do (it sends and receives at least a whole
 * vector in every round, whatever it owns). Pure arithmetic; the caller brings the time and its counters. */
#ifndef RV_WORKER_MESH_LINE_METER_H
#define RV_WORKER_MESH_LINE_METER_H

#include <stdbool.h>
#include <stdint.h>

enum { LINE_METER_ROUNDS = 5 };

struct line_counts {
	uint64_t tx_bytes, rx_bytes; /* ever growing */
};

/* Zero: nothing measured yet. */
struct line_meter {
	bool running;
	int64_t began_us, window_us;
	struct line_counts began, window;                        /* at those times */
	uint64_t best_up, best_down;                             /* bytes per second, in the all-reduce under way */
	uint64_t up[LINE_METER_ROUNDS], down[LINE_METER_ROUNDS]; /* of the last ones, the latest first; 0: none */
};

/* The all-reduce begins; nothing when it is under way already. */
void line_meter_begin(struct line_meter *m, int64_t now_us, struct line_counts at);
/* Now and then while it runs: at least every few hundred milliseconds. */
void line_meter_sample(struct line_meter *m, int64_t now_us, struct line_counts at);
/* It ends. One that moved next to nothing tells nothing. */
void line_meter_end(struct line_meter *m, int64_t now_us, struct line_counts at);

/* Bytes per second, at most cap (0: no cap); 0: not known. */
uint64_t line_meter_up(const struct line_meter *m, int64_t cap_bytes_per_s);
uint64_t line_meter_down(const struct line_meter *m, int64_t cap_bytes_per_s);

#endif
