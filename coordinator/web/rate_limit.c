/* rate_limit.c: see rate_limit.h. */
#include "coordinator/web/rate_limit.h"

#include <stdio.h>
#include <string.h>

void rate_limit_init(struct rate_limit *r, double burst, double per_s) {
	memset(r, 0, sizeof *r);
	r->burst = burst;
	r->per_s = per_s;
}

static double level(const struct rate_limit *r, const struct rate_slot *s, int64_t now_us) {
	double tokens = s->tokens + (double)(now_us - s->at_us) / 1e6 * r->per_s;
	return tokens < r->burst ? tokens : r->burst;
}

static int find(const struct rate_limit *r, const char *host) {
	for (int i = 0; i < RATE_LIMIT_SLOTS; i++)
		if (r->slots[i].host[0] != '\0' && strcmp(r->slots[i].host, host) == 0)
			return i;
	return -1;
}

bool rate_limit_allows(const struct rate_limit *r, const char *host, int64_t now_us) {
	int i = find(r, host);
	return i < 0 || level(r, &r->slots[i], now_us) >= 1;
}

/* Returns a free slot, or the one that was quiet for longest. */
static struct rate_slot *make_room(struct rate_limit *r) {
	struct rate_slot *oldest = &r->slots[0];
	for (int i = 0; i < RATE_LIMIT_SLOTS; i++) {
		if (r->slots[i].host[0] == '\0')
			return &r->slots[i];
		if (r->slots[i].at_us < oldest->at_us)
			oldest = &r->slots[i];
	}
	return oldest;
}

void rate_limit_count(struct rate_limit *r, const char *host, int64_t now_us) {
	int i = find(r, host);
	struct rate_slot *s = i >= 0 ? &r->slots[i] : make_room(r);
	double tokens = i >= 0 ? level(r, s, now_us) : r->burst;
	(void)snprintf(s->host, sizeof s->host, "%s", host);
	s->tokens = tokens >= 1 ? tokens - 1 : 0;
	s->at_us = now_us;
}
