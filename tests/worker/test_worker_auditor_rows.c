/* test_worker_auditor_rows.c: audits of averages in rosters of several rows: the sum of the own
 * row, and a mean of the sums that its final owner has. In the rig's words: data[i][CHUNK] is the
 * sum of row i. */
#include "net/control/shown_sums.h"
#include "tests/common/check.h"
#include "tests/worker/auditor_rig.h"

#include <string.h>

enum { FINAL = 0, ROWS = MEMBERS };

/* The round was averaged in three rows. */
static void open_rows(void) {
	open_world();
	doc.n_rows = ROWS;
	doc.n_roster = ROWS * MEMBERS;
	for (uint32_t row = 0; row < ROWS; row++)
		doc.row_weights[row] = 3 + row;
	auditor_note_roster(w.a, &doc);
}

static struct rv_hash sums_hash(void) {
	struct rv_hash leaves[ROWS];
	for (int row = 0; row < ROWS; row++)
		leaves[row] = merkle_leaf(CHUNK, w.data[row][CHUNK], BYTES);
	return shown_sums_hash(leaves, ROWS);
}

static void order_of(uint8_t kind, uint32_t attempt, struct rv_hash sum) {
	w.kind = kind;
	doc.phase = RUN_OPEN;
	doc.round = 8;
	doc.n_audits = 2;
	doc.audits[0] = (struct audit_order){.round = 7, .attempt = attempt, .chunk = 0, .kind = AUDIT_SHOW};
	doc.audits[1] = (struct audit_order){.round = 7,
										 .attempt = attempt,
										 .chunk = CHUNK,
										 .kind = kind,
										 .member = kind == AUDIT_OF_MEAN ? FINAL : 0,
										 .sum = sum};
	auditor_follow(w.a, w.now_us, &doc);
}

static bool asks_for_sum(uint32_t member, uint32_t row) {
	struct peers_message m;
	struct frame_fetch f;
	if (!auditor_send(w.a, w.now_us, member, &m))
		return false;
	assert_int_equal(frame_fetch_decode(&m.header, m.part[0], &f, NULL), RV_OK);
	return f.kind == FRAME_FETCH_SUM && f.round == 7 && f.index == frame_sum_index(row, CHUNK);
}

static enum rv_err give_sum(uint32_t row, const uint8_t *data, size_t n) {
	uint8_t body[FRAME_PIECE_BYTES + BYTES];
	const struct frame_piece p = {.of = {.kind = FRAME_FETCH_SUM, .round = 7, .index = frame_sum_index(row, CHUNK)},
								  .total = (uint32_t)n,
								  .data = data,
								  .data_bytes = (uint32_t)n};
	struct rv_errtext et;
	const struct frame_header h = frame_piece_encode(&p, TAG, body);
	memcpy(body + FRAME_PIECE_BYTES, data, n);
	return auditor_receive(w.a, w.now_us, FINAL, &h, body, &et);
}

/* The sum is made again of the row's contributions, as an average is. */
static void the_sum_of_a_row_is_made_again(void **state) {
	(void)state;
	open_rows();
	order_of(AUDIT_OF_SUM, 2, (struct rv_hash){{1}});
	for (uint32_t m = 0; m < MEMBERS; m++)
		assert_true(m == SELF || is_asked(m));
	assert_int_equal(answer(0), RV_OK);
	assert_int_equal(answer(2), RV_OK);
	assert_int_equal(w.judged, 1);
	expect(AUDIT_RIGHT, NET_NO_MEMBER);
}

