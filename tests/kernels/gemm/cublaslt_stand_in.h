/* cublaslt_stand_in.h: a stand-in for cuBLASLt, written from NVIDIA's documentation of it, that
 * computes on the emulator's device (tests/emu): a shared library with NVIDIA's names, and the
 * switches and counters of its tests.
 *
 * Products are column-major, d = epilogue(alpha op(a) op(b) + beta c), with the documented
 * epilogues, types, leading dimensions and alignments. It offers the algorithms of enum
 * stand_in_algorithm, as far as the preferences (alignment, workspace, reduction schemes) allow.
 * What the documentation forbids is refused with the status that it names. Objects know whether
 * they are alive. One thread at a time. */
#ifndef RV_TESTS_KERNELS_CUBLASLT_STAND_IN_H
#define RV_TESTS_KERNELS_CUBLASLT_STAND_IN_H

#include "kernels/cuda/vendor/cublaslt_api.h"

#include <stdbool.h>

/* In the order in which the heuristic offers them. Split-K algorithms make four partial sums. */
enum stand_in_algorithm {
	STAND_IN_INPLACE,      /* partial sums of d's type, in d */
	STAND_IN_OUTPUT_TYPE,  /* partial sums of d's type, in the workspace */
	STAND_IN_VECTORS,      /* one sum; all addresses are multiples of 16 bytes */
	STAND_IN_COMPUTE_TYPE, /* partial sums in fp32, in the workspace; 16 bytes */
	STAND_IN_ELEMENTS,     /* one sum; any address */
	STAND_IN_ALGORITHMS
};

struct cublaslt_stand_in_options {
	bool fail_start;                              /* cublasLtCreate */
	bool fail_descriptors;                        /* cublasLtMatmulDescCreate */
	bool refuse_guesses, refuse_runs;             /* all of them */
	bool refuse_fused_guesses, refuse_fused_runs; /* those with an epilogue */
	bool refuse_in_capture;                       /* cublasLtMatmul on a stream that captures */
	bool refuse_run[STAND_IN_ALGORITHMS];         /* of one algorithm */
	bool unusable_guesses;         /* the heuristic returns as its first result one whose state is not success */
	bool more_alignment;           /* algorithms want 64 KiB when they run, and did not say so */
	bool more_workspace;           /* algorithms want more workspace when they run than they said */
	float ms[STAND_IN_ALGORITHMS]; /* of a product, on the emulator's clock */
	float epilogue_ms;             /* more, where an epilogue is fused */
};

struct cublaslt_stand_in_counts {
	int queries, queries_in_capture; /* of the heuristic */
	int runs, runs_in_capture;       /* of cublasLtMatmul that were accepted */
	int refused;                     /* of cublasLtMatmul that were not */
	int fused;                       /* of the runs: with an epilogue */
	int runs_of[STAND_IN_ALGORITHMS];
	int objects; /* alive now: handles, descriptors, layouts, preferences */
};

/* Both at once: new options, and counts from 0 (objects: as they are). NULL: no failures, all
 * algorithms as fast. */
void cublaslt_stand_in_reset(const struct cublaslt_stand_in_options *options);
struct cublaslt_stand_in_counts cublaslt_stand_in_count(void);

/* The functions, under NVIDIA's names. */
#define VENDOR_FUNCTION(result, name, parameters) result name parameters;
#include "kernels/cuda/vendor/cublaslt.def"

#endif
