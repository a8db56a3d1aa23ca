/* Two at odds in one row: one accuses the other alone, and both are linked with everybody. From
 * then on neither owns chunks, so the same two cost one attempt; neither is named as at fault. */

#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

enum { ROUNDS = 40, MOST = 16 };

/* Sends a report with links to all others, and accusations of these members. */
static void say(struct rig *r, uint32_t who, enum worker_phase phase, uint64_t suspects) {
	struct report rep = rig_report(r, who, phase);
	uint64_t places = 0;
	for (uint32_t i = 0; i < MOST; i++) {
		const int place = document_find(rig_doc(r), i);
		if (i != who)
			report_add_path(&rep, i, PATH_DIALED);
		if (suspects >> i & 1 && place >= 0)
			places |= UINT64_C(1) << place;
	}
	rig_accuse(&rep, places);
	rig_send(r, who, &rep);
}

static void begin(struct rig *r, int n) {
	rig_init(r, 2);
	r->cfg.final_round = ROUNDS + 1;
	rig_start(r);
	rig_join(r, n);
}

static void freeze(struct rig *r, int n) {
	rig_wait(r, RIG_S / 10); /* reports of before do not show that one is alive */
	for (uint32_t i = 0; i < (uint32_t)n; i++)
		say(r, i, WORKER_TRAINING, 0);
	for (uint32_t i = 0; i < (uint32_t)n; i++)
		say(r, i, WORKER_READY, 0);
	assert_int_equal(rig_doc(r)->phase, RUN_REDUCE);
}

static void vote(struct rig *r, int n) {
	const uint64_t round = rig_doc(r)->round;
	for (uint32_t i = 0; i < (uint32_t)n && rig_doc(r)->round == round; i++)
		if (rig_takes_part(r, i))
			say(r, i, WORKER_VOTED, 0);
	assert_int_equal(rig_doc(r)->round, round + 1);
}

/* Lets `accuser` accuse `accused` until the attempt ends, or for seconds. Others reduce. */
static bool costs_an_attempt(struct rig *r, int n, uint32_t accuser, uint32_t accused) {
	const uint32_t attempt = rig_doc(r)->attempt;
	for (int s = 0; s < 6 && rig_doc(r)->attempt == attempt; s++) {
		for (uint32_t i = 0; i < (uint32_t)n; i++)
			say(r, i, WORKER_REDUCING, i == accuser ? UINT64_C(1) << accused : 0);
		rig_wait(r, RIG_S);
	}
	return rig_doc(r)->attempt != attempt;
}

/* 3 withholds from 0, or 0 says so in vain: it costs an attempt once, and then nobody anything. */
static void test_the_same_two_cost_one_attempt(void **state) {
	(void)state;
	struct rig r;
	uint64_t about[CORE_EVENT_COUNT] = {0};
	int lost = 0;
	begin(&r, 4);
	for (int round = 0; round < ROUNDS; round++) {
		freeze(&r, 4);
		RIG_EXPECT_MEMBERS(&r, 0, 1, 2, 3);
		const bool deal = rig_owns(&r, 0) || rig_owns(&r, 3);
		assert_int_equal(deal, round == 0);
		assert_true(rig_owns(&r, 1) && rig_owns(&r, 2));
		lost += costs_an_attempt(&r, 4, 0, 3);
		vote(&r, 4);
		rig_read_events(&r, about);
	}
	assert_int_equal(lost, 1);
	assert_int_equal(about[CORE_EVENT_AT_ODDS], 1 << 0);
	assert_int_equal(about[CORE_EVENT_SUSPECTED] | about[CORE_EVENT_EXCLUDED], 0);
	rig_release(&r);
}

/* The last one accuses whom it deals with, in each round and attempt. Returns the attempts lost. */
static int lost_to_one(struct rig *r, int n, uint64_t about[CORE_EVENT_COUNT]) {
	const uint32_t liar = (uint32_t)n - 1;
	int lost = 0;
	begin(r, n);
	for (int round = 0; round < ROUNDS; round++) {
		freeze(r, n);
		for (uint32_t i = 0; i < liar && rig_takes_part(r, liar); i++)
			if (rig_takes_part(r, i) && (rig_owns(r, i) || rig_owns(r, liar)))
				lost += costs_an_attempt(r, n, liar, i);
		vote(r, n);
		rig_read_events(r, about);
	}
	return lost;
}

