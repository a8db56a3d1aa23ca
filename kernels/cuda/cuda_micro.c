/* cuda_micro.c: micro-batches without waiting: input, losses, graphs. See cuda_micro.h. */
#include "base/assert.h"
#include "kernels/cuda/cuda_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cuda_micro_init(struct cuda_micro *m) {
	const char *said = getenv("RIVULET_CUDA_GRAPHS");
	m->wants_graphs = !said || strcmp(said, "0") != 0;
	cuda_check(cudaStreamCreateWithFlags(&m->copies, cudaStreamNonBlocking), "cudaStreamCreate");
	for (int i = 0; i < CUDA_INPUTS; i++) {
		cuda_check(cudaEventCreateWithFlags(&m->inputs[i].copied, EVENT_TO_WAIT_FOR), "cudaEventCreate");
		cuda_check(cudaEventCreateWithFlags(&m->inputs[i].taken, cudaEventDisableTiming), "cudaEventCreate");
	}
	for (int i = 0; i < 2; i++)
		cuda_check(cudaEventCreateWithFlags(&m->ends[i], EVENT_TO_WAIT_FOR), "cudaEventCreate");
}

void cuda_micro_release(struct cuda_backend *cu) {
	struct cuda_micro *m = &cu->micro;
	cuda_graphs_drop(cu);
	cuda_check(cudaStreamSynchronize(m->copies), "cudaStreamSynchronize");
	for (int i = 0; i < CUDA_INPUTS; i++) {
		struct cuda_input *in = &m->inputs[i];
		cuda_check(cudaFree(in->device.p), "cudaFree");
		cuda_check(cudaFreeHost(in->pinned), "cudaFreeHost");
		cuda_check(cudaEventDestroy(in->copied), "cudaEventDestroy");
		cuda_check(cudaEventDestroy(in->taken), "cudaEventDestroy");
	}
	for (int i = 0; i < 2; i++)
		cuda_check(cudaEventDestroy(m->ends[i]), "cudaEventDestroy");
	cuda_check(cudaFree(m->now.p), "cudaFree");
	cuda_check(cudaFree(m->losses.p), "cudaFree");
	cuda_check(cudaFreeHost(m->fetched), "cudaFreeHost");
	cuda_check(cudaStreamDestroy(m->copies), "cudaStreamDestroy");
}

/* ---- input ---- */

static struct cuda_micro_parts parts_at(int32_t *at, size_t n) {
	return (struct cuda_micro_parts){
		.tokens = at,
		.sorted = at,
		.targets = at + 3 * n + 1,
		.grad_scale = (const float *)(const void *)(at + 4 * n + 1),
		.losses = (float *)(void *)(at + cuda_input_words(n)),
	};
}

struct cuda_micro_parts cuda_micro_parts(const struct cuda_backend *cu, int n) {
	const struct micro_batch *b = cu->micro.batch;
	RV_ASSERT(b && n == b->b * b->t);
	return parts_at(cu->micro.now.p, (size_t)n);
}

static void grow_pinned(void **p, size_t *have, size_t bytes) {
	if (bytes <= *have)
		return;
	cuda_check(cudaFreeHost(*p), "cudaFreeHost");
	cuda_check(cudaMallocHost(p, bytes), "cudaMallocHost");
	*have = bytes;
}

static void pack(int32_t *to, const struct micro_batch *b, size_t n) {
	(void)cuda_sort_tokens(to, b->tokens, (int)n);
	memcpy(to + 3 * n + 1, b->targets, n * sizeof *to);
	memcpy(to + 4 * n + 1, &b->grad_scale, sizeof b->grad_scale);
}

/* Packs the next input, and enqueues its copy on the stream of copies. */
static void send_input(struct cuda_backend *cu, const struct micro_batch *b) {
	struct cuda_micro *m = &cu->micro;
	struct cuda_input *in = &m->inputs[m->next_input];
	size_t n = (size_t)b->b * (size_t)b->t, bytes = cuda_input_words(n) * sizeof(int32_t);
	cuda_check(cudaEventSynchronize(in->copied), "cudaEventSynchronize");
	void *pinned = in->pinned;
	grow_pinned(&pinned, &in->pinned_bytes, bytes);
	in->pinned = pinned;
	cuda_grow(&in->device, bytes);
	pack(in->pinned, b, n);
	cuda_check(cudaStreamWaitEvent(m->copies, in->taken, 0), "cudaStreamWaitEvent");
	cuda_check(cudaMemcpyAsync(in->device.p, in->pinned, bytes, cudaMemcpyHostToDevice, m->copies), "copy to device");
	cuda_check(cudaEventRecord(in->copied, m->copies), "cudaEventRecord");
}

