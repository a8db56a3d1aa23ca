/* status_cache.h: pages that anybody may ask for, as text: the status JSON and the metrics. Each
 * costs milliseconds, in a run of many members tens of them, and is up to some megabytes long: they
 * are made at a pace, and what was made last is given in between. */
#ifndef RV_COORDINATOR_WEB_STATUS_CACHE_H
#define RV_COORDINATOR_WEB_STATUS_CACHE_H

#include "coordinator/service/service.h"

enum {
	/* A page of more members than SERVICE_MEMBERS_FEW is made once a second; one of fewer is made
	 * STATUS_CACHE_BURST times at once, and then four times a second: a page that is read now and
	 * then is new. */
	STATUS_CACHE_US = 1000000,
	STATUS_CACHE_FEW_US = 250000,
	STATUS_CACHE_BURST = 16
};

enum status_page { STATUS_PAGE_JSON, STATUS_PAGE_METRICS, STATUS_PAGES };

struct status_cache {
	struct {
		char *text; /* NULL: none */
		int64_t paid_until_us;
	} of[STATUS_PAGES];
};

/* Returns the page, borrowed until the next call. NULL: no memory. */
const char *status_cache_text(struct status_cache *c, const struct service *s, int64_t now_us, enum status_page page);
void status_cache_release(struct status_cache *c);

#endif
