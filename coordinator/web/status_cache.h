/* status_cache.h: the status JSON as text. In a run of many members it costs tens of milliseconds
 * and is a megabyte long, and anybody may ask for it: then it is made at most once a second. */
#ifndef RV_COORDINATOR_WEB_STATUS_CACHE_H
#define RV_COORDINATOR_WEB_STATUS_CACHE_H

#include "coordinator/service/service.h"

enum { STATUS_CACHE_US = 1000000 };

struct status_cache {
	struct {
		char *text; /* NULL: none */
		int64_t made_us;
	} of[2]; /* without and with details */
};

/* Returns the status, borrowed until the next call: as of now, or with more members than
 * SERVICE_MEMBERS_FEW of at most STATUS_CACHE_US ago. NULL: no memory. */
const char *status_cache_text(struct status_cache *c, const struct service *s, int64_t now_us, bool details);
void status_cache_release(struct status_cache *c);

#endif
