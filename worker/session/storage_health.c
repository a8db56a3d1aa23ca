/* storage_health.c: see storage_health.h. */
#include "worker/session/storage_health.h"

#include "base/assert.h"

enum storage_change storage_health_note(struct storage_health *h, enum store_kind kind, enum rv_err e,
										uint32_t *times) {
	RV_ASSERT(kind < STORE_KINDS);
	uint32_t before = h->failed[kind];
	h->failed[kind] = e == RV_OK ? 0 : before + 1;
	h->full[kind] = e == RV_E_FULL;
	*times = before;
	if (e == RV_OK)
		return before > 0 ? STORAGE_WORKS_AGAIN : STORAGE_AS_BEFORE;
	return before == 0 ? STORAGE_BEGINS_TO_FAIL : STORAGE_AS_BEFORE;
}

bool storage_health_supersede_fetched(struct storage_health *h) {
	static const enum store_kind of_fetched[] = {STORE_INSTALLED, STORE_REFUSED, STORE_LOST};
	bool any = false;
	for (size_t i = 0; i < sizeof of_fetched / sizeof of_fetched[0]; i++) {
		any = any || h->failed[of_fetched[i]] > 0;
		h->failed[of_fetched[i]] = 0;
	}
	return any;
}

bool storage_health_fails(const struct storage_health *h) {
	for (int kind = 0; kind < STORE_KINDS; kind++)
		if (h->failed[kind] > 0 && kind != STORE_LOST)
			return true;
	return false;
}

bool storage_health_is_full(const struct storage_health *h) {
	for (int kind = 0; kind < STORE_KINDS; kind++)
		if (h->failed[kind] > 0 && h->full[kind])
			return true;
	return false;
}

uint8_t storage_health_report(const struct storage_health *h, uint8_t rounds) {
	static const uint8_t bits[STORE_KINDS] = {[STORE_COPY] = REPORT_STORAGE_CHECKPOINTS,
											  [STORE_INSTALLED] = REPORT_STORAGE_FETCHED,
											  [STORE_REFUSED] = REPORT_STORAGE_FETCHED,
											  [STORE_LOST] = REPORT_STORAGE_FETCHED,
											  [STORE_EXPORT] = REPORT_STORAGE_CHECKPOINTS};
	uint8_t set = rounds;
	for (int kind = 0; kind < STORE_KINDS; kind++)
		set |= h->failed[kind] > 0 ? bits[kind] : 0;
	return set != 0 && storage_health_is_full(h) ? set | REPORT_STORAGE_FULL : set;
}
