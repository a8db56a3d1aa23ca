/* test_worker_session_core.c: the session core with four tables that only write down what they are
 * asked for. */
#include "round_fixture.h"
#include "tests/common/check.h"
#include "worker/session/core.h"

#include <stdlib.h>
#include <string.h>

enum { H_ROUNDS = FIXTURE_ROUNDS, LINGER_US = 5000000, ALONE_US = 9000000, GOODBYE_US = 2000000, MAX_JOBS = 16 };

struct tables {
	struct session_core *c;
	void *round_memory;
	int64_t now;
	int installs, evaluations, ends, wishes, reports;
	uint64_t wanted, applied; /* rounds */
	struct store_job jobs[MAX_JOBS];
	int n_jobs;
	bool refuses_jobs, busy;
	int pauses, allows, stops; /* calls of these; pauses: -1 once one ended */
	bool reduces;              /* an all-reduce runs */
	uint64_t reduce_round;     /* of the last one */
	uint64_t given;
	struct member_set askers;
	uint32_t said[SESSION_EVENTS];
	uint8_t storage; /* of the last report */
	int means_forgotten;
	struct trainer_request train; /* the last */
	bool lacks_text;              /* of an evaluation */
};

/* ---- the tables ---- */

static void on_request(void *ctx, const struct trainer_request *rq) {
	struct tables *t = ctx;
	t->installs += rq->work == TRAINER_INSTALL;
	t->evaluations += rq->work == TRAINER_EVALUATE;
	t->ends += rq->work == TRAINER_END || rq->work == TRAINER_SAVE;
	if (rq->work == TRAINER_APPLY)
		t->applied = rq->round;
	if (rq->work == TRAINER_TRAIN)
		t->train = *rq;
}

static void on_nothing(void *ctx) {
	(void)ctx;
}

static bool is_idle(void *ctx) {
	return !((struct tables *)ctx)->busy;
}

static bool has_text(void *ctx) {
	return !((struct tables *)ctx)->lacks_text;
}

static bool on_post(void *ctx, const struct store_job *j) {
	struct tables *t = ctx;
	assert_true(t->n_jobs < MAX_JOBS);
	if (t->refuses_jobs)
		return false;
	t->jobs[t->n_jobs++] = *j;
	return true;
}

static void on_release(void *ctx, struct store_job *j) {
	(void)ctx;
	blob_unref(j->reduced);
	blob_unref(j->left);
}

static bool on_left(void *ctx, struct blob **out) {
	(void)ctx;
	*out = NULL;
	return true;
}

static void on_means_commit(void *ctx, uint64_t round, uint32_t attempt) {
	(void)ctx, (void)round, (void)attempt;
}

static void on_means_forget(void *ctx) {
	((struct tables *)ctx)->means_forgotten++;
}

static void on_document(void *ctx, const struct document *d) {
	struct tables *t = ctx;
	(void)d;
	t->allows++;
}

static void on_pause(void *ctx, bool paused) {
	struct tables *t = ctx;
	assert_false(t->reduces);
	t->pauses += paused ? 1 : -1;
}

static void on_stop(void *ctx) {
	struct tables *t = ctx;
	t->stops++;
	t->reduces = false;
}

static enum rv_err on_reduce(void *ctx, const struct document *d, struct rv_errtext *et) {
	(void)et;
	((struct tables *)ctx)->reduces = true;
	((struct tables *)ctx)->reduce_round = d->round;
	return RV_OK;
}

static struct blob *on_result(void *ctx) {
	(void)ctx;
	return blob_new(8);
}

static enum rv_err on_want(void *ctx, const struct state_id *ids, int n, struct rv_errtext *et) {
	struct tables *t = ctx;
	(void)et;
	t->wishes += n > 0;
	t->wanted = n > 0 ? ids[0].round : t->wanted;
	return RV_OK;
}

static void on_forget(void *ctx, enum state_kind kind, uint64_t round) {
	(void)ctx, (void)kind, (void)round;
}

