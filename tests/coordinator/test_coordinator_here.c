/* Two hundred members in the life of a run, by a coordinator that has room for thirty-two of them
 * and is closed and opened again on the way, over a real store: those long gone leave its memory,
 * and return by their key with their number; a ban lasts. */
#include <stdlib.h>
#include <string.h>

#include "base/chain.h"
#include "coordinator/service/service.h"
#include "coordinator/store/sqlite.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/coordinator/joining.h"
#include "tests/coordinator/rig_seals.h"
#include "tests/coordinator/run_chunks.h"

enum { ROOM = 32, MEMBERS = 200, JOIN = 8, PRESENT = 16, BANNED = 5 };
#define CONFIG "rounds = 60\nmin-workers = 2\nsilence-ms = 4000\n"

struct bench {
	char dir[64], path[96];
	struct store *store;
	struct identity run;
	struct service *service;
	int64_t now_us;
	uint64_t seq, round;
	struct rv_hash chain;
	uint32_t silent; /* this member reports nothing by say() */
};

static const uint8_t run_id[NET_RUN_ID_BYTES] = {5};

static void open_service(struct bench *b) {
	struct service_config cfg = {.serving = &b->run,
								 .root = b->run.key,
								 .config = CONFIG,
								 .max_here = ROOM,
								 .advertise = {.host = "train.example.org", .port = 7433}};
	memcpy(cfg.run_id, run_id, sizeof cfg.run_id);
	assert_ok(sqlite_store_open(b->path, &b->store, &et));
	cfg.store = b->store;
	assert_ok(service_new(&cfg, b->now_us, &b->service, &et));
	assert_ok(service_load(b->service, &et));
}

static void close_service(struct bench *b) {
	service_free(b->service);
	store_close(b->store);
}

static int set_up(void **state) {
	struct bench *b = calloc(1, sizeof *b);
	uint8_t seed[IDENTITY_SEED_BYTES] = {3};
	*state = b;
	identity_of_seed(seed, &b->run);
	scratch_make(b->dir, sizeof b->dir);
	(void)snprintf(b->path, sizeof b->path, "%s/store.db", b->dir);
	assert_ok(sqlite_store_create(b->path, run_id, CONFIG, &et));
	const struct rv_hash run_hash = rv_run_hash(run_id, CONFIG);
	b->chain = rv_chain_start(&run_hash);
	b->now_us = 1000000;
	b->silent = NET_NO_MEMBER;
	open_service(b);
	return 0;
}

static int tear_down(void **state) {
	struct bench *b = *state;
	close_service(b);
	scratch_remove_only(b->dir, (const char *const[]){"store.db", "store.db-wal", NULL});
	free(b);
	return 0;
}

static void key_of(uint32_t who, uint8_t key[NET_KEY_BYTES]) {
	memset(key, 0, NET_KEY_BYTES);
	key[0] = (uint8_t)(who & 0xff);
	key[1] = (uint8_t)(who >> 8);
	key[2] = 1;
}

/* Returns the fault; *member: its number. */
static enum rv_err join(struct bench *b, uint32_t who, uint32_t *member, struct rv_errtext *et) {
	static struct join_reply out;
	uint8_t key[NET_KEY_BYTES];
	char name[NET_NAME_BYTES];
	struct invite in;
	key_of(who, key);
	(void)snprintf(name, sizeof name, "worker %u", who);
	joining_invite(b->service, NULL, &in);
	enum rv_err e = joining_join(b->service, b->now_us, key, &in, name, &out, et);
	*member = out.member;
	return e;
}

