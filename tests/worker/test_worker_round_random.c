/* test_worker_round_random.c: the round core under random histories: documents skipped, actions
 * that fail, stall or are superseded, crashes with restart from what was on disk. A model of the
 * platform checks every action (safety); then the faults stop and the run must end (liveness). */
#include "round_fixture.h"

#include "base/rng.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

enum { SEEDS = 300, STEPS = 3000, HEARTBEAT_US = 1000, MAX_CALM_STEPS = 20000 };

struct world {
	struct round_core *c;
	struct rv_rng rng;
	bool calm; /* the faults are over */
	int64_t now;

	/* The coordinator's truth. */
	struct document doc;
	uint64_t seq, round, snapshot_round;
	uint32_t attempt; /* 0: open */
	bool named;

	/* What the modelled platform holds; `disk_*` survive a crash. */
	uint64_t disk_round;
	bool disk_log;
	uint64_t disk_log_round;
	uint32_t disk_log_attempt;
	struct rv_hash disk_log_digest;
	uint64_t disk_steps, disk_steps_round; /* of the replica: H of that round, or 0 */
	uint64_t overlap, steps, ahead;
	bool encoded;
	uint64_t encoded_round;
	bool reducing;
	uint32_t reduce_attempt;
	struct round_action train, trainer_job, fetch, persist; /* outstanding; type NONE: not */
	uint32_t persist_attempt;
	bool finished;
};

static bool chance(struct world *w, uint64_t percent) {
	return rv_rng_below(&w->rng, 100) < percent;
}

static bool fault(struct world *w, uint64_t percent) {
	return !w->calm && chance(w, percent);
}

static struct participant_progress progress_of(const struct world *w) {
	return (struct participant_progress){
		.steps_done = w->steps, .tokens = w->steps * 10, .ahead = w->ahead, .ahead_tokens = w->ahead * 10};
}

static void boot(struct world *w) {
	struct round_config cfg = {.member = FIXTURE_SELF,
							   .steps_per_round = FIXTURE_H,
							   .overlap_steps = w->overlap,
							   .n_chunks = {FIXTURE_CHUNKS},
							   .late = chance(w, 50) ? LATE_KEEP : LATE_DISCARD,
							   .heartbeat_us = HEARTBEAT_US};
	struct rv_hash chain = chain_at(w->disk_round);
	w->steps = w->disk_steps_round == w->disk_round ? w->disk_steps : 0;
	w->ahead = 0;
	w->encoded = w->reducing = false;
	w->train = w->trainer_job = w->fetch = w->persist = (struct round_action){0};
	const struct participant_progress progress = progress_of(w);
	w->c = round_core_init(w->c, &cfg, (uint64_t)w->now, w->disk_round, &chain, &progress, w->now);
	if (w->disk_log)
		round_on_persisted(w->c, w->now, w->disk_log_round, w->disk_log_attempt, &w->disk_log_digest, true);
}

/* ---- the coordinator ---- */

static void announce(struct world *w) {
	enum run_phase phase = w->round == FIXTURE_ROUNDS ? RUN_DONE : w->attempt > 0 ? RUN_REDUCE : RUN_OPEN;
	if (phase == RUN_OPEN && fault(w, 20))
		phase = RUN_WAITING;
	document_make(&w->doc, ++w->seq, phase, w->round, w->snapshot_round);
	w->doc.attempt = phase == RUN_REDUCE ? w->attempt : 0;
	uint64_t members = 1 | (w->calm ? 2 : rv_rng_below(&w->rng, 16));
	members &= ~(UINT64_C(1) << FIXTURE_SELF);
	if (w->named && phase == RUN_REDUCE)
		members |= UINT64_C(1) << FIXTURE_SELF;
	document_members(&w->doc, members);
	if (!fault(w, 30))
		assert_int_equal(round_on_document(w->c, &w->doc, NULL), RV_OK);
}

/* In calm weather it waits for us, as long as we make progress; otherwise it goes its own way. */
static void coordinator_step(struct world *w) {
	enum worker_phase phase = round_phase(w->c);
	bool ours = round_round(w->c) == w->round;
	if (w->round == FIXTURE_ROUNDS) {
		announce(w);
	} else if (w->attempt == 0) {
		if (w->calm ? ours && phase == WORKER_READY : chance(w, 40)) {
			w->attempt = 1;
			w->named = ours && phase == WORKER_READY;
		}
		announce(w);
	} else if (fault(w, 30)) {
		w->attempt++;
		w->named = ours && phase != WORKER_TRAINING && chance(w, 70);
		announce(w);
	} else if (!w->named || phase == WORKER_VOTED || !w->calm || !ours || phase == WORKER_TRAINING) {
		w->round++;
		w->attempt = 0;
		if (chance(w, 20))
			w->snapshot_round = w->round;
		announce(w);
	} else {
		announce(w);
	}
}

