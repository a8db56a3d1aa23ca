/* rate_limit.c: see rate_limit.h. */
#include "coordinator/web/rate_limit.h"

#include "net/address.h"

#include <string.h>

void rate_limit_init(struct rate_limit *r, int burst, double per_s) {
	*r = (struct rate_limit){.limit = {.each_us = (int64_t)(1e6 / per_s), .burst = burst}};
}

/* Returns the slot of the host's site, which it writes; -1: it has none. */
static int find(const struct rate_limit *r, const char *host, char site[NET_ADDR_BYTES]) {
	address_site(host, site);
	for (int i = 0; i < RATE_LIMIT_SLOTS; i++)
		if (strcmp(r->slots[i].site, site) == 0)
			return i;
	return -1;
}

bool rate_limit_allows(const struct rate_limit *r, const char *host, int64_t now_us) {
	char site[NET_ADDR_BYTES];
	int i = find(r, host, site);
	return i < 0 || gcra_ready_us(&r->limit, r->slots[i].paid_until_us) <= now_us;
}

void rate_limit_count(struct rate_limit *r, const char *host, int64_t now_us) {
	char site[NET_ADDR_BYTES];
	int i = find(r, host, site), oldest = 0;
	for (int k = 1; k < RATE_LIMIT_SLOTS; k++)
		if (r->slots[k].paid_until_us < r->slots[oldest].paid_until_us)
			oldest = k;
	struct rate_slot *s = &r->slots[i >= 0 ? i : oldest];
	if (i < 0) {
		*s = (struct rate_slot){0};
		memcpy(s->site, site, sizeof s->site);
	}
	gcra_count(&r->limit, &s->paid_until_us, now_us);
}
