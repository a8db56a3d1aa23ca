/* test_worker_fetcher.c: the fetcher over files that a test makes up: what it asks of them, and
 * what it does without memory. (With real files: test_worker_transfer.c.) */
#include <stdlib.h>
#include <string.h>

#include "state_fixture.h"
#include "tests/common/check.h"
#include "worker/transfer/fetcher.h"

enum { FILES = 8 };

struct world {
	struct state_fixture *fixture;
	void *memory, *core;
	struct fetcher *fetcher;
	struct fetcher_job posted[FILES];
	void *posted_to[FILES];
	int n_posted, opened, dropped, refuse_from; /* opens from this one on get no memory */
	int files[FILES];
	int delivered, late, failed;
};

static void *core_memory(void *ctx, size_t bytes) {
	struct world *w = ctx;
	if (!w->core)
		w->core = malloc(bytes);
	return w->core;
}

static bool post(void *ctx, void *file, const struct fetcher_job *job) {
	struct world *w = ctx;
	assert_in_range(w->n_posted, 0, FILES - 1);
	w->posted_to[w->n_posted] = file;
	w->posted[w->n_posted++] = *job;
	return true;
}

static void *open_file(void *ctx, const struct state_id *id) {
	struct world *w = ctx;
	(void)id;
	if (w->opened >= w->refuse_from)
		return NULL;
	void *file = &w->files[w->opened++];
	(void)post(ctx, file, &(struct fetcher_job){.step = FETCHER_OPEN});
	return file;
}

static void take(void *ctx, void *file, struct fetched *out) {
	(void)ctx, (void)file;
	*out = (struct fetched){.snapshot = NULL};
}

static void drop(void *ctx, void *file) {
	(void)file;
	((struct world *)ctx)->dropped++;
}

static void on_file(void *ctx, const struct fetched *what, bool late) {
	struct world *w = ctx;
	(void)what;
	w->delivered += !late;
	w->late += late;
}

static void on_failed(void *ctx, const struct state_id *id, enum rv_err e, const char *text) {
	(void)id, (void)e, (void)text;
	((struct world *)ctx)->failed++;
}

static int set_up(void **state) {
	struct world *w = calloc(1, sizeof *w);
	w->fixture = state_fixture_new();
	w->memory = malloc(fetcher_size());
	w->refuse_from = FILES;
	const struct fetcher_config cfg = {
		.global = &w->fixture->store.cfg,
		.self_member = 1,
		.stall_us = 1000,
		.ops = {.ctx = w, .memory = core_memory, .open = open_file, .post = post, .take = take, .drop = drop},
		.owner = {.ctx = w, .on_file = on_file, .on_failed = on_failed}};
	w->fetcher = fetcher_init(w->memory, &cfg);
	*state = w;
	return 0;
}

static int tear_down(void **state) {
	struct world *w = *state;
	fetcher_release(w->fetcher);
	state_fixture_free(w->fixture);
	free(w->core);
	free(w->memory);
	free(w);
	return 0;
}

static struct state_id id_of(enum state_kind kind, uint64_t round) {
	return (struct state_id){.kind = kind, .round = round, .expect = {.b = {1}}};
}

static const int64_t now = 1000000;

/* Answers the first OPEN: the whole file is on the own disk. */
static void answer_own(struct world *w) {
	static struct rv_hash manifest[256];
	static uint8_t held[256];
	memset(held, 1, sizeof held);
	struct fetcher_job done = w->posted[0];
	done.own = true;
	done.manifest = manifest;
	done.held = held;
	fetcher_on_done(w->fetcher, w->posted_to[0], &done);
}

/* It told that it had failed, and delivered the first file all the same: to a session that wanted
 * nothing. */
static void no_memory_for_what_is_fetched_ahead_is_no_fault(void **state) {
	struct world *w = *state;
	const struct state_id ids[] = {id_of(STATE_KIND_SNAPSHOT, 4), id_of(STATE_KIND_LOG, 4)};
	w->refuse_from = 1;
	assert_int_equal(fetcher_want(w->fetcher, now, ids, 2, NULL), RV_OK);
	answer_own(w);
	assert_int_equal(w->delivered, 1);
	assert_int_equal(w->failed, 0);
}

static void what_cannot_be_opened_is_not_delivered(void **state) {
	struct world *w = *state;
	const struct state_id ids[] = {id_of(STATE_KIND_SNAPSHOT, 4), id_of(STATE_KIND_LOG, 4)};
	w->refuse_from = 0;
	assert_int_equal(fetcher_want(w->fetcher, now, ids, 2, NULL), RV_E_NOMEM);
	assert_int_equal(w->n_posted, 0);
	w->refuse_from = FILES; /* there is memory again */
	assert_int_equal(fetcher_want(w->fetcher, now, ids, 1, NULL), RV_OK);
	answer_own(w);
	assert_int_equal(w->delivered, 1);
}

static void answers_of_a_dropped_file_are_void(void **state) {
	struct world *w = *state;
	const struct state_id ids[] = {id_of(STATE_KIND_SNAPSHOT, 4), id_of(STATE_KIND_SNAPSHOT, 5)};
	assert_int_equal(fetcher_want(w->fetcher, now, &ids[0], 1, NULL), RV_OK);
	assert_int_equal(fetcher_want(w->fetcher, now, &ids[1], 1, NULL), RV_OK);
	assert_int_equal(w->dropped, 1);
	answer_own(w);
	assert_int_equal(w->delivered, 0);
}

/* It lay on the disk, unknown to the process: a round was taken back although this worker had its
 * bytes. */
static void what_is_written_when_nobody_waits_is_told(void **state) {
	struct world *w = *state;
	const struct state_id id = id_of(STATE_KIND_LOG, 4);
	struct fetcher_job done = {.step = FETCHER_FINISH};
	assert_int_equal(fetcher_want(w->fetcher, now, &id, 1, NULL), RV_OK);
	assert_int_equal(fetcher_want(w->fetcher, now, NULL, 0, NULL), RV_OK);
	fetcher_on_done(w->fetcher, w->posted_to[0], &done);
	assert_int_equal(w->late, 1);
	done.incomplete = true; /* it was not begun */
	fetcher_on_done(w->fetcher, w->posted_to[0], &done);
	assert_int_equal(w->late, 1);
	assert_int_equal(w->delivered, 0);
}

static void an_own_disk_that_fails_pauses_asking(void **state) {
	struct world *w = *state;
	const struct state_id id = id_of(STATE_KIND_LOG, 4);
	assert_int_equal(fetcher_want(w->fetcher, now, &id, 1, NULL), RV_OK);
	struct fetcher_job done = w->posted[0];
	done.err = RV_E_IO;
	done.text = "it fails";
	fetcher_on_done(w->fetcher, w->posted_to[0], &done);
	assert_int_equal(w->failed, 1);
	assert_int_equal(w->dropped, 1);
	assert_int_equal(fetcher_deadline_us(w->fetcher), now + 1000000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_memory_for_what_is_fetched_ahead_is_no_fault, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_opened_is_not_delivered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(answers_of_a_dropped_file_are_void, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_written_when_nobody_waits_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_own_disk_that_fails_pauses_asking, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
