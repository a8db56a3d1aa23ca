/* round_script.c: see round_script.h. */
#include "round_script.h"
#include "tests/common/check.h"

int round_script_setup(void **state) {
	round_driver_setup(state);
	start_with(*state, 0, 0, LATE_KEEP);
	return 0;
}

void start_with(struct round_driver *f, uint64_t round, uint64_t steps_done, enum late_policy late) {
	round_driver_start(f, (struct round_config){.n_chunks = {FIXTURE_CHUNKS}, .late = late}, round, steps_done);
}

enum rv_err show_attempt(struct round_driver *f, enum run_phase phase, uint64_t round, uint32_t attempt,
						 uint64_t members) {
	document_make(&f->doc, ++f->seq, phase, round, 0);
	f->doc.attempt = attempt;
	document_members(&f->doc, members);
	return round_on_document(f->c, &f->doc, NULL);
}

enum rv_err show(struct round_driver *f, enum run_phase phase, uint64_t round) {
	return show_attempt(f, phase, round, phase == RUN_REDUCE, EVERYBODY);
}

struct report expect_report(struct round_driver *f, enum worker_phase phase) {
	struct report r;
	assert_true(round_next_report(f->c, f->now, &r));
	assert_int_equal(r.phase, phase);
	return r;
}

void assert_hash(struct rv_hash a, struct rv_hash b) {
	assert_memory_equal(a.b, b.b, sizeof a.b);
}

void make_ready(struct round_driver *f, uint64_t round) {
	assert_int_equal(show(f, RUN_OPEN, round), RV_OK);
	assert_int_equal(expect_action(f, ROUND_TRAIN, round).steps, FIXTURE_H);
	driver_trained(f, round, FIXTURE_H, 100);
	expect_action(f, ROUND_ENCODE, round);
	driver_encoded(f->c, round);
	expect_nothing(f);
}

void reduce_and_vote(struct round_driver *f, uint64_t round, struct rv_hash digest) {
	assert_int_equal(show(f, RUN_REDUCE, round), RV_OK);
	expect_action(f, ROUND_REDUCE_START, round);
	round_on_reduced(f->c, round, 1);
	expect_action(f, ROUND_PERSIST, round);
	round_on_persisted(f->c, f->now, round, 1, &digest, true);
	expect_nothing(f);
}

void apply_ok(struct round_driver *f, uint64_t round) {
	struct rv_hash chain = chain_at(round + 1);
	driver_applied(f, round, &chain, true);
}
