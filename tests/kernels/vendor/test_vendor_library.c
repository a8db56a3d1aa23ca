/* test_vendor_library.c: which file is loaded where several could be, and what is said of those
 * that cannot be. */

#include "kernels/cuda/vendor/library.h"
#include "tests/common/check.h"
#include "tree.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct functions {
	int (*version)(int *version);
};
static const struct library_symbol symbols[] = {{"ncclGetVersion", offsetof(struct functions, version)}, {NULL, 0}};
/* No machine has libraries of these names. */
static const struct library wanted = {
	.title = "the fake", .names = {"librivulet_fake.so.13", "librivulet_fake.so.12"}, .symbols = symbols};

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

/* `want`: a path in the tree. */
static void assert_loads(struct tree *t, const char *want) {
	struct library_search s = library_search_with(&t->env);
	struct library_found found;
	struct functions f = {NULL};
	int version = 0;
	assert_ok(library_load(&s, &wanted, &f, &found, &et));
	assert_string_equal(found.path, tree_at(t, want));
	assert_int_equal(f.version(&version), 0);
	assert_int_equal(version, 22809);
	assert_int_equal(dlclose(found.handle), 0);
}

static void assert_refused(struct tree *t, enum rv_err want, const char *first, const char *second) {
	struct library_search s = library_search_with(&t->env);
	struct library_found found;
	struct functions f = {NULL};
	struct rv_errtext et = {0};
	assert_int_equal(library_load(&s, &wanted, &f, &found, &et), want);
	assert_null(found.handle);
	if (!strstr(et.text, first) || !strstr(et.text, second))
		fail_msg("\"%s\" does not say \"%s\" and \"%s\"", et.text, first, second);
}

static const char *const places[] = {"home/lib64/librivulet_fake.so.13",
									 "home/targets/" FAKE_TARGET "/lib/librivulet_fake.so.13",
									 "path/lib64/librivulet_fake.so.13",
									 "usr/local/cuda/lib64/librivulet_fake.so.13",
									 "usr/local/cuda-13.1/lib64/librivulet_fake.so.13",
									 "usr/local/cuda-13.0/lib64/librivulet_fake.so.13",
									 "opt/cuda/lib64/librivulet_fake.so.13",
									 "venv/lib/python3.11/site-packages/nvidia/cu13/lib/librivulet_fake.so.13",
									 "venv/lib/python3.11/site-packages/nvidia/fake/lib/librivulet_fake.so.13",
									 "venv/lib/librivulet_fake.so.13"};
enum { PLACES = sizeof places / sizeof places[0] };

static void point(struct tree *t, char home[PLACE_BYTES], char path[PLACE_BYTES], char python[PLACE_BYTES]) {
	tree_put_file(t, "venv/pyvenv.cfg", "");
	tree_put_binary(t, "venv/bin/python3");
	(void)snprintf(home, PLACE_BYTES, "%s/home", t->root);
	(void)snprintf(path, PLACE_BYTES, "%s/path", t->root);
	(void)snprintf(python, PLACE_BYTES, "%s/venv/bin/python3", t->root);
	t->env.cuda_home = home;
	t->env.cuda_path = path;
	t->env.python = python;
}

/* All places have it; then it is taken out of the first, the second, and so on. */
static void test_order(void **state) {
	struct tree *t = *state;
	char home[PLACE_BYTES], path[PLACE_BYTES], python[PLACE_BYTES];
	point(t, home, path, python);
	for (int i = 0; i < PLACES; i++)
		tree_put_library(t, places[i], "nccl");
	for (int i = 0; i < PLACES; i++) {
		char want[PLACE_BYTES];
		(void)snprintf(want, sizeof want, "%s",
					   i < PLACES - 1 ? places[i]
									  : "venv/lib/python3.11/site-packages/../../"
										"librivulet_fake.so.13");
		assert_loads(t, want);
		assert_int_equal(unlink(tree_at(t, places[i])), 0);
	}
	assert_refused(t, RV_E_NOTFOUND, "no the fake: librivulet_fake.so.13 is neither where the loader looks",
				   "10 other");
}

/* The first name in the last place goes before the second name in the first place. */
static void test_first_name_first(void **state) {
	struct tree *t = *state;
	char home[PLACE_BYTES], path[PLACE_BYTES], python[PLACE_BYTES];
	point(t, home, path, python);
	tree_put_library(t, "home/lib64/librivulet_fake.so.12", "nccl");
	assert_loads(t, "home/lib64/librivulet_fake.so.12");
	tree_put_library(t, places[PLACES - 2], "nccl");
	assert_loads(t, places[PLACES - 2]);
}

