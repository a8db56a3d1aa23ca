/* storage_health.h: which kinds of storage jobs fail at present, and what reports state of it. A
 * failing disk is logged once when it starts failing and once when it recovers. Pure: no I/O, no
 * allocation. */
#ifndef RV_WORKER_SESSION_STORAGE_HEALTH_H
#define RV_WORKER_SESSION_STORAGE_HEALTH_H

#include "worker/state/store_job.h"

struct storage_health {
	uint32_t failed[STORE_KINDS]; /* jobs since the last that did not fail */
	bool full[STORE_KINDS];       /* the last one failed because the disk is full */
};

enum storage_change { STORAGE_AS_BEFORE, STORAGE_BEGINS_TO_FAIL, STORAGE_WORKS_AGAIN };

/* Counts how a job of this kind ended; LOST: a fetched file, stored or kept in memory only. *times:
 * how often it had failed, if it works again. */
enum storage_change storage_health_note(struct storage_health *h, enum store_kind kind, enum rv_err e, uint32_t *times);
/* Records that a checkpoint is stored, which replaces what was fetched and not stored. Returns true
 * if there was such. */
bool storage_health_supersede_fetched(struct storage_health *h);
/* Returns true if the latest job of some kind failed; what was fetched and is in memory only does
 * not count. */
bool storage_health_fails(const struct storage_health *h);
/* Returns true if the latest job of some kind failed for want of room. */
bool storage_health_is_full(const struct storage_health *h);
/* Returns report.storage: `rounds`, the round core's part, and what else is not stored. */
uint8_t storage_health_report(const struct storage_health *h, uint8_t rounds);

#endif
