/* sqlite_invites.c: invites, and who asks to join by them (store.h). A use is a row of `came`, one
 * for a member at most: so it is counted once, however often the member is written. */
#include "coordinator/store/sqlite_inner.h"

#include <string.h>

/* Ends a statement that gave rows: `rc` is the last result. */
static enum rv_err end(struct sqlite_store *s, enum statement which, int rc, const char *doing, struct rv_errtext *et) {
	enum rv_err e = rc == SQLITE_ROW || rc == SQLITE_DONE ? RV_OK : sqlite_store_fail(s, et, doing);
	(void)sqlite3_reset(s->prepared[which]);
	return e;
}

/* ---- invites ---- */

enum rv_err sqlite_invite_spend(struct sqlite_store *s, const struct core_record *rec, struct rv_errtext *et) {
	sqlite3_stmt *st = s->prepared[SPEND_USE];
	(void)sqlite3_bind_int64(st, 1, rec->member);
	(void)sqlite3_bind_blob(st, 2, rec->token_hash.b, RV_HASH_BYTES, SQLITE_STATIC);
	RV_TRY(sqlite_store_step(s, SPEND_USE, "spending a use of an invite", et));
	(void)sqlite3_bind_blob(s->prepared[DROP_ASKERS_OF_SPENT], 1, rec->token_hash.b, RV_HASH_BYTES, SQLITE_STATIC);
	RV_TRY(sqlite_store_step(s, DROP_ASKERS_OF_SPENT, "dropping who asks by a spent invite", et));
	return sqlite_asker_drop(&s->store, rec->key, et);
}

enum rv_err sqlite_invite_add(struct store *store, const struct rv_hash *hash, const struct store_invite *in,
							  struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	sqlite3_stmt *st = s->prepared[PUT_INVITE];
	(void)sqlite3_bind_blob(st, 1, hash->b, RV_HASH_BYTES, SQLITE_STATIC);
	(void)sqlite3_bind_int64(st, 2, in->made_us);
	(void)sqlite3_bind_int64(st, 3, in->uses);
	(void)sqlite3_bind_int64(st, 4, in->ends_us);
	(void)sqlite3_bind_int(st, 5, in->approve);
	(void)sqlite3_bind_int64(st, 6, in->revoked_us);
	return sqlite_store_step(s, PUT_INVITE, "writing an invite", et);
}

static struct store_invite invite_of_row(sqlite3_stmt *st) {
	return (struct store_invite){.id = sqlite3_column_int64(st, 0),
								 .made_us = sqlite3_column_int64(st, 1),
								 .ends_us = sqlite3_column_int64(st, 2),
								 .revoked_us = sqlite3_column_int64(st, 3),
								 .uses = (uint32_t)sqlite3_column_int64(st, 4),
								 .used = (uint32_t)sqlite3_column_int64(st, 5),
								 .approve = sqlite3_column_int(st, 6) != 0};
}

/* Runs a query for one invite, whose parameter is bound. */
static enum rv_err one_invite(struct sqlite_store *s, enum statement which, struct store_invite *out, bool *found,
							  struct rv_errtext *et) {
	int rc = sqlite3_step(s->prepared[which]);
	*found = rc == SQLITE_ROW;
	if (*found)
		*out = invite_of_row(s->prepared[which]);
	return end(s, which, rc, "looking for an invite", et);
}

enum rv_err sqlite_invite_find(struct store *store, const struct rv_hash *hash, struct store_invite *out, bool *found,
							   struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	(void)sqlite3_bind_blob(s->prepared[FIND_INVITE], 1, hash->b, RV_HASH_BYTES, SQLITE_STATIC);
	return one_invite(s, FIND_INVITE, out, found, et);
}

enum rv_err sqlite_invite_get(struct store *store, int64_t id, struct store_invite *out, bool *found,
							  struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	(void)sqlite3_bind_int64(s->prepared[GET_INVITE], 1, id);
	return one_invite(s, GET_INVITE, out, found, et);
}

enum rv_err sqlite_invites(struct store *store, struct store_invite *out, int cap, int *n, struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	sqlite3_stmt *st = s->prepared[LAST_INVITES];
	int rc;
	*n = 0;
	(void)sqlite3_bind_int(st, 1, cap);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW && *n < cap)
		out[(*n)++] = invite_of_row(st);
	return end(s, LAST_INVITES, rc, "listing invites", et);
}

