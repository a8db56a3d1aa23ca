/* storage_health.h: which kinds of storage jobs fail at present, and what reports say of it. A full disk fails at every
 * heartbeat: people are told once when it begins, and once when it is over. Pure: no I/O, no allocation. */
#ifndef RV_WORKER_SESSION_STORAGE_HEALTH_H
#define RV_WORKER_SESSION_STORAGE_HEALTH_H

#include "worker/state/store_job.h"

struct storage_health {
	uint32_t failed[STORE_KINDS]; /* jobs since the last that did not fail */
	bool full[STORE_KINDS];       /* the disk being full is why the last one failed */
	bool fetched_in_memory;       /* the disk did not take what was fetched last */
};

enum storage_change { STORAGE_AS_BEFORE, STORAGE_BEGINS_TO_FAIL, STORAGE_WORKS_AGAIN };

/* Counts how a job of this kind ended. *times: how often it had failed, where it works again. */
enum storage_change storage_health_note(struct storage_health *h, enum store_kind kind, enum rv_err e, uint32_t *times);
/* The same of a file that was fetched. */
enum storage_change storage_health_note_fetched(struct storage_health *h, bool in_memory);
/* A checkpoint is stored: what was fetched and not stored is no loss any more. Returns true if there was such. */
bool storage_health_supersede_fetched(struct storage_health *h);
/* Returns true if the latest attempt to store something of some kind failed: not all that there is is on disk. */
bool storage_health_fails(const struct storage_health *h);
/* report.storage: `rounds` is what the round core says of results of rounds; and what else is not stored. */
uint8_t storage_health_report(const struct storage_health *h, uint8_t rounds);

#endif
