/* test_vendor_places.c: the folders in which NVIDIA's libraries are looked for, and their order; a
 * Python's among them, whatever that Python is. */

#include "kernels/cuda/vendor/python.h"
#include "tests/common/check.h"
#include "tree.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int set_up(void **state) {
	struct tree *t = malloc(sizeof *t);
	assert_non_null(t);
	tree_init(t);
	*state = t;
	return 0;
}

static int tear_down(void **state) {
	tree_release(*state);
	free(*state);
	return 0;
}

/* `want`: paths in the tree, NULL at the end. */
static void assert_places(struct tree *t, const struct place_list *l, const char *const *want) {
	int n = 0;
	for (; want[n]; n++) {
		if (n >= l->n)
			fail_msg("%s is not in the list", want[n]);
		assert_string_equal(l->path[n], tree_at(t, want[n]));
	}
	if (l->n > n)
		fail_msg("more than was expected: %s", l->path[n]);
}

#define ASSERT_PLACES(t, l, ...) assert_places(t, l, (const char *const[]){__VA_ARGS__, NULL})

static void test_toolkits(void **state) {
	struct tree *t = *state;
	struct place_list l = {.n = 0};
	static const char *const folders[] = {"home/lib64",
										  "home/targets/" FAKE_TARGET "/lib",
										  "arch/lib64",
										  "found/lib64",
										  "usr/local/cuda/lib64",
										  "usr/local/cuda-9.2/lib64",
										  "usr/local/cuda-13.0/lib64",
										  "usr/local/cuda-12.8/targets/" FAKE_TARGET "/lib",
										  "opt/cuda/lib64",
										  "usr/local/cudax/lib64",
										  "elsewhere/lib64"};
	char file[PLACE_BYTES];
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
		(void)snprintf(file, sizeof file, "%s/file", folders[i]);
		tree_put_file(t, file, "");
	}
	tree_put_program(t, "found/bin/nvcc", "");
	char path[PLACE_BYTES];
	(void)snprintf(path, sizeof path, ":/nonexistent:%s/found/bin:%s/elsewhere/bin", t->root, t->root);
	t->env.cuda_home = tree_at(t, "home");
	t->env.cuda_path = tree_at(t, "arch");
	t->env.path = path;
	places_add_toolkits(&l, &t->env);
	ASSERT_PLACES(t, &l, "home/lib64", "home/targets/" FAKE_TARGET "/lib", "arch/lib64", "found/lib64",
				  "usr/local/cuda/lib64", "usr/local/cuda-13.0/lib64", "usr/local/cuda-9.2/lib64",
				  "usr/local/cuda-12.8/targets/" FAKE_TARGET "/lib", "opt/cuda/lib64");
	tree_put_link(t, "usr/local/cuda-14.0", "cuda-13.0");
	places_add_toolkits(&l, &t->env); /* each once */
	assert_int_equal(l.n, 9);
}

static void test_nothing_there(void **state) {
	struct tree *t = *state;
	struct place_list l = {.n = 0};
	places_add_toolkits(&l, &t->env);
	places_add_python(&l, &t->env);
	t->env.cuda_home = "/nonexistent";
	t->env.python = "/nonexistent/python3";
	t->env.path = "";
	places_add_toolkits(&l, &t->env);
	places_add_python(&l, &t->env);
	assert_int_equal(l.n, 0);
}

static void test_too_much(void **state) {
	struct tree *t = *state;
	struct place_list l = {.n = 0};
	char path[64], longest[2 * PLACE_BYTES];
	memset(longest, 'x', sizeof longest);
	longest[sizeof longest - 1] = 0;
	place_list_add(&l, "/%s", longest);
	assert_int_equal(l.n, 0);
	for (int i = 0; i < PLACES_MAX + 3; i++) {
		(void)snprintf(path, sizeof path, "many/%03d/file", i);
		tree_put_file(t, path, "");
	}
	place_list_add_matches(&l, false, "%s/many/*", t->root);
	assert_int_equal(l.n, PLACES_MAX);
	assert_string_equal(l.path[PLACES_MAX - 1], tree_at(t, "many/063"));
}

/* ---- a Python's ---- */

