/* plan.h: a program's memory at its peak, by purpose, computed before it allocates any and printed
 * at the start, so that people see what does not fit and what would help.
 *
 * The plan uses the shapes of the allocations, and measured figures for the program and its
 * libraries (plan.c); a test compares it with a process's own peak. Training text is mapped: its
 * pages count in a resident set, but the kernel reclaims them; the plan includes few. */
#ifndef RV_TRAIN_MEMORY_PLAN_H
#define RV_TRAIN_MEMORY_PLAN_H

#include "base/err.h"
#include "base/run_config.h"
#include "kernels/device.h"
#include "train/model/model.h"
#include "train/savings.h"

#include <stddef.h>

/* The kind of process, which determines its memory besides the model. */
enum memory_role {
	MEMORY_FORWARD, /* weights, and forward passes with a cache of keys and values: sample, eval */
	MEMORY_REPLICA, /* one replica alone: benchmarks */
	MEMORY_DDP,     /* one replica and a checkpoint of it: `rivulet train --method ddp` */
	MEMORY_LAB,     /* replicas in one process, the outer state, their checkpoint: `rivulet train` */
	MEMORY_WORKER,  /* one replica, the outer state, payloads sent and received, copies for the disk: rivulet-worker */
};

struct memory_request {
	const struct run_config *run;
	const struct device_choice *device;
	struct savings savings;
	enum memory_role role;
	int replicas;          /* MEMORY_LAB; else 1 */
	int threads;           /* threads per backend; 0: all processors of this process */
	int extra_vectors;     /* vectors of all parameters that a method of the lab keeps besides the outer state */
	int step_shards;       /* replica_options.step_shards */
	int parallel;          /* concurrent replicas, each on a backend of its own */
	uint64_t mapped_bytes; /* dataset_mapped_bytes, or 0 before the data is open */
};

/* Bytes of all replicas together, on all their devices. */
struct memory_plan {
	size_t n_params;
	int devices;    /* number of devices of a replica */
	bool on_device; /* device memory holds parameters, gradients, moments, activations, cache, workspace */
	size_t parameters, gradients, moments, activations; /* moments: with muon's scratch, prox-mu's anchor */
	size_t outer;                                       /* theta and the outer optimizer's states */
	size_t exchange;                                    /* encoded outer gradients: own, received, reduced */
	size_t copies;                                      /* held while a state is written to disk */
	size_t audit;            /* contributions that are scored, and the weights that they move */
	size_t cache;            /* keys and values */
	size_t workspace;        /* backends' memory besides vectors, as step_memory counts */
	size_t spare;            /* part of workspace that steps can do without */
	struct step_memory step; /* workspace of one device of one replica */
	size_t offloaded;        /* in the host's memory: weights in fp32 and moments (savings.offload) */
	size_t host;             /* batches and losses, and a mirror of weights in device memory */
	size_t data;             /* mapped files' pages that a run of this length touches */
	size_t program;          /* code, libraries, threads */
};

/* Returns true if savings.offload changes something: one GPU, products in bf16, an optimizer
 * without products. */
bool memory_can_offload(const struct memory_request *q);
/* Returns true if savings.logits_rows changes something: on a GPU. */
bool memory_can_chunk(const struct memory_request *q);
/* Returns true if savings.stream changes something: for a worker, which writes its state while it
 * trains. */
bool memory_can_stream(const struct memory_request *q);
/* Returns true if savings.zero changes something: several devices, an optimizer without
 * products. */
bool memory_can_divide(const struct memory_request *q);
/* Computes the plan. Returns RV_E_NOTFOUND (no such family, codec or outer optimizer), RV_E_RANGE
 * (an impossible shape) or RV_E_NOMEM. */
enum rv_err memory_plan_make(const struct memory_request *q, struct memory_plan *out, struct rv_errtext *et);
size_t memory_plan_total(const struct memory_plan *p);
/* Return the bytes of one device, its minimum, and the host's: the total if that computes. */
size_t memory_plan_device(const struct memory_plan *p);
size_t memory_plan_least_device(const struct memory_plan *p); /* without p->spare */
size_t memory_plan_host(const struct memory_plan *p);
/* Writes "memory: 2123 MiB: parameters 475, gradients 475, moments 949, program 40". */
void memory_plan_line(const struct memory_plan *p, char *out, size_t cap);

#endif