static bool is_nowhere(void *ctx) {
	(void)ctx;
	return false;
}

static const struct member_set *askers_of(void *ctx) {
	return &((struct tables *)ctx)->askers;
}

static uint64_t given_of(void *ctx) {
	return ((struct tables *)ctx)->given;
}

static void on_report(void *ctx, struct report *r) {
	struct tables *t = ctx;
	t->reports++;
	t->storage = r->storage;
}

static bool was_heard(void *ctx) {
	(void)ctx;
	return true;
}

static void on_event(void *ctx, const struct session_event *e) {
	((struct tables *)ctx)->said[e->type]++;
}

static const struct session_ops ops = {.trainer = {on_request, is_idle, has_text},
									   .disk = {on_post, on_release, is_idle},
									   .links = {.allow = on_document,
												 .reduce_start = on_reduce,
												 .reduce_restart = on_reduce,
												 .pause = on_pause,
												 .reduce_stop = on_stop,
												 .result = on_result,
												 .means_left = on_left,
												 .means_commit = on_means_commit,
												 .means_forget = on_means_forget,
												 .want = on_want,
												 .nowhere = is_nowhere,
												 .forget = on_forget,
												 .forget_all = on_nothing,
												 .askers = askers_of,
												 .given_bytes = given_of},
									   .control = {on_report, was_heard, on_event}};

/* ---- the session ---- */

static int setup(void **state) {
	struct tables *t = calloc(1, sizeof *t);
	t->c = malloc(session_core_size());
	t->round_memory = malloc(round_core_size());
	*state = t;
	return t->c && t->round_memory ? 0 : -1;
}

static int teardown(void **state) {
	struct tables *t = *state;
	session_core_release(t->c);
	free(t->c);
	free(t->round_memory);
	free(t);
	return 0;
}

enum { SEQUENCES = 2 }; /* of a step, where text is leased */

static void begin_with(struct tables *t, uint64_t round, bool has_leases, int64_t eval_every) {
	const struct recovered found = {.lacks_state = false};
	const struct session_config cfg = {.member = FIXTURE_SELF,
									   .rounds = H_ROUNDS,
									   .min_workers = 1,
									   .schedule = {.snapshot_every = 4, .rounds = H_ROUNDS},
									   .eval_every = eval_every,
									   .eval_at_end = true,
									   .has_leases = has_leases,
									   .linger_us = LINGER_US,
									   .alone_us = ALONE_US,
									   .goodbye_us = GOODBYE_US};
	const struct session_start start = {.round_memory = t->round_memory,
										.round = {.member = FIXTURE_SELF,
												  .steps_per_round = FIXTURE_H,
												  .heartbeat_us = 1000,
												  .step_sequences = has_leases ? SEQUENCES : 0},
										.boot = 1,
										.at_round = round,
										.chain = chain_at(round),
										.found = &found};
	struct session_ops with_ctx = ops;
	with_ctx.ctx = t;
	(void)session_core_init(t->c, &cfg, &with_ctx, &start, t->now);
}

static void begin_at(struct tables *t, uint64_t round) {
	begin_with(t, round, false, 0);
}

static void answer(struct tables *t, struct trainer_answer a) {
	session_core_on_answer(t->c, t->now, &a);
}

static void turn(struct tables *t, int64_t later_us) {
	const struct session_reduce seen = {
		.running = t->reduces, .round = t->reduces ? t->reduce_round : 0, .attempt = t->reduces};
	t->now += later_us;
	session_core_turn(t->c, t->now, &seen);
}

static void follow(struct tables *t, uint64_t seq, enum run_phase phase, uint64_t round, uint64_t snapshot,
				   uint64_t members) {
	struct document *d = malloc(sizeof *d);
	assert_non_null(d);
	document_make(d, seq, phase, round, snapshot);
	document_members(d, members);
	assert_true(session_core_on_document(t->c, d));
	free(d);
	turn(t, 1);
}