static enum rv_err report(struct bench *b, uint32_t who, enum worker_phase phase, struct rv_errtext *et) {
	static uint8_t body[NET_MAX_REPORT_BYTES];
	const struct member_sight sight = {.host = "10.1.1.1", .own = "10.1.1.2"};
	uint8_t key[NET_KEY_BYTES];
	struct report rep = {.boot = 1,
						 .seq = ++b->seq,
						 .phase = (uint8_t)phase,
						 .round = b->round,
						 .proven_round = b->round,
						 .tokens = 100,
						 .n_chunks = run_chunks("", 0),
						 .chain = b->chain,
						 .proven_chain = b->chain,
						 .commitment.n = phase >= WORKER_READY,
						 .n_candidates = 1,
						 .candidates = {{.addr = ":7000"}}};
	if (phase == WORKER_VOTED) {
		rep.attempt = 1;
		rep.digest.b[0] = 1;
	}
	key_of(who, key);
	rig_sign_report(&rep, run_id, key);
	struct rv_writer w = rv_writer_of(body, sizeof body);
	report_encode(&rep, CONTROL_VERSION, &w);
	assert_false(w.failed);
	return service_report(b->service, b->now_us, key, &sight, body, rv_writer_len(&w), et);
}

static void say(struct bench *b, uint32_t first, uint32_t end, enum worker_phase phase) {
	for (uint32_t who = first; who < end; who++)
		if (who != b->silent)
			assert_ok(report(b, who, phase, &et));
}

static void keep_alive(struct bench *b, uint32_t first, uint32_t end, int seconds) {
	for (int s = 0; s < seconds; s++) {
		if (s % 2 == 0)
			say(b, first, end, WORKER_TRAINING);
		b->now_us += 1000000;
		service_tick(b->service, b->now_us);
	}
}

static int64_t status_int(const struct bench *b, const char *name) {
	json_t *s = service_status(b->service, b->now_us, false);
	int64_t value = json_integer_value(json_object_get(s, name));
	json_decref(s);
	return value;
}

/* Returns the name that the status has for a member's number; "": it does not list it. */
static void name_of(const struct bench *b, uint32_t member, char out[NET_NAME_BYTES]) {
	json_t *s = service_status(b->service, b->now_us, false), *m;
	size_t i;
	out[0] = '\0';
	json_array_foreach(json_object_get(s, "members"), i, m) {
		if (json_integer_value(json_object_get(m, "member")) == member)
			(void)snprintf(out, NET_NAME_BYTES, "%s", json_string_value(json_object_get(m, "name")));
	}
	json_decref(s);
}

static void expect_name(const struct bench *b, uint32_t member, const char *name) {
	char is[NET_NAME_BYTES];
	name_of(b, member, is);
	assert_string_equal(is, name);
}

static void commit_over(struct bench *b, uint32_t first, uint32_t end) {
	const struct rv_hash digest = {{1}};
	say(b, first, end, WORKER_READY);
	say(b, first, end, WORKER_VOTED);
	b->round++;
	b->chain = rv_chain_next(&b->chain, &digest);
	assert_int_equal(status_int(b, "round"), b->round);
	say(b, first, end, WORKER_TRAINING);
}

/* Members join and go, a few at a time, from `joined` on; the operator bans one of the first. */
static void live(struct bench *b, uint32_t joined, uint32_t until) {
	uint32_t member;
	for (; joined < until; joined += JOIN) {
		for (uint32_t who = joined; who < joined + JOIN; who++) {
			assert_ok(join(b, who, &member, &et));
			assert_int_equal(member, who);
		}
		const uint32_t end = joined + JOIN, first = end > PRESENT ? end - PRESENT : 0;
		keep_alive(b, first, end, 1);
		if (joined == 0)
			assert_ok(service_ban(b->service, b->now_us, BANNED, true, &et));
		keep_alive(b, first, end, 20);
		commit_over(b, first, end);
	}
}

