/* Who is in memory: members join without end, those long gone give way and return with all that is
 * durable about them; and rosters that cannot take everybody take turns. */
#include <stdlib.h>
#include <string.h>

#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

static void open_with(struct rig *r, uint32_t min_workers, uint32_t max_here, uint32_t max_roster) {
	rig_init(r, min_workers);
	r->cfg.max_here = max_here;
	r->cfg.max_roster = max_roster;
	r->cfg.final_round = 1000;
	rig_start(r);
}

/* Lets time pass, in which members first..last report that they train. */
static void keep_alive(struct rig *r, uint32_t first, uint32_t last, int seconds) {
	for (int s = 0; s < seconds; s++) {
		for (uint32_t who = first; who <= last && s % 4 == 0; who++)
			rig_say(r, who, WORKER_TRAINING);
		rig_wait(r, RIG_S);
	}
}

static void say(struct rig *r, uint32_t first, uint32_t last, enum worker_phase phase) {
	for (uint32_t who = first; who <= last; who++)
		rig_say(r, who, phase);
}

/* Members first..last make a round; asserts that it is over them. */
static void commit_over(struct rig *r, uint32_t first, uint32_t last) {
	const uint64_t round = rig_doc(r)->round;
	say(r, first, last, WORKER_TRAINING);
	say(r, first, last, WORKER_READY);
	assert_int_equal(rig_doc(r)->phase, RUN_REDUCE);
	assert_int_equal(rig_doc(r)->n_members, last - first + 1);
	for (uint32_t i = 0; i <= last - first; i++)
		assert_int_equal(rig_doc(r)->members[i].member, first + i);
	say(r, first, last, WORKER_VOTED);
	assert_int_equal(rig_doc(r)->round, round + 1);
}

static bool is_here(const struct rig *r, uint32_t who) {
	uint8_t key[NET_KEY_BYTES];
	rig_key(who, key);
	const int slot = core_find_key(r->core, key);
	assert_int_equal(slot, core_find(r->core, who));
	return slot >= 0;
}

/* The last record of a member that is away, as a store finds it. */
static const struct core_record *away_record(const struct rig *r, uint32_t who) {
	for (int id = r->n_records; id > 0; id--) {
		const struct core_record *rec = &r->last[id % RIG_RECORDS_KEPT];
		if ((rec->type == CORE_MEMBER || rec->type == CORE_AWAY) && rec->member == who) {
			assert_int_equal(rec->type, CORE_AWAY);
			return rec;
		}
	}
	fail_msg("member %u has no record", who);
	return NULL;
}

static enum rv_err come_back(struct rig *r, uint32_t who, struct rv_errtext *et) {
	enum rv_err e = core_return(r->core, r->now_us, away_record(r, who), et);
	rig_pump(r);
	return e;
}

static enum rv_err report(struct rig *r, uint32_t who, struct rv_errtext *et) {
	uint8_t key[NET_KEY_BYTES];
	struct report rep = rig_report(r, who, WORKER_TRAINING);
	rig_key(who, key);
	rep.seq = ++r->report_seq;
	return core_report(r->core, r->now_us, key, &rep, et);
}

/* Four have room. 3 goes, and gives way to 4, which has a number of its own; 3 returns when another
 * one is long gone, and not before. */
static void test_gives_way_and_returns(void **state) {
	(void)state;
	struct rig r;
	struct rv_errtext et = {0};
	open_with(&r, 2, 4, 4);
	rig_join(&r, 4);
	say(&r, 0, 3, WORKER_TRAINING);
	keep_alive(&r, 0, 2, 12);
	commit_over(&r, 0, 2);
	rig_join_one(&r, 4);
	assert_true(!is_here(&r, 3) && is_here(&r, 4));
	assert_int_equal(core_here(r.core), 4);
	assert_int_equal(report(&r, 3, &et), RV_E_AUTH);
	rig_restart(&r);
	assert_true(!is_here(&r, 3) && is_here(&r, 4));
	say(&r, 0, 2, WORKER_TRAINING);
	assert_int_equal(come_back(&r, 3, &et), RV_E_FULL);
	assert_non_null(strstr(et.text, "4 members are here, the most that this coordinator has room for at a time: try "
									"again when some have left"));
	keep_alive(&r, 0, 2, 12);
	assert_int_equal(come_back(&r, 3, &et), RV_OK);
	assert_true(is_here(&r, 3) && !is_here(&r, 4));
	assert_int_equal(rig_last(&r, CORE_MEMBER)->member, 3);
	assert_int_equal(rig_last(&r, CORE_MEMBER)->n_candidates, 1); /* its address, too */
	assert_int_equal(come_back(&r, 4, &et), RV_E_FULL);
	rig_say(&r, 3, WORKER_TRAINING);
	commit_over(&r, 0, 3);
	rig_release(&r);
}

/* A coordinator that starts again awaits all, and all slots are taken: a joiner gets that of a
 * member of which the records show nothing for longest, and of none that may just not have reported
 * yet. */
