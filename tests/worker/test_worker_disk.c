/* test_worker_disk.c: jobs of the storage thread whose session ends before it takes the answers. */
#include "state_fixture.h"
#include "tests/common/check.h"
#include "worker/session/internal.h"

#include <stdlib.h>
#include <string.h>

static void wake(void *ctx) {
	(void)ctx;
}

static void a_job_that_nobody_took_is_freed_and_done(void **state) {
	struct state_fixture *f = state_fixture_new();
	struct session *s = calloc(1, sizeof *s);
	(void)state;
	assert_non_null(s);
	s->store = f->store;
	assert_int_equal(jobs_new("storage", wake, s, &s->storage, NULL), RV_OK);
	struct blob *reduced = blob_new(state_payload_bytes(&f->store.cfg, STATE_KIND_LOG, 0));
	assert_non_null(reduced);
	memset(reduced->data, 0, reduced->bytes);
	const struct store_job persist = {
		.kind = STORE_PERSIST, .log = {.round = 0, .attempt = 1}, .reduced = blob_ref(reduced)};
	assert_true(session_disk_ops.post(s, &persist));
	jobs_free(s->storage);
	assert_false(blob_is_shared(reduced));
	struct state_file *stored;
	assert_int_equal(statestore_open(&f->store, STATE_KIND_LOG, 0, &stored, NULL), RV_OK);
	state_file_free(stored);
	blob_unref(reduced);
	free(s);
	state_fixture_free(f);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_that_nobody_took_is_freed_and_done),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