static void test_a_long_life(void **state) {
	struct bench *b = *state;
	struct rv_errtext et = {0};
	uint8_t key[NET_KEY_BYTES];
	b->silent = BANNED;
	live(b, 0, 104);
	close_service(b);
	open_service(b);
	keep_alive(b, 104 - PRESENT, 104, 20);
	live(b, 104, MEMBERS);
	assert_int_equal(b->round, MEMBERS / JOIN);
	expect_name(b, 3, "");
	expect_name(b, BANNED, "");
	expect_name(b, MEMBERS - 1, "worker 199");
	/* One returns by its report alone, with its number; it takes part. */
	assert_int_equal(report(b, 3, WORKER_TRAINING, &et), RV_OK);
	expect_name(b, 3, "worker 3");
	/* The ban of one that is away holds, after another start too, until it is taken back. */
	assert_int_equal(report(b, BANNED, WORKER_TRAINING, &et), RV_E_AUTH);
	assert_non_null(strstr(et.text, "member 5 is banned from this run"));
	close_service(b);
	open_service(b);
	assert_true(banned_has(service_banned(b->service), BANNED));
	expect_name(b, BANNED, "");
	keep_alive(b, MEMBERS - PRESENT, MEMBERS, 20);
	key_of(BANNED, key);
	assert_int_equal(service_recall(b->service, b->now_us, key, &et), RV_E_AUTH);
	assert_int_equal(service_ban(b->service, b->now_us, BANNED, false, &et), RV_OK);
	assert_false(banned_has(service_banned(b->service), BANNED));
	assert_int_equal(report(b, BANNED, WORKER_TRAINING, &et), RV_OK);
	expect_name(b, BANNED, "worker 5");
}

/* All have a slot and are here: neither a joiner nor one that returns gets in, and both read
 * why. */
static void test_a_full_house(void **state) {
	struct bench *b = *state;
	struct rv_errtext et = {0};
	uint32_t member;
	uint8_t key[NET_KEY_BYTES];
	for (uint32_t who = 0; who < ROOM; who++)
		assert_int_equal(join(b, who, &member, &et), RV_OK);
	keep_alive(b, 1, ROOM, 20);
	assert_int_equal(join(b, ROOM, &member, &et), RV_OK); /* in the place of the first, which has gone */
	expect_name(b, 0, "");
	assert_int_equal(join(b, ROOM + 1, &member, &et), RV_E_FULL);
	assert_string_equal(et.text,
						"join: 32 members are here, the most that this coordinator has room for at a time: try "
						"again when some have left");
	key_of(0, key);
	assert_int_equal(service_recall(b->service, b->now_us, key, &et), RV_E_FULL);
	assert_non_null(strstr(et.text, "a member returns: 32 members are here"));
}

/* A request for a document is held while its member gives up its slot: it ends without news, and is
 * not refused as a ban is; the next one says that there is no room, and brings the member back when
 * there is. */
static void test_a_held_request_outlives_its_slot(void **state) {
	struct bench *b = *state;
	struct rv_errtext et = {0};
	struct document_wish wish = {.version = CONTROL_VERSION};
	struct document_reply out;
	uint32_t member;
	uint8_t key[NET_KEY_BYTES], stranger[NET_KEY_BYTES];
	for (uint32_t who = 0; who < ROOM; who++)
		assert_int_equal(join(b, who, &member, &et), RV_OK);
	key_of(0, key);
	key_of(1000, stranger);
	service_listens(b->service, b->now_us, key, true);
	keep_alive(b, 1, ROOM, 20);
	assert_int_equal(join(b, ROOM, &member, &et), RV_OK); /* in the place of the first */
	wish.after = service_document_seq(b->service) - 1;
	assert_int_equal(service_document(b->service, key, &wish, &out, &et), RV_OK);
	assert_true(out.is_away && out.n == 0);
	assert_int_equal(service_document(b->service, stranger, &wish, &out, &et), RV_E_AUTH);
	assert_int_equal(service_recall(b->service, b->now_us, key, &et), RV_E_FULL);
	assert_non_null(strstr(et.text, "try again when some have left"));
	keep_alive(b, 1, ROOM - 1, 20);
	assert_int_equal(service_recall(b->service, b->now_us, key, &et), RV_OK);
	expect_name(b, 0, "worker 0");
	wish.any = true;
	assert_int_equal(service_document(b->service, key, &wish, &out, &et), RV_OK);
	assert_true(out.n > 0 && !out.is_away);
}

static int slot_of(const struct bench *b, uint32_t who) {
	uint8_t key[NET_KEY_BYTES];
	key_of(who, key);
	return service_find_member(b->service, key);
}