static void test_a_start_gives_way_to_a_joiner(void **state) {
	(void)state;
	struct rig r;
	struct rv_errtext et = {0};
	uint8_t key[NET_KEY_BYTES];
	uint32_t member;
	struct join_request rq = {.protocol = CONTROL_VERSION, .has_token = true, .token = {77}};
	open_with(&r, 3, 5, 5);
	rig_join(&r, 5);
	keep_alive(&r, 0, 2, 12);
	for (int round = 0; round < 20; round++) /* 4 is in none of them, 3 in the last ones only */
		commit_over(&r, 0, round < 10 ? 2 : 3);
	rig_restart(&r);
	rig_join_one(&r, 5);
	assert_true(is_here(&r, 3) && !is_here(&r, 4) && is_here(&r, 5));
	rig_key(6, key);
	memcpy(rq.run_id, r.cfg.run_id, sizeof rq.run_id);
	assert_int_equal(core_join(r.core, r.now_us, key, &rq, true, &member, &et), RV_E_FULL);
	rig_say(&r, 3, WORKER_TRAINING);
	commit_over(&r, 0, 3);
	rig_release(&r);
}

/* Those that the round depends on stay: its last participants, though all have gone. */
static void test_participants_do_not_give_way(void **state) {
	(void)state;
	struct rig r;
	struct rv_errtext et = {0};
	uint8_t key[NET_KEY_BYTES];
	uint32_t member;
	struct join_request rq = {.protocol = CONTROL_VERSION, .has_token = true, .token = {77}};
	open_with(&r, 2, 3, 3);
	rig_join(&r, 3);
	commit_over(&r, 0, 2);
	rig_wait(&r, 60 * RIG_S);
	rig_key(3, key);
	memcpy(rq.run_id, r.cfg.run_id, sizeof rq.run_id);
	assert_int_equal(core_join(r.core, r.now_us, key, &rq, true, &member, &et), RV_E_FULL);
	rig_release(&r);
}

/* What is durable goes and comes with the member: its ban, and its blame. */
static void test_ban_and_blame_last(void **state) {
	(void)state;
	struct rig r;
	struct rv_errtext et = {0};
	open_with(&r, 2, 5, 5);
	rig_join(&r, 5);
	say(&r, 0, 4, WORKER_TRAINING);
	say(&r, 0, 4, WORKER_READY);
	for (uint32_t who = 0; who < 3; who++) {
		struct report rep = rig_report(&r, who, WORKER_REDUCING);
		rig_accuse(&rep, 1 << 3);
		rig_send(&r, who, &rep);
	}
	rig_wait(&r, 2 * RIG_S);
	assert_int_equal(rig_blamed(&r, CORE_ROSTER), 1 << 3);
	for (uint32_t who = 0; who < 5; who++)
		if (who != 3)
			rig_say(&r, who, WORKER_VOTED);
	assert_int_equal(rig_doc(&r)->round, 1);
	assert_int_equal(core_ban(r.core, r.now_us, 4, true, &et), RV_OK);
	rig_pump(&r);
	keep_alive(&r, 0, 2, 12);
	commit_over(&r, 0, 2);
	commit_over(&r, 0, 2); /* 3 and 4 have nothing under way any more */
	rig_join_one(&r, 5);
	rig_join_one(&r, 6);
	assert_true(!is_here(&r, 3) && !is_here(&r, 4));
	assert_int_equal(away_record(&r, 3)->blame_level, 1);
	assert_true(away_record(&r, 4)->banned);
	rig_restart(&r);
	assert_true(banned_equal(&rig_doc(&r)->banned, &(struct banned){1, {4}})); /* its peers know, wherever it is */
	assert_int_equal(core_ban(r.core, r.now_us, 4, false, &et), RV_E_BUSY);
	keep_alive(&r, 0, 2, 12);
	assert_int_equal(come_back(&r, 3, &et), RV_OK);
	assert_int_equal(rig_last(&r, CORE_MEMBER)->blame_level, 1);
	assert_int_equal(rig_last(&r, CORE_MEMBER)->blame_until, 1);
	keep_alive(&r, 0, 3, 4);
	assert_int_equal(come_back(&r, 4, &et), RV_OK);
	assert_int_equal(report(&r, 4, &et), RV_E_AUTH);
	assert_non_null(strstr(et.text, "member 4 is banned"));
	assert_int_equal(core_ban(r.core, r.now_us, 4, false, &et), RV_OK);
	rig_pump(&r);
	assert_int_equal(rig_doc(&r)->banned.n, 0);
	rig_say(&r, 4, WORKER_TRAINING);
	rig_release(&r);
}

/* Two hundred members in the life of a run, thirty at a time, in the memory of forty-eight. The
 * coordinator is killed on the way; some return. */
