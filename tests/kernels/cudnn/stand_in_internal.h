/* stand_in_internal.h: the stand-in's descriptors (stand_in.c) as its interpreter
 * (stand_in_graph.c) reads them. */
#ifndef RV_TESTS_KERNELS_CUDNN_STAND_IN_INTERNAL_H
#define RV_TESTS_KERNELS_CUDNN_STAND_IN_INTERNAL_H

#include "kernels/cuda/vendor/cudnn_api.h"
#include "tests/kernels/cudnn/stand_in.h"

enum { DIMS = 4, OPS_MAX = 32, TENSORS_MAX = 64 };

/* Attributes are stored where the table of stand_in.c says, each with room for all its values. */
struct desc {
	int type; /* CUDNN_BACKEND_... */
	bool finalized;
	/* a tensor */
	int data_type;
	int64_t dims[DIMS], strides[DIMS], id, align;
	bool is_virtual, by_value;
	/* operations and what describes them */
	int mode, precision, reduction;
	int64_t axis;
	struct desc *how, *x, *b, *t, *y; /* of a product: x b = y */
	/* from a graph to a plan */
	struct desc *ops[OPS_MAX];
	int64_t n_ops;
	cudnnHandle_t handle;
	struct desc *graph, *config;
	int heuristic;
	/* a variant pack */
	int64_t ids[TENSORS_MAX], n_ids, n_pointers;
	void *pointers[TENSORS_MAX], *workspace;
};

/* One execution: a copy goes into the stream. By-value tensors are read when it is asked for. */
struct execution {
	const struct desc *graph;
	int64_t ids[TENSORS_MAX], n;
	void *pointers[TENSORS_MAX];
	float scalars[TENSORS_MAX];
	bool adds_to_sums;
	int64_t spoiled, spoiled_from;
	float spoiled_by;
};

/* For emu_enqueue. */
void stand_in_compute(const void *execution);

#endif
