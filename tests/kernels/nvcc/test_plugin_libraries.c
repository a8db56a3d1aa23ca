/* test_plugin_libraries.c: the plugin that ships, loaded as the programs load it, says in one line
 * which of NVIDIA's libraries are on this machine, whatever they are; to threads that ask at the
 * same time, too. Skipped (77) where the plugin is not built, or was built with other sources: the
 * build makes it only when asked. */

#include "kernels/plugin.h"
#include "tests/common/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, SKIPPED = 77 };

static void *ask(void *plugin) {
	return (void *)(uintptr_t)((const struct backend_plugin *)plugin)->libraries();
}

static void test_line(void **state) {
	(void)state;
	const struct backend_plugin *p = NULL;
	pthread_t threads[THREADS];
	void *said[THREADS];
	assert_ok(plugin_load("cuda", &p, &et));
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask, (void *)(uintptr_t)p), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], &said[i]), 0);
	const char *line = said[0];
	for (int i = 1; i < THREADS; i++)
		assert_ptr_equal(said[i], line);
	print_message("%s\n", line);
	assert_null(strchr(line, '\n'));
	assert_non_null(strstr(line, "cuBLASLt"));
	assert_non_null(strstr(line, "cuDNN"));
	/* Found with its version and path, or missing with the way to install it. */
	assert_true(strncmp(line, "cuBLASLt 1", 10) == 0 || strstr(line, "pip install nvidia-cublas"));
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_line)};
	if (access(PLUGIN, R_OK) != 0) {
		(void)printf("skipped: %s is not built\n", PLUGIN);
		return SKIPPED;
	}
	(void)setenv("RIVULET_CUDA_PLUGIN", PLUGIN, 1);
	const struct backend_plugin *p = NULL;
	struct rv_errtext et = {0};
	if (plugin_load("cuda", &p, &et) != RV_OK && strstr(et.text, "of another build")) {
		(void)printf("skipped: %s\n", et.text);
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
