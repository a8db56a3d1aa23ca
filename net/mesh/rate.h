/* rate.h: a token bucket: how many bytes may pass now, and when the next ones may. The caller hands
 * in the time; no clock, no allocation.
 *
 * The bucket holds RATE_DEPTH_US worth of bytes (and at least two packets), so in any window of T
 * seconds at most rate x (T + 0.1 s) pass: 1 % above the rate over 10 s (2.4 % at 100 kbit/s).
 * Bytes charged beyond the tokens (control, which does not wait) are a debt that later bytes pay. A
 * zeroed struct is no cap.
 *
 * Bytes are those at the socket; the line carries TCP/IP headers too (52 bytes per 1,448 with IPv4
 * and timestamps), and the bucket charges for them, because a cap is meant for the line. The mesh
 * itself charges for acknowledgements in the other direction. */
#ifndef RV_NET_MESH_RATE_H
#define RV_NET_MESH_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RATE_MAX_BYTES_PER_S INT64_C(12500000000) /* 100 Gbit/s */
enum {
	RATE_DEPTH_US = 100 * 1000,
	/* The lowest cap that options take: below it, one packet is more than the few percent by which
	 * a cap may be exceeded. */
	RATE_LEAST_BYTES_PER_S = 12500,
};

struct rate {
	int64_t bytes_per_s; /* on the line; 0: no cap */
	int64_t tokens;      /* millionths of a byte; negative: a debt */
	int64_t at_us;       /* time at which `tokens` held */
};

/* Returns a full bucket. `bytes_per_s`: 0, or up to RATE_MAX_BYTES_PER_S. */
struct rate rate_of(int64_t bytes_per_s, int64_t now_us);
static inline bool rate_is_capped(const struct rate *r) {
	return r->bytes_per_s > 0;
}
/* Returns how many bytes may pass at `now_us`; SIZE_MAX without a cap. Below a useful amount (a
 * share of the depth, at most 64 KiB) it is 0: many tiny writes would cost more than they carry. */
size_t rate_allowed(struct rate *r, int64_t now_us);
/* Charges `n` bytes that passed. */
void rate_charge(struct rate *r, size_t n);
/* Returns the time from which rate_allowed is not 0; INT64_MIN: it is not 0 now (as of the latest
 * call). */
int64_t rate_ready_us(const struct rate *r);

#endif
