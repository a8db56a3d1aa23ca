/* test_torture_store.c: the coordinator's store, its service and its backups, while every call that
 * can fail fails in turn. A fault has a text; what was acknowledged is there when the store is
 * opened again; what is there can be opened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coordinator/backup/backup.h"
#include "coordinator/service/service.h"
#include "coordinator/store/run_dir.h"
#include "coordinator/store/run_keys.h"
#include "coordinator/store/sqlite.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/torture/torture.h"

enum { RECORDS = 4, TRIALS = 120, PATH_BYTES = 512 };

static const uint8_t run_id[NET_RUN_ID_BYTES] = "0123456789abcdef";
static const char config[] = "rounds = 9\nmin-workers = 1\n";

struct place {
	struct run_dir d;
	char copy[PATH_BYTES], backup[PATH_BYTES];
	struct identity run;
	/* What was acknowledged. */
	bool created, token, copied, backed_up;
	uint64_t records;
	int members;
	struct rv_hash token_hash;
};

static void begin(void *ctx) {
	struct place *p = ctx;
	scratch_empty(p->d.dir);
	FILE *f = fopen(p->copy, "wb");
	assert_non_null(f);
	fclose(f);
	p->created = p->token = p->copied = p->backed_up = false;
	p->records = 0;
	p->members = 0;
}

static int set_up(void **state) {
	struct place *p = calloc(1, sizeof *p);
	char dir[64];
	uint8_t seed[IDENTITY_SEED_BYTES] = {7};
	scratch_make_in_memory(dir, sizeof dir); /* what a power cut would take is another test's */
	assert_ok(run_dir_of(dir, &p->d, &et));
	(void)snprintf(p->copy, sizeof p->copy, "%s/copy.db", dir);
	(void)snprintf(p->backup, sizeof p->backup, "%s/backup", dir);
	identity_of_seed(seed, &p->run);
	p->token_hash = rv_hash_of("token", 5);
	*state = p;
	return 0;
}

static int tear_down(void **state) {
	struct place *p = *state;
	scratch_remove(p->d.dir);
	free(p);
	return 0;
}

/* ---- the store ---- */

static struct core_record record(uint64_t id) {
	struct core_record rec = {.id = id, .type = CORE_COMMIT, .round = id, .n_members = 1};
	if (id == 1)
		rec = (struct core_record){.id = 1, .type = CORE_MEMBER, .member = 0, .name = "first"};
	return rec;
}

static void use_store(struct place *p, struct store *s) {
	struct rv_errtext et = {0};
	struct commit_stats stats[4];
	uint64_t tokens;
	struct store_invite in;
	bool valid = false;
	int n;
	if (torture_ok(s->ops->invite_add(s, &p->token_hash, &(struct store_invite){.made_us = 5, .uses = 1}, &et), &et))
		p->token = true;
	for (uint64_t id = 1; id <= RECORDS; id++) {
		struct core_record rec = record(id);
		struct commit_stats c = {.round = id, .participants = 1, .tokens = 10};
		if (!torture_ok(s->ops->append(s, &rec, rec.type == CORE_COMMIT ? &c : NULL, &et), &et))
			break;
		p->records = id;
	}
	if (torture_ok(s->ops->invite_find(s, &p->token_hash, &in, &valid, &et), &et))
		assert_true(valid || !p->token);
	if (torture_ok(s->ops->commits(s, stats, 4, &n, &et), &et))
		assert_true(n >= (int)p->records - 1);
	if (torture_ok(s->ops->total_tokens(s, &tokens, &et), &et))
		assert_true(p->records == 0 || tokens >= 10 * (p->records - 1));
	if (torture_ok(s->ops->copy(s, p->copy, &et), &et))
		p->copied = true;
}

static void run_store(void *ctx) {
	struct place *p = ctx;
	struct store *s = NULL;
	struct rv_errtext et = {0};
	p->created = torture_ok(sqlite_store_create(p->d.store, run_id, config, &et), &et);
	if (p->created && torture_ok(sqlite_store_open(p->d.store, &s, &et), &et))
		use_store(p, s);
	store_close(s);
}

static enum rv_err count(void *ctx, const struct core_record *rec, struct rv_errtext *et) {
	uint64_t *n = ctx;
	(void)et;
	assert_int_equal(rec->id, ++*n);
	return RV_OK;
}