/* Returns true if the input was prepared with what `b` has. */
static bool is_prepared(const struct cuda_input *in, const struct micro_batch *b) {
	const size_t n = (size_t)b->b * (size_t)b->t;
	return in->prepared == n && memcmp(in->pinned, b->tokens, n * sizeof *b->tokens) == 0 &&
		   memcmp(in->pinned + 3 * n + 1, b->targets, n * sizeof *b->targets) == 0 &&
		   memcmp(in->pinned + 4 * n + 1, &b->grad_scale, sizeof b->grad_scale) == 0;
}

/* Has the next input in the place where kernels read it, in order with the computation. */
static void take_input(struct cuda_backend *cu, const struct micro_batch *b) {
	struct cuda_micro *m = &cu->micro;
	struct cuda_input *in = &m->inputs[m->next_input];
	size_t n = (size_t)b->b * (size_t)b->t, bytes = cuda_input_words(n) * sizeof(int32_t);
	if (!is_prepared(in, b))
		send_input(cu, b);
	in->prepared = 0;
	m->next_input = (m->next_input + 1) % CUDA_INPUTS;
	cuda_grow_captured(cu, &m->now, bytes + n * sizeof(float));
	cuda_check(cudaStreamWaitEvent(cu->stream, in->copied, 0), "cudaStreamWaitEvent");
	cuda_check(cudaMemcpyAsync(m->now.p, in->device.p, bytes, cudaMemcpyDeviceToDevice, cu->stream), "copy of input");
	cuda_check(cudaEventRecord(in->taken, cu->stream), "cudaEventRecord");
}

void cuda_micro_prepare(struct backend *be, const struct micro_batch *batch) {
	struct cuda_backend *cu = cuda_of(be);
	RV_ASSERT(!cu->micro.batch);
	send_input(cu, batch);
	cu->micro.inputs[cu->micro.next_input].prepared = (size_t)batch->b * (size_t)batch->t;
}

/* ---- losses ---- */

/* Makes room for n more losses: twice as much, so that it seldom grows. */
static void grow_losses(struct cuda_backend *cu, size_t n) {
	struct cuda_micro *m = &cu->micro;
	size_t used = m->n_losses * sizeof(float), bytes = used + n * sizeof(float);
	if (bytes <= m->losses.bytes)
		return;
	struct cuda_buffer larger = {.bytes = 2 * bytes};
	cuda_check(cudaMalloc(&larger.p, larger.bytes), "cudaMalloc of losses");
	if (used)
		cuda_check(cudaMemcpyAsync(larger.p, m->losses.p, used, cudaMemcpyDeviceToDevice, cu->stream),
				   "copy of losses");
	cuda_check(cudaStreamSynchronize(cu->stream), "cudaStreamSynchronize");
	cuda_check(cudaFree(m->losses.p), "cudaFree");
	m->losses = larger;
}

static void keep_losses(struct cuda_backend *cu, size_t n) {
	struct cuda_micro *m = &cu->micro;
	cuda_check(cudaMemcpyAsync((float *)m->losses.p + m->n_losses, parts_at(m->now.p, n).losses, n * sizeof(float),
							   cudaMemcpyDeviceToDevice, cu->stream),
			   "copy of losses");
	m->n_losses += n;
}

void cuda_micro_pace(struct backend *be) {
	struct cuda_backend *cu = cuda_of(be);
	struct cuda_micro *m = &cu->micro;
	cuda_check_enqueued(cu->stream, cudaEventRecord(m->ends[m->next_end], cu->stream), "cudaEventRecord");
	m->next_end = 1 - m->next_end;
	cuda_check(cudaEventSynchronize(m->ends[m->next_end]), "cudaEventSynchronize"); /* the one before, if any */
}

