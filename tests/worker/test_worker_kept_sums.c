/* test_worker_kept_sums.c: the sums that a final owner keeps, on the disk. */
#include "base/merkle.h"
#include "state_fixture.h"
#include "tests/common/check.h"
#include "worker/audit/kept_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 3, ROWS = 2, CHUNK = 11, BYTES = 400 };

struct kept {
	struct state_fixture *f;
	struct kept_sums *k;
};
static struct kept w;

static int setup(void **state) {
	(void)state;
	w.f = state_fixture_new();
	assert_ok(kept_sums_new(&w.f->store, ROUNDS, &w.k, &et));
	return 0;
}

static int teardown(void **state) {
	(void)state;
	kept_sums_free(w.k);
	state_fixture_free(w.f);
	return 0;
}

static void fill_sum(uint64_t round, int row, uint8_t out[BYTES]) {
	memset(out, (int)(16 * round) + row, BYTES);
}

/* Writes the image of a round with one chunk, as sums_image.h has it. */
static void write(uint64_t round) {
	static uint8_t shown_bytes[SHOWN_SUMS_MAX_BYTES];
	static struct shown_sums shown;
	uint8_t sum[BYTES];
	shown = (struct shown_sums){.round = round, .attempt = 2, .chunk = CHUNK, .n_rows = ROWS};
	for (int row = 0; row < ROWS; row++) {
		fill_sum(round, row, sum);
		shown.rows[row].leaf = merkle_leaf(CHUNK, sum, BYTES);
	}
	struct rv_writer of = rv_writer_of(shown_bytes, sizeof shown_bytes);
	shown_sums_write(&shown, &of);
	const size_t n = rv_writer_len(&of), at = SUMS_HEAD_BYTES + SUMS_ENTRY_BYTES;
	struct blob *b = blob_new(at + n + (size_t)ROWS * BYTES);
	struct rv_writer out = rv_writer_of(b->data, b->bytes);
	rv_write_bytes(&out, "rvsums\0\1", 8);
	rv_write_u64(&out, round);
	rv_write_u32(&out, 2);
	rv_write_u32(&out, 1);
	rv_write_u32(&out, ROWS);
	rv_write_u32(&out, 0);
	rv_write_u32(&out, CHUNK);
	rv_write_u32(&out, (uint32_t)n);
	rv_write_u64(&out, at);
	rv_write_u32(&out, BYTES);
	rv_write_u32(&out, 0);
	rv_write_bytes(&out, shown_bytes, n);
	for (int row = 0; row < ROWS; row++) {
		fill_sum(round, row, sum);
		rv_write_bytes(&out, sum, BYTES);
	}
	assert_false(out.failed);
	assert_ok(kept_sums_write(w.k, round, b, &et));
	blob_unref(b);
}

static bool is_given(uint64_t round, uint32_t row, uint32_t chunk) {
	uint8_t want[BYTES];
	size_t bytes = 0;
	const uint8_t *piece = kept_sums_piece(w.k, round, frame_sum_index(row, chunk), &bytes);
	fill_sum(round, (int)row, want);
	assert_true(piece == NULL || (bytes == BYTES && memcmp(piece, want, BYTES) == 0));
	return piece != NULL;
}

static void what_was_kept_is_shown_and_given(void **state) {
	(void)state;
	static struct shown_sums shown;
	for (uint64_t round = 4; round < 7; round++)
		write(round);
	for (uint64_t round = 4; round < 7; round++) {
		for (uint32_t row = 0; row < ROWS; row++)
			assert_true(is_given(round, row, CHUNK));
		assert_true(kept_sums_shown(w.k, round, 2, CHUNK, &shown));
		assert_true(shown.round == round && shown.chunk == CHUNK && shown.n_rows == ROWS);
		assert_false(kept_sums_shown(w.k, round, 1, CHUNK, &shown)); /* another attempt */
		assert_false(kept_sums_shown(w.k, round, 2, CHUNK + 1, &shown));
		assert_false(is_given(round, ROWS, CHUNK) || is_given(round, 0, CHUNK + 1));
	}
	assert_true(kept_sums_there(w.f->store.dir, ROUNDS) > (uint64_t)ROUNDS * ROWS * BYTES);
	write(7); /* in the place of round 4 */
	kept_sums_forget(w.k);
	assert_false(is_given(4, 0, CHUNK));
	assert_true(is_given(7, 0, CHUNK));
}

/* A donor gives them as it gives contributions. */
static void a_donor_gives_them(void **state) {
	(void)state;
	write(5);
	struct kept_source source = {.sums = w.k};
	const struct donor_source s = kept_source_of(&source);
	struct frame_piece p = {.of = {.kind = FRAME_FETCH_SUM, .round = 5, .index = frame_sum_index(1, CHUNK)}};
	assert_true(s.find(s.ctx, 0, &p) && p.total == BYTES);
	p.of.round = 6;
	assert_false(s.find(s.ctx, 0, &p));
}

static void damage(uint64_t round, long at) {
	char path[400];
	(void)snprintf(path, sizeof path, "%s/sums-%d.rvs", w.f->store.dir, (int)(round % ROUNDS));
	FILE *f = fopen(path, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
	const int byte = fgetc(f);
	assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
	(void)fputc(byte ^ 1, f);
	assert_int_equal(fclose(f), 0);
	kept_sums_forget(w.k);
}

/* A sum that is damaged is not given: it would look as if it had been withheld. */
static void damage_is_noticed(void **state) {
	(void)state;
	write(5);
	damage(5, -1);
	assert_true(is_given(5, 0, CHUNK));
	assert_false(is_given(5, 1, CHUNK));
	write(5);
	damage(5, 0);
	assert_false(is_given(5, 0, CHUNK));
	write(5);
	damage(5, SUMS_HEAD_BYTES + 4); /* the bytes of what is shown */
	assert_false(is_given(5, 0, CHUNK));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_kept_is_shown_and_given, setup, teardown),
		cmocka_unit_test_setup_teardown(a_donor_gives_them, setup, teardown),
		cmocka_unit_test_setup_teardown(damage_is_noticed, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