/* ---- the platform ---- */

static struct rv_hash result_of(struct world *w) {
	return digest_of(chance(w, 90) || w->calm ? w->disk_round : 1000 + w->disk_round);
}

static void install(struct world *w, uint64_t round) {
	w->disk_round = round;
	w->encoded = false;
	w->ahead = 0;
}

/* Steps of the next round, before the outer step of `round`. */
static uint64_t overlap_of(const struct world *w, uint64_t round) {
	return round + 1 < FIXTURE_ROUNDS ? w->overlap : 0;
}

static void take_train(struct world *w, const struct round_action *a) {
	bool ahead = a->round == w->disk_round + 1;
	assert_true(ahead || a->round == w->disk_round);
	assert_int_equal(w->trainer_job.type, ROUND_NONE);
	assert_int_equal(w->train.type, ROUND_NONE);
	assert_int_equal(a->from, ahead ? w->ahead : w->steps);
	assert_in_range(a->steps, 1, (ahead ? overlap_of(w, w->disk_round) : FIXTURE_H) - a->from);
	assert_true(!ahead || w->steps == FIXTURE_H);
	w->train = *a;
}

/* The outer step has one place, for whoever took part in the latest round with all its steps. */
static void check_place(const struct world *w, const struct round_action *a) {
	if (a->participated && w->steps == FIXTURE_H && round_document(w->c)->round == a->round + 1)
		assert_int_equal(w->ahead, overlap_of(w, a->round));
}

static void take_apply(struct world *w, const struct round_action *a) {
	assert_int_equal(a->round, w->disk_round);
	assert_int_equal(w->trainer_job.type, ROUND_NONE);
	assert_true(w->disk_log && w->disk_log_round == a->round);
	assert_true(rv_hash_equal(&w->disk_log_digest, &a->expect));
	assert_false(w->reducing);
	check_place(w, a);
	w->trainer_job = *a;
}

static void take_action(struct world *w, const struct round_action *a) {
	assert_false(w->finished);
	switch (a->type) {
	case ROUND_TRAIN:
		take_train(w, a);
		break;
	case ROUND_ENCODE:
		assert_int_equal(w->steps, FIXTURE_H);
		assert_int_equal(w->ahead, 0);
		assert_int_equal(w->train.type, ROUND_NONE);
		assert_int_equal(a->round, w->disk_round);
		w->trainer_job = *a;
		break;
	case ROUND_APPLY:
		take_apply(w, a);
		break;
	case ROUND_REDUCE_START:
		assert_false(w->reducing);
		assert_true(w->encoded && w->encoded_round == round_document(w->c)->round);
		w->reducing = true;
		w->reduce_attempt = round_document(w->c)->attempt;
		break;
	case ROUND_REDUCE_RESTART:
		assert_true(w->reducing);
		assert_true(round_document(w->c)->attempt > w->reduce_attempt);
		w->reduce_attempt = round_document(w->c)->attempt;
		break;
	case ROUND_REDUCE_STOP:
		assert_true(w->reducing);
		w->reducing = false;
		w->persist = (struct round_action){0};
		break;
	case ROUND_PERSIST:
		assert_true(w->reducing);
		w->persist = *a;
		w->persist_attempt = w->reduce_attempt;
		break;
	case ROUND_FETCH_SNAPSHOT:
	case ROUND_FETCH_LOG:
		assert_true(!a->made_here || a->round == 0);
		w->fetch = *a;
		break;
	case ROUND_CANCEL_FETCH:
		w->fetch = (struct round_action){0};
		break;
	case ROUND_FINISH:
		assert_int_equal(w->disk_round, FIXTURE_ROUNDS);
		w->finished = true;
		break;
	case ROUND_PROBE:
		round_on_storage(w->c, w->now, w->now % 3 != 0);
		break;
	case ROUND_KEEP_SNAPSHOT: /* min_workers is not known here */
	case ROUND_ROLLBACK:      /* this coordinator rolls nothing back */
	case ROUND_NONE:
		fail();
	}
}

static void finish_training(struct world *w) {
	if (w->train.type == ROUND_NONE)
		return;
	uint64_t *done = w->train.round == w->disk_round ? &w->steps : &w->ahead;
	*done += 1;
	uint64_t round = w->train.round;
	if (*done == w->train.from + w->train.steps)
		w->train = (struct round_action){0};
	const struct participant_progress progress = progress_of(w);
	round_on_trained(w->c, round, &progress);
}

