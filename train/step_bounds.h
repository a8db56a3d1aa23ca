/* step_bounds.h: bounds of a run's steps for backend_ops.reserve, from the configuration, so that
 * the memory plan and the replica agree. */
#ifndef RV_TRAIN_STEP_BOUNDS_H
#define RV_TRAIN_STEP_BOUNDS_H

#include "train/inner.h"
#include "train/model/model.h"
#include "train/savings.h"

struct step_source {
	const struct run_config *run;
	const struct model_ops *family;
	const struct model_shape *shape; /* resolved */
	const struct model_layout *layout;
	const struct inner_optimizer *inner;
	int devices;       /* devices that share a step's sequences */
	int shards;        /* data shards that a step reads: replica_options.step_shards */
	int micro_batch;   /* most sequences of a micro-batch */
	int logits_rows;   /* savings.logits_rows */
	bool offload;      /* weights and moments are in the host's memory */
	bool forward_only; /* one sequence, and no step */
};

/* NCCL's buffers on a device: 4 MiB each (NCCL_BUFFSIZE) to send and to receive, in up to 32
 * channels. */
#define EXCHANGE_BYTES ((size_t)256 << 20)
/* Gradients that are copied to the host at a time for an optimizer there: whole blocks of 8-bit
 * moments. */
enum { OFFLOAD_FLOATS = 1 << 20 };
/* A state that is copied to the host at a time: a piece of a stream (train/replica.h). */
enum { STREAMED_FLOATS = 1 << 18 };

/* Checks that each of `devices` has a sequence of a step. Returns RV_E_RANGE. */
enum rv_err step_check_devices(const struct run_config *run, int devices, struct rv_errtext *et);
/* Returns the bounds of one device, with params NULL: they cover steps, evaluations, and smaller
 * micro-batches at the end of a device's share. */
struct step_bounds step_bounds_of(const struct step_source *s);

#endif
