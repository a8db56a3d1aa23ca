/* memory_store.h: the coordinator's store in memory, a second one behind coordinator/store/store.h:
 * for tests, fuzzers and the simulator. Records are kept as the bytes that a file would hold; what
 * is appended is there until memory_store_release(). */
#ifndef RV_TESTS_COMMON_MEMORY_STORE_H
#define RV_TESTS_COMMON_MEMORY_STORE_H

#include "base/loss_curve.h"
#include "coordinator/store/store.h"

enum { MEMORY_STORE_TOKENS = 320, MEMORY_STORE_SETTINGS = 4 };

struct memory_store {
	struct store store; /* first */
	/* The owner's to set: */
	enum rv_err failing; /* of every call that writes; RV_OK: none */
	size_t max_bytes;    /* of records: then the store is full; 0: no limit */
	uint8_t run_id[NET_RUN_ID_BYTES];
	const char *config; /* NULL: "" */
	/* To be looked at: */
	int n_records, n_commits;
	struct commit_stats *stats; /* n_commits of them */

	uint8_t *bytes; /* each record: u16 length, coordinator/store/record.h */
	size_t n_bytes, cap_bytes, cap_commits;
	int n_transactions; /* each an fsync, if this were a disk */
	int n_invites, n_settings, n_askers, n_came;
	struct rv_hash tokens[MEMORY_STORE_TOKENS];
	struct store_invite invites[MEMORY_STORE_TOKENS]; /* `used` is counted in `came` */
	struct memory_came {
		uint32_t member;
		int64_t invite;
	} * came; /* n_came of them */
	struct store_asker askers[STORE_ASKERS_MAX];
	struct memory_setting {
		char name[32], value[LOSS_CURVE_TEXT_BYTES];
	} settings[MEMORY_STORE_SETTINGS];
};

/* An empty store; `m->store` is what the coordinator takes. */
void memory_store_init(struct memory_store *m);
/* Frees what it holds; the store is empty then. */
void memory_store_release(struct memory_store *m);
/* The record that was appended last. Asserts that there is one. */
struct core_record memory_store_last(struct memory_store *m);

#endif
