/* leased.h: runs that lease a published text to their members, several passes of it, and what their
 * replay counts. */
#ifndef TESTS_E2E_LEASED_H
#define TESTS_E2E_LEASED_H

#include "e2e.h"

/* 6 of 8 blocks are for training, of 255 sequences each: a pass. A member reads 32 in a round. */
enum { LEASED_BLOCKS = 8, LEASED_PASS = 6 * 255, LEASED_ROUNDS = 66, LEASED_OF_ROUND = 32 };
#define LEASED_RUN                                                                                                     \
	"n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 64\nbatch = 8\nsteps-per-round = 4\nrounds = 66\n"                \
	"snapshot-every = 10\n"
#define LEASED_ALL_FOUR LEASED_RUN "min-workers = 4\n" E2E_PATIENT
#define LEASED_ANY_TWO  LEASED_RUN "min-workers = 2\n" E2E_STEADY

void leased_open(struct e2e *e, const char *config, int n_workers);
/* Replays the run of the first n workers, which must end in that state and counts what committed
 * contributions have read: no position twice. Returns how many whole passes are in them;
 * `*sequences` gets the number of sequences. */
int64_t leased_assert_replayed(struct e2e *e, int n, const char *chain, const char *full, int64_t *sequences);

#endif
