/* test_e2e_own_text.c: a run that has its text, and a person who brings another: refused before the
 * invite is spent, or, where the operator allows it, seen by everybody. */
#include "e2e.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN                                                                                                            \
	"n-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\nmin-workers = 2\nsteps-per-round = 2\n"            \
	"rounds = 100000\n"

enum { TEXT_BYTES = 1 << 20 };

/* Makes a run whose text is a file of `dir`. */
static void open_run(struct e2e *e, char dir[SCRATCH_PATH], const char *more) {
	char config[2 * SCRATCH_PATH];
	char *bytes = malloc(TEXT_BYTES);
	for (int i = 0; i < TEXT_BYTES; i++)
		bytes[i] = (char)(i % 61 == 60 ? '\n' : 'a' + (i * 7 + i / 61) % 26);
	scratch_make(dir, SCRATCH_PATH);
	scratch_write(dir, "text.txt", bytes, TEXT_BYTES);
	free(bytes);
	(void)snprintf(config, sizeof config, RUN "data = %s/text.txt\n%s", dir, more);
	e2e_open(e, config, 1);
}

static void close_run(struct e2e *e, const char *dir) {
	char text[E2E_PATH];
	e2e_path(e, "coordinator/text", text);
	scratch_remove(text);
	scratch_remove(dir);
}

static void another_text_is_refused(void **state) {
	static struct e2e e;
	char dir[SCRATCH_PATH], worker[E2E_PATH], log[E2E_PATH];
	*state = &e;
	open_run(&e, dir, "");
	e2e_path(&e, "own", worker);
	const char *const argv[] = {"rivulet-worker", e.links[0], "--yes", "--dir", worker, "--data", e.data, NULL};
	e2e_run(&e, "refused", argv, 1);
	e2e_path(&e, "refused.log", log);
	char *said = scratch_read(log, NULL);
	assert_non_null(strstr(said, "the run trains on a text of its own (data-hash = "));
	free(said);
	json_t *status = e2e_status(&e);
	assert_int_equal(json_array_size(json_object_get(status, "members")), 0); /* no invite is spent */
	json_decref(status);
	close_run(&e, dir);
}

static const char *own_text(const json_t *status) {
	const json_t *m = json_array_get(json_object_get(status, "members"), 0);
	return json_string_value(json_object_get(json_object_get(m, "text"), "own"));
}

static void another_text_is_seen(void **state) {
	static struct e2e e;
	char dir[SCRATCH_PATH];
	*state = &e;
	open_run(&e, dir, "data-from = own\n");
	e2e_start_worker(&e, 0, NULL, NULL);
	json_decref(e2e_wait_event(&e.workers[0], "own_text", NULL, 0, NULL));
	json_decref(e2e_wait_event(&e.coordinator, "member_own_text", NULL, 0, NULL));
	json_t *status = e2e_status(&e);
	assert_non_null(own_text(status));
	assert_int_equal(strlen(own_text(status)), 16);
	json_decref(status);
	close_run(&e, dir);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(another_text_is_refused, e2e_teardown),
		cmocka_unit_test_teardown(another_text_is_seen, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
