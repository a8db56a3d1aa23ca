/* test_worker_round_leases.c: a worker of a run that leases its text trains on what it holds, ends
 * a contribution where its leases do, and trains again when they were given to others. */
#include "round_script.h"
#include "tests/common/check.h"

enum { STEP = 2, ROUND = STEP * FIXTURE_H };

static int setup(void **state) {
	round_driver_setup(state);
	round_driver_start(*state, (struct round_config){.n_chunks = {FIXTURE_CHUNKS}, .step_sequences = STEP}, 0, 0);
	return 0;
}

/* The next document: the worker holds `count` sequences from number `first` on, in two pieces. */
static void show_leases(struct round_driver *f, enum run_phase phase, uint64_t round, uint64_t first, uint32_t count,
						uint64_t members) {
	document_make(&f->doc, ++f->seq, phase, round, 0);
	f->doc.attempt = phase == RUN_REDUCE;
	document_members(&f->doc, members);
	f->doc.lease_first = first;
	if (count > 1)
		f->doc.leases[f->doc.n_leases++] = (struct lease_piece){1000 + first, count / 2};
	if (count > 0)
		f->doc.leases[f->doc.n_leases++] = (struct lease_piece){5000 + first, count - count / 2};
	assert_int_equal(round_on_document(f->c, &f->doc, NULL), RV_OK);
}

static void open_round(struct round_driver *f, uint64_t round, uint64_t first, uint32_t count) {
	show_leases(f, RUN_OPEN, round, first, count, EVERYBODY);
}

/* The trainer has done `steps` steps of the core's round, from number `first` on. */
static void trained(struct round_driver *f, uint64_t steps, uint64_t first, uint64_t sequences) {
	f->progress = (struct participant_progress){
		.steps_done = steps, .tokens = sequences * 10, .first = first, .sequences = sequences};
	round_on_trained(f->c, round_round(f->c), &f->progress);
}

static void encoded(struct round_driver *f) {
	expect_next(f, ROUND_ENCODE);
	driver_encoded(f->c, round_round(f->c));
}

static void assert_reports(struct round_driver *f, enum worker_phase phase, uint64_t first, uint32_t count) {
	const struct report r = report_of(f);
	assert_int_equal(r.phase, phase);
	assert_int_equal(r.lease_first, first);
	assert_int_equal(r.lease_count, count);
}

static void it_waits_for_leases_and_reports_what_it_read(void **state) {
	struct round_driver *f = *state;
	struct reading r;
	open_round(f, 0, 0, 0);
	expect_nothing(f);
	open_round(f, 0, 0, STEP - 1); /* fewer than a step takes */
	expect_nothing(f);
	open_round(f, 0, 40, 3 * ROUND);
	round_reading(f->c, &r);
	assert_true(r.first == 40 && r.n == 2 && reading_end(&r) == 40 + 3 * ROUND);
	assert_true(reading_position(&r, 41) == 1041 &&
				reading_position(&r, 40 + 3 * ROUND - 1) == 5040 + 3 * ROUND / 2 - 1);
	assert_false(expect_action(f, ROUND_TRAIN, 0).starts_over);
	assert_reports(f, WORKER_TRAINING, 0, 0);
	trained(f, FIXTURE_H, 40, ROUND);
	encoded(f);
	assert_reports(f, WORKER_READY, 40, ROUND);
	show_leases(f, RUN_REDUCE, 0, 40, 3 * ROUND, EVERYBODY);
	expect_next(f, ROUND_REDUCE_START);
	assert_reports(f, WORKER_REDUCING, 40, ROUND);
}

/* The trainer reads no further than it was given; the next document has more. */
static void training_goes_on_when_more_is_leased(void **state) {
	struct round_driver *f = *state;
	open_round(f, 0, 0, 2 * STEP);
	expect_next(f, ROUND_TRAIN);
	open_round(f, 0, 0, 3 * ROUND); /* before the trainer is at the end of what it was given */
	trained(f, 2, 0, 2 * STEP);
	expect_nothing(f);
	round_on_read_out(f->c, 0);
	const struct round_action a = expect_next(f, ROUND_TRAIN);
	assert_true(a.from == 2 && a.steps == FIXTURE_H - 2);
}