static void a_mean_is_made_of_the_sums_that_were_shown(void **state) {
	(void)state;
	for (int wrong = 0; wrong < 2; wrong++) {
		open_rows();
		w.verdict = wrong ? AUDIT_WRONG : AUDIT_RIGHT;
		order_of(AUDIT_OF_MEAN, 2, sums_hash());
		for (uint32_t row = 0; row < ROWS; row++) {
			assert_false(asks_for_sum(2, row)); /* the final owner alone */
			assert_true(is_open() && asks_for_sum(FINAL, row));
			assert_int_equal(give_sum(row, w.data[row][CHUNK], BYTES), RV_OK);
		}
		assert_int_equal(w.judged, 1);
		expect(w.verdict, NET_NO_MEMBER);
		auditor_release(w.a);
	}
	open_rows();
}

static void sums_that_were_not_shown_are_withheld(void **state) {
	(void)state;
	uint8_t other[BYTES];
	open_rows();
	order_of(AUDIT_OF_MEAN, 2, sums_hash());
	for (uint32_t row = 0; row < ROWS; row++) {
		memcpy(other, w.data[row][CHUNK], BYTES);
		other[9] ^= row == 1;
		assert_true(asks_for_sum(FINAL, row));
		assert_int_equal(give_sum(row, other, BYTES), RV_OK);
	}
	expect(AUDIT_WITHHELD, FINAL);
	assert_int_equal(w.judged, 0);
}

static void a_sum_of_another_length_is_withheld(void **state) {
	(void)state;
	open_rows();
	order_of(AUDIT_OF_MEAN, 2, sums_hash());
	assert_true(asks_for_sum(FINAL, 0));
	assert_int_equal(give_sum(0, w.data[0][CHUNK], BYTES - 4), RV_OK);
	expect(AUDIT_WITHHELD, FINAL);
}

static void a_final_owner_that_gives_nothing_withholds(void **state) {
	(void)state;
	open_rows();
	order_of(AUDIT_OF_MEAN, 2, sums_hash());
	assert_true(asks_for_sum(FINAL, 0));
	w.now_us += PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	expect(AUDIT_WITHHELD, FINAL);
	open_rows();
	w.linked[FINAL] = false;
	order_of(AUDIT_OF_MEAN, 2, sums_hash());
	w.now_us += PATIENCE_US;
	auditor_tick(w.a, w.now_us);
	expect(AUDIT_UNABLE, FINAL);
}

/* Nor does it hold up an audit for which it is not needed. */
static void a_final_owner_that_cuts_is_set_aside(void **state) {
	(void)state;
	open_rows();
	order_of(AUDIT_OF_MEAN, 2, sums_hash());
	doc.audits[doc.n_audits] = doc.audits[1];
	doc.audits[doc.n_audits++].member = 2;
	doc.audits[2].sum = (struct rv_hash){{1}};
	auditor_follow(w.a, w.now_us, &doc);
	assert_true(asks_for_sum(FINAL, 0) && !asks_for_sum(2, 0));
	auditor_link_down(w.a, w.now_us, FINAL, true);
	auditor_tick(w.a, w.now_us);
	assert_true(is_open() && w.looked == 0 && asks_for_sum(2, 0));
}

/* An order of another attempt, or of one row where there were several. */
static void what_does_not_fit_the_roster_cannot_be_audited(void **state) {
	(void)state;
	open_rows();
	order_of(AUDIT_OF_MEAN, 1, sums_hash());
	expect(AUDIT_UNABLE, NET_NO_MEMBER);
	order(2);
	expect(AUDIT_UNABLE, NET_NO_MEMBER);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_sum_of_a_row_is_made_again, close_world),
		cmocka_unit_test_teardown(a_mean_is_made_of_the_sums_that_were_shown, close_world),
		cmocka_unit_test_teardown(sums_that_were_not_shown_are_withheld, close_world),
		cmocka_unit_test_teardown(a_sum_of_another_length_is_withheld, close_world),
		cmocka_unit_test_teardown(a_final_owner_that_gives_nothing_withholds, close_world),
		cmocka_unit_test_teardown(a_final_owner_that_cuts_is_set_aside, close_world),
		cmocka_unit_test_teardown(what_does_not_fit_the_roster_cannot_be_audited, close_world),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
