/* The store: what it acknowledged is there after the file is opened again; tokens are spent once;
 * damage is named. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "coordinator/store/sqlite.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

enum { PAGE_BYTES = 4096 }; /* SQLite's, as the store leaves it */

struct place {
	char dir[64], path[96];
	struct store *store;
};

static const uint8_t run_id[NET_RUN_ID_BYTES] = "0123456789abcdef";

static int set_up(void **state) {
	struct place *p = calloc(1, sizeof *p);
	*state = p;
	scratch_make(p->dir, sizeof p->dir);
	(void)snprintf(p->path, sizeof p->path, "%s/store.db", p->dir);
	assert_ok(sqlite_store_create(p->path, run_id, "rounds = 3\n", &et));
	assert_ok(sqlite_store_open(p->path, &p->store, &et));
	return 0;
}

static int tear_down(void **state) {
	struct place *p = *state;
	store_close(p->store);
	scratch_remove_only(p->dir, (const char *const[]){"store.db", "store.db-wal", NULL});
	free(p);
	return 0;
}

static void reopen(struct place *p) {
	store_close(p->store);
	p->store = NULL;
	assert_ok(sqlite_store_open(p->path, &p->store, &et));
}

/* Changes the closed file behind the store's back. */
static void tamper(struct place *p, const char *sql) {
	sqlite3 *db = NULL;
	store_close(p->store);
	p->store = NULL;
	assert_int_equal(sqlite3_open(p->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static struct core_record member_record(uint64_t id, uint8_t token) {
	struct core_record rec = {.id = id, .type = CORE_MEMBER, .doc_seq = 5, .member = 0, .name = "w"};
	rec.key[0] = 9;
	rec.token_hash.b[0] = token;
	return rec;
}

static enum rv_err append(struct place *p, const struct core_record *rec, const struct commit_stats *stats) {
	struct rv_errtext et = {0};
	return p->store->ops->append(p->store, rec, stats, &et);
}

struct seen {
	int n;
	uint64_t ids[16];
};

static enum rv_err see(void *ctx, const struct core_record *rec, struct rv_errtext *et) {
	(void)et;
	struct seen *s = ctx;
	s->ids[s->n++] = rec->id;
	return RV_OK;
}

static struct seen records_of(struct place *p) {
	struct seen s = {0};
	assert_ok(p->store->ops->each(p->store, see, &s, &et));
	return s;
}

static void test_run_is_kept(void **state) {
	struct place *p = *state;
	uint8_t id[NET_RUN_ID_BYTES];
	char config[NET_MAX_CONFIG_BYTES], text[64];
	struct rv_errtext et = {0};
	assert_int_equal(p->store->ops->set(p->store, "advertise", "a:1", &et), RV_OK);
	reopen(p);
	assert_int_equal(p->store->ops->run(p->store, id, config, &et), RV_OK);
	assert_memory_equal(id, run_id, sizeof id);
	assert_string_equal(config, "rounds = 3\n");
	assert_int_equal(p->store->ops->get(p->store, "advertise", text, sizeof text, &et), RV_OK);
	assert_string_equal(text, "a:1");
	assert_int_equal(p->store->ops->get(p->store, "never", text, sizeof text, &et), RV_OK);
	assert_string_equal(text, "");
	assert_int_equal(p->store->ops->get(p->store, "advertise", text, 2, &et), RV_E_CORRUPT);
	assert_int_equal(sqlite_store_create(p->path, run_id, "", &et), RV_E_BUSY);
}

static void test_records_are_kept_in_order(void **state) {
	struct place *p = *state;
	struct core_record rec = member_record(1, 1);
	assert_int_equal(append(p, &rec, NULL), RV_OK);
	for (uint64_t id = 2; id <= 5; id++) {
		rec = (struct core_record){.id = id, .type = CORE_SEQ};
		assert_int_equal(append(p, &rec, NULL), RV_OK);
	}
	reopen(p);
	struct seen s = records_of(p);
	assert_int_equal(s.n, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(s.ids[i], i + 1);
}

static void add_invite(struct place *p, uint8_t token, uint32_t uses) {
	const struct rv_hash hash = {.b = {token}};
	const struct store_invite in = {.made_us = token, .uses = uses, .ends_us = 99, .approve = uses > 1};
	assert_ok(p->store->ops->invite_add(p->store, &hash, &in, &et));
}

static bool find_invite(struct place *p, uint8_t token, struct store_invite *in) {
	const struct rv_hash hash = {.b = {token}};
	bool found = false;
	assert_ok(p->store->ops->invite_find(p->store, &hash, in, &found, &et));
	return found;
}

static uint32_t used(struct place *p, uint8_t token) {
	struct store_invite in;
	assert_true(find_invite(p, token, &in));
	return in.used;
}

static void ask(struct place *p, uint8_t key, int64_t invite, uint8_t state) {
	const struct store_asker a = {.key = {key}, .name = "it's me", .invite = invite, .asked_us = 5, .state = state};
	assert_ok(p->store->ops->asker_put(p->store, &a, &et));
}

static int askers(struct place *p, struct store_asker out[STORE_ASKERS_MAX]) {
	int n = -1;
	assert_ok(p->store->ops->askers(p->store, out, &n, &et));
	return n;
}

/* The same number again is a fault, and the whole transaction is undone: the use is not spent, and
 * who asked still asks. */
static void test_append_is_all_or_nothing(void **state) {
	struct place *p = *state;
	struct store_asker all[STORE_ASKERS_MAX];
	add_invite(p, 7, 1);
	ask(p, 9, 1, ASKER_APPROVED);
	struct core_record rec = {.id = 1, .type = CORE_SEQ};
	assert_int_equal(append(p, &rec, NULL), RV_OK);
	rec = member_record(1, 7);
	assert_int_equal(append(p, &rec, NULL), RV_E_IO);
	assert_int_equal(used(p, 7), 0);
	assert_int_equal(askers(p, all), 1);
	rec = member_record(2, 7);
	assert_int_equal(append(p, &rec, NULL), RV_OK); /* it goes on */
	assert_int_equal(records_of(p).n, 2);
	assert_int_equal(used(p, 7), 1);
	assert_int_equal(askers(p, all), 0);
}

static void give_member(const void *records, int i, struct core_record *out) {
	*out = ((const struct core_record *)records)[i];
}

/* Of several, one that cannot be written takes the others back: their uses, and who asked. */
static void test_many_are_all_or_nothing(void **state) {
	struct place *p = *state;
	struct rv_errtext why = {0};
	struct store_asker all[STORE_ASKERS_MAX];
	struct core_record *recs = calloc(3, sizeof *recs);
	assert_non_null(recs);
	add_invite(p, 7, 3);
	ask(p, 9, 1, ASKER_APPROVED);
	for (uint8_t i = 0; i < 3; i++) {
		recs[i] = member_record(i + 1u, 7);
		recs[i].member = i;
		recs[i].key[0] = (uint8_t)(9 + i);
	}
	recs[2].id = 2; /* is there */
	assert_int_equal(p->store->ops->append_many(p->store, 3, give_member, recs, &why), RV_E_IO);
	assert_true(records_of(p).n == 0 && used(p, 7) == 0 && askers(p, all) == 1);
	recs[2].id = 3;
	assert_ok(p->store->ops->append_many(p->store, 3, give_member, recs, &et));
	reopen(p);
	assert_true(records_of(p).n == 3 && used(p, 7) == 3 && askers(p, all) == 0);
	free(recs);
}

/* A member is written again when it moves, is banned, goes away and returns. */
static void test_a_member_spends_one_use(void **state) {
	struct place *p = *state;
	struct store_invite in;
	uint32_t came[4];
	int n = 0;
	assert_false(find_invite(p, 7, &in));
	add_invite(p, 7, 3);
	reopen(p);
	assert_true(find_invite(p, 7, &in));
	assert_true(in.id == 1 && in.made_us == 7 && in.ends_us == 99 && in.approve && in.uses == 3 && in.used == 0);
	struct core_record rec = member_record(1, 7);
	assert_int_equal(append(p, &rec, NULL), RV_OK);
	rec.id = 2;
	rec.banned = true;
	assert_int_equal(append(p, &rec, NULL), RV_OK);
	rec.id = 3;
	rec.type = CORE_AWAY;
	assert_int_equal(append(p, &rec, NULL), RV_OK);
	rec.id = 4;
	rec.type = CORE_MEMBER;
	assert_int_equal(append(p, &rec, NULL), RV_OK);
	assert_int_equal(used(p, 7), 1);
	rec.id = 5;
	rec.member = 4;
	rec.key[0] = 10;
	assert_int_equal(append(p, &rec, NULL), RV_OK);
	reopen(p);
	assert_int_equal(used(p, 7), 2);
	assert_ok(p->store->ops->invite_members(p->store, 1, came, 4, &n, &et));
	assert_true(n == 2 && came[0] == 0 && came[1] == 4);
	assert_false(find_invite(p, 8, &in));
}

/* The record that spends the last use ends the asking of all others by it, in one transaction. */
static void test_a_spent_invite_has_no_askers(void **state) {
	struct place *p = *state;
	struct store_asker all[STORE_ASKERS_MAX];
	add_invite(p, 7, 2);
	add_invite(p, 8, 1);
	ask(p, 1, 1, ASKER_ASKS);
	ask(p, 2, 1, ASKER_APPROVED);
	ask(p, 3, 2, ASKER_ASKS);
	struct core_record rec = member_record(1, 7);
	assert_int_equal(append(p, &rec, NULL), RV_OK);
	assert_int_equal(askers(p, all), 3);
	rec.id = 2;
	rec.member = 4;
	rec.key[0] = 10;
	assert_int_equal(append(p, &rec, NULL), RV_OK);
	reopen(p);
	assert_int_equal(askers(p, all), 1);
	assert_int_equal(all[0].invite, 2);
}

static void test_invites_are_listed_and_revoked(void **state) {
	struct place *p = *state;
	struct store_invite in[4];
	struct store_asker all[STORE_ASKERS_MAX];
	bool found = true;
	int n = 0;
	add_invite(p, 7, 1);
	add_invite(p, 8, 2);
	ask(p, 1, 1, ASKER_ASKS);
	ask(p, 2, 2, ASKER_REFUSED);
	assert_ok(p->store->ops->invite_revoke(p->store, 1, 50, &found, &et));
	assert_true(found);
	assert_ok(p->store->ops->invite_revoke(p->store, 1, 60, &found, &et)); /* the first time counts */
	assert_true(found);
	assert_ok(p->store->ops->invite_revoke(p->store, 3, 50, &found, &et));
	assert_false(found);
	reopen(p);
	assert_ok(p->store->ops->invites(p->store, in, 4, &n, &et));
	assert_true(n == 2 && in[0].id == 2 && in[0].revoked_us == 0 && in[1].id == 1 && in[1].revoked_us == 50);
	assert_int_equal(askers(p, all), 1);
	assert_true(all[0].key[0] == 2 && all[0].invite == 2 && all[0].state == ASKER_REFUSED && all[0].asked_us == 5);
	assert_string_equal(all[0].name, "it's me");
	ask(p, 2, 2, ASKER_APPROVED);
	assert_int_equal(askers(p, all), 1);
	assert_int_equal(all[0].state, ASKER_APPROVED);
	const uint8_t key[NET_KEY_BYTES] = {2};
	assert_ok(p->store->ops->asker_drop(p->store, key, &et));
	assert_int_equal(askers(p, all), 0);
}

static void test_commits_for_people(void **state) {
	struct place *p = *state;
	struct commit_stats stats = {.attempt = 2, .participants = 3, .tokens = 100, .loss = 2.5, .tx_bytes = 7};
	struct commit_stats got[4];
	uint64_t tokens = 0;
	int n = 0;
	for (uint64_t r = 0; r < 6; r++) {
		struct core_record rec = {.id = r + 1, .type = CORE_COMMIT, .round = r};
		stats.round = r;
		assert_int_equal(append(p, &rec, &stats), RV_OK);
	}
	reopen(p);
	assert_ok(p->store->ops->commits(p->store, got, 4, &n, &et));
	assert_int_equal(n, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(got[i].round, i + 2);
	assert_true(got[3].loss == 2.5 && got[3].tx_bytes == 7 && got[3].attempt == 2 && got[3].participants == 3);
	assert_ok(p->store->ops->total_tokens(p->store, &tokens, &et));
	assert_int_equal(tokens, 600);
}

/* Numbers that no column takes are stored as the nearest that it takes; they do not keep the store
 * from being opened. */
static void test_numbers_that_no_column_takes(void **state) {
	struct place *p = *state;
	uint64_t tokens = 1;
	for (uint64_t r = 0; r < 2; r++) {
		struct core_record rec = {.id = r + 1, .type = CORE_COMMIT, .round = r};
		struct commit_stats stats = {.round = r, .tokens = UINT64_MAX, .tx_bytes = UINT64_MAX};
		stats.loss = stats.tokens_per_s = r == 0 ? (double)NAN : (double)INFINITY;
		assert_int_equal(append(p, &rec, &stats), RV_OK);
	}
	reopen(p);
	assert_ok(p->store->ops->total_tokens(p->store, &tokens, &et));
	assert_int_equal(tokens, 0); /* not known */
}

static void test_only_one_has_it(void **state) {
	struct place *p = *state;
	struct store *second = NULL;
	struct rv_errtext et = {0};
	assert_int_equal(sqlite_store_open(p->path, &second, &et), RV_E_BUSY);
	assert_non_null(strstr(et.text, "another process"));
}

static void expect_open(struct place *p, enum rv_err want, const char *part) {
	struct rv_errtext et = {0};
	assert_int_equal(sqlite_store_open(p->path, &p->store, &et), want);
	assert_non_null(strstr(et.text, part));
}

/* A page that nobody reads when a run is opened: its count of cells. */
static void test_a_malformed_page_is_named(void **state) {
	struct place *p = *state;
	struct rv_errtext et = {0};
	char copy[128];
	(void)snprintf(copy, sizeof copy, "%s/copy.db", p->dir);
	store_close(p->store);
	p->store = NULL;
	FILE *f = fopen(p->path, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, -PAGE_BYTES + 4, SEEK_END), 0);
	assert_int_not_equal(fputc(200, f), EOF);
	assert_int_equal(fclose(f), 0);
	reopen(p);
	f = fopen(copy, "wb");
	assert_non_null(f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(p->store->ops->copy(p->store, copy, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "store.db is damaged ("));
	assert_int_equal(unlink(copy), 0);
}

/* A copy is a store with the same records; it replaces nothing. */
static void test_a_copy_is_a_store(void **state) {
	struct place *p = *state;
	struct rv_errtext et = {0};
	struct place q = {.store = NULL};
	struct core_record rec = member_record(1, 1);
	assert_int_equal(append(p, &rec, NULL), RV_OK);
	(void)snprintf(q.path, sizeof q.path, "%s/copy.db", p->dir);
	assert_int_equal(p->store->ops->copy(p->store, q.path, &et), RV_E_NOTFOUND);
	FILE *f = fopen(q.path, "wb");
	assert_non_null(f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(p->store->ops->copy(p->store, q.path, &et), RV_OK);
	assert_int_equal(p->store->ops->copy(p->store, q.path, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "not an empty file"));
	rec = (struct core_record){.id = 2, .type = CORE_SEQ};
	assert_int_equal(append(p, &rec, NULL), RV_OK); /* it goes on */
	reopen(&q);
	assert_int_equal(records_of(&q).n, 1);
	assert_int_equal(records_of(p).n, 2);
	store_close(q.store);
	assert_int_equal(unlink(q.path), 0);
}

static void test_damage_is_named(void **state) {
	struct place *p = *state;
	struct seen s = {0};
	struct rv_errtext et = {0};
	struct core_record rec = {.id = 1, .type = CORE_SEQ};
	assert_int_equal(append(p, &rec, NULL), RV_OK);
	rec.id = 2;
	assert_int_equal(append(p, &rec, NULL), RV_OK);
	tamper(p, "UPDATE records SET body = zeroblob(20) WHERE id = 2");
	reopen(p);
	assert_int_equal(p->store->ops->each(p->store, see, &s, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "record 2 does not match its hash"));
	tamper(p, "DELETE FROM records WHERE id = 2; UPDATE records SET id = 4");
	reopen(p);
	assert_int_equal(p->store->ops->each(p->store, see, &s, &et), RV_E_CORRUPT);
	assert_non_null(strstr(et.text, "it says that it is record 1"));
	tamper(p, "PRAGMA user_version = 3");
	expect_open(p, RV_E_UNSUPPORTED, "version 3");
	tamper(p, "PRAGMA application_id = 1");
	expect_open(p, RV_E_CORRUPT, "not a store");
	FILE *f = fopen(p->path, "w");
	assert_non_null(f);
	for (int i = 0; i < 4096; i++)
		(void)fputc('x', f);
	assert_int_equal(fclose(f), 0);
	expect_open(p, RV_E_CORRUPT, "store.db");
	assert_int_equal(unlink(p->path), 0);
	expect_open(p, RV_E_NOTFOUND, "new-run");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_run_is_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_records_are_kept_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_append_is_all_or_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_member_spends_one_use, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_are_all_or_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_spent_invite_has_no_askers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_invites_are_listed_and_revoked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_commits_for_people, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_numbers_that_no_column_takes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_only_one_has_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_malformed_page_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_copy_is_a_store, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damage_is_named, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