/* Asserts that these have a slot each, and nobody else's; each shows its own name. */
static void expect_slots(const struct bench *b, uint32_t first, uint32_t end) {
	bool taken[ROOM] = {false};
	char name[NET_NAME_BYTES];
	for (uint32_t who = first; who < end; who++) {
		const int slot = slot_of(b, who);
		assert_in_range(slot, 0, ROOM - 1);
		assert_false(taken[slot]);
		taken[slot] = true;
		(void)snprintf(name, sizeof name, "worker %u", who);
		expect_name(b, who, name);
	}
}

enum { IN_ROUNDS = 8, UNSEEN_ROUNDS = 18 };

/* All have a slot; those from IN_ROUNDS on report, but are in no round, as those whose lines rest
 * or who are still fetching the state: no record of the last rounds shows them. Only the last one
 * has gone. The coordinator starts again. */
static void start_again_with_all(struct bench *b) {
	uint32_t member;
	for (uint32_t who = 0; who < ROOM; who++)
		assert_ok(join(b, who, &member, &et));
	for (int round = 0; round < UNSEEN_ROUNDS; round++) {
		say(b, 0, IN_ROUNDS, WORKER_TRAINING);
		say(b, IN_ROUNDS, ROOM, WORKER_SYNCING);
		commit_over(b, 0, IN_ROUNDS);
	}
	close_service(b);
	open_service(b);
}

/* Right after a start, before any of them has reported, a joiner gets the slot of a member that is
 * live. The member returns by its report, in the slot of another that has not reported yet, and so
 * on: in the end the one that has gone has none. Two are never in one slot, and all take part. */
static void test_a_slot_has_one_member(void **state) {
	struct bench *b = *state;
	static struct document d;
	uint8_t key[NET_KEY_BYTES];
	uint32_t member;
	start_again_with_all(b);
	const int slot = slot_of(b, IN_ROUNDS);
	assert_ok(join(b, ROOM, &member, &et));
	assert_true(member == ROOM && slot_of(b, ROOM) == slot && slot_of(b, IN_ROUNDS) < 0);
	say(b, 0, ROOM - 1, WORKER_TRAINING);
	say(b, ROOM, ROOM + 1, WORKER_TRAINING);
	assert_true(slot_of(b, ROOM - 1) < 0);
	b->silent = ROOM - 1;
	for (uint32_t who = 0; who <= ROOM; who++) {
		key_of(who, key);
		if (who != b->silent)
			joining_document(b->service, &b->run, key, &d);
	}
	expect_slots(b, 0, ROOM - 1);
	expect_slots(b, ROOM, ROOM + 1);
	commit_over(b, 0, ROOM + 1); /* none is waited for twice, or not at all */
	close_service(b);
	open_service(b);
	assert_true(slot_of(b, ROOM - 1) < 0);
	expect_slots(b, 0, ROOM - 1);
	expect_slots(b, ROOM, ROOM + 1);
}

/* The same, and the last one is live, too: the joiner has its place, one that was a member before
 * has none. It reads to try again, and has lost nothing when there is room. */
static void test_one_too_many_after_a_start(void **state) {
	struct bench *b = *state;
	struct rv_errtext et = {0};
	uint32_t member;
	start_again_with_all(b);
	assert_int_equal(join(b, ROOM, &member, &et), RV_OK);
	b->silent = ROOM - 1;
	say(b, 0, ROOM + 1, WORKER_TRAINING);
	assert_int_equal(report(b, ROOM - 1, WORKER_TRAINING, &et), RV_E_FULL);
	assert_non_null(strstr(et.text, "try again when some have left"));
	keep_alive(b, 1, ROOM + 1, 20); /* 0 goes */
	commit_over(b, 1, ROOM + 1);
	assert_int_equal(report(b, ROOM - 1, WORKER_TRAINING, &et), RV_OK);
	expect_slots(b, 1, ROOM + 1);
	expect_name(b, 0, "");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_long_life, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_full_house, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_held_request_outlives_its_slot, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_slot_has_one_member, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_too_many_after_a_start, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