/* Without more a contribution is what it has: only a commit with it brings more. */
static void a_contribution_ends_where_its_leases_do(void **state) {
	struct round_driver *f = *state;
	open_round(f, 0, 0, 2 * STEP + 1);
	expect_next(f, ROUND_TRAIN);
	trained(f, 2, 0, 2 * STEP);
	round_on_read_out(f->c, 0);
	encoded(f);
	assert_reports(f, WORKER_READY, 0, 2 * STEP);
}

/* A worker that rests for rounds trains on until it has read all that it holds; then it waits with
 * a whole contribution, though it has no step of the round. */
static void a_resting_worker_waits_with_what_it_has(void **state) {
	struct round_driver *f = *state;
	open_round(f, 0, 0, ROUND);
	expect_next(f, ROUND_TRAIN);
	trained(f, FIXTURE_H, 0, ROUND);
	encoded(f);
	show_leases(f, RUN_REDUCE, 0, 0, ROUND, EVERYBODY & ~(UINT64_C(1) << FIXTURE_SELF));
	open_round(f, 1, 0, ROUND);
	expect_next(f, ROUND_FETCH_LOG);
	round_on_fetched(f->c, f->now, ROUND_FETCH_LOG, 0, true);
	assert_false(expect_next(f, ROUND_APPLY).participated);
	f->progress = (struct participant_progress){.tokens = ROUND * 10, .sequences = ROUND}; /* it grows */
	const struct rv_hash chain = chain_at(1);
	round_on_applied(f->c, 0, &chain, &f->progress, true);
	encoded(f);
	expect_nothing(f);
	assert_reports(f, WORKER_READY, 0, ROUND);
}

static void lost_leases_begin_the_round_again(void **state) {
	struct round_driver *f = *state;
	open_round(f, 0, 0, 3 * ROUND);
	expect_next(f, ROUND_TRAIN);
	open_round(f, 0, 90, 3 * ROUND); /* while it trains: it ends that first */
	expect_nothing(f);
	trained(f, FIXTURE_H, 0, ROUND);
	struct round_action a = expect_next(f, ROUND_TRAIN);
	assert_true(a.starts_over && a.from == 0 && a.steps == FIXTURE_H);
	trained(f, FIXTURE_H, 90, ROUND);
	encoded(f);
	assert_reports(f, WORKER_READY, 90, ROUND);
	open_round(f, 0, 0, 0); /* and once more, when it is encoded; there is nothing to train on yet */
	expect_nothing(f);
	assert_reports(f, WORKER_TRAINING, 0, 0);
	open_round(f, 0, 200, 3 * ROUND);
	assert_true(expect_next(f, ROUND_TRAIN).starts_over);
	trained(f, 1, 200, STEP);
	expect_nothing(f);
}

/* What it encodes then is another contribution: it signs that as another process, or its two
 * signatures would be proof of a lie. */
static void what_is_trained_again_is_of_another_boot(void **state) {
	struct round_driver *f = *state;
	open_round(f, 0, 0, 3 * ROUND);
	expect_next(f, ROUND_TRAIN);
	trained(f, FIXTURE_H, 0, ROUND);
	encoded(f);
	const uint64_t boot = round_boot(f->c);
	open_round(f, 0, 90, 3 * ROUND);
	assert_true(expect_next(f, ROUND_TRAIN).starts_over);
	trained(f, FIXTURE_H, 90, ROUND);
	expect_action(f, ROUND_ENCODE, 0);
	const struct commitment another = {.n = 1, .roots = {{0, {{9}}}}};
	round_on_encoded(f->c, 0, &another);
	assert_true(round_boot(f->c) == boot + 1 && report_of(f).boot == boot + 1);
}

/* A roster has the leases of its contributions: what the document says meanwhile is of later
 * ones. */