static uint64_t records_in(const char *path) {
	struct store *s = NULL;
	struct rv_errtext et = {0};
	uint64_t n = 0;
	if (sqlite_store_open(path, &s, &et) != RV_OK || s->ops->each(s, count, &n, &et) != RV_OK)
		fail_msg("afterwards: %s", et.text);
	store_close(s);
	return n;
}

static void check_store(void *ctx) {
	struct place *p = ctx;
	struct rv_errtext et = {0};
	if (!p->created) { /* then it can be made now, unless it could not even be removed */
		if (faults_kept_files() && access(p->d.store, F_OK) == 0)
			(void)records_in(p->d.store);
		else if (sqlite_store_create(p->d.store, run_id, config, &et) != RV_OK)
			fail_msg("after a failed creation: %s", et.text);
		return;
	}
	uint64_t n = records_in(p->d.store);
	assert_in_range(n, p->records, p->records + 1);
	if (p->copied)
		assert_int_equal(records_in(p->copy), n);
}

static void the_store(void **state) {
	torture(&(struct torture){"store", begin, run_store, check_store, *state, TRIALS});
}

/* ---- the service ---- */

static bool join(struct place *p, struct service *s, uint8_t who) {
	char links[1][INVITE_MAX_BYTES];
	uint8_t key[NET_KEY_BYTES] = {who}, body[256], reply[NET_MAX_CONFIG_BYTES + 256];
	struct join_request rq = {.protocol = CONTROL_VERSION, .has_token = true, .name = "w"};
	struct invite in;
	struct rv_errtext et = {0};
	(void)p;
	if (!torture_ok(service_invite(s, NULL, 1, links, &et), &et))
		return false;
	assert_int_equal(invite_parse(links[0], &in, &et), RV_OK);
	memcpy(rq.run_id, run_id, sizeof rq.run_id);
	memcpy(rq.token, in.token, sizeof rq.token);
	struct rv_writer w = rv_writer_of(body, sizeof body), r = rv_writer_of(reply, sizeof reply);
	join_request_encode(&rq, &w);
	return torture_ok(service_join(s, 1000, key, body, rv_writer_len(&w), &r, &et), &et);
}

static void report(struct service *s, uint8_t who) {
	uint8_t key[NET_KEY_BYTES] = {who}, body[NET_MAX_REPORT_BYTES];
	const struct member_sight sight = {.host = "10.0.0.1", .own = "10.0.0.2"};
	struct report rep = {
		.boot = 1, .seq = 1, .phase = WORKER_TRAINING, .n_chunks = 4, .n_candidates = 1, .candidates[0].addr = ":7000"};
	struct rv_errtext et = {0};
	struct rv_writer w = rv_writer_of(body, sizeof body);
	report_encode(&rep, CONTROL_VERSION, &w);
	(void)torture_ok(service_report(s, 2000, key, &sight, body, rv_writer_len(&w), &et), &et);
}

static void look(struct place *p, struct service *s) {
	const uint8_t *bytes, key[NET_KEY_BYTES] = {1};
	size_t bytes_n;
	const struct document_wish wish = {.version = CONTROL_VERSION, .any = true};
	struct document_reply r;
	struct rv_errtext et = {0};
	if (service_find_member(s, key) >= 0 && torture_ok(service_document(s, key, &wish, &r, &et), &et) &&
		signed_open(p->run.key, IDENTITY_DOCUMENT_DOMAIN, r.bytes, r.n, &bytes, &bytes_n, &et) != RV_OK)
		assert_non_null(strstr(et.text, "memory"));
	json_t *status = service_status(s, 3000, true);
	json_decref(status);
	free(service_metrics(s, 3000));
}

static void use_service(struct place *p, struct store *store) {
	struct service *s = NULL;
	struct rv_errtext et = {0};
	struct service_config cfg = {.serving = &p->run,
								 .root = p->run.key,
								 .config = config,
								 .store = store,
								 .dir = p->d.dir,
								 .rounds_path = p->d.rounds,
								 .advertise = {.host = "example.org", .port = 7433}};
	memcpy(cfg.run_id, run_id, sizeof cfg.run_id);
	if (!torture_ok(service_new(&cfg, 1, &s, &et), &et) || !torture_ok(service_load(s, &et), &et)) {
		service_free(s);
		return;
	}
	for (uint8_t who = 1; who <= 2; who++)
		p->members += join(p, s, who);
	report(s, 1);
	look(p, s);
	(void)torture_ok(service_ban(s, 4000, 0, true, &et), &et);
	(void)torture_ok(service_copy_store(s, p->copy, &et), &et);
	service_free(s);
}

