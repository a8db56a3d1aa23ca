/* told.c: see told.h. */
#include "told.h"

#include "tests/common/check.h"
#include "tests/common/deadline.h"

#include <string.h>

int e2e_tell(const struct e2e *e, int worker, char *out, size_t cap, const char *words) {
	char dir[E2E_PATH];
	e2e_worker_dir(e, worker, dir);
	return process_shell(out, cap, "%s/rivulet-worker %s --dir %s 2>&1", RV_TEST_BIN_DIR, words, dir);
}

void e2e_tell_ok(const struct e2e *e, int worker, const char *words, const char *answer) {
	char out[2048];
	if (e2e_tell(e, worker, out, sizeof out, words) != 0 || !strstr(out, answer))
		fail_msg("%s: %s", words, out);
}

json_t *e2e_worker_status(const struct e2e *e, int worker) {
	static char out[1 << 16];
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, "the worker's answer");
		 e2e_tell(e, worker, out, sizeof out, "status --json") != 0; deadline_pause(&d))
		if (process_has_ended(&e->workers[worker])) {
			process_show_log(e->workers[worker].log);
			fail_msg("worker %d has ended: %s", worker, out);
		}
	json_t *status = json_loads(out, 0, NULL);
	assert_non_null(status);
	return status;
}

static json_int_t rounds_given(const struct e2e *e, int worker) {
	json_t *status = e2e_worker_status(e, worker);
	const json_int_t n = json_integer_value(json_object_get(json_object_get(status, "given"), "rounds"));
	json_decref(status);
	return n;
}

void e2e_wait_counted(const struct e2e *e, int worker) {
	const json_int_t before = rounds_given(e, worker);
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, "a round that counts it"); rounds_given(e, worker) <= before;)
		deadline_pause(&d);
}
