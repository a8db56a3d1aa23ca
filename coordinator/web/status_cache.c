/* status_cache.c: see status_cache.h. */
#include "coordinator/web/status_cache.h"

#include <stdlib.h>

const char *status_cache_text(struct status_cache *c, const struct service *s, int64_t now_us, bool details) {
	const int64_t age_us = now_us - c->of[details].made_us;
	const bool many = service_members_here(s) > SERVICE_MEMBERS_FEW;
	if (c->of[details].text != NULL && many && age_us >= 0 && age_us < STATUS_CACHE_US)
		return c->of[details].text;
	json_t *o = service_status(s, now_us, details);
	free(c->of[details].text);
	c->of[details].text = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;
	c->of[details].made_us = now_us;
	json_decref(o);
	return c->of[details].text;
}

void status_cache_release(struct status_cache *c) {
	free(c->of[0].text);
	free(c->of[1].text);
	*c = (struct status_cache){0};
}
