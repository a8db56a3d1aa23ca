/* test_net_rows_view.c: what a participant of a roster in rows is told: the views of all fit
 * together, each is a valid document, and what a view may not say is refused. */
#include "net/control/rows_view.h"

#include "base/rows.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <string.h>

enum { ROUND = 3 };

static struct member_ref members[NET_MAX_ROSTER];
static struct document d, decoded;
static uint8_t bytes[NET_MAX_DOCUMENT_BYTES];

static struct rows_plan plan_of(int n, int row_size, uint32_t n_chunks) {
	struct rows_plan p = {.n_rows = (uint8_t)rows_choose(n, row_size), .members = members};
	for (int i = 0; i < n; i++) {
		members[i] =
			(struct member_ref){.member = (uint32_t)(1000 + 5 * i), .weight = 1 + (uint32_t)i % 3, .n_candidates = 1};
		members[i].candidates[0].kind = CANDIDATE_SEEN;
		snprintf(members[i].candidates[0].addr, sizeof members[i].candidates[0].addr, "203.0.113.7:%d", 1000 + i);
	}
	for (int row = 0; row <= p.n_rows; row++)
		p.first[row] = (uint16_t)rows_first(n, p.n_rows, row);
	for (int row = 0; row < p.n_rows; row++)
		p.since[row] = 1;
	rows_plan_columns(&p, n_chunks, n / p.n_rows);
	return p;
}

static void view(const struct rows_plan *p, int place) {
	memset(&d, 0, sizeof d);
	d.phase = RUN_REDUCE;
	d.round = ROUND;
	d.attempt = 2;
	d.final_round = 9;
	d.n_log = ROUND;
	d.seq = 1;
	rows_view(p, place, &d);
}

static enum rv_err encode_and_decode(struct rv_errtext *et) {
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	document_encode(&d, control_version(), &w);
	assert_false(w.failed);
	return document_decode(bytes, rv_writer_len(&w), &decoded, et);
}

/* A column's owners name each other, by the same chunks. */
static void check_owners(const struct rows_plan *p) {
	for (int i = 0; i < decoded.n_sections; i++) {
		const struct section *s = &decoded.sections[i];
		for (int row = 0; row < p->n_rows; row++) {
			const bool none = row == decoded.row || p->first[row] == p->first[row + 1];
			assert_int_equal(s->owner[row] == NET_NO_OWNER, none);
			if (none)
				continue;
			const struct member_ref *m = &decoded.column[s->owner[row]];
			int j = 0;
			while (p->columns[j].first != s->first)
				j++;
			assert_int_equal(m->place, p->first[row] + p->columns[j].owner[row]);
			assert_int_equal(m->member, members[m->place].member);
			assert_int_equal(m->row, row);
		}
	}
}

static size_t check_views(const struct rows_plan *p) {
	size_t most = 0;
	uint32_t owned = 0;
	for (int place = 0; place < p->first[p->n_rows]; place++) {
		view(p, place);
		assert_ok(encode_and_decode(&et));
		const int self = document_find(&decoded, members[place].member);
		assert_true(self >= 0);
		assert_int_equal(decoded.members[self].place, place);
		assert_int_equal(document_participants(&decoded), p->first[p->n_rows]);
		check_owners(p);
		for (int i = 0; i < decoded.n_sections; i++)
			owned += decoded.sections[i].count;
		struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
		document_encode(&d, control_version(), &w);
		most = rv_writer_len(&w) > most ? rv_writer_len(&w) : most;
	}
	uint32_t rows = 0;
	for (int row = 0; row < p->n_rows; row++)
		rows += p->first[row] < p->first[row + 1];
	assert_int_equal(owned, rows * d.n_chunks); /* each row owns every chunk once */
	return most;
}

static void test_views_fit_together(void **state) {
	(void)state;
	static const struct {
		int n, row_size;
		uint32_t n_chunks;
	} sizes[] = {{3, 2, 9}, {4, 2, 2}, {9, 3, 100}, {65, 64, 64}, {256, 64, 300}, {1024, 64, 256}};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		const struct rows_plan p = plan_of(sizes[i].n, sizes[i].row_size, sizes[i].n_chunks);
		const size_t most = check_views(&p);
		assert_true(most < 9216); /* whatever the roster: a row, a column, no more */
	}
}

/* One participant of 32 owns as much as it may, and a row is out. */
static void test_views_after_deaths(void **state) {
	(void)state;
	struct rows_plan p = plan_of(1024, 64, 256);
	assert_int_equal(rows_most_owned(32), 4);
	for (int j = 0; j < 4; j++)
		p.columns[j].owner[5] = 0;
	for (int row = 8; row <= 32; row++)
		p.first[row] = (uint16_t)(p.first[row] - 32); /* row 7 */
	p.since[5] = p.since[7] = 2;
	(void)check_views(&p);
	view(&p, p.first[5]);
	assert_int_equal(d.n_sections, 4);
	assert_int_equal(d.n_column, 4 * 30);
	assert_int_equal(d.row_weights[7], 0);
}

#define REFUSED(change, why)                                                                                           \
	do {                                                                                                               \
		struct rv_errtext et = {0};                                                                                    \
		view(&p, 5);                                                                                                   \
		change;                                                                                                        \
		assert_int_equal(encode_and_decode(&et), RV_E_INVALID);                                                        \
		if (!strstr(et.text, why))                                                                                     \
			fail_msg("%s: %s", why, et.text);                                                                          \
	} while (0)

static void test_what_does_not_fit_is_refused(void **state) {
	(void)state;
	const struct rows_plan p = plan_of(16, 4, 16);
	REFUSED(d.row_weights[1]++, "weight of row 1");
	REFUSED(d.row_weights[1] = 0, "weight of row 1 = 0");
	REFUSED(d.row_since[2] = 3, "row_since[2]");
	REFUSED(d.sections[0].owner[0] = 9, "sections[0].owner[0]");
	REFUSED(d.sections[0].owner[0] = NET_NO_OWNER, "sections[0].owner[0]");
	REFUSED(d.sections[0].count--, "must be a range");
	REFUSED((d.sections[1] = d.sections[0], d.sections[1].first = 8, d.n_sections = 2), "of the same owner");
	REFUSED(d.column[0].row = 1, "of another row");
	REFUSED(d.column[1].place = 0, "must ascend");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_views_fit_together),
		cmocka_unit_test(test_views_after_deaths),
		cmocka_unit_test(test_what_does_not_fit_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