/* As pip lays out the wheels of CUDA 12 (a folder for each) and of CUDA 13 (cu13). */
static void put_wheels(struct tree *t, const char *packages) {
	static const char *const files[] = {"nvidia/cublas/lib/libcublasLt.so.12", "nvidia/cu13/lib/libcublasLt.so.13",
										"nvidia/cudnn/lib/libcudnn.so.9", "nvidia/cudnn/include/cudnn.h"};
	char path[PLACE_BYTES];
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		(void)snprintf(path, sizeof path, "%s/%s", packages, files[i]);
		tree_put_file(t, path, "");
	}
}

static void test_virtual_environment(void **state) {
	struct tree *t = *state;
	struct place_list l = {.n = 0};
	tree_put_file(t, "venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.2\n");
	tree_put_link(t, "venv/bin/python3", "/usr/bin/python3");
	put_wheels(t, "venv/lib/python3.11/site-packages");
	t->env.path = tree_at(t, "venv/bin");
	if (access("/usr/bin/python3", X_OK) != 0) /* the link must lead to a program */
		skip();
	places_add_python(&l, &t->env);
	ASSERT_PLACES(t, &l, "venv/lib/python3.11/site-packages/nvidia/cu13/lib",
				  "venv/lib/python3.11/site-packages/nvidia/cublas/lib",
				  "venv/lib/python3.11/site-packages/nvidia/cudnn/lib", "venv/lib/python3.11/site-packages/../..");
}

static void test_virtual_environment_that_sees_the_system(void **state) {
	struct tree *t = *state;
	struct place_list l = {.n = 0};
	char config[2 * PLACE_BYTES];
	(void)snprintf(config, sizeof config,
				   "home=%s/base/bin\n include-system-site-packages = false\n"
				   "include-system-site-packages  =  true \n",
				   t->root);
	tree_put_file(t, "venv/pyvenv.cfg", config);
	tree_put_binary(t, "venv/bin/python3");
	tree_put_file(t, "venv/lib/python3.12/site-packages/pip", "");
	tree_put_binary(t, "base/bin/python3.12");
	tree_put_link(t, "base/bin/python3", "python3.12");
	tree_put_file(t, "base/lib/python3.12/site-packages/pip", "");
	t->env.python = tree_at(t, "venv/bin/python3");
	python_package_folders(&l, &t->env);
	ASSERT_PLACES(t, &l, "venv/lib/python3.12/site-packages", "base/lib/python3.12/site-packages");
}

/* Links are followed, Debian's names are known, and the user's own packages come first. */
static void test_system_python(void **state) {
	struct tree *t = *state;
	struct place_list l = {.n = 0};
	tree_put_binary(t, "usr/bin/python3.11");
	tree_put_link(t, "bin/python3", "../usr/bin/python3.11");
	tree_put_file(t, "usr/lib/python3/dist-packages/numpy", "");
	tree_put_file(t, "usr/lib/python3.11/os.py", "");
	tree_put_file(t, "usr/local/lib/python3.11/dist-packages/numpy", "");
	tree_put_file(t, "usr/lib64/python3.11/site-packages/numpy", "");
	tree_put_file(t, "me/.local/lib/python3.11/site-packages/numpy", "");
	t->env.path = tree_at(t, "bin");
	t->env.home = tree_at(t, "me");
	python_package_folders(&l, &t->env);
	ASSERT_PLACES(t, &l, "me/.local/lib/python3.11/site-packages", "usr/lib/python3/dist-packages",
				  "usr/lib64/python3.11/site-packages", "usr/local/lib/python3.11/dist-packages");
}

/* RIVULET_PYTHON before PATH: a path, or a name that is looked for in PATH; python3 before
 * python. */
static void test_which_python(void **state) {
	struct tree *t = *state;
	static const char *const programs[] = {"one/bin/python", "two/bin/python3", "three/bin/python3.9"};
	static const char *const packages[] = {"one/lib/python3.1/site-packages/x", "two/lib/python3.2/site-packages/x",
										   "three/lib/python3.3/site-packages/x"};
	char path[PLACE_BYTES];
	for (int i = 0; i < 3; i++) {
		tree_put_binary(t, programs[i]);
		tree_put_file(t, packages[i], "");
	}
	(void)snprintf(path, sizeof path, "%s/one/bin:%s/two/bin:%s/three/bin", t->root, t->root, t->root);
	t->env.path = path;
	struct place_list l = {.n = 0};
	python_package_folders(&l, &t->env);
	ASSERT_PLACES(t, &l, "two/lib/python3.2/site-packages");
	t->env.python = "python3.9";
	l.n = 0;
	python_package_folders(&l, &t->env);
	ASSERT_PLACES(t, &l, "three/lib/python3.3/site-packages");
	t->env.python = tree_at(t, "one/bin/python");
	l.n = 0;
	python_package_folders(&l, &t->env);
	ASSERT_PLACES(t, &l, "one/lib/python3.1/site-packages");
	t->env.python = NULL;
	(void)snprintf(path, sizeof path, "%s/one/bin", t->root);
	l.n = 0;
	python_package_folders(&l, &t->env);
	ASSERT_PLACES(t, &l, "one/lib/python3.1/site-packages");
}