enum rv_err sqlite_invite_members(struct store *store, int64_t id, uint32_t *out, int cap, int *n,
								  struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	sqlite3_stmt *st = s->prepared[CAME_BY];
	int rc;
	*n = 0;
	(void)sqlite3_bind_int64(st, 1, id);
	(void)sqlite3_bind_int(st, 2, cap);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW && *n < cap)
		out[(*n)++] = (uint32_t)sqlite3_column_int64(st, 0);
	return end(s, CAME_BY, rc, "listing who came by an invite", et);
}

static enum rv_err revoke(struct sqlite_store *s, int64_t id, int64_t wall_us, bool *found, struct rv_errtext *et) {
	RV_TRY(sqlite_store_step(s, BEGIN, "starting a transaction", et));
	(void)sqlite3_bind_int64(s->prepared[REVOKE_INVITE], 1, wall_us);
	(void)sqlite3_bind_int64(s->prepared[REVOKE_INVITE], 2, id);
	RV_TRY(sqlite_store_step(s, REVOKE_INVITE, "revoking an invite", et));
	*found = sqlite3_changes(s->db) > 0;
	(void)sqlite3_bind_int64(s->prepared[DROP_ASKERS_OF], 1, id);
	RV_TRY(sqlite_store_step(s, DROP_ASKERS_OF, "revoking an invite", et));
	return sqlite_store_step(s, COMMIT, "revoking an invite", et);
}

enum rv_err sqlite_invite_revoke(struct store *store, int64_t id, int64_t wall_us, bool *found, struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	*found = false;
	enum rv_err e = revoke(s, id, wall_us, found, et);
	if (e != RV_OK)
		sqlite_store_roll_back(s);
	return e;
}

/* ---- askers ---- */

enum rv_err sqlite_asker_put(struct store *store, const struct store_asker *a, struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	sqlite3_stmt *st = s->prepared[PUT_ASKER];
	(void)sqlite3_bind_blob(st, 1, a->key, NET_KEY_BYTES, SQLITE_STATIC);
	(void)sqlite3_bind_text(st, 2, a->name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(st, 3, a->invite);
	(void)sqlite3_bind_int64(st, 4, a->asked_us);
	(void)sqlite3_bind_int(st, 5, a->state);
	return sqlite_store_step(s, PUT_ASKER, "writing who asks to join", et);
}

enum rv_err sqlite_asker_drop(struct store *store, const uint8_t key[NET_KEY_BYTES], struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	(void)sqlite3_bind_blob(s->prepared[DROP_ASKER], 1, key, NET_KEY_BYTES, SQLITE_STATIC);
	return sqlite_store_step(s, DROP_ASKER, "dropping who asks to join", et);
}

/* Returns false if the row holds no asker. */
static bool asker_of_row(sqlite3_stmt *st, struct store_asker *out) {
	const void *key = sqlite3_column_blob(st, 0);
	int state = sqlite3_column_int(st, 4);
	if (sqlite3_column_bytes(st, 0) != NET_KEY_BYTES || state < ASKER_ASKS || state > ASKER_REFUSED)
		return false;
	*out = (struct store_asker){
		.invite = sqlite3_column_int64(st, 2), .asked_us = sqlite3_column_int64(st, 3), .state = (uint8_t)state};
	memcpy(out->key, key, NET_KEY_BYTES);
	const unsigned char *name = sqlite3_column_text(st, 1);
	if (name != NULL)
		memcpy(out->name, name, strnlen((const char *)name, sizeof out->name - 1));
	return true;
}

enum rv_err sqlite_askers(struct store *store, struct store_asker out[STORE_ASKERS_MAX], int *n,
						  struct rv_errtext *et) {
	struct sqlite_store *s = sqlite_store_of(store);
	sqlite3_stmt *st = s->prepared[ALL_ASKERS];
	bool ok = true;
	int rc;
	*n = 0;
	(void)sqlite3_bind_int(st, 1, STORE_ASKERS_MAX + 1);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW && ok) {
		ok = *n < STORE_ASKERS_MAX && asker_of_row(st, &out[*n]);
		*n += ok;
	}
	RV_TRY(end(s, ALL_ASKERS, rc, "listing who asks to join", et));
	return ok ? RV_OK
			  : rv_fail(et, RV_E_CORRUPT,
						"%s: table askers, row %d: no row of this program: restore the file from a copy", s->path, *n);
}
