/* service_storage.c: members whose disk takes nothing, told once when it begins and when it is over. Nothing here decides
 * anything. */
#include "coordinator/service_internal.h"

#include "base/clock.h"

#include <string.h>

enum { AGAIN_US = 10 * RV_US_PER_S }; /* a member whose disk comes and goes must not fill the log */

void service_storage_text(uint8_t set, char out[SERVICE_STORAGE_BYTES]) {
	static const struct {
		uint8_t bit;
		const char *text;
	} kinds[] = {{REPORT_STORAGE_ROUNDS, "results of rounds"},
				 {REPORT_STORAGE_CHECKPOINTS, "checkpoints"},
				 {REPORT_STORAGE_FETCHED, "state from peers"}};
	size_t n = 0;
	out[0] = '\0';
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (set & kinds[i].bit)
			n += (size_t)snprintf(out + n, SERVICE_STORAGE_BYTES - n, "%s%s", n > 0 ? ", " : "", kinds[i].text);
}

static void tell(struct service *s, const struct core_member_view *v) {
	char what[SERVICE_STORAGE_BYTES];
	uint8_t set = v->last.storage;
	if (set == 0) {
		service_tell(s, RV_INFO, "member_storage_back", "member %u %s stores everything again", v->member, v->name);
		return;
	}
	service_storage_text(set, what);
	service_tell(s, RV_ERROR, "member_storage", "member %u %s cannot store %s (%s)%s", v->member, v->name, what,
				 set & REPORT_STORAGE_FULL ? "its disk is full" : "its log says why",
				 set & REPORT_STORAGE_ROUNDS ? ": it is in no round until it can" : "; it trains on");
}

void service_watch_storage(struct service *s, int64_t now_us) {
	struct core_member_view views[NET_MAX_MEMBERS];
	int n = core_members(s->core, views);
	for (int i = 0; i < n; i++) {
		struct storage_told *told = &s->storage[i];
		if (views[i].last.storage == told->set || (told->at_us != 0 && now_us - told->at_us < AGAIN_US))
			continue;
		*told = (struct storage_told){.set = views[i].last.storage, .at_us = now_us};
		tell(s, &views[i]);
	}
}
