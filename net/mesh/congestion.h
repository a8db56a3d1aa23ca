/* congestion.h: which congestion control suits a link, by what the link shows: a rule without
 * sockets and clocks. Internal to net/.
 *
 * CUBIC (RFC 9438) fills a line that loses packets only when a queue overflows, and several links
 * share it well. On a line that loses packets at random it carries a fraction, as its window is
 * proportional to loss^-3/4. BBR (Cardwell et al., 2016) takes no notice of random loss; but a link
 * that our windows hold (net/mesh/pace_window.h) shows it no more than what it knows, so a link
 * that was slow once creeps. So a link has CUBIC until it loses packets without a queue, then BBR.
 * That is tried anew after a while, as lines change, and as a short queue may have overflowed
 * unseen.
 *
 * There was no queue if the smoothed round trip was near the shortest one all through the period in
 * which a loss was found and the one before. The links of a worker share its line, so their losses
 * are counted together, for those that have any. Beside a link with BBR, which fills that line,
 * there is always a queue: there all losses of a link count. Bytes that were sent again but came
 * twice (RFC 2883) were late, as where a busy computer answers a handshake: nothing was lost. */
#ifndef RV_NET_MESH_CONGESTION_H
#define RV_NET_MESH_CONGESTION_H

#include "net/mesh/pipe.h"

#include <stdbool.h>

enum {
	CONGESTION_PERIOD_US = 100 * 1000,  /* at least; and two round trips: a loss is found after one */
	CONGESTION_QUEUE_US = 25 * 1000,    /* with an eighth of the shortest round trip: a queue */
	CONGESTION_LEAST_LOST_BYTES = 5000, /* three full packets and more */
	CONGESTION_LOSSY_SHARE = 2000,      /* one byte of these many lost without a queue: CUBIC suffers */
	CONGESTION_MEMORY_BYTES = 1 << 24   /* sent without a queue; then older periods count half */
};
/* Bytes after which CUBIC is tried again, the first time; then it doubles, up to 128 times that. */
#define CONGESTION_TRIAL_BYTES (UINT64_C(1) << 28)

/* Bytes of TCP; older ones count less. */
struct congestion_bytes {
	double sent, resent;
};

/* One link. A zeroed struct has seen nothing. */
struct congestion {
	int64_t since_us;                   /* start of the period; 0: none */
	uint64_t sent, resent;              /* bytes at that time */
	double lost;                        /* of those that were resent: not those that came twice */
	int64_t queue_us, queue_before_us;  /* longest in this period, and in the one before */
	struct congestion_bytes quiet, all; /* in periods without a queue; in all */
	uint64_t lossy_since;               /* bytes that had been sent when CUBIC was given up */
	uint64_t trial_bytes;               /* BBR sends this much more before CUBIC is tried again */
	bool lossy;
};

/* All links of a worker. */
struct congestion_line {
	struct congestion_bytes quiet;
	bool any_lossy;
};

/* Adds a link to its line. */
void congestion_join(struct congestion_line *line, const struct congestion *c);
/* Takes a look; call it often. `line`: of the last looks at all links. Returns true if packets are
 * lost without a queue: BBR suits the link. */
bool congestion_measure(struct congestion *c, int64_t now_us, const struct pipe_info *info,
						const struct congestion_line *line);

#endif
