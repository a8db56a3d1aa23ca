/* sqlite_inner.h: what the parts of the SQLite store share: sqlite.c (the file, settings),
 * sqlite_records.c (records, figures of commits), sqlite_invites.c (invites, and who asks to join
 * by them). No other file includes it. */
#ifndef RV_COORDINATOR_STORE_SQLITE_INNER_H
#define RV_COORDINATOR_STORE_SQLITE_INNER_H

#include "coordinator/store/sqlite.h"

#include <sqlite3.h>

enum statement {
	PUT_RECORD,
	PUT_MEMBER,
	PUT_COMMIT,
	PUT_INVITE,
	SPEND_USE,
	FIND_INVITE,
	GET_INVITE,
	LAST_INVITES,
	CAME_BY,
	REVOKE_INVITE,
	DROP_ASKERS_OF,
	DROP_ASKERS_OF_SPENT,
	PUT_ASKER,
	DROP_ASKER,
	ALL_ASKERS,
	PUT_RUN,
	GET_RUN,
	ALL_RECORDS,
	FIND_KEY,
	FIND_MEMBER,
	LAST_COMMITS,
	SUM_TOKENS,
	DROP_COMMITS,
	BEGIN,
	COMMIT,
	N_STATEMENTS
};

struct sqlite_store {
	struct store store; /* first */
	sqlite3 *db;
	sqlite3_stmt *prepared[N_STATEMENTS];
	char path[512];
};

struct sqlite_store *sqlite_store_of(struct store *store);
/* Returns the fault of the connection's last call, made while `doing` that. */
enum rv_err sqlite_store_fail(const struct sqlite_store *s, struct rv_errtext *et, const char *doing);
/* Runs a prepared statement that gives no row; its parameters are bound. */
enum rv_err sqlite_store_step(struct sqlite_store *s, enum statement which, const char *doing, struct rv_errtext *et);
void sqlite_store_roll_back(const struct sqlite_store *s);

/* Counts the member of a MEMBER record as come by the invite with its token_hash, once, and ends
 * its asking, and that of all others by this invite if it is spent; inside the record's
 * transaction. */
enum rv_err sqlite_invite_spend(struct sqlite_store *s, const struct core_record *rec, struct rv_errtext *et);

/* Implement the operations of store_ops (store.h) of these names. */
enum rv_err sqlite_append(struct store *store, const struct core_record *rec, const struct commit_stats *stats,
						  struct rv_errtext *et);
enum rv_err sqlite_append_many(struct store *store, int n, store_give *give, const void *ctx, struct rv_errtext *et);
enum rv_err sqlite_each(struct store *store, store_take *take, void *ctx, struct rv_errtext *et);
enum rv_err sqlite_away(struct store *store, const uint8_t *key, uint32_t member, struct core_record *out, bool *found,
						struct rv_errtext *et);
enum rv_err sqlite_commits(struct store *store, struct commit_stats *out, int cap, int *n, struct rv_errtext *et);
enum rv_err sqlite_total_tokens(struct store *store, uint64_t *tokens, struct rv_errtext *et);
enum rv_err sqlite_invite_add(struct store *store, const struct rv_hash *hash, const struct store_invite *in,
							  struct rv_errtext *et);
enum rv_err sqlite_invite_find(struct store *store, const struct rv_hash *hash, struct store_invite *out, bool *found,
							   struct rv_errtext *et);
enum rv_err sqlite_invite_get(struct store *store, int64_t id, struct store_invite *out, bool *found,
							  struct rv_errtext *et);
enum rv_err sqlite_invites(struct store *store, struct store_invite *out, int cap, int *n, struct rv_errtext *et);
enum rv_err sqlite_invite_members(struct store *store, int64_t id, uint32_t *out, int cap, int *n,
								  struct rv_errtext *et);
enum rv_err sqlite_invite_revoke(struct store *store, int64_t id, int64_t wall_us, bool *found, struct rv_errtext *et);
enum rv_err sqlite_asker_put(struct store *store, const struct store_asker *a, struct rv_errtext *et);
enum rv_err sqlite_asker_drop(struct store *store, const uint8_t key[NET_KEY_BYTES], struct rv_errtext *et);
enum rv_err sqlite_askers(struct store *store, struct store_asker out[STORE_ASKERS_MAX], int *n, struct rv_errtext *et);

#endif