const float *cuda_micro_losses(struct backend *be, size_t *n, const float *x, size_t x_n, double *squares) {
	struct cuda_backend *cu = cuda_of(be);
	struct cuda_micro *m = &cu->micro;
	void *fetched = m->fetched;
	*n = m->n_losses;
	m->n_losses = 0;
	grow_pinned(&fetched, &m->fetched_bytes, cuda_fetched_bytes(*n));
	m->fetched = fetched;
	double *sum = fetched;
	float *losses = (float *)(void *)(sum + 1);
	if (squares)
		cuda_check_enqueued(
			cu->stream,
			cudaMemcpyAsync(sum, cuda_enqueue_squares(cu, x, x_n), sizeof *sum, cudaMemcpyDeviceToHost, cu->stream),
			"copy from device");
	if (*n || squares)
		cuda_fetch(cu, losses, m->losses.p, *n * sizeof(float));
	if (squares)
		*squares = *sum;
	return losses;
}

/* ---- memory ---- */

static bool reserve_input(struct cuda_backend *cu, struct cuda_input *in, size_t bytes) {
	void *pinned = in->pinned;
	in->prepared = 0;
	bool ok = cuda_try_grow_pinned(&pinned, &in->pinned_bytes, bytes);
	in->pinned = pinned;
	return ok && cuda_try_grow(cu, &in->device, bytes);
}

bool cuda_micro_reserve(struct cuda_backend *cu, size_t n, size_t losses) {
	struct cuda_micro *m = &cu->micro;
	void *fetched = m->fetched;
	RV_ASSERT(m->n_losses == 0 && !m->batch);
	bool ok = cuda_try_grow_pinned(&fetched, &m->fetched_bytes, cuda_fetched_bytes(losses));
	m->fetched = fetched;
	for (int i = 0; ok && i < CUDA_INPUTS; i++)
		ok = reserve_input(cu, &m->inputs[i], cuda_input_words(n) * sizeof(int32_t));
	return ok && cuda_try_grow(cu, &m->now, cuda_input_words(n) * sizeof(int32_t) + n * sizeof(float)) &&
		   cuda_try_grow(cu, &m->losses, losses * sizeof(float));
}

/* ---- graphs ---- */

static void destroy(struct cuda_graph *g) {
	if (g->exec)
		cuda_check(cudaGraphExecDestroy(g->exec), "cudaGraphExecDestroy");
	*g = (struct cuda_graph){.exec = NULL};
}

void cuda_graphs_drop(struct cuda_backend *cu) {
	struct cuda_micro *m = &cu->micro;
	if (m->n_graphs)
		cuda_check_enqueued(cu->stream, cudaStreamSynchronize(cu->stream), "cudaStreamSynchronize");
	for (int i = 0; i < m->n_graphs; i++)
		destroy(&m->graphs[i]);
	m->n_graphs = m->next_graph = 0;
}

static bool same_key(const struct cuda_graph_key *a, const struct cuda_graph_key *b) {
	return a->owner == b->owner && a->params == b->params && a->grads == b->grads && a->b == b->b && a->t == b->t &&
		   a->first == b->first && a->attention_memory == b->attention_memory;
}

static struct cuda_graph *find(struct cuda_micro *m, const struct cuda_graph_key *key) {
	for (int i = 0; i < m->n_graphs; i++)
		if (same_key(&m->graphs[i].key, key))
			return &m->graphs[i];
	return NULL;
}

static void add(struct cuda_backend *cu, const struct cuda_graph_key *key) {
	struct cuda_micro *m = &cu->micro;
	int at = m->n_graphs < CUDA_GRAPHS ? m->n_graphs++ : m->next_graph;
	m->next_graph = (at + 1) % CUDA_GRAPHS;
	if (m->graphs[at].exec) /* it may be under way */
		cuda_check(cudaStreamSynchronize(cu->stream), "cudaStreamSynchronize");
	destroy(&m->graphs[at]);
	m->graphs[at].key = *key;
}

void cuda_capture_unfit(struct cuda_backend *cu, const char *why) {
	RV_ASSERT(cuda_captures(cu->stream));
	cu->micro.unfit = why;
}

