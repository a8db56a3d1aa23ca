/* test_kernels_graphs.c: micro-batches of the CUDA backend when graphs fail: each failure of a
 * capture, of making a graph and of launching one ends in plain launches with the same result, is
 * logged once, and is tried once more; errors of captures are ignored in a spoilt capture alone; a
 * broken device is a fault. */
#include "kernels/cuda/cuda_backend.h"
#include "tests/emu/runtime.h"
#include "tests/kernels/emu/child.h"
#include "tests/kernels/fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { N = 300, TOKENS = 4 };

/* A pass that adds 1 to y. */
struct counted {
	struct backend *be;
	float *y, *ones;
	int calls;
	int wait_at; /* the call in which it waits; 0: none */
	int grow_at; /* the call from which on it wants twice the scratch */
	size_t scratch_bytes;
};

static void add_one(void *ctx) {
	struct counted *c = ctx;
	c->calls++;
	if (c->calls == c->wait_at)
		c->be->ops->sync(c->be);
	if (c->scratch_bytes) {
		void *scratch = cuda_scratch(cuda_of(c->be), SCRATCH_ROWS, c->scratch_bytes * (c->calls >= c->grow_at ? 2 : 1));
		(void)cudaMemsetAsync(scratch, 0, c->scratch_bytes, cuda_of(c->be)->stream);
	}
	c->be->ops->add_scaled(c->be, c->y, 1, 1, c->ones, NULL, N);
}

static void counted_init(struct counted *c) {
	const struct backend_options opt = {.threads = 1, .compute = DTYPE_F32};
	float ones[N];
	for (int i = 0; i < N; i++)
		ones[i] = 1;
	*c = (struct counted){.calls = 0};
	(void)setenv("RIVULET_CUDA_GRAPHS", "1", 1);
	assert_int_equal(cuda_ops.open(&opt, &c->be, NULL), RV_OK);
	assert_int_equal(c->be->ops->alloc(c->be, sizeof ones, (void **)&c->y, NULL), RV_OK);
	assert_int_equal(c->be->ops->alloc(c->be, sizeof ones, (void **)&c->ones, NULL), RV_OK);
	c->be->ops->upload(c->be, c->ones, ones, sizeof ones);
}

static void step(struct counted *c) {
	static const int32_t tokens[TOKENS] = {0};
	const struct micro_batch batch = {
		.tokens = tokens, .targets = tokens, .b = 1, .t = TOKENS, .grad_scale = 1, .owner = c, .only_enqueues = true};
	c->be->ops->micro_step(c->be, &batch, add_one, c);
}

/* Returns y, all of which must be the same. */
static float value_of(struct counted *c) {
	float y[N];
	c->be->ops->download(c->be, y, c->y, sizeof y);
	for (int i = 1; i < N; i++)
		if (y[i] != y[0])
			return -1;
	return y[0];
}

/* ---- failures ---- */

struct failure {
	const char *log; /* the line begins so, behind the backend's name */
	enum emu_call call;
	cudaError_t error;
	int times; /* it fails */
	int calls; /* of the pass in five steps */
	uint64_t graphs;
};

/* The first step is plain. A capture calls the pass too, a graph does not. */
static const struct failure failures[] = {
	{"none", EMU_END_CAPTURE, cudaSuccess, 0, 2, 4},
	{"cudaStreamBeginCapture", EMU_BEGIN_CAPTURE, cudaErrorNotSupported, 1, 3, 3},
	{"cudaStreamBeginCapture", EMU_BEGIN_CAPTURE, cudaErrorNotSupported, 100, 5, 0},
	{"capture of a micro-batch", EMU_END_CAPTURE, cudaErrorStreamCaptureInvalidated, 1, 4, 3},
	{"capture of a micro-batch", EMU_END_CAPTURE, cudaErrorStreamCaptureInvalidated, 100, 7, 0},
	{"cudaGraphInstantiate", EMU_INSTANTIATE, cudaErrorMemoryAllocation, 1, 4, 3},
	{"cudaGraphInstantiate", EMU_INSTANTIATE, cudaErrorMemoryAllocation, 100, 7, 0},
	{"cudaGraphLaunch", EMU_GRAPH_LAUNCH, cudaErrorMemoryAllocation, 1, 4, 3},
	{"cudaGraphLaunch", EMU_GRAPH_LAUNCH, cudaErrorMemoryAllocation, 100, 7, 0},
};

static int five_steps(const void *ctx) {
	const struct failure *f = ctx;
	struct counted c;
	counted_init(&c);
	uint64_t before = emu_count().graph_launches;
	emu_refuse(f->call, f->error, f->times);
	for (int i = 0; i < 5; i++)
		step(&c);
	emu_refuse(f->call, cudaSuccess, 0);
	bool right = value_of(&c) == 5 && c.calls == f->calls && emu_count().graph_launches - before == f->graphs;
	if (!right)
		(void)fprintf(stderr, "y %g, %d calls, %d graphs\n", (double)value_of(&c), c.calls,
					  (int)(emu_count().graph_launches - before));
	c.be->ops->close(c.be);
	return right ? 0 : 1;
}

