/* line_meter.h: measures the bandwidth of this worker's line by the bytes of its all-reduces.
 *
 * The meter takes, in each direction, the fastest second of an all-reduce, or the whole of a
 * shorter one. Bytes count when they have arrived: what sockets and the router's queue swallow is
 * no rate of the line. A line that was not the bottleneck carried less than it can, in an
 * all-reduce with a slow member above all: so of the last few all-reduces the second largest value
 * counts, and one outlier does not. It is a lower bound, and grows once the line has more to carry
 * (each round sends and receives at least a whole vector, whatever the worker owns). Pure
 * arithmetic; the caller brings the time and its counters. */
#ifndef RV_WORKER_MESH_LINE_METER_H
#define RV_WORKER_MESH_LINE_METER_H

#include <stdbool.h>
#include <stdint.h>

enum { LINE_METER_ROUNDS = 5 };

struct line_counts {
	/* Since the start of the process: acknowledged by the other ends, and read. */
	uint64_t tx_bytes, rx_bytes;
};

/* One direction. */
struct line_way {
	uint64_t began, window;             /* bytes at began_us and window_us */
	uint64_t best;                      /* bytes per second, in the all-reduce under way */
	uint64_t rounds[LINE_METER_ROUNDS]; /* of the last all-reduces, latest first; 0: none */
};
/* A zeroed struct has measured nothing yet. */
struct line_meter {
	bool running;
	int64_t began_us, window_us;
	struct line_way up, down;
};

/* Marks the begin of an all-reduce; does nothing if one is under way. */
void line_meter_begin(struct line_meter *m, int64_t now_us, struct line_counts at);
/* Takes a sample; to be called at least every few hundred milliseconds while the all-reduce
 * runs. */
void line_meter_sample(struct line_meter *m, int64_t now_us, struct line_counts at);
/* Marks the end. An all-reduce that moved next to nothing is not counted. */
void line_meter_end(struct line_meter *m, int64_t now_us, struct line_counts at);

/* Return bytes per second, at most the cap (0: no cap); 0: not known. */
uint64_t line_meter_up(const struct line_meter *m, int64_t cap_bytes_per_s);
uint64_t line_meter_down(const struct line_meter *m, int64_t cap_bytes_per_s);

#endif
