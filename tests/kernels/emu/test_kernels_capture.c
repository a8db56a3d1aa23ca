/* test_kernels_capture.c: what the emulator makes of calls that have no place in a capture: CUDA's
 * own error where CUDA documents one, and a fault where CUDA would let them pass. */
#include "tests/common/check.h"
#include "tests/emu/runtime.h"
#include "tests/kernels/emu/child.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>

/* Made before the capture begins. */
struct world {
	cudaStream_t stream, other;
	cudaEvent_t event;
	void *memory, *pinned;
	char host[64];
};

static void world_init(struct world *w) {
	assert_int_equal(cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking), cudaSuccess);
	assert_int_equal(cudaStreamCreateWithFlags(&w->other, cudaStreamNonBlocking), cudaSuccess);
	assert_int_equal(cudaEventCreateWithFlags(&w->event, cudaEventDisableTiming), cudaSuccess);
	assert_int_equal(cudaEventRecord(w->event, w->other), cudaSuccess);
	assert_int_equal(cudaMalloc(&w->memory, 64), cudaSuccess);
	assert_int_equal(cudaMallocHost(&w->pinned, 64), cudaSuccess);
}

static void world_release(struct world *w) {
	assert_int_equal(cudaFree(w->memory), cudaSuccess);
	assert_int_equal(cudaFreeHost(w->pinned), cudaSuccess);
	assert_int_equal(cudaEventDestroy(w->event), cudaSuccess);
	assert_int_equal(cudaStreamDestroy(w->stream), cudaSuccess);
	assert_int_equal(cudaStreamDestroy(w->other), cudaSuccess);
}

/* ---- calls that a capture does not see ---- */

static cudaError_t allocate(struct world *w) {
	void *p = NULL;
	(void)w;
	cudaError_t e = cudaMalloc(&p, 16);
	return e == cudaSuccess ? cudaFree(p) : e;
}

static cudaError_t free_memory(struct world *w) {
	cudaError_t e = cudaFree(w->memory);
	w->memory = e == cudaSuccess ? NULL : w->memory;
	return e;
}

static cudaError_t allocate_pinned(struct world *w) {
	void *p = NULL;
	(void)w;
	cudaError_t e = cudaMallocHost(&p, 16);
	return e == cudaSuccess ? cudaFreeHost(p) : e;
}

static cudaError_t free_pinned(struct world *w) {
	cudaError_t e = cudaFreeHost(w->pinned);
	w->pinned = e == cudaSuccess ? NULL : w->pinned;
	return e;
}

static cudaError_t pin(struct world *w) {
	cudaError_t e = cudaHostRegister(w->host, sizeof w->host, cudaHostRegisterDefault);
	return e == cudaSuccess ? cudaHostUnregister(w->host) : e;
}

static cudaError_t ask_for_memory(struct world *w) {
	size_t available, total;
	(void)w;
	return cudaMemGetInfo(&available, &total);
}

static cudaError_t wait_for_event(struct world *w) {
	return cudaEventSynchronize(w->event);
}

static cudaError_t ask_for_event(struct world *w) {
	return cudaEventQuery(w->event);
}

static cudaError_t wait_for_another_stream(struct world *w) {
	return cudaStreamSynchronize(w->other);
}

static cudaError_t ask_for_another_stream(struct world *w) {
	return cudaStreamQuery(w->other);
}

static const struct unseen {
	const char *call;
	cudaError_t (*make)(struct world *w);
} unseen[] = {
	{"cudaMalloc", allocate},
	{"cudaFree", free_memory},
	{"cudaMallocHost", allocate_pinned},
	{"cudaFreeHost", free_pinned},
	{"cudaHostRegister", pin},
	{"cudaMemGetInfo", ask_for_memory},
	{"cudaEventSynchronize", wait_for_event},
	{"cudaEventQuery", ask_for_event},
	{"cudaStreamSynchronize", wait_for_another_stream},
	{"cudaStreamQuery", ask_for_another_stream},
};
enum { UNSEEN = sizeof unseen / sizeof unseen[0] };

static int make_in_relaxed_capture(const void *ctx) {
	const struct unseen *u = ctx;
	struct world w = {0};
	world_init(&w);
	(void)cudaStreamBeginCapture(w.stream, cudaStreamCaptureModeRelaxed);
	return u->make(&w) == cudaSuccess ? 0 : 1;
}

