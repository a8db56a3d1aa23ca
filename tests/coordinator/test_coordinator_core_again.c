/* One liar in one row that ends an attempt of each round in a way that sets it at odds with nobody,
 * or not for long. It costs a few attempts, and no honest member is excluded. */
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

enum { ROUNDS = 40, MOST = 12, NOBODY = MOST };

struct plot {
	struct rig r;
	int n;                            /* members */
	uint32_t liar;                    /* one of them */
	uint64_t apart[MOST];             /* by member: whom it says it is apart from */
	uint64_t linked[MOST];            /* ... whom it is linked with */
	uint64_t boot;                    /* of the liar's process */
	int lost;                         /* attempts */
	uint64_t about[CORE_EVENT_COUNT]; /* members, by event */
};

static uint64_t others_of(const struct plot *p, uint32_t who) {
	return ((UINT64_C(1) << p->n) - 1) & ~(UINT64_C(1) << who);
}

/* Links two, or parts them; of two that are apart the liar alone says so. */
static void link_two(struct plot *p, uint32_t a, uint32_t b, bool linked) {
	const uint64_t of_a = UINT64_C(1) << a, of_b = UINT64_C(1) << b;
	p->linked[a] = linked ? p->linked[a] | of_b : p->linked[a] & ~of_b;
	p->linked[b] = linked ? p->linked[b] | of_a : p->linked[b] & ~of_a;
	p->apart[a] = a == p->liar && !linked ? p->apart[a] | of_b : p->apart[a] & ~of_b;
	p->apart[b] = b == p->liar && !linked ? p->apart[b] | of_a : p->apart[b] & ~of_a;
}

static void begin(struct plot *p, int n, uint32_t liar) {
	*p = (struct plot){.n = n, .liar = liar, .boot = 1};
	rig_init(&p->r, 2);
	p->r.cfg.final_round = ROUNDS + 1;
	rig_start(&p->r);
	rig_join(&p->r, n);
	for (uint32_t i = 0; i < (uint32_t)n; i++)
		p->linked[i] = others_of(p, i);
}

static void say(struct plot *p, uint32_t who, enum worker_phase phase, uint32_t accused) {
	struct rig *r = &p->r;
	struct report rep = rig_report(r, who, phase);
	const int place = accused == NOBODY ? -1 : document_find(rig_doc(r), accused);
	if (who == p->liar) {
		rep.boot = p->boot;
		for (int i = 0; i < rep.commitment.n; i++)
			rep.commitment.roots[i].root = rig_root(who, p->boot, rep.round, rep.commitment.roots[i].codec);
	}
	for (uint32_t i = 0; i < (uint32_t)p->n; i++)
		if (p->linked[who] >> i & 1)
			report_add_path(&rep, i, PATH_DIALED);
		else if (p->apart[who] >> i & 1)
			report_add_path(&rep, i, PATH_APART);
	rig_accuse(&rep, place >= 0 ? UINT64_C(1) << place : 0);
	rig_send(r, who, &rep);
}

static void freeze(struct plot *p) {
	rig_wait(&p->r, RIG_S / 10);
	for (uint32_t i = 0; i < (uint32_t)p->n; i++)
		say(p, i, WORKER_TRAINING, NOBODY);
	for (uint32_t i = 0; i < (uint32_t)p->n; i++)
		say(p, i, WORKER_READY, NOBODY);
	rig_wait(&p->r, 6 * RIG_S); /* where one is not waited for */
	assert_int_equal(rig_doc(&p->r)->phase, RUN_REDUCE);
}

/* Lets one accuse another, if they exchange data, until the attempt ends, or for seconds. */
static void end_attempt(struct plot *p, uint32_t accuser, uint32_t accused) {
	struct rig *r = &p->r;
	const uint32_t attempt = rig_doc(r)->attempt;
	if (!rig_takes_part(r, accuser) || !rig_takes_part(r, accused) || !(rig_owns(r, accuser) || rig_owns(r, accused)))
		return;
	for (int s = 0; s < 6 && rig_doc(r)->attempt == attempt; s++) {
		for (uint32_t i = 0; i < (uint32_t)p->n; i++)
			say(p, i, WORKER_REDUCING, i == accuser ? accused : NOBODY);
		rig_wait(r, RIG_S);
	}
	p->lost += rig_doc(r)->attempt != attempt;
}

static void vote(struct plot *p) {
	const uint64_t round = rig_doc(&p->r)->round;
	for (uint32_t i = 0; i < (uint32_t)p->n && rig_doc(&p->r)->round == round; i++)
		if (rig_takes_part(&p->r, i))
			say(p, i, WORKER_VOTED, NOBODY);
	assert_int_equal(rig_doc(&p->r)->round, round + 1);
	rig_read_events(&p->r, p->about);
}

static void check(struct plot *p, int most) {
	assert_in_range(p->lost, 1, most);
	assert_true((p->about[CORE_EVENT_EXCLUDED] & others_of(p, p->liar)) == 0);
	rig_release(&p->r);
}

/* It says that it is apart from all but one, which then owns everything; withholds from that. */
static void test_one_that_is_apart_from_all_but_its_victim(void **state) {
	(void)state;
	for (int n = 3; n <= 7; n++) {
		struct plot p;
		const uint32_t victim = (uint32_t)n - 2;
		begin(&p, n, (uint32_t)n - 1);
		for (uint32_t i = 0; i < victim; i++)
			link_two(&p, p.liar, i, false);
		for (int round = 0; round < ROUNDS; round++) {
			freeze(&p);
			assert_true(rig_takes_part(&p.r, victim));
			end_attempt(&p, victim, p.liar);
			vote(&p);
		}
		check(&p, 3);
	}
}

/* The first one accuses one alone, another one in each round or always the same: of two that are at
 * odds the later one is put away. It starts again as soon as the round is over. */
static void test_one_that_starts_again_has_accused(void **state) {
	(void)state;
	for (int n = 4; n <= 8; n++)
		for (int victims = 1; victims < n; victims++) {
			struct plot p;
			begin(&p, n, 0);
			for (int round = 0; round < ROUNDS; round++) {
				freeze(&p);
				end_attempt(&p, p.liar, (uint32_t)(n - 1 - round % victims));
				vote(&p);
				p.boot += RIG_S; /* a process of a second later */
			}
			check(&p, 10);
		}
}

/* It accuses one whose link it has ended, and says that the two are apart; is linked with it again
 * when the round is over, and goes on with another one. */
static void test_one_that_is_apart_from_them_in_turn(void **state) {
	(void)state;
	for (int n = 3; n <= 8; n++)
		for (int victims = 2; victims < n; victims++) {
			struct plot p;
			begin(&p, n, (uint32_t)n - 1);
			for (int round = 0; round < ROUNDS; round++) {
				const uint32_t victim = (uint32_t)(round % victims);
				freeze(&p);
				link_two(&p, p.liar, victim, false);
				end_attempt(&p, p.liar, victim);
				vote(&p);
				link_two(&p, p.liar, victim, true);
			}
			check(&p, 12);
		}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_that_is_apart_from_all_but_its_victim),
		cmocka_unit_test(test_one_that_starts_again_has_accused),
		cmocka_unit_test(test_one_that_is_apart_from_them_in_turn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
