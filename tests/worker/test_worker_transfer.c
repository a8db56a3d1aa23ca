/* test_worker_transfer.c: donor and fetcher together, message by message: whole files, a change of donor in the middle,
 * donors that lie about sizes, have nothing, or are asked for too much. */
#include "base/file.h"
#include "state_fixture.h"
#include "worker/donor.h"
#include "worker/fetcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { JOINER = 0, DONOR_A = 1, DONOR_B = 2, TAG = 77 };

struct pair {
	struct state_fixture *state;
	struct donor *donor;
	struct fetcher *fetcher;
	struct blob *file; /* fetched */
	int failures, progress;
};

static void on_file(void *ctx, uint8_t kind, uint64_t round, struct blob *file) {
	(void)kind, (void)round;
	((struct pair *)ctx)->file = file;
}

static void on_failed(void *ctx, uint8_t kind, uint64_t round, const char *why) {
	(void)kind, (void)round, (void)why;
	((struct pair *)ctx)->failures++;
}

static void on_progress(void *ctx) {
	((struct pair *)ctx)->progress++;
}

static int setup(void **state) {
	struct pair *p = calloc(1, sizeof *p);
	p->state = state_fixture_new();
	state_fixture_play(p->state, 5, 1);
	struct fetcher_owner owner = {.ctx = p, .on_file = on_file, .on_failed = on_failed, .on_progress = on_progress};
	assert_int_equal(donor_new(&p->state->store, TAG, &p->donor, NULL), RV_OK);
	assert_int_equal(fetcher_new(TAG, &owner, &p->fetcher, NULL), RV_OK);
	*state = p;
	return 0;
}

static int teardown(void **state) {
	struct pair *p = *state;
	blob_unref(p->file);
	fetcher_free(p->fetcher);
	donor_free(p->donor);
	state_fixture_free(p->state);
	free(p);
	return 0;
}

static size_t log_bytes(struct pair *p) {
	return state_file_max_bytes(&p->state->store.cfg, STATE_KIND_LOG);
}

/* One message's body in one piece, as the receiver sees it. */
static uint8_t *body_of(const struct peers_message *m) {
	uint8_t *body = malloc(m->header.body_bytes + 1u);
	assert_int_equal(m->header.body_bytes, m->part_bytes[0] + m->part_bytes[1]);
	memcpy(body, m->part[0], m->part_bytes[0]);
	if (m->part_bytes[1] > 0)
		memcpy(body + m->part_bytes[0], m->part[1], m->part_bytes[1]);
	return body;
}

/* Moves one request to the donor and its answer back, as coming from `from`. False: the fetcher asks for nothing. */
static bool exchange(struct pair *p, uint32_t from) {
	struct peers_message m;
	if (!fetcher_send(p->fetcher, from, &m))
		return false;
	uint8_t *body = body_of(&m);
	assert_int_equal(donor_receive(p->donor, JOINER, &m.header, body, NULL), RV_OK);
	free(body);
	assert_true(donor_send(p->donor, JOINER, &m));
	body = body_of(&m);
	assert_int_equal(fetcher_receive(p->fetcher, from, &m.header, body, NULL), RV_OK);
	free(body);
	return true;
}

static void assert_whole(struct pair *p, enum statestore_file kind, uint64_t round) {
	char path[STATESTORE_PATH_BYTES];
	uint8_t *want;
	size_t n;
	assert_non_null(p->file);
	statestore_path(&p->state->store, kind, round, path);
	assert_int_equal(rv_file_read(path, 1 << 24, &want, &n, NULL), RV_OK);
	assert_int_equal(p->file->bytes, n);
	assert_memory_equal(p->file->data, want, n);
	free(want);
}

static void a_log_and_a_base_arrive_whole(void **state) {
	struct pair *p = *state;
	fetcher_start(p->fetcher, FRAME_FETCH_LOG, 3, log_bytes(p), DONOR_A, NULL);
	assert_false(exchange(p, DONOR_B)); /* it is not asked */
	while (exchange(p, DONOR_A))
		;
	assert_whole(p, STATE_FILE_LOG, 3);
	assert_true(p->progress > 0);
	blob_unref(p->file);
	p->file = NULL;
	fetcher_start(p->fetcher, FRAME_FETCH_BASE, 4, state_file_max_bytes(&p->state->store.cfg, STATE_KIND_BASE), DONOR_B, NULL);
	while (exchange(p, DONOR_B))
		;
	assert_whole(p, STATE_FILE_BASE, 4);
	assert_true(donor_bytes(p->donor) > state_file_max_bytes(&p->state->store.cfg, STATE_KIND_BASE));
}

static void a_donor_without_the_file_says_so(void **state) {
	struct pair *p = *state;
	fetcher_start(p->fetcher, FRAME_FETCH_LOG, 99, log_bytes(p), DONOR_A, NULL);
	assert_true(exchange(p, DONOR_A));
	assert_int_equal(p->failures, 1);
	assert_false(exchange(p, DONOR_A));
}

static void a_file_that_is_too_long_is_refused(void **state) {
	struct pair *p = *state;
	fetcher_start(p->fetcher, FRAME_FETCH_LOG, 3, 100, DONOR_A, NULL);
	exchange(p, DONOR_A);
	assert_int_equal(p->failures, 1);
	assert_null(p->file);
}

