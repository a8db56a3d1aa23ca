/* rate_limit.h: limits what hosts ask for by site (address_site), in a fixed table: the site that
 * may ask again first makes room. */
#ifndef RV_COORDINATOR_RATE_LIMIT_H
#define RV_COORDINATOR_RATE_LIMIT_H

#include "base/gcra.h"
#include "net/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum { RATE_LIMIT_SLOTS = 256 };

struct rate_slot {
	char site[NET_ADDR_BYTES]; /* "": free */
	int64_t paid_until_us;     /* up to which what it asked for is paid for */
};

struct rate_limit {
	struct gcra limit;
	struct rate_slot slots[RATE_LIMIT_SLOTS];
};

void rate_limit_init(struct rate_limit *r, int burst, double per_s);
/* Returns false if the site of `host` was counted too often; it may try again later. */
bool rate_limit_allows(const struct rate_limit *r, const char *host, int64_t now_us);
void rate_limit_count(struct rate_limit *r, const char *host, int64_t now_us);

#endif