/* It costs what makes it be at odds with most others, or with four, and then one attempt in 2, 4, 8
 * ... rounds. */
static void test_one_at_odds_with_many_is_left_out(void **state) {
	(void)state;
	for (int n = 4; n <= 8; n++) {
		struct rig r;
		uint64_t about[CORE_EVENT_COUNT] = {0};
		const int lost = lost_to_one(&r, n, about);
		assert_in_range(lost, 2, 10);
		assert_int_equal(about[CORE_EVENT_EXCLUDED], UINT64_C(1) << (n - 1));
		rig_release(&r);
	}
}

/* The others vote over one that got other bytes from one of them: at odds, not mute. */
static void test_one_outvoted_is_at_odds(void **state) {
	(void)state;
	struct rig r;
	uint64_t about[CORE_EVENT_COUNT] = {0};
	begin(&r, 4);
	freeze(&r, 4);
	say(&r, 0, WORKER_REDUCING, 1 << 3);
	for (uint32_t i = 1; i < 4; i++)
		say(&r, i, WORKER_VOTED, 0);
	assert_int_equal(rig_doc(&r)->round, 1);
	rig_read_events(&r, about);
	assert_true((about[CORE_EVENT_AT_ODDS] & 1) != 0 && about[CORE_EVENT_MUTE] == 0);
	freeze(&r, 4);
	RIG_EXPECT_MEMBERS(&r, 0, 1, 2, 3);
	assert_true(!rig_owns(&r, 0) && rig_owns(&r, 1) && rig_owns(&r, 2) && !rig_owns(&r, 3));
	rig_release(&r);
}

/* One that accuses half of the others, and is outvoted, may fail itself. */
static void test_one_outvoted_against_many_is_mute(void **state) {
	(void)state;
	struct rig r;
	begin(&r, 4);
	freeze(&r, 4);
	say(&r, 0, WORKER_REDUCING, 1 << 3 | 1 << 2);
	for (uint32_t i = 1; i < 4; i++)
		say(&r, i, WORKER_VOTED, 0);
	assert_int_equal(rig_doc(&r)->round, 1);
	assert_true(rig_saw(&r, CORE_EVENT_MUTE, 0));
	freeze(&r, 4);
	assert_true(rig_owns(&r, 0) && rig_owns(&r, 3));
	rig_release(&r);
}

/* The last two of seven accuse all others and each other, in each attempt: that ends one, and who
 * accuses most is left out for it, the other one outvoted. */
static void test_two_that_accuse_all_are_left_out(void **state) {
	(void)state;
	enum { N = 7, ALL = (1 << N) - 1 };
	struct rig r;
	uint64_t about[CORE_EVENT_COUNT] = {0};
	int lost = 0;
	begin(&r, N);
	for (int round = 0; round < ROUNDS; round++) {
		const uint64_t now = rig_doc(&r)->round;
		freeze(&r, N);
		const uint32_t attempt = rig_doc(&r)->attempt;
		for (int s = 0; s < 6 && rig_doc(&r)->round == now && rig_doc(&r)->attempt == attempt; s++) {
			for (uint32_t i = 0; i < N; i++)
				say(&r, i, WORKER_REDUCING, i >= N - 2 ? ALL & ~(UINT64_C(1) << i) : 0);
			rig_wait(&r, RIG_S);
		}
		lost += rig_doc(&r)->attempt != attempt;
		vote(&r, N);
		rig_read_events(&r, about);
	}
	assert_in_range(lost, 1, 12);
	assert_int_equal((about[CORE_EVENT_SUSPECTED] | about[CORE_EVENT_EXCLUDED]) & ((1 << (N - 2)) - 1), 0);
	rig_release(&r);
}

/* The last four of seven pause, and the others accuse them. They report again before their data has
 * come, and then the others take it back: nobody is put away. */
