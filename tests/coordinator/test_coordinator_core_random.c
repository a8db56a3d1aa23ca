/* Random histories. Two cores fed the same announce the same; a twin that replays each record
 * announces the same facts; every document is valid and its number grows; a round is committed
 * once. First anything at all is reported; then workers that follow the documents, with deaths,
 * restarts of them and of the coordinator, and accusations: once the faults end, the run ends
 * too. */
#include <string.h>

#include "base/rng.h"
#include "tests/common/check.h"
#include "tests/coordinator/core_rig.h"

enum { WORKERS = 5, SEEDS = 30, STEPS = 600 };

/* ---- anything at all ---- */

static struct report any_report(struct rv_rng *rng, const struct rig *r, uint32_t who) {
	struct report rep = rig_report(r, who, (enum worker_phase)(1 + rv_rng_below(rng, 6)));
	rep.boot = 1 + rv_rng_below(rng, 20) / 19;
	rig_accuse(&rep, rv_rng_below(rng, 8) == 0 ? rv_rng_u64(rng) : 0);
	if (rv_rng_below(rng, 10) == 0)
		rep.round += rv_rng_below(rng, 3) - 1;
	if (rv_rng_below(rng, 10) == 0)
		rep.attempt += (uint32_t)rv_rng_below(rng, 3) - 1;
	if (rv_rng_below(rng, 10) == 0)
		rep.chain.b[0] ^= 1;
	if (rv_rng_below(rng, 8) == 0)
		rep.digest.b[0] ^= 1;
	if (rv_rng_below(rng, 20) == 0)
		rep.n_chunks = 1 + (uint32_t)rv_rng_below(rng, 3);
	if (rv_rng_below(rng, 6) == 0) {
		rep.full_round = rep.round - rv_rng_below(rng, 3);
		rep.full_hash = rig_digest(rep.full_round + rv_rng_below(rng, 5) / 4);
	}
	rep.tokens = rv_rng_below(rng, 4) * 500;
	return rep;
}

static void any_history(uint64_t seed, uint32_t min_workers) {
	struct rig r, same;
	struct rv_rng rng = rv_rng_of(seed, 1);
	rig_init(&r, min_workers);
	r.cfg.weight_by_tokens = seed % 2 == 0;
	r.cfg.final_round = 1000;
	rig_start(&r);
	rig_init(&same, min_workers);
	same.cfg = r.cfg;
	rig_start(&same);
	rig_join(&r, WORKERS);
	rig_join(&same, WORKERS);
	for (int i = 0; i < STEPS; i++) {
		if (rv_rng_below(&rng, 4) == 0) {
			int64_t us = (int64_t)rv_rng_below(&rng, 4 * (uint64_t)RIG_S);
			rig_wait(&r, us);
			rig_wait(&same, us);
		} else {
			uint32_t who = (uint32_t)rv_rng_below(&rng, WORKERS);
			struct report rep = any_report(&rng, &r, who);
			rig_send(&r, who, &rep);
			rig_send(&same, who, &rep);
		}
		assert_int_equal(rig_doc(&r)->seq, rig_doc(&same)->seq);
		assert_int_equal(rig_doc(&r)->phase, rig_doc(&same)->phase);
		assert_memory_equal(&rig_doc(&r)->chain, &rig_doc(&same)->chain, sizeof rig_doc(&r)->chain);
	}
	rig_release(&r);
	rig_release(&same);
}

static void test_anything_at_all(void **state) {
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		any_history(seed, 1 + (uint32_t)(seed % 4));
}

/* ---- workers that follow the documents ---- */

struct worker {
	bool running;
	uint64_t boot, round;
	uint32_t vote_attempt; /* on disk; 0: none */
	bool ready;
	int work; /* what is left before the next phase */
};

struct world {
	struct rig r;
	struct rv_rng rng;
	struct worker w[WORKERS];
};