/* Counts and logs a failed `step` on the way to a graph. Asserts that the device works. */
static void graph_failed(struct cuda_backend *cu, const char *step, const char *why) {
	struct cuda_micro *m = &cu->micro;
	cuda_check(cuda_device_fault(cu->stream), step);
	m->failed_graphs++;
	m->wants_graphs = m->failed_graphs < CUDA_GRAPH_TRIES;
	if (m->wants_graphs && m->logged_failure)
		return;
	m->logged_failure = true;
	(void)fprintf(stderr, "cuda backend: %s: %s; %s\n", step, why,
				  m->wants_graphs ? "this micro-batch runs as plain launches, and the next one is captured again"
								  : "steps run without CUDA graphs from here on");
}

/* Captures the pass: nothing that it enqueues runs. Returns NULL if it makes no graph. */
static cudaGraph_t capture(struct cuda_backend *cu, void (*pass)(void *ctx), void *ctx) {
	cudaGraph_t graph = NULL;
	cudaError_t e = cudaStreamBeginCapture(cu->stream, cudaStreamCaptureModeRelaxed);
	if (e != cudaSuccess) {
		graph_failed(cu, "cudaStreamBeginCapture", cudaGetErrorString(e));
		return NULL;
	}
	cu->micro.unfit = NULL;
	pass(ctx);
	e = cudaStreamEndCapture(cu->stream, &graph);
	const char *why = e == cudaSuccess ? cu->micro.unfit : cudaGetErrorString(e);
	if (e == cudaSuccess && !cu->micro.unfit)
		return graph;
	if (graph)
		(void)cudaGraphDestroy(graph);
	graph_failed(cu, "capture of a micro-batch", why);
	return NULL;
}

static cudaGraphExec_t instantiate(struct cuda_backend *cu, cudaGraph_t graph) {
	cudaGraphExec_t exec = NULL;
	cudaError_t e = cudaGraphInstantiate(&exec, graph, 0);
	(void)cudaGraphDestroy(graph);
	if (e == cudaSuccess)
		return exec;
	graph_failed(cu, "cudaGraphInstantiate", cudaGetErrorString(e));
	return NULL;
}

/* Returns true if the graph runs. One that is refused is destroyed: its key is captured again. */
static bool launch(struct cuda_backend *cu, struct cuda_graph *g) {
	cudaError_t e = cudaGraphLaunch(g->exec, cu->stream);
	if (e == cudaSuccess) {
		cu->micro.failed_graphs = 0;
		return true;
	}
	(void)cudaGraphExecDestroy(g->exec);
	g->exec = NULL;
	graph_failed(cu, "cudaGraphLaunch", cudaGetErrorString(e));
	return false;
}

static bool run_as_graph(struct cuda_backend *cu, struct cuda_graph *g, void (*pass)(void *ctx), void *ctx) {
	cudaGraph_t graph = g->exec ? NULL : capture(cu, pass, ctx);
	if (graph)
		g->exec = instantiate(cu, graph);
	return g->exec && launch(cu, g);
}

static void run_pass(struct cuda_backend *cu, const struct micro_batch *b, void (*pass)(void *ctx), void *ctx) {
	const struct cuda_graph_key key = {b->owner, b->params, b->grads, b->b, b->t, b->first, sdpa_grown(cu->sdpa)};
	struct cuda_graph *g = NULL;
	if (cu->micro.wants_graphs && b->only_enqueues) {
		g = find(&cu->micro, &key);
		if (!g)
			add(cu, &key);
	}
	if (!g || !run_as_graph(cu, g, pass, ctx))
		pass(ctx);
}

void cuda_micro_step(struct backend *be, const struct micro_batch *batch, void (*pass)(void *ctx), void *ctx) {
	struct cuda_backend *cu = cuda_of(be);
	size_t n = (size_t)batch->b * (size_t)batch->t;
	RV_ASSERT(!cu->micro.batch && n > 0);
	take_input(cu, batch);
	grow_losses(cu, n);
	cuda_weights_refresh(cu, batch->params); /* outside of a graph: it is not stale every time */
	cu->micro.batch = batch;
	run_pass(cu, batch, pass, ctx);
	cu->micro.batch = NULL;
	cuda_weights_all_changed(cu, batch->grads); /* a replay does not report which */
	keep_losses(cu, n);
}
