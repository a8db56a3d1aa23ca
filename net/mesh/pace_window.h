/* pace_window.h: how much bulk may be on its way: a rule without sockets and clocks. Internal to
 * net/.
 *
 * A flow (a link, or all links of a worker together: its line) has a window: its recently delivered
 * bytes per second, times the shortest round trip and PACE_QUEUE_US. So the queues on the way, the
 * router's above all, hold little more than PACE_QUEUE_US of it, and later bytes wait no longer
 * than that: the delay-based idea of Vegas and LEDBAT (RFC 6817), with the rate measured as in BBR
 * (Cardwell et al., 2016). While the queue is shorter than that, a full window delivers more than
 * the rate it was made of, and so grows until the line is full: no other probing is needed. At the
 * beginning, until the rate is found, a window may have two round trips of queue, so that long
 * lines are filled soon.
 *
 * Windows made of rates alone would keep whatever shares there are: of a queue that several links
 * pass, each gets a part as large as its window. So a link below its fair share of the line has the
 * window of that share, but of no more than twice its own rate: the receiver may be slow.
 *
 * A link to a slow receiver fills its own window and is skipped; if the worker's own line is slow,
 * it fills the window of all. Queues of acknowledgements count too: they look the same from
 * here. */
#ifndef RV_NET_MESH_PACE_WINDOW_H
#define RV_NET_MESH_PACE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PACE_QUEUE_US = 60 * 1000,
	PACE_FLAT = 3,
	PACE_SLICE_US = 30 * 1000,        /* time on the line that control may have to wait for */
	PACE_SLICE_LEAST_BYTES = 1 << 12, /* headers and TLS cost 86 bytes of each */
	PACE_SENDERS = 4,
	/* Added to every window. The shortest round trip was a small packet's: a slice passes two lines
	 * one after the other, and its last packet is acknowledged late (RFC 9293 section 3.8.6.3). */
	PACE_EXTRA_BYTES = 3 * (PACE_SLICE_LEAST_BYTES + 86),
	PACE_SLOW_BYTES_PER_S = 400 * 1000,
	PACE_FAST_BYTES_PER_S = 500 * 1000
};

struct pace_flow {
	double bytes_per_s; /* best recent rate; 0: not measured yet */
	int64_t since_us;   /* start of the interval that is being measured; 0: none */
	uint64_t since_bytes;
	bool held; /* there was more to send in this interval: it shows the line's rate, not the sender's */
	int flat;  /* number of such intervals in a row without a higher rate; from PACE_FLAT on the rate is found */
};

static inline bool pace_is_found(const struct pace_flow *f) {
	return f->flat >= PACE_FLAT;
}
/* Measures the flow's rate in intervals of its own; call it often. `delivered`: bytes since the
 * start. */
void pace_flow_measure(struct pace_flow *f, int64_t now_us, uint64_t delivered, int64_t least_rtt_us);
/* Returns the bytes of `all` links that may be on the way. */
size_t pace_flow_window(const struct pace_flow *all, int64_t least_rtt_us);
/* Returns the most bytes of `all` links that may be on the way `us` after bulk began: after a pause
 * the first ones leave at a rate a little above the line's, not at once. SIZE_MAX: no rate is
 * known. */
size_t pace_opening_window(const struct pace_flow *all, int64_t us);
/* Returns the bytes of one link that may be, where `n_busy` links have some. */
size_t pace_link_window(const struct pace_flow *link, const struct pace_flow *all, int n_busy, int64_t least_rtt_us);
/* Returns true if a slice may begin while `waiting` bytes are on the way. */
static inline bool pace_fits(size_t waiting, size_t window) {
	return waiting + PACE_SLICE_LEAST_BYTES <= window;
}
/* Returns the bytes to send at a time to a peer, by the flow of its `link` and that of `all` links.
 * The rate of the peer's own line is unknown: at least what comes through, and up to PACE_SENDERS
 * share that. */
size_t pace_slice_bytes(const struct pace_flow *all, const struct pace_flow *link);
/* Returns true if the line is slow; `was`: the last answer. */
bool pace_is_slow(const struct pace_flow *all, bool was);

#endif
