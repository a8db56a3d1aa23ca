/* store.h: the coordinator's memory on disk: one SQLite file, DIR/store.db.
 *
 * One connection, WAL, locking_mode=EXCLUSIVE, synchronous=FULL, no mmap: when store_append returns RV_OK the record
 * has been fsynced. Records are the truth; tables `members`, `tokens` and `commits` are there for people (sqlite3
 * DIR/store.db) and change in the same transaction. Every call blocks for at most one fsync. Single-threaded.
 *
 * Faults: RV_E_FULL (no space: nothing was written; may be tried again), RV_E_BUSY (another process has the store),
 * RV_E_CORRUPT (names the record), RV_E_UNSUPPORTED (made by a newer program), RV_E_IO (give up: what is on the disk is
 * known again only after a restart).
 */
#ifndef RV_COORDINATOR_STORE_H
#define RV_COORDINATOR_STORE_H

#include "coordinator/core/core.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What people want to know of a committed round. */
struct commit_stats {
	uint64_t round;
	uint32_t attempt;
	uint16_t participants;
	uint64_t tokens;                /* of this round, all participants */
	double loss;                    /* median of the participants that report one; 0: unknown */
	double tokens_per_s;            /* of all participants together, as they report it */
	uint64_t tx_bytes;              /* sent on peer links in this round, median of the participants */
	uint64_t compute_us, reduce_us; /* in this round, median of the participants */
	int64_t wall_us;                /* when it was committed, microseconds since 1970 */
	int64_t duration_us;            /* since the commit before (or since the coordinator started) */
};

/* What the service needs of a store; tests put failures in between. */
struct store_ops {
	/* Makes the record durable. `stats` for COMMIT, else NULL. A MEMBER record spends its token. */
	enum rv_err (*append)(void *store, const struct core_record *rec, const struct commit_stats *stats,
						  struct rv_errtext *et);
	enum rv_err (*token_add)(void *store, const struct rv_hash *hash, int64_t wall_us, struct rv_errtext *et);
	/* *valid: it was added and is not spent. */
	enum rv_err (*token_valid)(void *store, const struct rv_hash *hash, bool *valid, struct rv_errtext *et);
	/* Checks the whole store, and writes a copy of it into the empty file `path`: a copy replaces nothing. The store
	 * itself is not written: its disk may be full. The caller makes the copy durable; after a fault `path` holds
	 * anything. RV_E_NOTFOUND, RV_E_INVALID (not an empty file), RV_E_CORRUPT (the store is damaged), RV_E_FULL and
	 * RV_E_IO (of either file). Blocks for as long as it takes (docs/benchmarks.md, "A backup"). */
	enum rv_err (*copy)(void *store, const char *path, struct rv_errtext *et);
};
extern const struct store_ops store_sqlite_ops;

struct store;

/* Makes DIR/store.db for a new run. RV_E_BUSY: there is one already. */
enum rv_err store_create(const char *path, const uint8_t run_id[NET_RUN_ID_BYTES], const char *config,
						 struct rv_errtext *et);
enum rv_err store_open(const char *path, struct store **out, struct rv_errtext *et);
void store_close(struct store *s); /* NULL is fine */

/* The run's number and its configuration (NUL-terminated), as given to store_create. */
enum rv_err store_run(struct store *s, uint8_t run_id[NET_RUN_ID_BYTES], char config[NET_MAX_CONFIG_BYTES],
					  struct rv_errtext *et);
/* A small named text; "" when it was never set. */
enum rv_err store_set(struct store *s, const char *key, const char *value, struct rv_errtext *et);
enum rv_err store_get(struct store *s, const char *key, char *out, size_t cap, struct rv_errtext *et);
/* Every record, oldest first; stops at the first fault of `each`. */
enum rv_err store_each_record(struct store *s,
							  enum rv_err (*each)(void *ctx, const struct core_record *rec, struct rv_errtext *et),
							  void *ctx, struct rv_errtext *et);
/* The last `cap` commits at most, oldest first. */
enum rv_err store_commits(struct store *s, struct commit_stats *out, int cap, int *n, struct rv_errtext *et);
/* Tokens of all committed rounds, at most `most_each` of each participant: an earlier release took reports at their
 * word, and the sum of such numbers must not keep the store from being opened. At most INT64_MAX. */
enum rv_err store_total_tokens(struct store *s, uint64_t most_each, uint64_t *tokens, struct rv_errtext *et);

#endif