static void leases_of_a_round_under_way_stand(void **state) {
	struct round_driver *f = *state;
	open_round(f, 0, 0, 3 * ROUND);
	expect_next(f, ROUND_TRAIN);
	trained(f, FIXTURE_H, 0, ROUND);
	encoded(f);
	show_leases(f, RUN_REDUCE, 0, 0, 3 * ROUND, EVERYBODY);
	expect_next(f, ROUND_REDUCE_START);
	show_leases(f, RUN_REDUCE, 0, 90, 3 * ROUND, EVERYBODY);
	expect_nothing(f);
}

/* ---- steps ahead ---- */

static void begin_ahead(struct round_driver *f) {
	round_driver_start(
		f, (struct round_config){.n_chunks = {FIXTURE_CHUNKS}, .step_sequences = STEP, .overlap_steps = 3}, 0, 0);
	open_round(f, 0, 0, ROUND + STEP);
	expect_next(f, ROUND_TRAIN);
	trained(f, FIXTURE_H, 0, ROUND);
	encoded(f);
	assert_int_equal(expect_next(f, ROUND_TRAIN).round, 1); /* it holds one step of the three */
	f->progress.ahead = 1;
	f->progress.ahead_sequences = STEP;
	round_on_trained(f->c, 1, &f->progress);
	round_on_read_out(f->c, 1);
	expect_nothing(f);
	show_leases(f, RUN_REDUCE, 0, 0, ROUND + STEP, EVERYBODY);
	expect_next(f, ROUND_REDUCE_START);
	round_on_reduced(f->c, 0, 1);
	expect_next(f, ROUND_PERSIST);
	const struct rv_hash digest = digest_of(0);
	round_on_persisted(f->c, f->now, 0, 1, &digest, true);
}

/* The commit brings what the steps ahead lack; the outer step comes behind them. */
static void steps_ahead_wait_for_the_commit(void **state) {
	struct round_driver *f = *state;
	begin_ahead(f);
	open_round(f, 1, ROUND, 3 * ROUND);
	expect_next(f, ROUND_REDUCE_STOP);
	const struct round_action a = expect_next(f, ROUND_TRAIN);
	assert_true(a.round == 1 && a.from == 1 && a.steps == 2);
	f->progress.ahead = 3;
	f->progress.ahead_sequences = 3 * STEP;
	round_on_trained(f->c, 1, &f->progress);
	assert_true(expect_next(f, ROUND_APPLY).participated);
	f->progress = (struct participant_progress){.steps_done = 3, .tokens = 60, .first = ROUND, .sequences = 3 * STEP};
	const struct rv_hash chain = chain_at(1);
	round_on_applied(f->c, 0, &chain, &f->progress, true);
	const struct round_action rest = expect_next(f, ROUND_TRAIN);
	assert_true(!rest.starts_over && rest.from == 3 && rest.steps == FIXTURE_H - 3);
}

/* Steps ahead whose leases are gone are not waited for, and done again. */
static void lost_steps_ahead_are_done_again(void **state) {
	struct round_driver *f = *state;
	begin_ahead(f);
	open_round(f, 1, 500, 3 * ROUND);
	expect_next(f, ROUND_REDUCE_STOP);
	assert_true(expect_next(f, ROUND_APPLY).participated);
	f->progress = (struct participant_progress){.steps_done = 1, .tokens = 20, .first = ROUND, .sequences = STEP};
	const struct rv_hash chain = chain_at(1);
	round_on_applied(f->c, 0, &chain, &f->progress, true);
	const struct round_action a = expect_next(f, ROUND_TRAIN);
	assert_true(a.starts_over && a.from == 0 && a.steps == FIXTURE_H);
}

int main(void) {
#define LEASES(name) cmocka_unit_test_setup_teardown(name, setup, round_driver_teardown)
	const struct CMUnitTest tests[] = {
		LEASES(it_waits_for_leases_and_reports_what_it_read),
		LEASES(training_goes_on_when_more_is_leased),
		LEASES(a_contribution_ends_where_its_leases_do),
		LEASES(a_resting_worker_waits_with_what_it_has),
		LEASES(lost_leases_begin_the_round_again),
		LEASES(what_is_trained_again_is_of_another_boot),
		LEASES(leases_of_a_round_under_way_stand),
		LEASES(steps_ahead_wait_for_the_commit),
		LEASES(lost_steps_ahead_are_done_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
