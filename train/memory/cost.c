/* cost.c: a step is the time of its arithmetic, of the weights and gradients that each micro-batch
 * moves, and of the optimizer; and its part of the time in which a round waits for the disk. */
#include "train/memory/cost.h"

#include "train/inner.h"

#include <math.h>

/* What a kind of device does in a second in training: a card such as those that volunteers have
 * (docs/gpu.md), or two cores of the processor of docs/benchmarks.md. The memory of that one is
 * also what offload is chosen by, though a desktop with a fast card has more (60e9 in
 * bench/gpu/predict.py): a worker does not have it to itself, and offload is not chosen for its
 * sake. */
struct speed {
	double flops, bytes;
	double micro_bytes; /* per parameter and micro-batch: weights read twice, gradients added to */
};
static const struct speed gpu = {70e12, 900e9, 2 * 2 + 8}, processor = {0.6e12, 38e9, 2 * 4 + 8};

static const double bus_bytes = 12e9; /* a second, each way: half of PCIe 4 x16 */

static const double disk_bytes = 1e9; /* a second, hashed and written */

/* Bytes per parameter that AdamW moves, with moments of each kind. */
static const double adamw_bytes[] = {[MOMENTS_FP32] = 28, [MOMENTS_INT8] = 16};
/* What is computed again, as a share of the forward and backward pass: by operations for GELU and
 * norms, a third for blocks (docs/benchmarks.md). */
static const double again[] = {
	[RECOMPUTE_NONE] = 0, [RECOMPUTE_GELU] = 0.01, [RECOMPUTE_NORMS] = 0.02, [RECOMPUTE_BLOCK] = 0.33};

/* Returns the seconds of the forward pass of a step's first micro-batch. */
static double first_forward_seconds(const struct memory_request *q, const struct speed *s, double n) {
	const double all = (double)savings_share(q->run, q->device->n);
	const double micro = (double)savings_micro_batch(&q->savings, q->run);
	return 2 * n * (micro < all ? micro : all) * (double)q->run->context / s->flops;
}

/* Returns the seconds of an optimizer's step over n_params: where the moments are. Offloaded, the
 * bus carries gradients and weights at the same time, and the first forward pass of the next step
 * overlaps with it (decision 0117). */
static double adamw_seconds(const struct memory_request *q, const struct speed *s, double n) {
	const double bytes = adamw_bytes[q->savings.moments];
	const bool whole = inner_registry[q->run->inner]->whole_matrices;
	const double on_host = bytes / processor.bytes, on_bus = 4 / bus_bytes;
	if (!q->savings.offload || !memory_can_offload(q))
		return n / (whole ? 1 : q->device->n) * bytes / s->bytes;
	const double seconds = n * (on_host > on_bus ? on_host : on_bus), hidden = first_forward_seconds(q, s, n);
	return seconds > hidden ? seconds - hidden : 0;
}

/* Returns the micro-batches of a step: as many on each device, those without a sequence left
 * included. */
static double micro_batches(const struct memory_request *q) {
	const uint64_t sequences = savings_share(q->run, q->device->n);
	const uint64_t micro = (uint64_t)savings_micro_batch(&q->savings, q->run);
	return (double)((sequences + micro - 1) / micro);
}

double memory_link_bytes(const struct memory_request *q, size_t n_params) {
	const enum zero zero = memory_can_divide(q) ? q->savings.zero : ZERO_MOMENTS;
	const double others = (double)(q->device->n - 1) / q->device->n, batches = micro_batches(q);
	const double sums = zero == ZERO_MOMENTS ? 1 : batches, copies = zero == ZERO_WEIGHTS ? 2 * batches : 1;
	return 4 * (double)n_params * others * (sums + copies);
}

/* Returns the seconds of a step in which chunks of logits, but the first of each micro-batch, read
 * the classifier's weights and add to their gradient once more. */
static double logits_seconds(const struct memory_request *q, const struct speed *s) {
	const struct model_shape shape = model_shape_of(q->run);
	const double weights = (double)model_padded_vocab(&shape) * (double)shape.n_embd;
	const double tokens = (double)savings_micro_batch(&q->savings, q->run) * (double)q->run->context;
	const double rows = (double)q->savings.logits_rows, chunks = rows > 0 ? ceil(tokens / rows) : 1;
	return memory_can_chunk(q) ? micro_batches(q) * (chunks - 1) * weights * s->micro_bytes / s->bytes : 0;
}

/* Returns the seconds of a step in which training waits until its state is read (savings.stream):
 * the wait of a round, spread over its steps of `step` seconds. A gradient hides a part of it where
 * the state is in the host's memory. */
static double stream_seconds(const struct memory_request *q, size_t n_params, double step, double gradient) {
	const bool on_device = device_is_gpu(q->device) && !q->savings.offload;
	const double state = (double)(n_params * sizeof(float) + 2 * moments_bytes(q->savings.moments, n_params));
	const double waits = state / disk_bytes - (on_device ? 0 : gradient);
	const double round = (double)q->run->steps_per_round * step, most = (double)q->run->round_ms / 1e3;
	if (!q->savings.stream || !memory_can_stream(q) || waits <= 0)
		return 0;
	return waits * step / (most > 0 && most < round ? most : round);
}

/* Returns the seconds of one step over q->run's sequences of a model of `n_params`, on one device,
 * with q->savings. */
static double memory_step_seconds(const struct memory_request *q, size_t n_params) {
	const bool is_gpu = device_is_gpu(q->device);
	const struct speed *s = is_gpu ? &gpu : &processor;
	const uint64_t sequences = savings_share(q->run, q->device->n);
	const double n = (double)n_params, tokens = (double)sequences * (double)q->run->context;
	const double products = 6 * n * tokens / s->flops * (1 + again[q->savings.recompute]);
	const double compute = products + micro_batches(q) * n * s->micro_bytes / s->bytes + logits_seconds(q, s);
	const double links = is_gpu ? memory_link_bytes(q, n_params) / bus_bytes : 0; /* while it computes */
	const double gradient = compute > links ? compute : links, step = gradient + adamw_seconds(q, s, n);
	return step + stream_seconds(q, n_params, step, gradient);
}

double memory_cost(const struct memory_request *q, size_t n_params) {
	struct memory_request plain = *q;
	plain.savings = (struct savings){.micro_batch = 0};
	return memory_step_seconds(q, n_params) / memory_step_seconds(&plain, n_params) - 1;
}