/* A piece as a donor would send it. */
static enum rv_err give_piece(struct pair *p, uint32_t from, uint64_t offset, uint64_t total, const uint8_t *data,
							  uint32_t n) {
	uint8_t *body = malloc(FRAME_PIECE_BYTES + n + 1u);
	struct frame_piece piece = {
		.kind = FRAME_FETCH_LOG, .round = 3, .offset = offset, .total_bytes = total, .data = data, .data_bytes = n};
	struct frame_header h = frame_piece_encode(&piece, TAG, body);
	memcpy(body + FRAME_PIECE_BYTES, data, n);
	enum rv_err e = fetcher_receive(p->fetcher, from, &h, body, NULL);
	free(body);
	return e;
}

static void the_next_donor_goes_on_where_the_last_one_stopped(void **state) {
	struct pair *p = *state;
	struct peers_message m;
	enum { TOTAL = 3 * NET_MAX_FETCH_BYTES };
	uint8_t *data = malloc(TOTAL);
	for (size_t i = 0; i < TOTAL; i++)
		data[i] = (uint8_t)(i * 31 + i / 1000);
	fetcher_start(p->fetcher, FRAME_FETCH_LOG, 3, TOTAL, DONOR_A, NULL);
	assert_true(fetcher_send(p->fetcher, DONOR_A, &m));
	assert_int_equal(give_piece(p, DONOR_A, 0, TOTAL, data, NET_MAX_FETCH_BYTES), RV_OK);
	assert_true(fetcher_send(p->fetcher, DONOR_A, &m));
	fetcher_cancel(p->fetcher);
	fetcher_start(p->fetcher, FRAME_FETCH_LOG, 3, TOTAL, DONOR_B, NULL);
	/* The late answer of the first donor is ignored. */
	assert_int_equal(give_piece(p, DONOR_A, NET_MAX_FETCH_BYTES, TOTAL, data, NET_MAX_FETCH_BYTES), RV_OK);
	for (size_t at = NET_MAX_FETCH_BYTES; at < TOTAL; at += NET_MAX_FETCH_BYTES) {
		struct frame_fetch f;
		assert_true(fetcher_send(p->fetcher, DONOR_B, &m));
		assert_int_equal(frame_fetch_decode(&m.header, m.part[0], &f, NULL), RV_OK);
		assert_int_equal(f.offset, at);
		assert_int_equal(give_piece(p, DONOR_B, at, TOTAL, data + at, NET_MAX_FETCH_BYTES), RV_OK);
	}
	assert_non_null(p->file);
	assert_memory_equal(p->file->data, data, TOTAL);
	free(data);
}

static void a_piece_that_overflows_costs_the_link(void **state) {
	struct pair *p = *state;
	struct peers_message m;
	uint8_t data[64] = {0};
	fetcher_start(p->fetcher, FRAME_FETCH_LOG, 3, 32, DONOR_A, NULL);
	assert_true(fetcher_send(p->fetcher, DONOR_A, &m));
	assert_int_not_equal(give_piece(p, DONOR_A, 0, 32, data, 0), RV_OK);
	assert_int_not_equal(give_piece(p, DONOR_A, 0, 32, data, 64), RV_OK);
	assert_null(p->file);
}

static void a_broken_link_is_asked_again_and_a_fatal_one_is_left(void **state) {
	struct pair *p = *state;
	struct peers_message m;
	fetcher_start(p->fetcher, FRAME_FETCH_LOG, 3, log_bytes(p), DONOR_A, NULL);
	assert_true(fetcher_send(p->fetcher, DONOR_A, &m));
	assert_false(fetcher_send(p->fetcher, DONOR_A, &m));
	fetcher_link_down(p->fetcher, DONOR_A, false);
	assert_true(fetcher_send(p->fetcher, DONOR_A, &m));
	fetcher_link_down(p->fetcher, DONOR_A, true);
	assert_int_equal(p->failures, 1);
}

static void a_greedy_joiner_is_stopped(void **state) {
	struct pair *p = *state;
	uint8_t body[FRAME_FETCH_BYTES];
	struct frame_fetch f = {.kind = FRAME_FETCH_LOG, .round = 3, .length = 10};
	struct frame_header h = frame_fetch_encode(&f, TAG, body);
	for (int i = 0; i < DONOR_MAX_WAITING; i++)
		assert_int_equal(donor_receive(p->donor, JOINER, &h, body, NULL), RV_OK);
	assert_int_equal(donor_receive(p->donor, JOINER, &h, body, NULL), RV_E_PROTOCOL);
	assert_true(donor_busy(p->donor));
	donor_link_down(p->donor, JOINER);
	assert_false(donor_busy(p->donor));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_log_and_a_base_arrive_whole),
		T(a_donor_without_the_file_says_so),
		T(a_file_that_is_too_long_is_refused),
		T(the_next_donor_goes_on_where_the_last_one_stopped),
		T(a_piece_that_overflows_costs_the_link),
		T(a_broken_link_is_asked_again_and_a_fatal_one_is_left),
		T(a_greedy_joiner_is_stopped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
