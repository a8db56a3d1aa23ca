/* round_script.h: a round of one worker, step by step, on a round driver: what it is shown, what it
 * answers, and the stretches that many tests begin with. */
#ifndef TESTS_WORKER_ROUND_SCRIPT_H
#define TESTS_WORKER_ROUND_SCRIPT_H

#include "round_driver.h"

enum { EVERYBODY = 0xf };

/* A round driver whose core begins in round 0 and keeps what is late. */
int round_script_setup(void **state);
void start_with(struct round_driver *f, uint64_t round, uint64_t steps_done, enum late_policy late);

/* The next document; show(): of everybody, in a first attempt where there is one. */
enum rv_err show_attempt(struct round_driver *f, enum run_phase phase, uint64_t round, uint32_t attempt,
						 uint64_t members);
enum rv_err show(struct round_driver *f, enum run_phase phase, uint64_t round);

/* It reports at once: something has changed. */
struct report expect_report(struct round_driver *f, enum worker_phase phase);
void assert_hash(struct rv_hash a, struct rv_hash b);

/* Round `round` up to the encoded outer gradient. */
void make_ready(struct round_driver *f, uint64_t round);
/* From there on to the vote for `digest`. */
void reduce_and_vote(struct round_driver *f, uint64_t round, struct rv_hash digest);
/* The outer step of `round` was done. */
void apply_ok(struct round_driver *f, uint64_t round);

#endif
