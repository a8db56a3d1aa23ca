/* nccl_stand_in.h: an NCCL for tests without GPUs, written from its public documentation: ranks of
 * one process meet in each call, and the last one carries it out on the emulator's memory, in the
 * order of ranks. It defines vendor_nccl(). One group at a time. */
#ifndef RV_TESTS_TRAIN_NCCL_STAND_IN_H
#define RV_TESTS_TRAIN_NCCL_STAND_IN_H

#include <stdbool.h>

enum nccl_failure {
	NCCL_WORKS,
	NCCL_JOIN,  /* ncclCommInitRankConfig of `failing_rank`: the others' join goes on for ever */
	NCCL_CALL,  /* an exchange: an error for that rank, and later for the others, which wait */
	NCCL_LATER, /* the call succeeds, its results are NaN, and ncclCommGetAsyncError says so */
};

struct nccl_stand_in {
	/* The test sets these. */
	enum nccl_failure fails;
	int failing_rank;
	int fails_after; /* so many exchanges of the group succeed first */
	/* What was done. */
	int exchanges, joined, aborted, destroyed;
};
extern struct nccl_stand_in nccl_stand_in;

void nccl_stand_in_reset(void);

#endif
