/* storage.c: logs members whose disk fails, once when it begins and once when it is over. Decides
 * nothing. */
#include "coordinator/service/internal.h"

#include "base/clock.h"

#include <string.h>

/* How long a disk must have stored everything before it counts as well: a nearly full one stores
 * only some files. */
enum { STEADY_US = 30 * RV_US_PER_S };

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

void service_member_text(const struct core_member_view *v, char out[SERVICE_MEMBER_BYTES]) {
	(void)snprintf(out, SERVICE_MEMBER_BYTES, "member %u%s%s", v->member, v->name[0] ? " " : "", v->name);
}

static void tell(struct service *s, const struct core_member_view *v) {
	char what[SERVICE_STORAGE_BYTES], who[SERVICE_MEMBER_BYTES];
	uint8_t set = v->last->storage;
	service_member_text(v, who);
	if (set == 0) {
		service_tell(s, RV_INFO, "member_storage_back", "%s stores everything again", who);
		return;
	}
	service_storage_text(set, what);
	service_tell(s, RV_ERROR, "member_storage", "%s cannot store %s (%s)%s", who, what,
				 set & REPORT_STORAGE_FULL ? "its disk is full" : "its log has the reason",
				 set & REPORT_STORAGE_ROUNDS ? ": it takes part in no round until it can" : "; it trains on");
}

static void watch(struct service *s, const struct core_member_view *v, struct storage_told *told, int64_t now_us) {
	uint8_t set = v->last->storage;
	if (set != 0) {
		bool more = (set & ~told->set & REPORT_STORAGE_KINDS) != 0;
		told->set |= set;
		told->clear_us = 0;
		if (more)
			tell(s, v);
	} else if (told->set != 0 && told->clear_us == 0) {
		told->clear_us = now_us;
	} else if (told->set != 0 && now_us - told->clear_us >= STEADY_US) {
		*told = (struct storage_told){.set = 0};
		tell(s, v);
	}
}

void service_watch_storage(struct service *s, int64_t now_us, uint32_t slot) {
	const struct core_member_view v = core_view(s->core, slot);
	watch(s, &v, &s->members[slot].storage, now_us);
}