static void test_two_hundred_members(void **state) {
	(void)state;
	enum { MEMBERS = 200, HERE = 30, JOIN = 10, ROOM = 48 };
	struct rig r;
	struct rv_errtext et = {0};
	open_with(&r, 2, ROOM, ROOM);
	for (uint32_t n = JOIN; n <= MEMBERS; n += JOIN) {
		for (uint32_t who = n - JOIN; who < n; who++)
			rig_join_one(&r, who);
		const uint32_t first = n > HERE ? n - HERE : 0;
		for (uint32_t who = first >= JOIN ? first - JOIN : first; who < first; who += 2)
			rig_say(&r, who, WORKER_LEAVING); /* the others go without a word */
		keep_alive(&r, first, n - 1, 12);
		commit_over(&r, first, n - 1);
		assert_true(core_here(r.core) <= ROOM);
		if (n != 100 && n != MEMBERS)
			continue;
		rig_restart(&r);
		keep_alive(&r, first, n - 1, 12); /* until then all are awaited */
	}
	assert_true(!is_here(&r, 5) && !is_here(&r, 64) && is_here(&r, MEMBERS - 1));
	assert_int_equal(come_back(&r, 5, &et), RV_OK);
	assert_int_equal(come_back(&r, 99, &et), RV_OK);
	rig_say(&r, 5, WORKER_TRAINING);
	rig_say(&r, 99, WORKER_TRAINING);
	say(&r, MEMBERS - HERE, MEMBERS - 1, WORKER_READY);
	rig_say(&r, 5, WORKER_READY);
	rig_say(&r, 99, WORKER_READY);
	assert_int_equal(rig_doc(&r)->n_members, HERE + 2);
	assert_int_equal(rig_doc(&r)->members[0].member, 5);
	assert_int_equal(rig_doc(&r)->members[1].member, 99);
	assert_int_equal(rig_doc(&r)->members[HERE + 1].member, MEMBERS - 1);
	rig_release(&r);
}

/* All that this program has room for are here: the next one reads why, and what to do. */
static void test_a_full_house(void **state) {
	(void)state;
	struct rig r;
	struct core_record rec;
	struct rv_errtext et = {0};
	uint32_t member = 0;
	struct join_request rq = {.protocol = CONTROL_VERSION, .has_token = true};
	rig_init(&r, 2);
	r.cfg.max_here = NET_MAX_HERE;
	memcpy(rq.run_id, r.cfg.run_id, sizeof rq.run_id);
	struct core *c = core_init(malloc(core_size(&r.cfg)), &r.cfg, r.now_us);
	for (uint32_t who = 0; who <= NET_MAX_HERE; who++) {
		uint8_t key[NET_KEY_BYTES];
		rig_key(who, key);
		memcpy(rq.token, &who, sizeof who);
		enum rv_err e = core_join(c, r.now_us, key, &rq, true, &member, &et);
		assert_int_equal(e, who < NET_MAX_HERE ? RV_OK : RV_E_FULL);
		while (core_next_record(c, &rec))
			core_persisted(c, rec.id, r.now_us);
	}
	assert_int_equal(member, NET_MAX_HERE - 1);
	assert_string_equal(et.text, "join: 4096 members are here, the most that this coordinator has room for at a time: "
								 "try again when some have left");
	free(c);
}

/* Five are ready for rosters of three: those go first that have waited for longest, so nobody is
 * out twice in a row; and by lot, so all come to the same number. */
static void test_rosters_take_turns(void **state) {
	(void)state;
	enum { WORKERS = 5, ROSTER = 3, ROUNDS = 60 };
	int count[WORKERS] = {0};
	uint64_t last[WORKERS] = {0};
	struct rig r;
	open_with(&r, 2, 8, ROSTER);
	rig_join(&r, WORKERS);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		say(&r, 0, WORKERS - 1, WORKER_TRAINING);
		say(&r, 0, WORKERS - 1, WORKER_READY);
		const struct core_record rec = *rig_last(&r, CORE_ROSTER);
		assert_int_equal(rec.n_members, ROSTER);
		for (int i = 0; i < ROSTER; i++) {
			const uint32_t who = rec.members[i];
			assert_true(round - last[who] <= 2);
			last[who] = round;
			count[who]++;
			rig_say(&r, who, WORKER_VOTED);
		}
		assert_int_equal(rig_doc(&r)->round, round);
		if (round % 20 == 0)
			rig_wait(&r, RIG_S);
	}
	for (int who = 0; who < WORKERS; who++)
		assert_in_range(count[who], ROUNDS * ROSTER / WORKERS - 9, ROUNDS * ROSTER / WORKERS + 9);
	rig_release(&r);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gives_way_and_returns),        cmocka_unit_test(test_a_start_gives_way_to_a_joiner),
		cmocka_unit_test(test_participants_do_not_give_way), cmocka_unit_test(test_ban_and_blame_last),
		cmocka_unit_test(test_two_hundred_members),          cmocka_unit_test(test_a_full_house),
		cmocka_unit_test(test_rosters_take_turns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
