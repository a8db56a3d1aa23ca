/* status_cache.c: see status_cache.h. */
#include "coordinator/web/status_cache.h"

#include "base/gcra.h"

#include <stdlib.h>

/* Returns it as a new text; NULL: no memory. */
static char *make(const struct service *s, int64_t now_us, enum status_page page) {
	if (page == STATUS_PAGE_METRICS)
		return service_metrics(s, now_us);
	json_t *o = service_status(s, now_us, false);
	char *text = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;
	json_decref(o);
	return text;
}

const char *status_cache_text(struct status_cache *c, const struct service *s, int64_t now_us, enum status_page page) {
	static const struct gcra of_few = {.each_us = STATUS_CACHE_FEW_US, .burst = STATUS_CACHE_BURST};
	static const struct gcra of_many = {.each_us = STATUS_CACHE_US, .burst = 1};
	const struct gcra *pace = service_members_here(s) > SERVICE_MEMBERS_FEW ? &of_many : &of_few;
	if (!gcra_take(pace, &c->of[page].paid_until_us, now_us) && c->of[page].text != NULL)
		return c->of[page].text;
	free(c->of[page].text);
	c->of[page].text = make(s, now_us, page);
	return c->of[page].text;
}

void status_cache_release(struct status_cache *c) {
	for (int page = 0; page < STATUS_PAGES; page++)
		free(c->of[page].text);
	*c = (struct status_cache){0};
}