static void test_what_cannot_be_used_is_passed_over(void **state) {
	struct tree *t = *state;
	char home[PLACE_BYTES], path[PLACE_BYTES], python[PLACE_BYTES];
	point(t, home, path, python);
	tree_put_file(t, places[0], "a stub, or a file that was cut off");
	assert_refused(t, RV_E_UNSUPPORTED, tree_at(t, places[0]), "file too short");
	tree_put_library(t, places[1], "cublaslt_without_functions");
	assert_refused(t, RV_E_UNSUPPORTED, tree_at(t, places[0]), "file too short");
	assert_int_equal(unlink(tree_at(t, places[0])), 0);
	assert_refused(t, RV_E_UNSUPPORTED, tree_at(t, places[1]), "it lacks ncclGetVersion");
	tree_put_library(t, places[2], "needs_what_is_nowhere");
	tree_put_library(t, places[6], "nccl");
	assert_loads(t, places[6]);
	assert_int_equal(unlink(tree_at(t, places[1])), 0);
	assert_int_equal(unlink(tree_at(t, places[6])), 0);
	assert_refused(t, RV_E_UNSUPPORTED, tree_at(t, places[2]), "librivulet_is_nowhere.so.1: cannot open");
}

/* What the loader finds goes before all else: CTest has put the fakes' folder into
 * LD_LIBRARY_PATH. */
static void test_loader_first(void **state) {
	struct tree *t = *state;
	char home[PLACE_BYTES], path[PLACE_BYTES], python[PLACE_BYTES];
	point(t, home, path, python);
	t->env.skip_loader = false;
	tree_put_library(t, places[0], "nccl");
	assert_loads(t, FAKE_LIBRARIES "/librivulet_fake.so.13");
}

/* No Python is run for what a toolkit has, and only one for many searches. */
static void test_python_is_run_when_nothing_else_helps(void **state) {
	struct tree *t = *state;
	char script[2 * PLACE_BYTES], home[PLACE_BYTES], python[PLACE_BYTES];
	struct library_search s;
	struct library_found found;
	struct functions f;
	(void)snprintf(script, sizeof script, "#!/bin/sh\necho ran >>%s/ran\n", t->root);
	tree_put_program(t, "python3", script);
	(void)snprintf(home, sizeof home, "%s/home", t->root);
	(void)snprintf(python, sizeof python, "%s/python3", t->root);
	t->env.cuda_home = home;
	t->env.python = python;
	tree_put_library(t, places[0], "nccl");
	assert_loads(t, places[0]);
	assert_int_equal(access(tree_at(t, "ran"), F_OK), -1);
	assert_int_equal(unlink(tree_at(t, places[0])), 0);
	s = library_search_with(&t->env);
	for (int i = 0; i < 3; i++)
		assert_int_equal(library_load(&s, &wanted, &f, &found, NULL), RV_E_NOTFOUND);
	FILE *ran = fopen(tree_at(t, "ran"), "re");
	assert_non_null(ran);
	char text[64] = "";
	assert_int_equal(fread(text, 1, sizeof text, ran), 4);
	(void)fclose(ran);
}

static void test_preload(void **state) {
	struct tree *t = *state;
	char home[PLACE_BYTES], path[PLACE_BYTES], python[PLACE_BYTES], neighbour[PLACE_BYTES];
	struct rv_errtext et = {0};
	point(t, home, path, python);
	struct library_search s = library_search_with(&t->env);
	tree_put_library(t, "any/libmain.so", "nccl");
	(void)snprintf(neighbour, sizeof neighbour, "%s/any/libmain.so", t->root);
	assert_int_equal(library_preload(&s, neighbour, "librivulet_part.so.1", &et), RV_E_NOTFOUND);
	assert_null(dlopen("librivulet_part.so.1", RTLD_NOW | RTLD_NOLOAD));
	tree_put_library(t, "any/librivulet_part.so.1", "librivulet_part");
	assert_int_equal(library_preload(&s, neighbour, "librivulet_part.so.1", &et), RV_OK);
	assert_non_null(dlopen("librivulet_part.so.1", RTLD_NOW | RTLD_NOLOAD)); /* by its name alone */
	tree_put_library(t, "home/lib64/librivulet_other.so.1", "librivulet_other");
	s = library_search_with(&t->env); /* which did not know the folder */
	assert_int_equal(library_preload(&s, neighbour, "librivulet_other.so.1", &et), RV_OK);
	assert_non_null(dlopen("librivulet_other.so.1", RTLD_NOW | RTLD_NOLOAD));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {TEST(test_order),
									   TEST(test_first_name_first),
									   TEST(test_what_cannot_be_used_is_passed_over),
									   TEST(test_loader_first),
									   TEST(test_python_is_run_when_nothing_else_helps),
									   TEST(test_preload)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