/* The disk has done the oldest job. */
static void store(struct tables *t, enum rv_err e) {
	assert_true(t->n_jobs > 0);
	struct store_job j = t->jobs[0];
	memmove(t->jobs, t->jobs + 1, (size_t)--t->n_jobs * sizeof j);
	j.err = e;
	session_core_on_stored(t->c, t->now, &j);
	turn(t, 1);
}

/* ---- a state that is being installed ---- */

/* What the run vouches for changes while the trainer verifies and takes over a fetched snapshot:
 * that one becomes this worker's state first, and only then the next is asked for. */
static void test_a_snapshot_is_installed_before_another_is_wanted(void **state) {
	struct tables *t = *state;
	int snapshot;
	begin_at(t, 0);
	follow(t, 1, RUN_OPEN, 20, 20, 1);
	assert_int_equal(t->wishes, 1);
	assert_int_equal(t->wanted, 20);
	const struct state_id id = {.kind = STATE_KIND_SNAPSHOT, .round = 20, .expect = full_at(20), .chain = chain_at(20)};
	session_core_on_fetched(t->c, t->now, &id, &snapshot, NULL, "");
	assert_int_equal(t->installs, 1);
	follow(t, 2, RUN_OPEN, 28, 28, 1);
	turn(t, 100000);
	assert_int_equal(t->wishes, 1); /* not snapshot 28: the trainer is about to hold snapshot 20 */
	answer(t, (struct trainer_answer){.work = TRAINER_INSTALL, .round = 20, .err = RV_OK});
	assert_int_equal(round_round(session_core_round(t->c)), 20);
	assert_int_equal(t->jobs[0].kind, STORE_INSTALLED);
	assert_int_equal(t->means_forgotten, 1); /* what its means left is of the state before */
	turn(t, 100000);
	assert_int_equal(t->wishes, 2);
	assert_int_equal(t->wanted, 28);
}

static void test_a_refused_snapshot_is_removed_and_wanted_again(void **state) {
	struct tables *t = *state;
	int snapshot;
	begin_at(t, 0);
	follow(t, 1, RUN_OPEN, 20, 20, 1);
	const struct state_id id = {.kind = STATE_KIND_SNAPSHOT, .round = 20, .expect = full_at(20), .chain = chain_at(20)};
	session_core_on_fetched(t->c, t->now, &id, &snapshot, NULL, "");
	answer(t, (struct trainer_answer){.work = TRAINER_INSTALL, .round = 20, .err = RV_E_CORRUPT});
	assert_int_equal(t->jobs[0].kind, STORE_REFUSED);
	turn(t, 100000);
	assert_int_equal(t->wishes, 2);
}

/* ---- the end ---- */

static void finish(struct tables *t) {
	begin_at(t, H_ROUNDS);
	follow(t, 1, RUN_DONE, H_ROUNDS, H_ROUNDS, 1u << 5); /* another has parts of the state, and lacks it */
	turn(t, 100 * LINGER_US);                            /* no majority has vouched for the end by then */
	assert_int_equal(session_core_phase(t->c), SESSION_EXPORTING);
	assert_int_equal(t->said[SESSION_LOGS_DONE], 1);
	assert_int_equal(t->jobs[0].kind, STORE_EXPORT);
	store(t, RV_OK);
	assert_true(session_core_exported(t->c));
}

/* A worker that starts after the last round was started for those that lack what it has. */
static void test_one_that_is_started_again_lingers(void **state) {
	struct tables *t = *state;
	finish(t);
	assert_int_equal(session_core_phase(t->c), SESSION_LINGERING);
	turn(t, LINGER_US - 10);
	assert_int_equal(session_core_phase(t->c), SESSION_LINGERING);
	t->given = 100; /* somebody has come: as long again */
	turn(t, 1);
	turn(t, LINGER_US - 10);
	assert_int_equal(session_core_phase(t->c), SESSION_LINGERING);
	turn(t, 20);
	assert_int_equal(session_core_phase(t->c), SESSION_SAVING);
}

