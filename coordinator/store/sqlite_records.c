/* sqlite_records.c: the records of the core, and the figures of commits for people. */
#include "base/assert.h"
#include "coordinator/store/record.h"
#include "coordinator/store/record_points.h"
#include "coordinator/store/sqlite_inner.h"

#include <math.h>
#include <string.h>

static enum rv_err put_record(struct sqlite_store *s, const struct core_record *rec, struct rv_errtext *et) {
	uint8_t body[RECORD_MAX_BYTES];
	struct rv_writer w = rv_writer_of(body, sizeof body);
	record_encode(rec, &w);
	RV_ASSERT(!w.failed);
	struct rv_hash hash = rv_hash_of(body, rv_writer_len(&w));
	sqlite3_stmt *st = s->prepared[PUT_RECORD];
	(void)sqlite3_bind_int64(st, 1, (int64_t)rec->id);
	(void)sqlite3_bind_int(st, 2, rec->type);
	(void)sqlite3_bind_int64(st, 3, (int64_t)rec->round);
	(void)sqlite3_bind_blob(st, 4, body, (int)rv_writer_len(&w), SQLITE_TRANSIENT);
	(void)sqlite3_bind_blob(st, 5, hash.b, RV_HASH_BYTES, SQLITE_TRANSIENT);
	return sqlite_store_step(s, PUT_RECORD, "writing a record", et);
}

static enum rv_err put_member(struct sqlite_store *s, const struct core_record *rec, struct rv_errtext *et) {
	sqlite3_stmt *st = s->prepared[PUT_MEMBER];
	(void)sqlite3_bind_int64(st, 1, rec->member);
	(void)sqlite3_bind_blob(st, 2, rec->key, NET_KEY_BYTES, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 3, rec->name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 4, candidates_seen(rec->candidates, rec->n_candidates), -1, SQLITE_STATIC);
	(void)sqlite3_bind_int(st, 5, rec->banned);
	(void)sqlite3_bind_int64(st, 6, (int64_t)rec->id);
	RV_TRY(sqlite_store_step(s, PUT_MEMBER, "writing a member", et));
	return rec->type == CORE_MEMBER ? sqlite_invite_spend(s, rec, et) : RV_OK;
}

/* Returns `v`, or the most that a column takes. */
static int64_t capped(uint64_t v) {
	return v < INT64_MAX ? (int64_t)v : INT64_MAX;
}

/* Returns `v`, or 0 if it is not finite: SQLite stores NaN as NULL, which the column refuses. */
static double real(double v) {
	return isfinite(v) ? v : 0;
}

static enum rv_err put_commit(struct sqlite_store *s, const struct commit_stats *c, struct rv_errtext *et) {
	sqlite3_stmt *st = s->prepared[PUT_COMMIT];
	(void)sqlite3_bind_int64(st, 1, (int64_t)c->round);
	(void)sqlite3_bind_int64(st, 2, c->attempt);
	(void)sqlite3_bind_int(st, 3, c->participants);
	(void)sqlite3_bind_int64(st, 4, capped(c->tokens));
	(void)sqlite3_bind_double(st, 5, real(c->loss));
	(void)sqlite3_bind_double(st, 6, real(c->tokens_per_s));
	(void)sqlite3_bind_int64(st, 7, capped(c->tx_bytes));
	(void)sqlite3_bind_int64(st, 8, capped(c->compute_us));
	(void)sqlite3_bind_int64(st, 9, capped(c->reduce_us));
	(void)sqlite3_bind_int64(st, 10, c->wall_us);
	(void)sqlite3_bind_int64(st, 11, c->duration_us);
	return sqlite_store_step(s, PUT_COMMIT, "writing a commit", et);
}

/* Drops the figures of commits that a rollback takes back; the records keep them. */
static enum rv_err drop_commits(struct sqlite_store *s, uint64_t from_round, struct rv_errtext *et) {
	(void)sqlite3_bind_int64(s->prepared[DROP_COMMITS], 1, (int64_t)from_round);
	return sqlite_store_step(s, DROP_COMMITS, "dropping commits", et);
}

static enum rv_err put_all(struct sqlite_store *s, const struct core_record *rec, const struct commit_stats *stats,
						   struct rv_errtext *et) {
	RV_TRY(put_record(s, rec, et));
	if (rec->type == CORE_MEMBER || rec->type == CORE_AWAY)
		RV_TRY(put_member(s, rec, et));
	if (rec->type == CORE_COMMIT && stats != NULL)
		RV_TRY(put_commit(s, stats, et));
	if (rec->type == CORE_ROLLBACK)
		RV_TRY(drop_commits(s, rec->round, et));
	RECORD_POINT(rec->type, "written");
	return RV_OK;
}

/* Ends the transaction: durable, or, `e` or the result being a fault, undone. */
static enum rv_err end(struct sqlite_store *s, enum rv_err e, struct rv_errtext *et) {
	if (e == RV_OK)
		e = sqlite_store_step(s, COMMIT, "committing a record", et);
	if (e != RV_OK)
		sqlite_store_roll_back(s);
	return e;
}

enum rv_err sqlite_append(struct store *store, const struct core_record *rec, const struct commit_stats *stats,
						  struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	enum rv_err e = sqlite_store_step(s, BEGIN, "starting a transaction", et);
	return end(s, e == RV_OK ? put_all(s, rec, stats, et) : e, et);
}

