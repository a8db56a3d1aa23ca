/* rate_limit.c: a leaky bucket for each address (GCRA, ITU-T I.371): a failure uses its share of
 * time, from now or from the end of what is used. */
#include "coordinator/web/rate_limit.h"

#include <stdio.h>
#include <string.h>

void rate_limit_init(struct rate_limit *r, int burst, double per_s) {
	*r = (struct rate_limit){.burst_us = (int64_t)(burst * 1e6 / per_s), .each_us = (int64_t)(1e6 / per_s)};
}

static int find(const struct rate_limit *r, const char *host) {
	for (int i = 0; i < RATE_LIMIT_SLOTS; i++)
		if (strcmp(r->slots[i].host, host) == 0)
			return i;
	return -1;
}

bool rate_limit_allows(const struct rate_limit *r, const char *host, int64_t now_us) {
	int i = find(r, host);
	return i < 0 || r->slots[i].until_us + r->each_us <= now_us + r->burst_us;
}

void rate_limit_count(struct rate_limit *r, const char *host, int64_t now_us) {
	int i = find(r, host), oldest = 0;
	for (int k = 1; k < RATE_LIMIT_SLOTS; k++)
		if (r->slots[k].until_us < r->slots[oldest].until_us)
			oldest = k;
	struct rate_slot *s = &r->slots[i >= 0 ? i : oldest];
	int64_t until_us = i >= 0 && s->until_us > now_us ? s->until_us : now_us;
	(void)snprintf(s->host, sizeof s->host, "%s", host);
	s->until_us = until_us + r->each_us;
}