/* One that is behind at the end of the run waits for a donor, and not for ever. */
static void test_one_that_is_alone_at_the_end_ends(void **state) {
	struct tables *t = *state;
	begin_at(t, H_ROUNDS - 2);
	follow(t, 1, RUN_DONE, H_ROUNDS, 0, 0);
	assert_int_equal(t->said[SESSION_LOGS_ALONE], 1);
	turn(t, ALONE_US - 10);
	follow(t, 2, RUN_DONE, H_ROUNDS, 0, 1u << 5); /* a donor: as long again once it has gone */
	turn(t, 2 * ALONE_US);
	assert_int_equal(session_core_phase(t->c), SESSION_RUNNING);
	follow(t, 3, RUN_DONE, H_ROUNDS, 0, 0);
	turn(t, ALONE_US - 10);
	assert_int_equal(session_core_phase(t->c), SESSION_RUNNING);
	assert_true(session_core_deadline_us(t->c, t->now) <= t->now + 10);
	turn(t, 10);
	assert_int_equal(session_core_phase(t->c), SESSION_SAVING);
	int any;
	const struct state_copy copy = {.handle = &any, .has_replica = true};
	answer(t, (struct trainer_answer){.work = TRAINER_END, .has_copy = true, .copy = copy});
	store(t, RV_OK);
	assert_int_equal(session_core_phase(t->c), SESSION_ENDED);
	assert_int_equal(session_core_fault(t->c, NULL), RV_OK);
	assert_true(session_core_was_alone(t->c) && !session_core_exported(t->c));
	assert_int_equal(t->said[SESSION_LOGS_ALONE], 1);
}

/* Before the end of the run the others may come back. */
static void test_one_that_is_alone_before_the_end_waits(void **state) {
	struct tables *t = *state;
	begin_at(t, 3);
	follow(t, 1, RUN_OPEN, 5, 0, 0);
	turn(t, 100 * ALONE_US);
	assert_int_equal(session_core_phase(t->c), SESSION_RUNNING);
	assert_int_equal(t->said[SESSION_LOGS_ALONE], 0);
}

static void test_it_ends_when_all_is_stored(void **state) {
	struct tables *t = *state;
	begin_at(t, 3);
	follow(t, 1, RUN_OPEN, 3, 0, 1);
	session_core_stop(t->c, t->now);
	assert_int_equal(session_core_phase(t->c), SESSION_SAVING);
	assert_int_equal(t->ends, 1);
	int any;
	const struct state_copy copy = {.handle = &any, .has_replica = true};
	answer(t, (struct trainer_answer){.work = TRAINER_END, .has_copy = true, .copy = copy});
	t->busy = true;
	turn(t, 10 * GOODBYE_US);
	assert_int_equal(session_core_phase(t->c), SESSION_LEAVING);
	t->busy = false;
	store(t, RV_OK);
	assert_int_equal(session_core_phase(t->c), SESSION_ENDED);
	assert_int_equal(session_core_fault(t->c, NULL), RV_OK);
}

static void test_three_spoiled_contributions_are_enough(void **state) {
	struct tables *t = *state;
	struct rv_errtext text;
	begin_at(t, 3);
	follow(t, 1, RUN_OPEN, 3, 0, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(session_core_phase(t->c), SESSION_RUNNING);
		answer(t,
			   (struct trainer_answer){.work = TRAINER_ENCODE, .round = 3, .err = RV_E_RANGE, .text = {"not finite"}});
	}
	assert_int_equal(session_core_phase(t->c), SESSION_SAVING);
	assert_int_equal(session_core_fault(t->c, &text), RV_E_RANGE);
	assert_non_null(strstr(text.text, "3 times in a row"));
}

/* ---- a pause, and an end after the round ---- */