static void test_every_failure_ends_in_plain_launches(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
		const struct failure *f = &failures[i];
		struct child_outcome o = child_run(five_steps, f);
		if (!WIFEXITED(o.status) || WEXITSTATUS(o.status) != 0)
			fail_msg("%s, %d times: status %d: %s", f->log, f->times, o.status, o.text);
		/* One line for the failure, one for giving up, each with CUDA's own text. */
		int lines = f->times == 0 ? 0 : f->times == 1 ? 1 : 2;
		assert_int_equal(child_count(o.text, "\n"), lines);
		assert_int_equal(child_count(o.text, f->log), lines);
		assert_int_equal(child_count(o.text, cudaGetErrorString(f->error)), lines);
		assert_int_equal(child_count(o.text, "without CUDA graphs"), lines == 2);
	}
}

/* Failures that are not in a row do not add up. */
static int fail_now_and_then(const void *ctx) {
	struct counted c;
	(void)ctx;
	counted_init(&c);
	uint64_t before = emu_count().graph_launches;
	for (int i = 0; i < 4; i++) {
		emu_refuse(EMU_GRAPH_LAUNCH, cudaErrorMemoryAllocation, 1);
		for (int k = 0; k < 3; k++)
			step(&c);
	}
	bool right = value_of(&c) == 12 && emu_count().graph_launches - before == 12 - 4 - 1;
	c.be->ops->close(c.be);
	return right ? 0 : 1;
}

static void test_failures_are_counted_in_a_row(void **state) {
	(void)state;
	struct child_outcome o = child_run(fail_now_and_then, NULL);
	assert_int_equal(o.status, 0);
	assert_int_equal(child_count(o.text, "\n"), 1);
	assert_non_null(strstr(o.text, "cudaGraphLaunch: out of memory"));
}

/* ---- captures that become unfit ---- */

/* The pass wants more scratch memory in its third call, which is captured: nothing is allocated
 * there. The plain call behind it grows the memory, which drops all graphs. */
static int grow_in_a_capture(const void *ctx) {
	struct counted c;
	(void)ctx;
	counted_init(&c);
	c.scratch_bytes = 1000;
	c.grow_at = 3;
	uint64_t before = emu_count().graph_launches;
	for (int i = 0; i < 6; i++)
		step(&c);
	bool right = value_of(&c) == 6 && c.calls == 6 && emu_count().graph_launches - before == 2;
	c.be->ops->close(c.be);
	return right ? 0 : 1;
}

static void test_scratch_does_not_grow_in_a_capture(void **state) {
	(void)state;
	struct child_outcome o = child_run(grow_in_a_capture, NULL);
	if (o.status != 0)
		fail_msg("status %d: %s", o.status, o.text);
	assert_int_equal(child_count(o.text, "it needs more scratch memory"), 1);
}

/* What is enqueued behind a wait in a capture is refused, and that is no fault. */
static int wait_in_a_capture(const void *ctx) {
	struct counted c;
	(void)ctx;
	counted_init(&c);
	c.wait_at = 2;
	uint64_t before = emu_count().graph_launches;
	for (int i = 0; i < 5; i++)
		step(&c);
	bool right = value_of(&c) == 5 && emu_count().graph_launches - before == 3;
	c.be->ops->close(c.be);
	return right ? 0 : 1;
}

static void test_a_spoilt_capture_is_captured_again(void **state) {
	(void)state;
	struct child_outcome o = child_run(wait_in_a_capture, NULL);
	if (o.status != 0)
		fail_msg("status %d: %s", o.status, o.text);
	assert_int_equal(child_count(o.text, "due to a previous error during capture"), 1);
}

/* A spoilt capture in which more scratch memory is wanted too: CUDA's own text is the reason. */
static int wait_and_grow_in_a_capture(const void *ctx) {
	struct counted c;
	(void)ctx;
	counted_init(&c);
	c.scratch_bytes = 1000;
	c.wait_at = c.grow_at = 3;
	for (int i = 0; i < 6; i++)
		step(&c);
	bool right = value_of(&c) == 6;
	c.be->ops->close(c.be);
	return right ? 0 : 1;
}

static void test_the_reason_is_in_cudas_own_text(void **state) {
	(void)state;
	struct child_outcome o = child_run(wait_and_grow_in_a_capture, NULL);
	if (o.status != 0)
		fail_msg("status %d: %s", o.status, o.text);
	assert_int_equal(child_count(o.text, "\n"), 1);
	assert_int_equal(child_count(o.text, "due to a previous error during capture"), 1);
}