static void test_most_that_pause_bring_blame_on_nobody(void **state) {
	(void)state;
	enum { N = 7, AWAKE = 3, ALL = (1 << N) - 1, PAUSED = ALL & ~((1 << AWAKE) - 1) };
	struct rig r;
	uint64_t about[CORE_EVENT_COUNT] = {0};
	begin(&r, N);
	freeze(&r, N);
	rig_wait(&r, RIG_S / 10);
	for (int i = 0; i < 6; i++) {
		for (uint32_t who = 0; who < AWAKE; who++)
			say(&r, who, WORKER_REDUCING, PAUSED);
		rig_wait(&r, RIG_S / 4);
	}
	for (uint32_t who = AWAKE; who < N; who++)
		say(&r, who, WORKER_REDUCING, 0);
	rig_wait(&r, RIG_S / 100);
	assert_int_equal(rig_doc(&r)->attempt, 1);
	for (uint32_t who = 0; who < AWAKE; who++)
		say(&r, who, WORKER_REDUCING, 0);
	rig_wait(&r, RIG_S);
	assert_int_equal(rig_doc(&r)->attempt, 1);
	vote(&r, N);
	rig_read_events(&r, about);
	assert_int_equal(about[CORE_EVENT_SUSPECTED], 0);
	rig_release(&r);
}

/* Returns the next member from `from` on that takes part, and is none of the last two; if there is
 * one. */
static uint32_t next_victim(const struct rig *r, int n, uint32_t from) {
	uint32_t who = from % (uint32_t)(n - 2);
	for (int i = 2; i < n && !rig_takes_part(r, who); i++)
		who = (who + 1) % (uint32_t)(n - 2);
	return who;
}

/* The last two of eight accuse one together, another one in each attempt: nobody is excluded for
 * that but themselves, nor named as at fault, and they cost a few attempts. */
static void test_two_that_agree_exclude_nobody(void **state) {
	(void)state;
	enum { N = 8, LIARS = 2 };
	struct rig r;
	int lost = 0, said = 0;
	begin(&r, N);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		bool again = true;
		freeze(&r, N);
		for (uint32_t k = 0; again && k < N / 2 && rig_takes_part(&r, N - 1) && rig_takes_part(&r, N - 2); k++) {
			const uint32_t attempt = rig_doc(&r)->attempt, victim = next_victim(&r, N, round + k);
			for (int s = 0; s < 6 && rig_doc(&r)->attempt == attempt; s++) {
				for (uint32_t i = 0; i < N; i++)
					say(&r, i, WORKER_REDUCING, i >= N - LIARS ? UINT64_C(1) << victim : 0);
				rig_wait(&r, RIG_S);
			}
			again = rig_doc(&r)->attempt != attempt;
			lost += again;
		}
		vote(&r, N);
	}
	struct core_event ev;
	while (core_next_event(r.core, &ev)) {
		const bool names = ev.type == CORE_EVENT_EXCLUDED || ev.type == CORE_EVENT_SUSPECTED;
		assert_true(!names || ev.member >= N - LIARS);
		said += ev.type == CORE_EVENT_AT_ODDS && ev.member >= N - LIARS;
	}
	assert_true(said > 0);
	assert_in_range(lost, 1, 3 * ROUNDS / 4);
	rig_release(&r);
}

/* The last two of eight accuse five of the others, one in each round, and go on so: the one that
 * has accused three is left out, and four of the others own from then on. */
static void test_two_that_accuse_most_leave_four_to_own(void **state) {
	(void)state;
	enum { N = 8 };
	struct rig r;
	begin(&r, N);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		const uint32_t victim = round % 5, liar = victim < 3 ? N - 1 : N - 2;
		int owners = 0;
		freeze(&r, N);
		if (rig_takes_part(&r, liar) && rig_takes_part(&r, victim) && (rig_owns(&r, liar) || rig_owns(&r, victim)))
			costs_an_attempt(&r, N, liar, victim);
		for (uint32_t i = 0; i < N - 2; i++)
			owners += rig_owns(&r, i);
		assert_in_range(owners, round < 4 ? 2 : 4, N - 2);
		vote(&r, N);
	}
	rig_release(&r);
}

/* ---- several that plan together ---- */