static void trained(struct tables *t, uint64_t round) {
	answer(t, (struct trainer_answer){.work = TRAINER_TRAIN, .round = round, .progress = {.steps_done = FIXTURE_H}});
	turn(t, 1);
	answer(t, (struct trainer_answer){.work = TRAINER_ENCODE, .round = round, .progress = {.steps_done = FIXTURE_H}});
	turn(t, 1);
}

/* The all-reduce ends before the links do; afterwards the links are those of the latest
 * document. */
static void test_a_pause_ends_the_links_last(void **state) {
	struct tables *t = *state;
	begin_at(t, 3);
	follow(t, 1, RUN_OPEN, 3, 0, 1u << FIXTURE_SELF | 2);
	trained(t, 3);
	follow(t, 2, RUN_REDUCE, 3, 0, 1u << FIXTURE_SELF | 2);
	assert_true(t->reduces);
	session_core_pause(t->c, t->now, true);
	session_core_pause(t->c, t->now, true);
	assert_true(session_core_is_paused(t->c));
	assert_int_equal(t->stops, 1);
	assert_int_equal(t->pauses, 1);
	turn(t, 1);
	const int before = t->allows;
	session_core_pause(t->c, t->now, false);
	assert_int_equal(t->pauses, 0);
	assert_int_equal(t->allows, before + 1);
}

static void test_one_that_ends_is_not_paused(void **state) {
	struct tables *t = *state;
	begin_at(t, 3);
	follow(t, 1, RUN_OPEN, 3, 0, 1);
	session_core_stop(t->c, t->now);
	session_core_pause(t->c, t->now, true);
	assert_false(session_core_is_paused(t->c));
	assert_int_equal(t->pauses, 0);
}

static void applied(struct tables *t, uint64_t round) {
	int any;
	const struct state_copy copy = {.handle = &any, .has_replica = true};
	answer(t, (struct trainer_answer){
				  .work = TRAINER_APPLY, .round = round, .chain = chain_at(round + 1), .has_copy = true, .copy = copy});
	turn(t, 1);
}

/* It ends when its round is applied, and begins no step of the next one. */
static void test_it_finishes_its_round(void **state) {
	struct tables *t = *state;
	begin_at(t, 3);
	follow(t, 1, RUN_OPEN, 3, 0, 1u << FIXTURE_SELF | 2);
	session_core_finish(t->c, t->now, INT64_MAX);
	turn(t, 1000000);
	trained(t, 3);
	assert_int_equal(session_core_phase(t->c), SESSION_RUNNING);
	follow(t, 2, RUN_OPEN, 4, 0, 1u << FIXTURE_SELF | 2); /* committed without it: it fetches the result */
	assert_int_equal(t->wanted, 3);
	struct blob *log = blob_new(8);
	const struct state_id id = {.kind = STATE_KIND_LOG, .round = 3, .expect = digest_of(3)};
	session_core_on_fetched(t->c, t->now, &id, NULL, log, "");
	blob_unref(log);
	turn(t, 1);
	assert_int_equal(t->applied, 3);
	t->train.work = TRAINER_SAVE;
	applied(t, 3);
	assert_int_equal(session_core_phase(t->c), SESSION_SAVING);
	assert_int_equal(t->train.work, TRAINER_SAVE); /* no TRAIN */
	assert_int_equal(t->ends, 1);
}

/* In the last round of the run there is nothing to hurry for: it ends with the weights. */
static void test_finishing_in_the_last_round(void **state) {
	struct tables *t = *state;
	begin_at(t, H_ROUNDS - 1);
	follow(t, 1, RUN_OPEN, H_ROUNDS - 1, 0, 1u << FIXTURE_SELF | 2);
	session_core_finish(t->c, t->now, INT64_MAX);
	trained(t, H_ROUNDS - 1);
	follow(t, 2, RUN_DONE, H_ROUNDS, 0, 1u << FIXTURE_SELF | 2);
	struct blob *log = blob_new(8);
	const struct state_id id = {.kind = STATE_KIND_LOG, .round = H_ROUNDS - 1, .expect = digest_of(H_ROUNDS - 1)};
	session_core_on_fetched(t->c, t->now, &id, NULL, log, "");
	blob_unref(log);
	turn(t, 1);
	applied(t, H_ROUNDS - 1);
	turn(t, 100 * LINGER_US);
	assert_int_equal(session_core_phase(t->c), SESSION_EXPORTING);
}