static void test_a_relaxed_capture_makes_them_faults(void **state) {
	(void)state;
	for (int i = 0; i < UNSEEN; i++) {
		struct child_outcome o = child_run(make_in_relaxed_capture, &unseen[i]);
		if (!WIFEXITED(o.status) || WEXITSTATUS(o.status) != EMU_FAULT_STATUS || !strstr(o.text, unseen[i].call))
			fail_msg("%s: status %d, \"%s\"", unseen[i].call, o.status, o.text);
	}
}

/* Makes the call while `mode` captures, from this thread or another. Returns its error, and in
 * *ended that of the capture's end. */
struct attempt {
	struct world w;
	const struct unseen *u;
	cudaError_t error;
};

static void *make_call(void *arg) {
	struct attempt *a = arg;
	a->error = a->u->make(&a->w);
	return NULL;
}

static cudaError_t attempt(const struct unseen *u, enum cudaStreamCaptureMode mode, bool other_thread,
						   cudaError_t *ended) {
	struct attempt a = {.u = u};
	cudaGraph_t graph;
	pthread_t thread;
	world_init(&a.w);
	assert_int_equal(cudaStreamBeginCapture(a.w.stream, mode), cudaSuccess);
	if (other_thread) {
		assert_int_equal(pthread_create(&thread, NULL, make_call, &a), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	} else {
		(void)make_call(&a);
	}
	*ended = cudaStreamEndCapture(a.w.stream, &graph);
	if (*ended == cudaSuccess)
		assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
	world_release(&a.w);
	return a.error;
}

static void test_stricter_captures_refuse_them(void **state) {
	(void)state;
	static const struct {
		enum cudaStreamCaptureMode mode;
		bool other_thread, refused;
	} cases[] = {
		{cudaStreamCaptureModeGlobal, false, true},      {cudaStreamCaptureModeGlobal, true, true},
		{cudaStreamCaptureModeThreadLocal, false, true}, {cudaStreamCaptureModeThreadLocal, true, false},
		{cudaStreamCaptureModeRelaxed, true, false},
	};
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
		for (int i = 0; i < UNSEEN; i++) {
			cudaError_t ended, made = attempt(&unseen[i], cases[c].mode, cases[c].other_thread, &ended);
			if (made != (cases[c].refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess) ||
				ended != (cases[c].refused ? cudaErrorStreamCaptureInvalidated : cudaSuccess))
				fail_msg("case %zu, %s: %d, then %d", c, unseen[i].call, made, ended);
		}
}

/* ---- calls that no capture can bear ---- */

static cudaError_t wait_for_stream(struct world *w) {
	return cudaStreamSynchronize(w->stream);
}

static cudaError_t ask_for_stream(struct world *w) {
	return cudaStreamQuery(w->stream);
}

static cudaError_t wait_for_device(struct world *w) {
	(void)w;
	return cudaDeviceSynchronize();
}

static cudaError_t capture_again(struct world *w) {
	return cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeRelaxed);
}

static void test_waiting_for_what_captures_spoils_it(void **state) {
	(void)state;
	cudaError_t (*const calls[])(struct world * w) = {wait_for_stream, ask_for_stream, wait_for_device, capture_again};
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		struct world w = {0};
		cudaGraph_t graph;
		enum cudaStreamCaptureStatus status;
		world_init(&w);
		assert_int_equal(cudaStreamBeginCapture(w.stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
		assert_int_equal(cudaMemsetAsync(w.memory, 0, 64, w.stream), cudaSuccess);
		assert_int_equal(calls[i](&w), cudaErrorStreamCaptureUnsupported);
		assert_int_equal(cudaStreamIsCapturing(w.stream, &status), cudaSuccess);
		assert_int_equal(status, cudaStreamCaptureStatusInvalidated);
		assert_int_equal(cudaMemsetAsync(w.memory, 0, 64, w.stream), cudaErrorStreamCaptureInvalidated);
		assert_int_equal(cudaStreamEndCapture(w.stream, &graph), cudaErrorStreamCaptureInvalidated);
		assert_null(graph);
		assert_int_equal(cudaMemsetAsync(w.memory, 0, 64, w.stream), cudaSuccess);
		world_release(&w);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_relaxed_capture_makes_them_faults),
		cmocka_unit_test(test_stricter_captures_refuse_them),
		cmocka_unit_test(test_waiting_for_what_captures_spoils_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
