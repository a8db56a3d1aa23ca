/* rounds.h: what workers' logs say of the rounds of a run, for tests in which one of four workers
 * is lost. */
#ifndef TESTS_E2E_ROUNDS_H
#define TESTS_E2E_ROUNDS_H

#include "e2e.h"

/* Until all of the set saw so many rounds committed. */
void e2e_wait_for_round(struct e2e *e, const int *workers, int n, int64_t round);
/* The workers of the set saw the same state at the first round, `round` or later, that all of them
 * tell of (who was left behind may jump to a snapshot): waits for it. */
void e2e_assert_same_chain(const struct e2e *e, const int *workers, int n, int64_t round);
/* The last round that worker i saw committed; 0: none. */
int64_t e2e_latest_round(const struct e2e *e, int i);
/* Until the coordinator knows that members 0 to n - 1 hold the state of its round and train in it:
 * from then on, where E2E_PATIENT or E2E_STEADY is in force, no round goes on without one of them.
 * Behind a gate: it may last. */
void e2e_wait_level(struct e2e *e, int n);
void e2e_wait_level_but(struct e2e *e, int n, int lost); /* the same without member `lost` */
/* The same, or one round behind: steps ahead that a gate stops keep a worker in that round. */
void e2e_wait_nearly_level(struct e2e *e, int n);
/* Workers 0, 1, 2 took `round` up again without worker 3, which was lost at lost_s, and committed
 * it. Prints how long that took, as `what`. */
void e2e_assert_committed_by_survivors(struct e2e *e, int64_t round, double lost_s, const char *what);
/* From line `from` of its log on, worker i takes part in an all-reduce of a round after the state
 * it fetched. */
void e2e_assert_takes_part_again(struct e2e *e, int i, long from);
/* No worker of the first n complains of a state, a document or its disk. */
void e2e_assert_no_state_was_wrong(struct e2e *e, int n);
/* Lines of worker i's log up to its last round. */
long e2e_lines_so_far(const struct e2e *e, int i);
/* The round of worker i's last all-reduce; -1: none. */
int64_t e2e_last_attempt(const struct e2e *e, int i);

#endif