static void finish_trainer_job(struct world *w) {
	struct round_action a = w->trainer_job;
	w->trainer_job = (struct round_action){0};
	if (a.type == ROUND_ENCODE) {
		w->encoded = !fault(w, 5);
		w->encoded_round = a.round;
		if (!w->encoded)
			w->steps = 0;
		if (w->encoded && w->overlap > 0) {
			w->disk_steps = FIXTURE_H;
			w->disk_steps_round = a.round;
		}
		round_on_encoded(w->c, a.round, w->encoded ? &(struct commitment){.n = 1} : NULL);
	} else if (a.type == ROUND_APPLY) {
		struct rv_hash chain = chain_at(a.round + 1);
		w->train = (struct round_action){0};
		bool ok = !fault(w, 10);
		if (ok) {
			if (a.participated || a.late == LATE_DISCARD)
				w->steps = a.participated ? w->ahead : 0;
			install(w, a.round + 1);
		} else {
			w->disk_log = false;
		}
		const struct participant_progress progress = progress_of(w);
		round_on_applied(w->c, a.round, &chain, &progress, ok);
	}
}

static void finish_fetch(struct world *w) {
	struct round_action a = w->fetch;
	if (a.type == ROUND_NONE || (a.type == ROUND_FETCH_SNAPSHOT && w->trainer_job.type != ROUND_NONE) || fault(w, 30))
		return; /* it goes on, or stalls */
	w->fetch = (struct round_action){0};
	bool ok = !fault(w, 30);
	if (ok && a.type == ROUND_FETCH_SNAPSHOT) {
		w->train = (struct round_action){0};
		w->steps = 0;
		install(w, a.round);
	} else if (ok) {
		w->disk_log = true;
		w->disk_log_round = a.round;
		w->disk_log_attempt = 0;
		w->disk_log_digest = a.expect;
	}
	round_on_fetched(w->c, w->now, a.type, a.round, ok);
}

static void finish_reduce(struct world *w) {
	if (w->persist.type == ROUND_PERSIST) {
		struct rv_hash digest = result_of(w);
		bool ok = !fault(w, 10);
		uint64_t round = w->persist.round;
		w->persist = (struct round_action){0};
		if (ok) {
			w->disk_log = true;
			w->disk_log_round = round;
			w->disk_log_attempt = w->persist_attempt;
			w->disk_log_digest = digest;
		}
		round_on_persisted(w->c, w->now, round, w->persist_attempt, &digest, ok);
	} else if (w->reducing) {
		round_on_reduced(w->c, w->disk_round, w->reduce_attempt);
	}
}

/* ---- the world ---- */

static void step(struct world *w) {
	w->now += (int64_t)rv_rng_below(&w->rng, 500);
	switch (rv_rng_below(&w->rng, 6)) {
	case 0:
		coordinator_step(w);
		break;
	case 1:
		finish_training(w);
		break;
	case 2:
		finish_trainer_job(w);
		break;
	case 3:
		finish_fetch(w);
		break;
	case 4:
		finish_reduce(w);
		break;
	default:
		if (fault(w, 3))
			boot(w);
	}
	struct round_action a;
	for (int n = 0; round_next_action(w->c, w->now, &a); n++) {
		assert_in_range(n, 0, 8);
		take_action(w, &a);
	}
	struct report r;
	bool sent = round_next_report(w->c, w->now, &r);
	if (sent && r.phase == WORKER_VOTED)
		assert_true(w->disk_log && rv_hash_equal(&r.digest, &w->disk_log_digest));
	assert_true(round_deadline_us(w->c) > w->now);
}

static void history(uint64_t seed, struct world *w, void *memory) {
	memset(w, 0, sizeof *w);
	w->c = memory;
	w->rng = rv_rng_of(seed, 1);
	w->overlap = chance(w, 60) ? 1 + rv_rng_below(&w->rng, FIXTURE_H) : 0;
	boot(w);
	for (int i = 0; i < STEPS && w->round < FIXTURE_ROUNDS - 5; i++)
		step(w);
	w->calm = true;
	int steps = 0;
	while (!w->finished && steps++ < MAX_CALM_STEPS)
		step(w);
	if (!w->finished)
		fail_msg("seed %llu: not finished: round %llu of %llu, phase %d", (unsigned long long)seed,
				 (unsigned long long)round_round(w->c), (unsigned long long)w->round, round_phase(w->c));
}

static void random_histories_are_safe_and_end(void **state) {
	(void)state;
	struct world *w = malloc(sizeof *w);
	void *memory = malloc(round_core_size());
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		history(seed, w, memory);
	free(memory);
	free(w);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_histories_are_safe_and_end)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
