/* Documents of rosters that are divided into rows. */
#include <string.h>

#include "net/control/control.h"
#include "tests/common/check.h"

static uint8_t buffer[NET_MAX_DOCUMENT_BYTES];
enum { LEASES_BYTES = 8 + 1 + 2 * RV_HASH_BYTES + 1 + 1 }; /* of none, and no audits, at the end of a document */
static struct document in, out;

static struct member_ref ref(uint32_t member, uint16_t place, uint8_t row) {
	struct member_ref m = {.member = member, .weight = 2, .boot = 9, .n_candidates = 1, .place = place, .row = row};
	strcpy(m.candidates[0].addr, "127.0.0.1:4000");
	m.key[0] = (uint8_t)place;
	return m;
}

/* Three rows of two; the receiver is at place 2, in row 1, and owns two columns. Row 2 is not in
 * the mean, and takes the mean of the second column. */
static struct document *a_document(void) {
	in = (struct document){
		.seq = 1, .phase = RUN_REDUCE, .round = 4, .attempt = 3, .final_round = 9, .snapshot_round = 4};
	in.n_members = 2;
	in.members[0] = ref(70, 2, 1);
	in.members[1] = ref(4000000000u, 3, 1);
	in.n_chunks = 10;
	in.n_ranges = 3;
	in.ranges[0] = (struct owner_range){0, 4, 0};
	in.ranges[1] = (struct owner_range){4, 3, 0};
	in.ranges[2] = (struct owner_range){7, 3, 1};
	in.n_rows = 3;
	in.row = 1;
	in.n_roster = 6;
	const uint32_t weights[] = {4, 4, 0}, since[] = {1, 3, 2};
	memcpy(in.row_weights, weights, sizeof weights);
	memcpy(in.row_since, since, sizeof since);
	in.n_column = 3;
	in.column[0] = ref(3, 0, 0);
	in.column[1] = ref(900000, 1, 0);
	in.column[2] = ref(5, 5, 2);
	in.n_sections = 2;
	in.sections[0] = (struct section){0, 4, {0, NET_NO_OWNER, NET_NO_OWNER}};
	in.sections[1] = (struct section){4, 3, {1, NET_NO_OWNER, 2}};
	return &in;
}

static size_t encode(const struct document *d) {
	struct rv_writer w = rv_writer_of(buffer, sizeof buffer);
	document_encode(d, CONTROL_VERSION, &w);
	assert_false(w.failed);
	return rv_writer_len(&w);
}

