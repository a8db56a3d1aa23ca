/* told.h: a worker that runs is told something by its person: `rivulet-worker pause`, `set ...`,
 * `status`, from outside. */
#ifndef TESTS_E2E_TOLD_H
#define TESTS_E2E_TOLD_H

#include "e2e.h"

/* Runs `rivulet-worker WORDS --dir ...` for a worker. `out`: what it prints. Returns the exit
 * status. */
int e2e_tell(const struct e2e *e, int worker, char *out, size_t cap, const char *words);
/* The same; fails the test unless that succeeds with `answer` in what is printed. */
void e2e_tell_ok(const struct e2e *e, int worker, const char *words, const char *answer);
/* Returns what `status --json` prints, as soon as the worker answers: it may be about to start. The
 * caller's reference. */
json_t *e2e_worker_status(const struct e2e *e, int worker);
/* Waits until a round counted the worker that is applied from now on. */
void e2e_wait_counted(const struct e2e *e, int worker);

#endif