/* ---- errors that are not ignored ---- */

static int grow_when_refused(const void *ctx) {
	struct counted c;
	counted_init(&c);
	emu_refuse(EMU_MALLOC, *(const cudaError_t *)ctx, 1);
	return cuda_scratch(cuda_of(c.be), SCRATCH_ROWS, 1 << 20) ? 0 : 1;
}

static void test_a_failed_allocation_is_never_ignored(void **state) {
	(void)state;
	static const cudaError_t errors[] = {cudaErrorMemoryAllocation, cudaErrorStreamCaptureUnsupported,
										 cudaErrorStreamCaptureImplicit};
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		struct child_outcome o = child_run(grow_when_refused, &errors[i]);
		assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT);
		assert_non_null(strstr(o.text, "cudaMalloc of scratch memory"));
		assert_non_null(strstr(o.text, cudaGetErrorString(errors[i])));
	}
}

enum { NOT_CAPTURING, CAPTURING, SPOILT };

static int check_capture_error(const void *ctx) {
	struct counted c;
	cudaGraph_t graph;
	int when = *(const int *)ctx;
	counted_init(&c);
	cudaStream_t stream = cuda_of(c.be)->stream;
	if (when != NOT_CAPTURING)
		(void)cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
	if (when == SPOILT)
		(void)cudaStreamQuery(stream);
	cuda_check_enqueued(stream, cudaErrorStreamCaptureImplicit, "a call");
	(void)cudaStreamEndCapture(stream, &graph);
	return 0;
}

static void test_errors_of_captures_are_ignored_in_a_spoilt_one_only(void **state) {
	(void)state;
	for (int when = NOT_CAPTURING; when <= SPOILT; when++) {
		struct child_outcome o = child_run(check_capture_error, &when);
		if (when == SPOILT)
			assert_int_equal(o.status, 0);
		else
			assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT);
	}
}

/* Breaks in step *ctx. */
static int break_the_device(const void *ctx) {
	struct counted c;
	counted_init(&c);
	for (int i = 1; i <= 5; i++) {
		if (i == *(const int *)ctx)
			emu_break(cudaErrorIllegalAddress);
		step(&c);
	}
	return 0;
}

static void test_a_broken_device_is_a_fault(void **state) {
	(void)state;
	for (int at = 1; at <= 4; at++) {
		struct child_outcome o = child_run(break_the_device, &at);
		assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT);
		assert_non_null(strstr(o.text, "an illegal memory access was encountered"));
		assert_null(strstr(o.text, "plain launches"));
	}
}

/* Breaks where a graph is captured, made or launched: nothing runs plainly on such a device. */
static int break_in_a_call(const void *ctx) {
	struct counted c;
	counted_init(&c);
	step(&c);
	emu_refuse(*(const enum emu_call *)ctx, cudaErrorIllegalAddress, 1);
	step(&c);
	return 0;
}

static void test_a_broken_device_is_no_failed_graph(void **state) {
	(void)state;
	static const enum emu_call calls[] = {EMU_BEGIN_CAPTURE, EMU_END_CAPTURE, EMU_INSTANTIATE, EMU_GRAPH_LAUNCH};
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		struct child_outcome o = child_run(break_in_a_call, &calls[i]);
		assert_true(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT);
		assert_non_null(strstr(o.text, "an illegal memory access was encountered"));
		assert_null(strstr(o.text, "plain launches"));
	}
}

/* A device that returns an error for everything has no spoilt capture: its errors are not
 * ignored. */
static void test_a_broken_device_has_no_spoilt_capture(void **state) {
	(void)state;
	cudaStream_t stream;
	assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
	emu_break(cudaErrorIllegalAddress);
	assert_false(cuda_capture_is_spoilt(stream));
	assert_int_equal(cuda_device_fault(stream), cudaErrorIllegalAddress);
	emu_break(cudaSuccess);
	assert_int_equal(cuda_device_fault(stream), cudaSuccess);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_failure_ends_in_plain_launches),
		cmocka_unit_test(test_failures_are_counted_in_a_row),
		cmocka_unit_test(test_scratch_does_not_grow_in_a_capture),
		cmocka_unit_test(test_a_spoilt_capture_is_captured_again),
		cmocka_unit_test(test_the_reason_is_in_cudas_own_text),
		cmocka_unit_test(test_a_failed_allocation_is_never_ignored),
		cmocka_unit_test(test_errors_of_captures_are_ignored_in_a_spoilt_one_only),
		cmocka_unit_test(test_a_broken_device_is_a_fault),
		cmocka_unit_test(test_a_broken_device_is_no_failed_graph),
		cmocka_unit_test(test_a_broken_device_has_no_spoilt_capture),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