static void test_a_document_with_rows(void **state) {
	(void)state;
	size_t n = encode(a_document());
	struct rv_errtext et = {0};
	if (document_decode(buffer, n, &out, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_true(out.n_rows == 3 && out.row == 1 && out.n_roster == 6);
	assert_memory_equal(out.row_weights, in.row_weights, 3 * sizeof in.row_weights[0]);
	assert_memory_equal(out.row_since, in.row_since, 3 * sizeof in.row_since[0]);
	assert_true(out.members[1].member == 4000000000u && out.members[1].place == 3 && out.members[1].row == 1);
	assert_int_equal(out.n_column, 3);
	assert_true(out.column[2].member == 5 && out.column[2].place == 5 && out.column[2].row == 2);
	assert_int_equal(out.n_sections, 2);
	assert_memory_equal(out.sections[1].owner, in.sections[1].owner, 3);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(document_decode(buffer, cut, &out, NULL), RV_E_INVALID);
}

static void test_one_row_costs_one_byte(void **state) {
	(void)state;
	struct document *d = a_document();
	size_t three = encode(d);
	d->n_rows = 1;
	size_t one = encode(d);
	assert_int_equal(buffer[one - LEASES_BYTES - 1], 1);
	assert_int_equal(three - one, 1 + 2 + 3 * 8 + 2 * 2 + 1 + 2 * (8 + 3) + 2 + 3 * (50 + 1 + 1 + 2 + 14 + 1 + 1 + 2));
	assert_int_equal(document_decode(buffer, one, &out, NULL), RV_OK);
	assert_true(out.n_column == 0 && out.n_sections == 0 && out.members[1].place == 1);
}

static void refused(const struct document *d, const char *text) {
	struct rv_errtext et = {0};
	size_t n = encode(d);
	assert_int_equal(document_decode(buffer, n, &out, &et), RV_E_INVALID);
	if (strstr(et.text, text) == NULL)
		fail_msg("'%s' is not in '%s'", text, et.text);
}

#define REFUSED(change, text)                                                                                          \
	do {                                                                                                               \
		struct document *d = a_document();                                                                             \
		change;                                                                                                        \
		refused(d, text);                                                                                              \
	} while (0)

static void test_rules_of_rows(void **state) {
	(void)state;
	REFUSED(d->row = 3, "row 3 of 3");
	REFUSED(d->n_roster = NET_MAX_ROSTER + 1, "1025 participants, at most 1024");
	REFUSED(d->row_since[0] = 0, "row_since[0] = 0, must be 1..3");
	REFUSED(d->row_since[2] = 4, "row_since[2] = 4, must be 1..3");
	REFUSED(d->row_weights[1] = 3, "weight of row 1 = 3, of its members 4");
	REFUSED(d->row_weights[0] = NET_MAX_WEIGHT_SUM, "weights of rows add up to");
	REFUSED(d->row_weights[1] = 0, "weight of row 1 = 0, of its members 4");
	REFUSED(d->members[1].place = 2, "members[1].place = 2: must ascend");
	REFUSED(d->members[1].place = 6, "members[1].place = 6");
	REFUSED(d->column[1].place = 0, "column[1].place = 0: must ascend");
	REFUSED(d->column[1].member = 3, "column[1] = 3");
	REFUSED(d->column[1].member = NET_NO_MEMBER, "column[1] = 4294967295");
	REFUSED(d->column[1].member = 70, "column[1] = 70 is in members");
	REFUSED(d->column[1].row = 1, "column[1] in row 1");
	REFUSED(d->column[1].row = 3, "column[1] in row 3");
	REFUSED(d->column[1].weight = 0, "column[1] in row 0 of 3 with weight 0");
	REFUSED(d->column[1].n_candidates = 0, "column[1]: no candidate");
	REFUSED(d->sections[0].owner[0] = 3, "sections[0].owner[0] = 3: must be a member of that row");
	REFUSED(d->sections[0].owner[0] = 2, "sections[0].owner[0] = 2: must be a member of that row");
	REFUSED(d->sections[0].owner[0] = NET_NO_OWNER, "sections[0].owner[0] = 255");
	REFUSED(d->sections[0].owner[1] = 0, "sections[0].owner[1] = 0: must be 255, for none");
	REFUSED(d->sections[0].count = 0, "sections[0] = 0+0");
	REFUSED(d->sections[0].count = 5, "sections[1] = 4+3: must start at 5");
	REFUSED(d->sections[1].count = 7, "sections[1] = 4+7: must start at 4 at least and end by 10");
	REFUSED(d->sections[1].first = UINT32_MAX, "sections[1]");
}

/* Counts are judged before anything is read behind them. */
static void test_counts_above_the_limits(void **state) {
	(void)state;
	struct document *d = a_document();
	d->n_sections = 0;
	d->n_column = 0;
	size_t n = encode(d);
	struct rv_errtext et = {0};
	assert_int_equal(document_decode(buffer, n, &out, NULL), RV_OK);
	buffer[n - LEASES_BYTES - 2] = NET_MAX_COLUMN + 1;
	assert_int_equal(document_decode(buffer, n, &out, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "n_column = 129, at most 128"));
	buffer[n - LEASES_BYTES - 3] = NET_MAX_SECTIONS + 1;
	assert_int_equal(document_decode(buffer, n, &out, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "n_sections = 65, at most 64"));
	d->n_rows = 1;
	n = encode(d);
	buffer[n - LEASES_BYTES - 1] = NET_MAX_ROWS + 1;
	assert_int_equal(document_decode(buffer, n, &out, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "n_rows = 33, must be 1..32"));
	buffer[n - LEASES_BYTES - 1] = 0;
	assert_int_equal(document_decode(buffer, n, &out, &et), RV_E_INVALID);
}

static void fill_addresses(struct member_ref *m) {
	m->n_candidates = NET_MAX_CANDIDATES;
	for (int k = 0; k < NET_MAX_CANDIDATES; k++)
		strcpy(m->candidates[k].addr, "[2001:db80:1111:2222:3333:4444:198.151.100.107]:65535");
}

static void test_the_largest_document_with_rows_fits(void **state) {
	(void)state;
	struct document *d = a_document();
	d->n_rows = NET_MAX_ROWS;
	d->row = 0;
	d->n_roster = NET_MAX_ROSTER;
	d->n_members = NET_MAX_ROW;
	d->n_chunks = NET_MAX_RANGES;
	d->n_ranges = NET_MAX_ROW;
	d->n_column = NET_MAX_COLUMN;
	d->n_sections = NET_MAX_SECTIONS;
	d->banned.n = NET_MAX_BANNED;
	for (uint32_t i = 0; i < NET_MAX_BANNED; i++)
		d->banned.members[i] = 1000000 + i;
	for (uint32_t i = 0; i < NET_MAX_ROW; i++)
		d->ranges[i] = (struct owner_range){i, i + 1 < NET_MAX_ROW ? 1 : NET_MAX_RANGES - i, 0};
	for (uint16_t i = 0; i < NET_MAX_ROW; i++) {
		d->members[i] = ref(i, i, 0);
		fill_addresses(&d->members[i]);
	}
	for (uint16_t i = 0; i < NET_MAX_COLUMN; i++) {
		d->column[i] = ref(500 + i, NET_MAX_ROW + i, (uint8_t)(1 + i / 4 % 31));
		fill_addresses(&d->column[i]);
	}
	for (uint32_t i = 0; i < NET_MAX_ROWS; i++) {
		d->row_weights[i] = i == 0 ? 2 * NET_MAX_ROW : 0;
		d->row_since[i] = 1;
	}
	for (uint32_t i = 0; i < NET_MAX_SECTIONS; i++) {
		d->sections[i] = (struct section){i, d->ranges[i].count, {0}};
		memset(d->sections[i].owner, NET_NO_OWNER, NET_MAX_ROWS);
	}
	size_t n = encode(d);
	struct rv_errtext et = {0};
	if (document_decode(buffer, n, &out, &et) != RV_OK)
		fail_msg("%s", et.text);
}

/* What is not used of the place that is copied to does not matter. */
static void test_a_copy_is_the_same_document(void **state) {
	(void)state;
	static uint8_t again[NET_MAX_DOCUMENT_BYTES];
	size_t n = encode(a_document());
	memset(&out, 0xff, sizeof out);
	document_copy(&out, &in);
	struct rv_writer w = rv_writer_of(again, sizeof again);
	document_encode(&out, CONTROL_VERSION, &w);
	assert_int_equal(rv_writer_len(&w), n);
	assert_memory_equal(buffer, again, n);
	memset(&out, 0xff, sizeof out);
	assert_int_equal(document_decode(again, n, &out, NULL), RV_OK);
	w = rv_writer_of(again, sizeof again);
	document_encode(&out, CONTROL_VERSION, &w);
	assert_memory_equal(buffer, again, n);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_document_with_rows),
		cmocka_unit_test(test_one_row_costs_one_byte),
		cmocka_unit_test(test_rules_of_rows),
		cmocka_unit_test(test_counts_above_the_limits),
		cmocka_unit_test(test_the_largest_document_with_rows_fits),
		cmocka_unit_test(test_a_copy_is_the_same_document),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