enum rv_err sqlite_append_many(struct store *store, int n, store_give *give, const void *ctx, struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	struct core_record rec;
	enum rv_err e = sqlite_store_step(s, BEGIN, "starting a transaction", et);
	for (int i = 0; e == RV_OK && i < n; i++) {
		give(ctx, i, &rec);
		e = put_all(s, &rec, NULL, et);
	}
	return end(s, e, et);
}

/* Decodes the row (id, body, hash) that the statement is at. */
static enum rv_err read_row(const struct sqlite_store *s, sqlite3_stmt *st, struct core_record *rec,
							struct rv_errtext *et) {
	int64_t id = sqlite3_column_int64(st, 0);
	const void *body = sqlite3_column_blob(st, 1);
	size_t n = (size_t)sqlite3_column_bytes(st, 1);
	struct rv_hash hash = rv_hash_of(body, n);
	if (sqlite3_column_bytes(st, 2) != RV_HASH_BYTES || memcmp(sqlite3_column_blob(st, 2), hash.b, RV_HASH_BYTES) != 0)
		return rv_fail(et, RV_E_CORRUPT, "%s: record %lld does not match its hash: restore the file from a copy",
					   s->path, (long long)id);
	enum rv_err e = record_decode(body, n, rec, et);
	if (e == RV_OK && rec->id != (uint64_t)id)
		e = rv_fail(et, RV_E_CORRUPT, "it says that it is record %llu", (unsigned long long)rec->id);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s: record %lld", s->path, (long long)id);
}

static enum rv_err each_row(const struct sqlite_store *s, sqlite3_stmt *st, store_take *take, void *ctx,
							struct rv_errtext *et) {
	struct core_record rec;
	RV_TRY(read_row(s, st, &rec, et));
	enum rv_err e = take(ctx, &rec, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s: record %llu", s->path, (unsigned long long)rec.id);
}

enum rv_err sqlite_each(struct store *store, store_take *take, void *ctx, struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	sqlite3_stmt *st = s->prepared[ALL_RECORDS];
	enum rv_err e = RV_OK;
	int rc = SQLITE_ROW;
	while (e == RV_OK && (rc = sqlite3_step(st)) == SQLITE_ROW)
		e = each_row(s, st, take, ctx, et);
	if (e == RV_OK && rc != SQLITE_DONE)
		e = sqlite_store_fail(s, et, "reading the records");
	(void)sqlite3_reset(st);
	return e;
}

enum rv_err sqlite_away(struct store *store, const uint8_t *key, uint32_t member, struct core_record *out, bool *found,
						struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	sqlite3_stmt *st = s->prepared[key != NULL ? FIND_KEY : FIND_MEMBER];
	if (key != NULL)
		(void)sqlite3_bind_blob(st, 1, key, NET_KEY_BYTES, SQLITE_STATIC);
	else
		(void)sqlite3_bind_int64(st, 1, member);
	int rc = sqlite3_step(st);
	enum rv_err e = rc == SQLITE_DONE  ? RV_OK
					: rc == SQLITE_ROW ? read_row(s, st, out, et)
									   : sqlite_store_fail(s, et, "looking for a member");
	*found = e == RV_OK && rc == SQLITE_ROW && out->type == CORE_AWAY;
	(void)sqlite3_reset(st);
	return e;
}

/* ---- for people ---- */

static struct commit_stats commit_of_row(sqlite3_stmt *st) {
	return (struct commit_stats){.round = (uint64_t)sqlite3_column_int64(st, 0),
								 .attempt = (uint32_t)sqlite3_column_int64(st, 1),
								 .participants = (uint16_t)sqlite3_column_int(st, 2),
								 .tokens = (uint64_t)sqlite3_column_int64(st, 3),
								 .loss = sqlite3_column_double(st, 4),
								 .tokens_per_s = sqlite3_column_double(st, 5),
								 .tx_bytes = (uint64_t)sqlite3_column_int64(st, 6),
								 .compute_us = (uint64_t)sqlite3_column_int64(st, 7),
								 .reduce_us = (uint64_t)sqlite3_column_int64(st, 8),
								 .wall_us = sqlite3_column_int64(st, 9),
								 .duration_us = sqlite3_column_int64(st, 10)};
}

enum rv_err sqlite_commits(struct store *store, struct commit_stats *out, int cap, int *n, struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	sqlite3_stmt *st = s->prepared[LAST_COMMITS];
	int rc;
	*n = 0;
	(void)sqlite3_bind_int(st, 1, cap);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW && *n < cap)
		out[(*n)++] = commit_of_row(st);
	enum rv_err e = rc == SQLITE_DONE ? RV_OK : sqlite_store_fail(s, et, "reading the commits");
	(void)sqlite3_reset(st);
	return e;
}

enum rv_err sqlite_total_tokens(struct store *store, uint64_t *tokens, struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	sqlite3_stmt *st = s->prepared[SUM_TOKENS];
	int rc = sqlite3_step(st);
	double sum = rc == SQLITE_ROW ? sqlite3_column_double(st, 0) : 0;
	*tokens = sum > 0 && sum < (double)INT64_MAX ? (uint64_t)sum : 0;
	enum rv_err e = rc == SQLITE_ROW ? RV_OK : sqlite_store_fail(s, et, "adding up the tokens");
	(void)sqlite3_reset(st);
	return e;
}
