/* cuda_micro.h: micro-batches without waiting (backend_ops.micro_step), and the CUDA graphs that
 * repeat them.
 *
 * Input        the tokens and targets of a micro-batch go into one of two pinned buffers, from
 *              there, on a stream of their own, to one of two device buffers while the micro-batch
 *              before computes, and, in order with the computation, to the one place where kernels
 *              read them: so a graph's arguments never change. The host waits only when it is more
 *              than CUDA_INPUTS micro-batches ahead of the copies. One that was prepared is sorted
 *              and under way already, and is known by its contents.
 * Losses       stay on the device, one micro-batch behind the other, until micro_losses fetches
 *              them.
 * Graphs       one per owner, memory and shape (struct cuda_graph_key), at most CUDA_GRAPHS. A
 *              key's first micro-batch runs plainly: scratch grows, products and attention choose
 *              their plans. The next one is captured and launched as a graph, and so are those
 *              behind it. Scratch that moves, or memory that is freed, drops all graphs. A pass
 *              that does more than enqueue (micro_batch.only_enqueues is false: gradients leave
 *              while it runs) is never captured. RIVULET_CUDA_GRAPHS=0: none is.
 * Failures     a capture that CUDA refuses or that becomes unfit (cuda_capture_unfit), a graph that
 *              cannot be instantiated or launched: the micro-batch runs plainly, and the next one
 *              is captured again. One line logs the reason. After CUDA_GRAPH_TRIES failures in a
 *              row another line reports it, and all that follows runs plainly. A broken device is a
 *              fault, not a reason to run plainly. */
#ifndef RV_CUDA_CUDA_MICRO_H
#define RV_CUDA_CUDA_MICRO_H

#include "kernels/backend.h"
#include "kernels/cuda/sizes/step_sizes.h"
#include "kernels/cuda/vendor/runtime.h"

#include <stddef.h>
#include <stdint.h>

enum { CUDA_GRAPHS = 8, CUDA_GRAPH_TRIES = 2 };

/* Device memory that grows to the largest size asked for. Valid until the next request of the same
 * buffer. */
struct cuda_buffer {
	void *p;
	size_t bytes;
};

struct cuda_input {
	int32_t *pinned;
	size_t pinned_bytes;
	struct cuda_buffer device;
	cudaEvent_t copied; /* from pinned to device */
	cudaEvent_t taken;  /* from device to where kernels read it */
	size_t prepared;    /* tokens that micro_prepare packed and began to copy; 0: none */
};

struct cuda_graph_key {
	const void *owner;
	const float *params;
	float *grads;
	int b, t;
	bool first;
	uint64_t attention_memory; /* sdpa_grown() */
};

struct cuda_graph {
	struct cuda_graph_key key;
	cudaGraphExec_t exec; /* NULL: it has run plainly once */
};

/* A backend's state of micro-batches. */
struct cuda_micro {
	const struct micro_batch *batch; /* the micro-batch whose pass is running; NULL: none */
	cudaStream_t copies;
	struct cuda_input inputs[CUDA_INPUTS];
	int next_input;
	cudaEvent_t ends[2]; /* of micro-batches that micro_pace was called after, in turns */
	int next_end;
	struct cuda_buffer now;    /* input and losses of kernels: struct cuda_micro_parts */
	struct cuda_buffer losses; /* of all micro-batches since micro_losses */
	size_t n_losses;
	float *fetched; /* pinned: room for a double, then losses */
	size_t fetched_bytes;
	bool wants_graphs;
	const char *unfit; /* why the current capture cannot become a graph; NULL: it can */
	int failed_graphs; /* since a graph was launched */
	bool logged_failure;
	struct cuda_graph graphs[CUDA_GRAPHS];
	int n_graphs, next_graph; /* next_graph: the one to replace when all are used */
};

/* The running micro-batch's arrays, on the device. */
struct cuda_micro_parts {
	const int32_t *tokens, *sorted /* cuda_sort_tokens */, *targets;
	const float *grad_scale;
	float *losses;
};

struct cuda_backend;
/* Allocates that memory; false: there is not enough. Not while losses are kept. */
bool cuda_micro_reserve(struct cuda_backend *cu, size_t n, size_t losses);
void cuda_micro_init(struct cuda_micro *m);
void cuda_micro_release(struct cuda_backend *cu);
/* Returns the parts of the running pass; asserts that there is one and that it has n tokens. */
struct cuda_micro_parts cuda_micro_parts(const struct cuda_backend *cu, int n);
/* Drops all graphs, because addresses in them change. Waits for those that run. */
void cuda_graphs_drop(struct cuda_backend *cu);
/* Marks the current capture as one that must not become a graph. `why`: a phrase, in static memory.
 * Work that is still enqueued never runs; the pass is repeated plainly. */
void cuda_capture_unfit(struct cuda_backend *cu, const char *why);

#endif
