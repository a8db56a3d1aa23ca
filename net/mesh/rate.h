/* rate.h: a token bucket: how many bytes may pass now, and when the next ones. Time goes in; no clock, no allocation.
 *
 * The bucket holds RATE_DEPTH_US worth of bytes (and two packets at least), so in any window of T seconds at most
 * rate x (T + 0.1 s) pass: 1 % above the rate over 10 s (2.4 % at 100 kbit/s). What was charged beyond the tokens
 * (control, which does not wait) is a debt that later bytes pay. A zeroed struct is no cap.
 *
 * Bytes are those at the socket; the line carries TCP/IP headers too (52 bytes per 1,448 with IPv4 and timestamps),
 * and the bucket charges for them, because a cap is meant for the line. What goes the other way as acknowledgements the
 * mesh charges by itself.
 */
#ifndef RV_NET_MESH_RATE_H
#define RV_NET_MESH_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RATE_MAX_BYTES_PER_S INT64_C(12500000000) /* 100 Gbit/s */
enum { RATE_DEPTH_US = 100 * 1000 };

struct rate {
	int64_t bytes_per_s; /* on the line; 0: no cap */
	int64_t tokens;      /* millionths of a byte; negative: a debt */
	int64_t at_us;       /* when `tokens` was right */
};

/* bytes_per_s is 0 or up to RATE_MAX_BYTES_PER_S. Starts full. */
struct rate rate_of(int64_t bytes_per_s, int64_t now_us);
static inline bool rate_is_capped(const struct rate *r) {
	return r->bytes_per_s > 0;
}
/* How many bytes may pass at now_us; SIZE_MAX without a cap. Below a useful amount (a share of the depth, at most
 * 64 KiB) it is 0: a drip of tiny writes would cost more than it brings. */
size_t rate_allowed(struct rate *r, int64_t now_us);
/* So many bytes passed. */
void rate_charge(struct rate *r, size_t n);
/* From when on rate_allowed is not 0; INT64_MIN when it is not now (as of the latest call). */
int64_t rate_ready_us(const struct rate *r);

#endif