static struct report follow(struct world *x, uint32_t who) {
	const struct document *d = rig_doc(&x->r);
	struct worker *w = &x->w[who];
	if (w->round < d->round) {
		*w = (struct worker){.running = true, .boot = w->boot, .round = d->round, .work = 2};
		struct report behind = rig_report(&x->r, who, WORKER_SYNCING);
		behind.boot = w->boot;
		behind.round = d->round - 1;
		return behind;
	}
	enum worker_phase phase = WORKER_TRAINING;
	bool named = d->phase == RUN_REDUCE && document_find(d, who) >= 0;
	bool mine = named && d->members[document_find(d, who)].boot == w->boot;
	if (w->work > 0)
		w->work--;
	else if (!w->ready && d->phase != RUN_WAITING)
		w->ready = true;
	else if (mine && w->vote_attempt != d->attempt && rv_rng_below(&x->rng, 2) == 0)
		w->vote_attempt = d->attempt;
	if (w->ready)
		phase = mine ? WORKER_REDUCING : WORKER_READY;
	if (named && w->vote_attempt == d->attempt)
		phase = WORKER_VOTED;
	struct report rep = rig_report(&x->r, who, phase);
	rep.boot = w->boot;
	bool reduces = phase == WORKER_REDUCING || phase == WORKER_VOTED;
	uint64_t silent = 0;
	for (int i = 0; mine && reduces && i < d->n_members; i++)
		if (!x->w[d->members[i].member].running)
			silent |= 1ull << i;
	rig_accuse(&rep, silent);
	rep.full_round = w->round;
	rep.full_hash = rig_digest(w->round + 5000);
	return rep;
}

static void kill_worker(struct world *x, uint32_t who) {
	x->w[who].running = false;
	x->w[who].ready = false;
	x->w[who].work = 2;
}

static void rise(struct world *x, uint32_t who) {
	x->w[who].running = true;
	x->w[who].boot += 1;
}

static void one_fault(struct world *x) {
	uint32_t who = (uint32_t)rv_rng_below(&x->rng, WORKERS);
	switch (rv_rng_below(&x->rng, 12)) {
	case 0:
		kill_worker(x, who);
		break;
	case 1:
		x->w[who].running = false; /* SIGSTOP, or cut off: it comes back as it was */
		break;
	case 2:
	case 3:
		if (!x->w[who].running && (x->w[who].ready || rv_rng_below(&x->rng, 2)))
			x->w[who].running = true;
		else if (!x->w[who].running)
			rise(x, who);
		break;
	case 4:
		if (x->r.n_records < RIG_RECORDS_KEPT)
			rig_restart(&x->r);
		break;
	default:
		break;
	}
}

static void live(struct world *x, bool faults) {
	if (faults)
		one_fault(x);
	uint32_t who = (uint32_t)rv_rng_below(&x->rng, WORKERS);
	if (x->w[who].running) {
		struct report rep = follow(x, who);
		rig_send(&x->r, who, &rep);
	}
	rig_wait(&x->r, (int64_t)rv_rng_below(&x->rng, (uint64_t)RIG_S / 2));
}

static void follow_history(uint64_t seed) {
	static struct world x;
	memset(&x, 0, sizeof x);
	x.rng = rv_rng_of(seed, 2);
	rig_init(&x.r, 1 + (uint32_t)(seed % WORKERS));
	rig_start(&x.r);
	rig_join(&x.r, WORKERS);
	for (uint32_t i = 0; i < WORKERS; i++)
		x.w[i] = (struct worker){.running = true, .boot = 1, .work = 2};
	for (int i = 0; i < STEPS && rig_doc(&x.r)->phase != RUN_DONE; i++)
		live(&x, true);
	for (uint32_t i = 0; i < WORKERS; i++)
		if (!x.w[i].running)
			rise(&x, i);
	for (int i = 0; i < 4000 && rig_doc(&x.r)->phase != RUN_DONE; i++)
		live(&x, false);
	if (rig_doc(&x.r)->phase != RUN_DONE)
		fail_msg("seed %llu: the run stands still in round %llu, attempt %u, phase %u", (unsigned long long)seed,
				 (unsigned long long)rig_doc(&x.r)->round, rig_doc(&x.r)->attempt, rig_doc(&x.r)->phase);
	rig_release(&x.r);
}

static void test_runs_end_when_faults_do(void **state) {
	(void)state;
	for (uint64_t seed = 0; seed < 4 * SEEDS; seed++)
		follow_history(seed);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_anything_at_all),
		cmocka_unit_test(test_runs_end_when_faults_do),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