static void test_finishing_has_a_deadline(void **state) {
	struct tables *t = *state;
	begin_at(t, 3);
	follow(t, 1, RUN_OPEN, 3, 0, 1);
	session_core_finish(t->c, t->now, t->now + 5000);
	turn(t, 4000);
	assert_int_equal(session_core_phase(t->c), SESSION_RUNNING);
	assert_true(session_core_deadline_us(t->c, t->now) <= t->now + 1000);
	turn(t, 1000);
	assert_int_equal(session_core_phase(t->c), SESSION_SAVING);
}

/* A paused worker is in no round. */
static void test_finishing_does_not_wait_for_a_pause(void **state) {
	struct tables *t = *state;
	begin_at(t, 3);
	follow(t, 1, RUN_OPEN, 3, 0, 1);
	session_core_pause(t->c, t->now, true);
	session_core_finish(t->c, t->now, INT64_MAX);
	assert_int_equal(session_core_phase(t->c), SESSION_SAVING);
}

/* ---- leases ---- */

/* The next document: this worker holds `count` sequences from number `first` on. */
static void lease(struct tables *t, uint64_t seq, uint64_t first, uint32_t count) {
	struct document *d = malloc(sizeof *d);
	assert_non_null(d);
	document_make(d, seq, RUN_OPEN, 3, 0);
	document_members(d, 1);
	d->lease_first = first;
	d->leases[d->n_leases++] = (struct lease_piece){7000 + first, count};
	assert_true(session_core_on_document(t->c, d));
	free(d);
	turn(t, 1);
}

/* What it began to read was given to others: that is logged, once, and the trainer starts over with
 * what the worker holds now. */
static void test_a_lost_lease_is_logged_and_trained_anew(void **state) {
	struct tables *t = *state;
	enum { HELD = 3 * SEQUENCES * FIXTURE_H };
	begin_with(t, 3, true, 0);
	lease(t, 1, 0, HELD);
	assert_true(t->train.has_leases && t->train.reading.first == 0 && !t->train.starts_over);
	lease(t, 2, 500, HELD);
	assert_int_equal(t->said[SESSION_LOGS_LEASE_LOST], 0); /* it trains */
	answer(t, (struct trainer_answer){
				  .work = TRAINER_TRAIN,
				  .round = 3,
				  .has_leases = true,
				  .progress = {.steps_done = FIXTURE_H, .tokens = 8, .sequences = SEQUENCES * FIXTURE_H}});
	turn(t, 1);
	assert_int_equal(t->said[SESSION_LOGS_LEASE_LOST], 1);
	assert_true(t->train.starts_over && t->train.from == 0 && t->train.steps == FIXTURE_H);
	assert_int_equal(t->train.reading.first, 500);
	assert_int_equal(reading_position(&t->train.reading, 500), 7500);
}

/* ---- the disk ---- */

