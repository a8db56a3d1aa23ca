/* line_meter.h: measures the bandwidth of this worker's line by the bytes of its all-reduces.
 *
 * The meter cuts an all-reduce into slices of some 50 ms and takes, in each direction, the rate of
 * the fastest slices that moved a third of its bytes, or of the fastest second, if that is more. So
 * time in which a line has nothing to carry does not count: before the first byte and after the
 * last, and while others are waited for. A peer that holds data back, or lets it trickle, hides the
 * line only if two thirds of the bytes are its own: those of a roster of four that owns twice its
 * share of the chunks are a half.
 *
 * Bytes count when they have arrived: what sockets and the router's queue swallow is no rate of the
 * line. A line that was not the bottleneck carried less than it can, in an all-reduce with a slow
 * member above all: so of the last few all-reduces the second largest value counts, and one outlier
 * does not. It is a lower bound, and grows once the line has more to carry (each round sends and
 * receives at least a whole vector, whatever the worker owns). Pure arithmetic; the caller brings
 * the time and its counters. */
#ifndef RV_WORKER_MESH_LINE_METER_H
#define RV_WORKER_MESH_LINE_METER_H

#include <stdbool.h>
#include <stdint.h>

enum { LINE_METER_ROUNDS = 5, LINE_METER_CLASSES = 128 };

struct line_counts {
	/* Since the start of the process: acknowledged by the other ends, and read. */
	uint64_t tx_bytes, rx_bytes;
};

/* Slices of about one rate, and what they moved. */
struct line_class {
	uint64_t bytes;
	int64_t us;
};

/* One direction. */
struct line_way {
	uint64_t window;            /* bytes at line_meter.window_us */
	uint64_t slice;             /* bytes at slice_us */
	int64_t slice_us, moved_us; /* begin of the slice; time when a byte last moved */
	uint64_t seen;              /* bytes at the last sample */
	uint64_t moved, best;       /* bytes in slices, and the fastest second, in the all-reduce under way */
	struct line_class classes[LINE_METER_CLASSES]; /* by rate: four to the factor of two */
	uint64_t rounds[LINE_METER_ROUNDS];            /* of the last all-reduces, latest first; 0: none */
};
/* A zeroed struct has measured nothing yet. */
struct line_meter {
	bool running;
	int64_t window_us;
	struct line_way up, down;
};

/* Marks the begin of an all-reduce; does nothing if one is under way. */
void line_meter_begin(struct line_meter *m, int64_t now_us, struct line_counts at);
/* Takes a sample; to be called whenever bytes may have moved, and at least every few hundred
 * milliseconds, while the all-reduce runs. */
void line_meter_sample(struct line_meter *m, int64_t now_us, struct line_counts at);
/* Marks the end. An all-reduce that moved next to nothing is not counted. */
void line_meter_end(struct line_meter *m, int64_t now_us, struct line_counts at);

/* Return bytes per second, at most the cap (0: no cap); 0: not known. */
uint64_t line_meter_up(const struct line_meter *m, int64_t cap_bytes_per_s);
uint64_t line_meter_down(const struct line_meter *m, int64_t cap_bytes_per_s);

#endif