/* Whom the last `n_liars` of sixteen accuse, and which of them do. */
struct plot {
	int n_liars, n_accuse, n_victims;
	bool each;  /* each of them the next ones, not all the same */
	bool moves; /* others in each attempt */
};

/* Returns the set of members that the liar accuses, of those that take part and are honest. */
static uint64_t victims_of(const struct rig *r, const struct plot *p, uint32_t liar) {
	const uint32_t honest = MOST - (uint32_t)p->n_liars, first = MOST - (uint32_t)p->n_accuse;
	const uint32_t moved = p->moves ? (uint32_t)rig_doc(r)->round + rig_doc(r)->attempt : 0;
	uint32_t at = ((p->each ? liar - first : 0) + moved) * (uint32_t)p->n_victims;
	uint64_t set = 0;
	int n = 0;
	for (uint32_t k = 0; k < honest && n < p->n_victims; k++, at++) {
		const uint32_t who = at % honest;
		const bool deals = rig_takes_part(r, who) && (rig_owns(r, who) || rig_owns(r, liar));
		set |= (uint64_t)deals << who;
		n += deals;
	}
	return liar >= first ? set : 0;
}

/* Lets them accuse until the attempt ends, or for seconds. Returns true if it ends. */
static bool plot_an_attempt(struct rig *r, const struct plot *p) {
	const uint32_t attempt = rig_doc(r)->attempt;
	uint64_t victims[MOST], any = 0;
	for (uint32_t i = 0; i < MOST; i++)
		any |= victims[i] = rig_takes_part(r, i) ? victims_of(r, p, i) : 0;
	for (int s = 0; any != 0 && s < 6 && rig_doc(r)->attempt == attempt; s++) {
		for (uint32_t i = 0; i < MOST; i++)
			say(r, i, WORKER_REDUCING, victims[i]);
		rig_wait(r, RIG_S);
	}
	return rig_doc(r)->attempt != attempt;
}

static void check_events(struct rig *r, const struct plot *p) {
	struct core_event ev;
	while (core_next_event(r->core, &ev))
		if (ev.type == CORE_EVENT_EXCLUDED)
			assert_true(ev.member >= (uint32_t)(MOST - p->n_liars));
}

/* No round costs more attempts than they are if they agree, and two more if not, they own at most
 * twice their part of the chunks of all rounds, and nobody else is excluded. */
static void judge_plot(const struct plot *p) {
	struct rig r;
	int owned = 0, all = 0;
	begin(&r, MOST);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		int lost = 0;
		freeze(&r, MOST);
		while (plot_an_attempt(&r, p))
			lost++;
		assert_in_range(lost, 0, p->n_liars > 1 && !p->each ? p->n_liars : p->n_liars + 2);
		const struct document *d = rig_doc(&r);
		for (int i = 0; i < d->n_ranges; i++) {
			const bool liar = d->members[d->ranges[i].owner].member >= (uint32_t)(MOST - p->n_liars);
			owned += liar ? (int)d->ranges[i].count : 0;
			all += (int)d->ranges[i].count;
		}
		check_events(&r, p);
		vote(&r, MOST);
	}
	assert_true(MOST * owned <= 2 * p->n_liars * all);
	rig_release(&r);
}

static void test_few_that_plot_cost_themselves_as_much(void **state) {
	(void)state;
	for (int n = 1; n <= 5; n++)
		for (int accuse = 1; accuse <= n; accuse++)
			for (int victims = 1; victims <= 7; victims++)
				for (int how = 0; how < 4; how++) {
					const struct plot p = {n, accuse, victims, how & 1, how >> 1};
					judge_plot(&p);
				}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_two_cost_one_attempt),
		cmocka_unit_test(test_one_at_odds_with_many_is_left_out),
		cmocka_unit_test(test_two_that_agree_exclude_nobody),
		cmocka_unit_test(test_two_that_accuse_all_are_left_out),
		cmocka_unit_test(test_most_that_pause_bring_blame_on_nobody),
		cmocka_unit_test(test_two_that_accuse_most_leave_four_to_own),
		cmocka_unit_test(test_few_that_plot_cost_themselves_as_much),
		cmocka_unit_test(test_one_outvoted_is_at_odds),
		cmocka_unit_test(test_one_outvoted_against_many_is_mute),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