/* A script says nothing by where it lies, so it is asked. It gets the question as one argument, and
 * no shell. */
static void test_python_that_is_a_script(void **state) {
	struct tree *t = *state;
	struct place_list l = {.n = 0};
	char script[4 * PLACE_BYTES];
	tree_put_file(t, "real/lib/python3.11/site-packages/x", "");
	tree_put_file(t, "shims/lib/python3.11/site-packages/x", ""); /* of another Python */
	(void)snprintf(script, sizeof script,
				   "#!/bin/sh\n[ \"$1\" = -c ] && [ $# -eq 2 ] || exit 1\ncat\necho noise >&2\necho\n"
				   "echo %s/real/lib/python3.11\necho %s/real/lib/python3.11/site-packages\necho relative-packages\n",
				   t->root, t->root);
	tree_put_program(t, "shims/bin/python3", script);
	t->env.path = tree_at(t, "shims/bin");
	python_package_folders(&l, &t->env);
	ASSERT_PLACES(t, &l, "real/lib/python3.11/site-packages");
}

static void test_python_that_fails(void **state) {
	struct tree *t = *state;
	struct place_list l = {.n = 0};
	tree_put_program(t, "a/python3", "#!/bin/sh\nexit 1\n");
	tree_put_program(t, "b/python3", "#!/nonexistent/interpreter\n");
	tree_put_program(t, "c/python3", "#!/bin/sh\nyes /tmp/not-packages\n"); /* without end */
	static const char *const folders[] = {"a", "b", "c"};
	for (int i = 0; i < 3; i++) {
		t->env.path = tree_at(t, folders[i]);
		python_package_folders(&l, &t->env);
		assert_int_equal(l.n, 0);
	}
}

/* It is killed, with what it has started. */
static void test_python_that_hangs(void **state) {
	struct tree *t = *state;
	struct place_list l = {.n = 0};
	char script[2 * PLACE_BYTES], line[32];
	(void)snprintf(script, sizeof script,
				   "#!/bin/sh\nsleep 100000 &\necho $! >%s/pid.new\nmv %s/pid.new %s/pid\nwait\n", t->root, t->root,
				   t->root);
	tree_put_program(t, "bin/python3", script);
	t->env.path = tree_at(t, "bin");
	t->env.python_timeout_ms = 20;
	FILE *f = NULL;
	for (; !f; t->env.python_timeout_ms *= 2) { /* until it gets far enough before it is killed */
		python_package_folders(&l, &t->env);
		assert_int_equal(l.n, 0);
		f = fopen(tree_at(t, "pid"), "re");
	}
	assert_non_null(fgets(line, sizeof line, f));
	(void)fclose(f);
	pid_t child = (pid_t)atol(line);
	while (kill(child, 0) == 0) { /* init, which inherits it, reaps it */
		char status[64];
		(void)snprintf(status, sizeof status, "/proc/%d/stat", (int)child);
		char word[256] = "";
		FILE *s = fopen(status, "re");
		if (!s)
			break;
		size_t n = fread(word, 1, sizeof word - 1, s);
		(void)fclose(s);
		word[n] = 0;
		if (strstr(word, ") Z "))
			break; /* dead */
		(void)usleep(1000);
	}
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {TEST(test_toolkits),
									   TEST(test_nothing_there),
									   TEST(test_too_much),
									   TEST(test_virtual_environment),
									   TEST(test_virtual_environment_that_sees_the_system),
									   TEST(test_system_python),
									   TEST(test_which_python),
									   TEST(test_python_that_is_a_script),
									   TEST(test_python_that_fails),
									   TEST(test_python_that_hangs)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
