/* ends.h: the state that a run of real processes ends in: the same for all, that of the lab, and
 * that of a replay. */
#ifndef TESTS_E2E_ENDS_H
#define TESTS_E2E_ENDS_H

#include "e2e.h"

/* All workers of the set ended with status 0 at the same state: chain and full hash, copied. */
void e2e_assert_same_end(struct e2e *e, const int *workers, int n, char chain[65], char state[65]);
/* The same run in one process, with one thread per replica: chain and full hash of its end. */
void e2e_lab_end(struct e2e *e, int workers, char chain[65], char state[65]);
/* Workers 0 to workers - 1 ended with status 0 at the very state of the lab's run: chain and full
 * hash, copied. */
void e2e_assert_labs_end(struct e2e *e, int workers, char chain[65], char state[65]);
/* The first n workers have ended: `rivulet replay` of their traces ends with this status. Its log
 * is `log`.log. */
void e2e_replay(struct e2e *e, int n, const char *log, int status);
/* The same, and it ends in that state. */
void e2e_assert_replayed(struct e2e *e, int n, const char *chain, const char *state);

/* e2e_assert_labs_end, and their traces replayed end there too. */
void e2e_assert_lab_and_replay(struct e2e *e, int workers);
/* Opens a run, starts so many workers, lets nothing happen to them: e2e_assert_lab_and_replay. */
void e2e_check_run(struct e2e *e, const char *config, int workers);

#endif
