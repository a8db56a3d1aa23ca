/* test_base_os_memory.c: what a process may take: of the machine, and of the cgroups around
 * it. */
#include "base/os_memory.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* A machine with 8 MiB to give, in a directory of its own. */
static char root[256];

static int setup(void **state) {
	(void)state;
	scratch_make(root, sizeof root);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	scratch_remove(root);
	return 0;
}

/* root/name, with the directories that lead there. */
static void put(const char *name, const char *text) {
	char path[512];
	snprintf(path, sizeof path, "%s", root);
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(path, sizeof path, "%s/%.*s", root, (int)(slash - name), name);
		(void)mkdir(path, 0755);
	}
	scratch_write(root, name, text, strlen(text));
}

static void put_machine(const char *groups) {
	put("proc/meminfo", "MemTotal: 16384 kB\nMemFree: 100 kB\nMemAvailable:    8192 kB\nBuffers: 1 kB\n");
	put("proc/self/cgroup", groups);
}

static void test_machine(void **state) {
	(void)state;
	assert_true(os_memory_available(root) == SIZE_MAX); /* nothing is said */
	put_machine("0::/\n");
	assert_int_equal(os_memory_available(root), 8 << 20);
	assert_true(os_memory_available("") > 0);
}

static void test_cgroup_v2(void **state) {
	(void)state;
	put_machine("0::/outer/inner\n");
	put("sys/fs/cgroup/outer/inner/memory.max", "max\n");
	put("sys/fs/cgroup/outer/inner/memory.current", "1048576\n");
	assert_int_equal(os_memory_available(root), 8 << 20);
	put("sys/fs/cgroup/outer/memory.max", "4194304\n");
	put("sys/fs/cgroup/outer/memory.current", "3145728\n");
	assert_int_equal(os_memory_available(root), 1 << 20);
	put("sys/fs/cgroup/outer/memory.stat",
		"anon 1048576\ninactive_file 524288\nactive_file 1048576\nslab_reclaimable 524288\n");
	assert_int_equal(os_memory_available(root), 3 << 20);
	put("sys/fs/cgroup/outer/inner/memory.max", "524288\n"); /* less than what it has */
	assert_int_equal(os_memory_available(root), 0);
}

/* A container sees the host's path, and its own group at the mount. */
static void test_cgroup_v1(void **state) {
	(void)state;
	put_machine("11:cpu,cpuacct:/x\n4:hugetlb,memory:/docker/abc\n0::/\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n");
	assert_int_equal(os_memory_available(root), 8 << 20);
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "3145728\n");
	put("sys/fs/cgroup/memory/memory.stat", "inactive_file 5\ntotal_inactive_file 262144\ntotal_active_file 262144\n");
	assert_int_equal(os_memory_available(root), (5 << 20) / 2);
	put("proc/self/cgroup", "4:cpu:/docker/abc\n3:memoryless:/\nnonsense\n");
	assert_int_equal(os_memory_available(root), 8 << 20);
}

/* The machine's, and no more than groups let be used; version 1 has no such limit. */
static void test_swap(void **state) {
	(void)state;
	assert_int_equal(os_swap_available(root), 0); /* nothing is said */
	put_machine("4:memory:/docker/abc\n0::/outer/inner\n");
	assert_int_equal(os_swap_available(root), 0); /* there is none */
	put("proc/meminfo", "MemAvailable: 8192 kB\nSwapCached: 1 kB\nSwapTotal: 8192 kB\nSwapFree: 4096 kB\n");
	put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n");
	put("sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n");
	put("sys/fs/cgroup/outer/inner/memory.swap.max", "max\n");
	put("sys/fs/cgroup/outer/inner/memory.swap.current", "0\n");
	assert_int_equal(os_swap_available(root), 4 << 20);
	put("sys/fs/cgroup/outer/memory.swap.max", "3145728\n");
	put("sys/fs/cgroup/outer/memory.swap.current", "1048576\n");
	put("sys/fs/cgroup/outer/memory.stat", "inactive_file 1048576\n"); /* is not swapped */
	assert_int_equal(os_swap_available(root), 2 << 20);
	put("sys/fs/cgroup/outer/inner/memory.swap.max", "0\n");
	assert_int_equal(os_swap_available(root), 0);
	assert_int_equal(os_memory_available(root), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_machine, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cgroup_v2, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cgroup_v1, setup, teardown),
		cmocka_unit_test_setup_teardown(test_swap, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
