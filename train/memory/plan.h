/* plan.h: how much memory a program will have touched at its peak, and for what, before it allocates any:
 * printed at the start, so that a person sees what does not fit, and what would help.
 *
 * Made from the same shapes as the allocations. What only depends on the program and its libraries is measured once
 * (memory_plan.c); a test holds the plan against a process's own peak. Training text is mapped, not copied: its pages
 * count in a resident set, but the system takes them back when it needs them; only a few are planned for.
 */
#ifndef RV_TRAIN_MEMORY_PLAN_H
#define RV_TRAIN_MEMORY_PLAN_H

#include "base/err.h"
#include "base/run_config.h"
#include "kernels/device.h"
#include "train/model/model.h"

#include <stddef.h>

/* Who holds what beside the model. */
enum memory_role {
	MEMORY_FORWARD, /* weights, and a model that only goes forward with a cache of keys and values: sample, eval */
	MEMORY_REPLICA, /* one replica alone: benchmarks */
	MEMORY_DDP,     /* one replica and a checkpoint of it: `rivulet train --method ddp` */
	MEMORY_LAB,     /* replicas in one process, the outer state, their checkpoint: `rivulet train` */
	MEMORY_WORKER,  /* one replica, the outer state, what is sent and received, copies for the disk: rivulet-worker */
};

struct memory_request {
	const struct run_config *run;
	const struct device_choice *device;
	enum recompute recompute;
	enum memory_role role;
	int replicas;          /* MEMORY_LAB; else 1 */
	int threads;           /* of a backend; 0: all processors of this process */
	int extra_vectors;     /* of all parameters, that a method of the lab keeps beside the outer state */
	int step_shards;       /* replica_options.step_shards */
	int parallel;          /* replicas that run at a time, each on a backend of its own */
	uint64_t mapped_bytes; /* dataset_mapped_bytes, or 0 before the data are there */
};

/* Bytes, of all replicas together and, of what devices hold, of all their devices. */
struct memory_plan {
	size_t n_params;
	int devices;    /* of a replica */
	bool on_device; /* parameters, gradients, moments, activations, cache and workspace are not the host's memory */
	size_t parameters, gradients, moments, activations; /* moments: muon's scratch, what prox-mu pulls to */
	size_t outer;                                       /* theta and the outer optimizer's states */
	size_t exchange;                                    /* encoded outer gradients: own, received, reduced */
	size_t copies;           /* held while a state is written to disk, or inner progress is kept over an outer step */
	size_t cache;            /* keys and values */
	size_t workspace;        /* of the backends: what step_memory counts */
	size_t spare;            /* of it: what steps can do without */
	struct step_memory step; /* of one replica's one device */
	size_t host;    /* batches and losses, and a mirror of the weights where the backend's memory is not ours */
	size_t data;    /* of the mapped files what a run of this length touches */
	size_t program; /* code, libraries, threads */
};

/* RV_E_NOTFOUND (no such family, codec or outer optimizer), RV_E_RANGE (a shape that cannot be), RV_E_NOMEM. */
enum rv_err memory_plan_make(const struct memory_request *q, struct memory_plan *out, struct rv_errtext *et);
size_t memory_plan_total(const struct memory_plan *p);
/* What one device holds, and what the host does: the total where it is the device. */
size_t memory_plan_device(const struct memory_plan *p);
size_t memory_plan_least_device(const struct memory_plan *p); /* with what steps cannot do without */
size_t memory_plan_host(const struct memory_plan *p);
/* "memory: 2123 MiB: parameters 475, gradients 475, moments 949, activations 170, workspace 14, program 40" */
void memory_plan_line(const struct memory_plan *p, char *out, size_t cap);

#endif
