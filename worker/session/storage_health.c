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

enum storage_change storage_health_note_fetched(struct storage_health *h, bool in_memory) {
	bool before = h->fetched_in_memory;
	h->fetched_in_memory = in_memory;
	if (in_memory == before)
		return STORAGE_AS_BEFORE;
	return in_memory ? STORAGE_BEGINS_TO_FAIL : STORAGE_WORKS_AGAIN;
}

bool storage_health_supersede_fetched(struct storage_health *h) {
	uint32_t *installed = &h->failed[STORE_INSTALLED], *refused = &h->failed[STORE_REFUSED];
	bool any = *installed > 0 || *refused > 0 || h->fetched_in_memory;
	*installed = *refused = 0;
	h->fetched_in_memory = false;
	return any;
}

bool storage_health_fails(const struct storage_health *h) {
	for (int kind = 0; kind < STORE_KINDS; kind++)
		if (h->failed[kind] > 0)
			return true;
	return false;
}

uint8_t storage_health_report(const struct storage_health *h, uint8_t rounds) {
	static const uint8_t bits[STORE_KINDS] = {[STORE_COPY] = REPORT_STORAGE_CHECKPOINTS,
											  [STORE_INSTALLED] = REPORT_STORAGE_FETCHED,
											  [STORE_REFUSED] = REPORT_STORAGE_FETCHED,
											  [STORE_EXPORT] = REPORT_STORAGE_CHECKPOINTS};
	uint8_t set = rounds | (h->fetched_in_memory ? REPORT_STORAGE_FETCHED : 0);
	bool full = false;
	for (int kind = 0; kind < STORE_KINDS; kind++) {
		set |= h->failed[kind] > 0 ? bits[kind] : 0;
		full = full || (h->failed[kind] > 0 && h->full[kind]);
	}
	return set != 0 && full ? set | REPORT_STORAGE_FULL : set;
}
