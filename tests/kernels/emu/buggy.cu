// buggy.cu: see buggy.h.
#include "tests/kernels/emu/buggy.h"

#include "kernels/cuda/ptx.cuh"

enum { N = 128 };

static float *new_floats() {
	void *memory = nullptr;
	(void)cudaMalloc(&memory, N * sizeof(float));
	return static_cast<float *>(memory);
}

// Waits for what writes p; is the first number right? Frees p.
static bool first_is(float *p, float expected) {
	cudaDeviceSynchronize();
	bool right = p[0] == expected;
	cudaFree(p);
	return right;
}

// Thread i passes a number to thread N - 1 - i.
__global__ void reverse_kernel(float *out, bool barrier, int length) {
	SHMEM(float, values, N);
	int i = (int)threadIdx.x;
	values[i] = (float)i;
	if (barrier)
		__syncthreads();
	out[i] = values[length - 1 - i];
}

static bool missing_barrier(bool planted) {
	float *out = new_floats();
	LAUNCH(reverse_kernel, 1u, N, 0, nullptr, out, !planted, N);
	return first_is(out, N - 1);
}

static bool shared_out_of_bounds(bool planted) {
	float *out = new_floats();
	LAUNCH(reverse_kernel, 1u, N, 0, nullptr, out, true, planted ? N + 1 : N);
	return first_is(out, N - 1);
}

__global__ void rotate_kernel(float *out, int steps, bool barrier) {
	SHMEM(float, values, N);
	int i = (int)threadIdx.x;
	values[i] = (float)i;
	for (int step = 0; step < steps; step++) {
		__syncthreads();
		float next = values[(i + 1) % N];
		if (barrier)
			__syncthreads();
		values[i] = next;
	}
	__syncthreads();
	out[i] = values[i];
}

static bool missing_barrier_before_write(bool planted) {
	float *out = new_floats();
	LAUNCH(rotate_kernel, 1u, N, 0, nullptr, out, 3, !planted);
	return first_is(out, 3);
}

__global__ void uninitialised_kernel(float *out, int written) {
	SHMEM(float, values, N);
	int i = (int)threadIdx.x;
	if (i < written)
		values[i] = 1;
	__syncthreads();
	out[i] = values[N - 1 - i];
}

static bool uninitialised_shared(bool planted) {
	float *out = new_floats();
	LAUNCH(uninitialised_kernel, 1u, N, 0, nullptr, out, planted ? N - 1 : N);
	return first_is(out, 1);
}

__global__ void divergent_barrier_kernel(float *out, int those) {
	if ((int)threadIdx.x < those)
		__syncthreads();
	out[threadIdx.x] = 1;
}

static bool barrier_not_reached(bool planted) {
	float *out = new_floats();
	LAUNCH(divergent_barrier_kernel, 1u, N, 0, nullptr, out, planted ? N - WARP : N);
	return first_is(out, 1);
}

__global__ void divergent_shuffle_kernel(float *out, int lanes) {
	float x = 1;
	if ((int)threadIdx.x % WARP < lanes)
		x += __shfl_xor_sync(FULL_WARP, x, 1);
	else
		__syncthreads();
	out[threadIdx.x] = x;
}

static bool shuffle_not_reached(bool planted) {
	float *out = new_floats();
	LAUNCH(divergent_shuffle_kernel, 1u, N, 0, nullptr, out, planted ? WARP / 2 : +WARP);
	return first_is(out, 2);
}

__global__ void copy_kernel(float *out, const float *in, bool wait) {
	SHMEM(float, values, N);
	int i = (int)threadIdx.x;
	if (i < N / 4)
		cp_async16(values + i * 4, in + i * 4);
	cp_async_commit();
	if (wait)
		cp_async_wait<0>();
	__syncthreads();
	out[i] = values[i];
	cp_async_wait<0>();
}

