/* stand_in.h: a cuDNN for tests without a GPU, written from NVIDIA's documentation of the graph
 * API: descriptors, attributes with their types, finalizing, plans, variant packs and execution. It
 * defines vendor_cudnn(), so that a test that links it has cuDNN in the emulator.
 *
 * A plan's graph is executed operation by operation (stand_in_graph.c) on the emulator's memory, in
 * the order of its streams, with tensors read and written at the dims and strides that they were
 * declared with and virtual ones rounded to their type: what comes out is what the graph says,
 * nothing knows that it is attention. What NVIDIA documents of versions is done: before 9.6 the
 * sums of dq are added to what their memory holds. One thread at a time. */
#ifndef RV_TESTS_KERNELS_CUDNN_STAND_IN_H
#define RV_TESTS_KERNELS_CUDNN_STAND_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where it fails, with a status and a last error of its own. */
enum stand_in_failure {
	STAND_IN_WORKS,
	STAND_IN_NO_PLAN,  /* every engine refuses the graph */
	STAND_IN_STREAM,   /* cudnnSetStream */
	STAND_IN_PACK,     /* creating a variant pack */
	STAND_IN_POINTERS, /* setting its pointers */
	STAND_IN_FINALIZE, /* finalizing it */
	STAND_IN_EXECUTE
};

struct stand_in {
	/* What it does; the test sets these. */
	bool missing;   /* there is no such library */
	size_t version; /* cudnnGetVersion */
	enum stand_in_failure fails;
	int fails_after; /* so many calls of that kind succeed first */
	int64_t workspace_bytes;
	/* Computes wrongly: of tensor `spoiled` (an enum sdpa_tensor; 0: none) elements of tokens from
	 * `spoiled_from` on are multiplied by `spoiled_by`. */
	int64_t spoiled, spoiled_from;
	float spoiled_by;
	/* What was done. */
	int plans;        /* finalized, forward and backward */
	int executions;   /* that succeeded */
	int failures;     /* calls that failed as `fails` says */
	int descriptors;  /* that exist now */
	char misuse[160]; /* the first call that the documentation forbids; empty: none */
};
extern struct stand_in stand_in;

/* Works from now on as the given version, with all counts at 0; descriptors that exist stay. */
void stand_in_reset(size_t version);

#endif