static void run_service(void *ctx) {
	struct place *p = ctx;
	struct store *store = NULL;
	struct rv_errtext et = {0};
	p->created = torture_ok(sqlite_store_create(p->d.store, run_id, config, &et), &et);
	if (p->created && torture_ok(sqlite_store_open(p->d.store, &store, &et), &et))
		use_service(p, store);
	store_close(store);
}

static enum rv_err count_members(void *ctx, const struct core_record *rec, struct rv_errtext *et) {
	int *n = ctx;
	(void)et;
	if (rec->type == CORE_MEMBER && (int)rec->member >= *n)
		*n = (int)rec->member + 1;
	return RV_OK;
}

static void check_service(void *ctx) {
	struct place *p = ctx;
	struct store *s = NULL;
	struct rv_errtext et = {0};
	int members = 0;
	if (!p->created) {
		check_store(p);
		return;
	}
	if (sqlite_store_open(p->d.store, &s, &et) != RV_OK || s->ops->each(s, count_members, &members, &et) != RV_OK)
		fail_msg("afterwards: %s", et.text);
	assert_true(members >= p->members);
	store_close(s);
}

static void the_service(void **state) {
	torture(&(struct torture){"service", begin, run_service, check_service, *state, TRIALS});
}

/* ---- backup and restore ---- */

static void make_run(void *ctx) {
	struct place *p = ctx;
	struct store *s = NULL;
	begin(p);
	assert_ok(sqlite_store_create(p->d.store, run_id, config, &et));
	assert_ok(sqlite_store_open(p->d.store, &s, &et));
	struct core_record rec = {.id = 1, .type = CORE_MEMBER, .member = 0, .name = "first", .doc_seq = 7};
	assert_ok(s->ops->append(s, &rec, NULL, &et));
	assert_ok(s->ops->copy(s, p->copy, &et));
	store_close(s);
	struct run_keys keys;
	uint8_t bytes[RUN_KEYS_BYTES];
	assert_ok(run_keys_make(&p->run, run_id, 1, &keys, &et));
	run_keys_encode(&keys, bytes);
	FILE *f = fopen(p->d.key, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, sizeof bytes, f), sizeof bytes);
	fclose(f);
}

static enum rv_err copy_again(void *ctx, const char *path, struct rv_errtext *et) {
	const struct place *p = ctx;
	struct store *s = NULL;
	enum rv_err e = sqlite_store_open(p->copy, &s, et);
	if (e == RV_OK)
		e = s->ops->copy(s, path, et);
	store_close(s);
	return e;
}

static void run_backup(void *ctx) {
	struct place *p = ctx;
	const struct backup_source from = {copy_again, p};
	struct backup_info info;
	struct rv_errtext et = {0};
	if (torture_ok(backup_make(&p->d, p->backup, &from, &info, &et), &et)) {
		p->backed_up = true;
		(void)torture_ok(backup_restore(p->backup, NULL, &p->d, true, &info, &et), &et);
	}
}

/* What is there opens; what was backed up can be restored now. */
static void check_backup(void *ctx) {
	struct place *p = ctx;
	struct backup_info info;
	struct rv_errtext et = {0};
	bool there = access(p->backup, F_OK) == 0;
	assert_true(there || !p->backed_up);
	if (there && backup_restore(p->backup, NULL, &p->d, true, &info, &et) != RV_OK)
		fail_msg("afterwards: %s", et.text);
	assert_in_range(records_in(p->d.store), 1, 3);
}

static void backups(void **state) {
	torture(&(struct torture){"backup and restore", make_run, run_backup, check_backup, *state, TRIALS});
}

int main(void) {
	faults_hook_sqlite();
	faults_hook_jansson();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_store, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_service, set_up, tear_down),
		cmocka_unit_test_setup_teardown(backups, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