static bool missing_copy_wait(bool planted) {
	float *in = new_floats(), *out = new_floats();
	for (int i = 0; i < N; i++)
		in[i] = 5;
	LAUNCH(copy_kernel, 1u, N, 0, nullptr, out, in, !planted);
	bool right = first_is(out, 5);
	cudaFree(in);
	return right;
}

__global__ void fill_kernel(float *out, float value, int n) {
	if ((int)threadIdx.x < n)
		out[threadIdx.x] = value;
}

static bool global_out_of_bounds(bool planted) {
	float *out = new_floats();
	LAUNCH(fill_kernel, 1u, 2 * N, 0, nullptr, out, 2, planted ? N + 1 : +N);
	return first_is(out, 2);
}

// One stream fills, another copies to the host: it has to wait for an event of the first.
static bool missing_event_wait(bool planted) {
	float *out = new_floats();
	float host[N] = {};
	cudaStream_t compute, copy;
	cudaEvent_t filled;
	cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking);
	cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking);
	cudaEventCreateWithFlags(&filled, cudaEventDisableTiming);
	LAUNCH(fill_kernel, 1u, N, 0, compute, out, 3, N);
	cudaEventRecord(filled, compute);
	if (!planted)
		cudaStreamWaitEvent(copy, filled, 0);
	cudaMemcpyAsync(host, out, sizeof host, cudaMemcpyDeviceToHost, copy);
	cudaStreamSynchronize(copy);
	bool right = host[0] == 3;
	cudaFree(out);
	cudaEventDestroy(filled);
	cudaStreamDestroy(compute);
	cudaStreamDestroy(copy);
	return right;
}

// The host reads a result that it did not wait for.
static bool missing_synchronize(bool planted) {
	float *out = new_floats();
	LAUNCH(fill_kernel, 1u, N, 0, nullptr, out, 4, N);
	if (!planted)
		cudaStreamSynchronize(nullptr);
	bool right = out[0] == 4;
	cudaFree(out);
	return right;
}

// A graph copies tokens to the device. It is to take them from where the next ones are staged, not
// from the array that they were in when it was captured.
static bool graph_keeps_the_first_tokens(bool planted) {
	float *out = new_floats(), staged[N] = {}, first[N] = {}, second[N] = {};
	cudaStream_t s;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	first[0] = 1;
	second[0] = 2;
	cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
	cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed);
	cudaMemcpyAsync(out, planted ? first : staged, sizeof staged, cudaMemcpyHostToDevice, s);
	cudaStreamEndCapture(s, &graph);
	cudaGraphInstantiate(&exec, graph, 0);
	cudaGraphDestroy(graph);
	bool right = true;
	for (const float *tokens : {first, second}) {
		memcpy(staged, tokens, sizeof staged);
		cudaGraphLaunch(exec, s);
		cudaStreamSynchronize(s);
		right = right && out[0] == tokens[0];
	}
	cudaGraphExecDestroy(exec);
	cudaStreamDestroy(s);
	cudaFree(out);
	return right;
}

const struct buggy buggy_kernels[] = {
	{"missing barrier", missing_barrier, "reads ", false, false},
	{"missing barrier before a write", missing_barrier_before_write, "race: ", false, false},
	{"shared memory out of bounds", shared_out_of_bounds, "out of bounds", false, false},
	{"shared memory uninitialised", uninitialised_shared, "that nobody wrote", false, false},
	{"barrier not reached by all", barrier_not_reached, "barrier", false, false},
	{"shuffle not reached by all", shuffle_not_reached, "warp", false, false},
	{"missing wait for a copy", missing_copy_wait, "that nobody wrote", false, false},
	{"global memory out of bounds", global_out_of_bounds, "fill_kernel", false, true},
	{"missing event wait", missing_event_wait, nullptr, true, false},
	{"missing synchronize", missing_synchronize, nullptr, true, false},
	{"graph with the first tokens", graph_keeps_the_first_tokens, nullptr, false, false},
	{}};
