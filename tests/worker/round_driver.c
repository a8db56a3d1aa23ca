/* round_driver.c: see round_driver.h. */
#include "round_driver.h"
#include "tests/common/check.h"

#include <stdlib.h>

int round_driver_setup(void **state) {
	struct round_driver *f = calloc(1, sizeof *f);
	assert_non_null(f);
	f->c = malloc(round_core_size());
	assert_non_null(f->c);
	f->now = 1;
	*state = f;
	return 0;
}

int round_driver_teardown(void **state) {
	struct round_driver *f = *state;
	free(f->c);
	free(f);
	return 0;
}

void round_driver_start(struct round_driver *f, struct round_config cfg, uint64_t round, uint64_t steps_done) {
	struct rv_hash chain = chain_at(round);
	cfg.member = FIXTURE_SELF;
	cfg.steps_per_round = FIXTURE_H;
	cfg.heartbeat_us = DRIVER_HEARTBEAT_US;
	f->progress = (struct participant_progress){.steps_done = steps_done};
	f->c = round_core_init(f->c, &cfg, 77, round, &chain, &f->progress, f->now);
}

void driver_trained(struct round_driver *f, uint64_t round, uint64_t steps, uint64_t tokens) {
	if (round == round_round(f->c)) {
		f->progress = (struct participant_progress){.steps_done = steps, .tokens = tokens};
	} else {
		f->progress.ahead = steps;
		f->progress.ahead_tokens = tokens;
	}
	round_on_trained(f->c, round, &f->progress);
}

/* As train/participant/participant.h has it. */
static void adopt(struct round_driver *f) {
	struct participant_progress *p = &f->progress;
	bool gave_away = f->gives_away && p->ahead > 0;
	if (f->apply.participated || (f->apply.late == LATE_KEEP && gave_away))
		*p = (struct participant_progress){.steps_done = p->ahead, .tokens = p->ahead_tokens};
	else if (f->apply.late == LATE_KEEP)
		*p = (struct participant_progress){.steps_done = p->steps_done, .tokens = p->tokens + p->ahead_tokens};
	else
		*p = (struct participant_progress){0};
}

void driver_applied(struct round_driver *f, uint64_t round, const struct rv_hash *chain, bool ok) {
	if (ok)
		adopt(f);
	round_on_applied(f->c, round, chain, &f->progress, ok);
}

struct round_action expect_next(struct round_driver *f, enum round_action_type type) {
	struct round_action a = {0};
	assert_true(round_next_action(f->c, f->now, &a));
	assert_int_equal(a.type, type);
	if (type == ROUND_APPLY)
		f->apply = a;
	return a;
}

struct round_action expect_action(struct round_driver *f, enum round_action_type type, uint64_t round) {
	struct round_action a = expect_next(f, type);
	if (type != ROUND_CANCEL_FETCH)
		assert_int_equal(a.round, round);
	return a;
}

void expect_nothing(struct round_driver *f) {
	struct round_action a = {0};
	assert_false(round_next_action(f->c, f->now, &a));
}

struct report report_of(struct round_driver *f) {
	struct report r;
	f->now += DRIVER_HEARTBEAT_US;
	assert_true(round_next_report(f->c, f->now, &r));
	return r;
}

void driver_encoded(struct round_core *c, uint64_t round) {
	const struct commitment commitment = {.n = 1, .roots = {{0, merkle_leaf((uint32_t)round, NULL, 0)}}};
	round_on_encoded(c, round, &commitment);
}
