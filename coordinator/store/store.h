/* store.h: what the coordinator needs of a store: the stream of records, invites, what a run is, a
 * few settings. Everything uses a store through this table; coordinator/store/sqlite.h makes the
 * one that ships, tests/common/memory_store.h one in memory. Single-threaded; every call may block
 * for an fsync.
 *
 * Records are the truth. Figures of commits are for people: they decide nothing.
 *
 * Faults: RV_E_FULL (no space: nothing was written; may be tried again), RV_E_CORRUPT (names the
 * record), RV_E_IO (give up: what is on the disk is known again only after a restart),
 * RV_E_NOMEM. */
#ifndef RV_COORDINATOR_STORE_H
#define RV_COORDINATOR_STORE_H

#include "coordinator/core/core.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Figures of a committed round, for people. */
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

/* An invite: how many its link admits, and until when. Times are microseconds since 1970. */
struct store_invite {
	int64_t id; /* from 1, ascending; the store's */
	int64_t made_us;
	int64_t ends_us;    /* admits nobody from then on; 0: it does not end */
	int64_t revoked_us; /* 0: it is not */
	uint32_t uses;      /* members that it admits in all */
	uint32_t used;      /* members that have come by it; the store's */
	bool approve;       /* each with the operator's approval */
};

enum { STORE_ASKERS_MAX = 256 }; /* the service's bound; no store holds more */

/* A computer that asks to join by an invite that needs approval, and is no member. */
enum asker_state { ASKER_ASKS, ASKER_APPROVED, ASKER_REFUSED };
struct store_asker {
	uint8_t key[NET_KEY_BYTES];
	char name[NET_NAME_BYTES]; /* the volunteer's choice */
	int64_t invite;            /* its id */
	int64_t asked_us;          /* for the first time, since 1970 */
	uint8_t state;             /* enum asker_state */
};

struct store;

/* Writes the i-th record that is to be appended. */
typedef void store_give(const void *ctx, int i, struct core_record *out);
/* Takes one record of a stream. A fault ends the stream. */
typedef enum rv_err store_take(void *ctx, const struct core_record *rec, struct rv_errtext *et);

struct store_ops {
	void (*close)(struct store *s);
	/* Makes the record durable. `stats`: for COMMIT, else NULL. The first MEMBER record of a member
	 * spends a use of the invite with its token_hash; any MEMBER record ends its asking, and that
	 * of all who ask by this invite if it is spent. A ROLLBACK record drops the figures of the
	 * commits that it takes back. All of it or nothing. */
	enum rv_err (*append)(struct store *s, const struct core_record *rec, const struct commit_stats *stats,
						  struct rv_errtext *et);
	/* Makes `n` records durable likewise, in one transaction: all of them or none. None is a
	 * COMMIT. */
	enum rv_err (*append_many)(struct store *s, int n, store_give *give, const void *ctx, struct rv_errtext *et);
	/* Gives every record, oldest first, until the first fault of `take`. */
	enum rv_err (*each)(struct store *s, store_take *take, void *ctx, struct rv_errtext *et);
	/* Gives the AWAY record of the member with this key, or, NULL, with this number. *found: there
	 * is such a member, and no record of it is later. */
	enum rv_err (*away)(struct store *s, const uint8_t *key, uint32_t member, struct core_record *out, bool *found,
						struct rv_errtext *et);
	/* Gives the figures of the last `cap` commits at most, oldest first, and the tokens of all. */
	enum rv_err (*commits)(struct store *s, struct commit_stats *out, int cap, int *n, struct rv_errtext *et);
	enum rv_err (*total_tokens)(struct store *s, uint64_t *tokens, struct rv_errtext *et);
	/* Adds an invite; `in` has what is not the store's. `hash`: of its token. */
	enum rv_err (*invite_add)(struct store *s, const struct rv_hash *hash, const struct store_invite *in,
							  struct rv_errtext *et);
	enum rv_err (*invite_find)(struct store *s, const struct rv_hash *hash, struct store_invite *out, bool *found,
							   struct rv_errtext *et);
	enum rv_err (*invite_get)(struct store *s, int64_t id, struct store_invite *out, bool *found,
							  struct rv_errtext *et);
	/* Gives the last `cap` invites at most, the latest first. */
	enum rv_err (*invites)(struct store *s, struct store_invite *out, int cap, int *n, struct rv_errtext *et);
	/* Gives the first `cap` members at most that came by an invite, ascending. */
	enum rv_err (*invite_members)(struct store *s, int64_t id, uint32_t *out, int cap, int *n, struct rv_errtext *et);
	/* Revokes an invite, unless it is, and drops those that ask by it. *found: there is one. */
	enum rv_err (*invite_revoke)(struct store *s, int64_t id, int64_t wall_us, bool *found, struct rv_errtext *et);
	/* Adds or replaces the one with this key. */
	enum rv_err (*asker_put)(struct store *s, const struct store_asker *a, struct rv_errtext *et);
	enum rv_err (*asker_drop)(struct store *s, const uint8_t key[NET_KEY_BYTES], struct rv_errtext *et);
	/* Gives all, the first to ask first. RV_E_CORRUPT: more than STORE_ASKERS_MAX. */
	enum rv_err (*askers)(struct store *s, struct store_asker out[STORE_ASKERS_MAX], int *n, struct rv_errtext *et);
	/* Gives the run's number and its configuration (NUL-terminated). */
	enum rv_err (*run)(struct store *s, uint8_t run_id[NET_RUN_ID_BYTES], char config[NET_MAX_CONFIG_BYTES],
					   struct rv_errtext *et);
	/* A small text by its name; "" if it was never set. */
	enum rv_err (*set)(struct store *s, const char *name, const char *value, struct rv_errtext *et);
	enum rv_err (*get)(struct store *s, const char *name, char *out, size_t cap, struct rv_errtext *et);
	/* Checks the whole store, and writes a copy of it into the empty file `path`: a copy replaces
	 * nothing. The store itself is not written: its disk may be full. The caller makes the copy
	 * durable; after a fault `path` holds anything. RV_E_NOTFOUND, RV_E_INVALID (not an empty
	 * file), RV_E_CORRUPT (the store is damaged), RV_E_FULL and RV_E_IO (of either file). Blocks
	 * for as long as it takes (docs/benchmarks.md, "A backup"). */
	enum rv_err (*copy)(struct store *s, const char *path, struct rv_errtext *et);
};

/* The head of every store. */
struct store {
	const struct store_ops *ops;
};

/* Closes the store and frees it; NULL is fine. */
static inline void store_close(struct store *s) {
	if (s != NULL)
		s->ops->close(s);
}

#endif
