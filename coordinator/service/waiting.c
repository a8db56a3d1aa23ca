/* waiting.c: since when the run has too few workers, and which are missing. Decides nothing. */
#include "coordinator/service/internal.h"

#include "base/clock.h"

#include <inttypes.h>

enum { TOLD_AFTER_US = 20 * RV_US_PER_S };

static bool takes_part(const struct core_member_view *v) {
	return v->alive && !v->banned && !(v->last->storage & REPORT_STORAGE_ROUNDS);
}

static bool is_missing(const struct core_member_view *v) {
	return !takes_part(v) && !v->banned;
}

void service_missing(const struct service *s, uint64_t out[CORE_HERE_WORDS]) {
	set_clear(out, core_words(s->core));
	for (int k = 0; k < core_here(s->core); k++) {
		const struct core_member_view v = core_view(s->core, core_nth(s->core, k));
		if (is_missing(&v))
			set_add(out, v.slot);
	}
}

double service_waiting_s(const struct service *s, int64_t now_us) {
	return s->waiting_since_us == INT64_MAX ? -1 : (double)(now_us - s->waiting_since_us) / 1e6;
}

static void write_why(const struct core_member_view *v, int64_t now_us, char *out, size_t cap) {
	if (v->last_report_us == 0)
		(void)snprintf(out, cap, "never reported");
	else if (v->last->storage & REPORT_STORAGE_ROUNDS)
		(void)snprintf(out, cap, "its disk fails");
	else if (v->last->phase == WORKER_LEAVING)
		(void)snprintf(out, cap, "left");
	else
		(void)snprintf(out, cap, "silent for %" PRId64 " s", (now_us - v->last_report_us) / RV_US_PER_S);
}

/* Writes "member 1 'bravo' (left), member 3 (silent for 40 s)"; as many as there is room for. */
static void list_missing(const struct service *s, int64_t now_us, char *out, size_t cap) {
	size_t n = 0;
	out[0] = '\0';
	for (int k = 0; k < core_here(s->core); k++) {
		char why[32], one[128];
		const struct core_member_view v = core_view(s->core, core_nth(s->core, k));
		if (!is_missing(&v))
			continue;
		write_why(&v, now_us, why, sizeof why);
		int len = snprintf(one, sizeof one, "%smember %u%s%s%s (%s)", n > 0 ? ", " : "", v.member,
						   v.name[0] ? " '" : "", v.name, v.name[0] ? "'" : "", why);
		if (n + (size_t)len + sizeof ", ..." > cap) {
			(void)snprintf(out + n, cap - n, ", ...");
			return;
		}
		n += (size_t)snprintf(out + n, cap - n, "%s", one);
	}
}

static int count_there(const struct service *s) {
	int there = 0;
	for (int k = 0; k < core_here(s->core); k++) {
		const struct core_member_view v = core_view(s->core, core_nth(s->core, k));
		there += takes_part(&v);
	}
	return there;
}

static void tell(struct service *s, int64_t now_us) {
	char missing[140];
	list_missing(s, now_us, missing, sizeof missing);
	service_tell(s, RV_WARN, "waiting", "the run waits: %d of %" PRId64 " workers are present; missing: %s",
				 count_there(s), s->run.min_workers,
				 missing[0] ? missing : "workers that have not joined yet (`invite` makes links)");
}

/* Returns true if too few members are left to reduce the round without the dead, and too few others
 * to begin anew: it continues when one is back. */
static bool reduce_is_held(const struct service *s) {
	return core_document(s->core)->phase == RUN_REDUCE && count_there(s) < s->run.min_workers;
}

void service_watch_waiting(struct service *s, int64_t now_us) {
	bool waiting = core_document(s->core)->phase == RUN_WAITING || reduce_is_held(s);
	if (!waiting) {
		s->waiting_since_us = INT64_MAX;
		s->waiting_told = false;
		return;
	}
	if (s->waiting_since_us == INT64_MAX)
		s->waiting_since_us = now_us;
	if (s->waiting_told || now_us - s->waiting_since_us < TOLD_AFTER_US)
		return;
	s->waiting_told = true;
	tell(s, now_us);
}
