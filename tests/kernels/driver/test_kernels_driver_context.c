/* test_kernels_driver_context.c: a device's context and modules (kernels/cuda/driver/) are made for
 * its first user and released with its last, upon the stand-in for the driver (stand_in.h): no
 * compiler of device code is needed. */
#include "kernels/cuda/driver/device_code.h"
#include "tests/common/check.h"
#include "tests/kernels/driver/stand_in_counts.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>

static const char ptx[] = ".version 7.0\n.target sm_80\n.visible .entry lowered(\n)\n{\n}\n";
static const struct code_image images[] = {{80, true, (const unsigned char *)ptx}, {0}};
static const struct code_name names[] = {{"kernel<float>", "lowered"}, {0}};
static const struct code_unit unit = {"unit.cu", images, names};
const struct code_unit *const code_units[] = {&unit, NULL};

static struct kernel_handle kernel = {.name = "kernel<float>]"};

static void launch(void) {
	cudaStream_t stream;
	void *memory;
	int argument = 0;
	void *arguments[] = {&argument};
	const struct kernel_launch l = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
	assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
	struct kernel_launch on = l;
	on.stream = stream;
	assert_int_equal(kernel_enqueue(&kernel, &on, arguments), cudaSuccess);
	assert_int_equal(cudaMalloc(&memory, 256), cudaSuccess);
	assert_int_equal(cudaFree(memory), cudaSuccess);
	assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
}

static void use(void) {
	driver_hold(0);
	assert_ok(device_code_load(0, &et));
	assert_int_equal(cudaSetDevice(0), cudaSuccess);
	launch();
}

static void expect(int contexts, int modules, int unloaded) {
	const struct stand_in_counts c = stand_in_counts_now();
	assert_int_equal(c.contexts, contexts);
	assert_int_equal(c.modules, modules);
	assert_int_equal(c.unloaded, unloaded);
	assert_int_equal(c.refusals, 0);
	assert_int_equal(c.allocations, 0);
}

static void test_the_last_user_releases_the_context(void **state) {
	(void)state;
	use();
	const int modules = stand_in_counts_now().modules, unloaded = modules - 1;
	use();
	expect(1, modules, unloaded);
	driver_let_go(0);
	expect(1, modules, unloaded);
	launch();
	driver_let_go(0);
	expect(0, modules, modules);
}

/* As after a pause: kernels are looked up in the modules that are loaded now. */
static void test_a_context_is_made_again(void **state) {
	(void)state;
	const int modules = stand_in_counts_now().modules, functions = stand_in_counts_now().functions;
	for (int i = 1; i <= 3; i++) {
		use();
		launch();
		expect(1, modules + i, modules + i - 1);
		assert_int_equal(stand_in_counts_now().functions, functions + i);
		driver_let_go(0);
		expect(0, modules + i, modules + i);
	}
}

/* A look at a card leaves nothing there. */
static void test_a_look_makes_no_context_that_stays(void **state) {
	(void)state;
	size_t available, total;
	const int modules = stand_in_counts_now().modules;
	driver_hold(0);
	assert_int_equal(cudaSetDevice(0), cudaSuccess);
	assert_int_equal(cudaMemGetInfo(&available, &total), cudaSuccess);
	expect(1, modules, modules);
	driver_let_go(0);
	expect(0, modules, modules);
}

static sem_t go, gone;

/* Uses the device of its thread in two contexts, which others made and released. */
static void *another(void *unused) {
	for (int i = 0; i < 2; i++) {
		(void)sem_wait(&go);
		launch();
		(void)sem_post(&gone);
	}
	return unused;
}

static void test_other_threads_find_the_new_context(void **state) {
	(void)state;
	pthread_t thread;
	(void)sem_init(&go, 0, 0);
	(void)sem_init(&gone, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, another, NULL), 0);
	for (int i = 0; i < 2; i++) {
		use();
		(void)sem_post(&go);
		(void)sem_wait(&gone);
		driver_let_go(0);
		expect(0, stand_in_counts_now().modules, stand_in_counts_now().modules);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_last_user_releases_the_context),
		cmocka_unit_test(test_a_context_is_made_again),
		cmocka_unit_test(test_a_look_makes_no_context_that_stays),
		cmocka_unit_test(test_other_threads_find_the_new_context),
	};
	if (!driver_get(NULL))
		fail_msg("the stand-in is not found: run this by ctest");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