static void test_a_failing_disk_is_told_once_and_reported(void **state) {
	struct tables *t = *state;
	int any;
	const struct state_copy copy = {.handle = &any, .has_replica = true};
	begin_at(t, 3);
	follow(t, 1, RUN_OPEN, 3, 0, 1);
	for (int i = 0; i < 3; i++) {
		answer(t, (struct trainer_answer){.work = TRAINER_COPY_SNAPSHOT, .has_copy = true, .copy = copy});
		store(t, RV_E_FULL);
	}
	assert_int_equal(t->said[SESSION_LOGS_STORAGE_FAILS], 1);
	assert_true(session_core_storage_fails(t->c));
	assert_true(session_core_disk_is_full(t->c));
	turn(t, 2000);
	assert_int_equal(t->storage, REPORT_STORAGE_CHECKPOINTS | REPORT_STORAGE_FULL);
	answer(t, (struct trainer_answer){.work = TRAINER_COPY_SNAPSHOT, .has_copy = true, .copy = copy});
	store(t, RV_OK);
	assert_int_equal(t->said[SESSION_LOGS_STORAGE_WORKS], 1);
	assert_false(session_core_disk_is_full(t->c));
	turn(t, 2000);
	assert_int_equal(t->storage, 0);
}

/* The trainer gave the memory back that was to be written. */
static void test_a_copy_that_is_cut_is_no_failing_disk(void **state) {
	struct tables *t = *state;
	int any;
	const struct state_copy copy = {.handle = &any, .has_replica = true};
	begin_at(t, 3);
	follow(t, 1, RUN_OPEN, 3, 0, 1);
	answer(t, (struct trainer_answer){.work = TRAINER_COPY_SNAPSHOT, .has_copy = true, .copy = copy});
	store(t, RV_E_CANCELLED);
	assert_int_equal(t->said[SESSION_LOGS_STORAGE_FAILS], 0);
	assert_false(session_core_storage_fails(t->c));
}

static void test_a_job_that_finds_no_memory_failed(void **state) {
	struct tables *t = *state;
	int any;
	const struct state_copy copy = {.handle = &any, .has_snapshot = true, .snapshot_round = 3};
	begin_at(t, 3);
	follow(t, 1, RUN_OPEN, 3, 0, 1);
	t->refuses_jobs = true;
	answer(t, (struct trainer_answer){.work = TRAINER_COPY_SNAPSHOT, .has_copy = true, .copy = copy});
	assert_int_equal(t->said[SESSION_LOGS_STORAGE_FAILS], 1);
	assert_int_equal(t->said[SESSION_LOGS_FULL_HASH], 0); /* it was not computed */
}

/* The hash of a state that was replaced meanwhile is not this worker's any more. */
static void test_a_hash_of_before_an_install_is_dropped(void **state) {
	struct tables *t = *state;
	int any, snapshot;
	const struct state_copy copy = {.handle = &any, .has_snapshot = true, .snapshot_round = 0};
	begin_at(t, 0);
	follow(t, 1, RUN_OPEN, 20, 20, 1);
	answer(t, (struct trainer_answer){.work = TRAINER_COPY_SNAPSHOT, .has_copy = true, .copy = copy});
	const struct state_id id = {.kind = STATE_KIND_SNAPSHOT, .round = 20, .expect = full_at(20), .chain = chain_at(20)};
	session_core_on_fetched(t->c, t->now, &id, &snapshot, NULL, "");
	answer(t, (struct trainer_answer){.work = TRAINER_INSTALL, .round = 20, .err = RV_OK});
	store(t, RV_OK);
	assert_int_equal(t->said[SESSION_LOGS_FULL_HASH], 0);
}

/* It was fetched, given up, and yet written: this worker can prove the round, and take part in the
 * next one with it. */
static void test_an_entry_that_is_stored_late_is_held(void **state) {
	struct tables *t = *state;
	begin_at(t, 5);
	follow(t, 1, RUN_OPEN, 6, 4, 1);
	assert_int_equal(t->wishes, 1);
	assert_int_equal(t->wanted, 5);
	struct blob *log = blob_new(8);
	const struct state_id other = {.kind = STATE_KIND_LOG, .round = 7, .expect = digest_of(7)};
	session_core_on_stored_late(t->c, &other, log); /* of another round than this worker's */
	turn(t, 1);
	assert_int_equal(t->applied, 0);
	const struct state_id id = {.kind = STATE_KIND_LOG, .round = 5, .expect = digest_of(5)};
	session_core_on_stored_late(t->c, &id, log);
	turn(t, 1);
	assert_int_equal(t->applied, 5);
	assert_int_equal(t->wishes, 1);
	blob_unref(log);
}

/* ---- evaluations ---- */

enum { BOTH = 1u << FIXTURE_SELF | 1u << 4 };

/* The round is committed by others, and its log entry fetched. */
static void committed(struct tables *t, uint64_t seq, uint64_t round) {
	follow(t, seq, RUN_OPEN, round + 1, 0, BOTH);
	assert_int_equal(t->wanted, round);
	struct blob *log = blob_new(8);
	const struct state_id id = {.kind = STATE_KIND_LOG, .round = round, .expect = digest_of(round)};
	session_core_on_fetched(t->c, t->now, &id, NULL, log, "");
	blob_unref(log);
	turn(t, 1);
	assert_int_equal(t->applied, round);
	applied(t, round);
}

/* The all-reduce of a round in the first row. */
static void reduced(struct tables *t, uint64_t seq, uint64_t round, uint64_t members) {
	struct document *d = malloc(sizeof *d);
	assert_non_null(d);
	document_make(d, seq, RUN_REDUCE, round, 0);
	document_members(d, members);
	for (int i = 0; i < d->n_members; i++)
		d->members[i].place = (uint16_t)i;
	assert_true(session_core_on_document(t->c, d));
	free(d);
	turn(t, 1);
}

/* It is the first of the roster of round 3, and evaluates every fourth round. */
static void begin_as_first(struct tables *t) {
	begin_with(t, 3, false, 4);
	follow(t, 1, RUN_OPEN, 3, 0, BOTH);
	trained(t, 3);
	reduced(t, 2, 3, BOTH);
	assert_true(session_core_is_first(t->c));
}

static void test_an_evaluation_waits_for_its_text_and_training_does_not(void **state) {
	struct tables *t = *state;
	begin_as_first(t);
	t->lacks_text = true;
	committed(t, 3, 3);
	committed(t, 4, 4);
	assert_int_equal(t->evaluations, 0);
	t->lacks_text = false;
	committed(t, 5, 5); /* two rounds late, and of that round */
	assert_int_equal(t->evaluations, 1);
	committed(t, 6, 6); /* not due */
	assert_int_equal(t->evaluations, 1);
	committed(t, 7, 7);
	assert_int_equal(t->evaluations, 2);
}

/* One that others owe by now is not made up for. */
static void test_one_that_is_no_longer_first_owes_no_evaluation(void **state) {
	struct tables *t = *state;
	begin_as_first(t);
	t->lacks_text = true;
	committed(t, 3, 3);
	trained(t, 4);
	reduced(t, 4, 4, BOTH | 1);
	assert_false(session_core_is_first(t->c));
	t->lacks_text = false;
	committed(t, 5, 4);
	assert_int_equal(t->evaluations, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_an_entry_that_is_stored_late_is_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_snapshot_is_installed_before_another_is_wanted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_refused_snapshot_is_removed_and_wanted_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_that_is_started_again_lingers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_that_is_alone_at_the_end_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_that_is_alone_before_the_end_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_it_ends_when_all_is_stored, setup, teardown),
		cmocka_unit_test_setup_teardown(test_three_spoiled_contributions_are_enough, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_failing_disk_is_told_once_and_reported, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_copy_that_is_cut_is_no_failing_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_job_that_finds_no_memory_failed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_hash_of_before_an_install_is_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_lost_lease_is_logged_and_trained_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_pause_ends_the_links_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_that_ends_is_not_paused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_it_finishes_its_round, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_evaluation_waits_for_its_text_and_training_does_not, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_that_is_no_longer_first_owes_no_evaluation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_finishing_in_the_last_round, setup, teardown),
		cmocka_unit_test_setup_teardown(test_finishing_has_a_deadline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_finishing_does_not_wait_for_a_pause, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
