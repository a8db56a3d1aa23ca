/* Runs are put together by what their text is: the same text under two paths is one configuration,
 * two texts under one path are two; nothing is compared across texts, or across held-out tokens. */
#include "tests/lab/lab_fixture.h"

#include "lab/report/report.h"
#include "tests/lab/report_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOOK  "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#define OTHER "sha256:2222222222222222222222222222222222222222222222222222222222222222"

static char place[256];

static int setup(void **state) {
	(void)state;
	scratch_make(place, sizeof place);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	scratch_remove(place);
	return 0;
}

struct made {
	const char *id, *method, *path, *content;
	int seed, eval_tokens;
	double loss;
};

/* A run of the lab that has ended. */
static void make(const struct made *m) {
	char line[900], conf[300], said[300];
	snprintf(said, sizeof said,
			 "\"version\":1,\"program\":\"rivulet 0.1.0+abc\",\"data\":\"%s\",\"threads\":1,\"heldout_tokens\":1000",
			 m->content);
	snprintf(line, sizeof line,
			 "{\"kind\":\"run\",%s,\"name\":\"%s\",\"role\":\"lab\",\"method\":\"%s\",\"workers\":4,\"n_params\":9,"
			 "\"steps_per_round\":2}\n"
			 "{\"kind\":\"round\",\"round\":1,\"tokens\":8,\"compute_us\":80000}\n"
			 "{\"kind\":\"eval\",\"round\":1,\"tokens\":8,\"loss\":%g,\"eval_tokens\":%d}\n"
			 "{\"kind\":\"end\",\"round\":1,\"loss\":%g}\n",
			 said, m->id, m->method, m->loss, m->eval_tokens, m->loss);
	snprintf(conf, sizeof conf, "method = %s\ndata = %s\nseed = %d\n", m->method, m->path, m->seed);
	report_fixture_file(place, m->id, METRICS_FILE, line);
	report_fixture_file(place, m->id, "run.conf", conf);
}

static void collect(const struct made *runs, int n, struct lab_report *p) {
	const char *paths[] = {place};
	for (int i = 0; i < n; i++)
		make(&runs[i]);
	assert_int_equal(report_collect(p, paths, 1, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(p->n_runs, n);
}

static char *table_of(const struct lab_report *p) {
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	assert_non_null(f);
	report_print_table(p, f);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void test_one_text_under_two_paths(void **state) {
	(void)state;
	static const struct made runs[] = {{"a", "diloco", "/here/book", BOOK, 1, 100, 2.0},
									   {"b", "diloco", "/there/copy", BOOK, 2, 100, 2.2}};
	struct lab_report p;
	collect(runs, 2, &p);
	assert_int_equal(p.n_groups, 1);
	assert_int_equal(p.groups[0].loss.n, 2);
	assert_true(fabs(p.groups[0].loss.mean - 2.1) < 1e-9);
	assert_string_equal(p.groups[0].label, "a");
	char *table = table_of(&p);
	assert_non_null(strstr(table, "text: " BOOK "; trained by rivulet 0.1.0+abc."));
	assert_non_null(strstr(table, "the same 100 of 1000 tokens"));
	free(table);
	report_release(&p);
}

static void test_two_models_are_noticed(void **state) {
	(void)state;
	static const struct made runs[] = {{"a", "diloco", "/here/book", BOOK, 1, 100, 2.0},
									   {"b", "diloco", "/here/book", BOOK, 2, 100, 2.2}};
	struct lab_report p;
	collect(runs, 2, &p);
	char *table = table_of(&p);
	assert_null(strstr(table, "different models"));
	free(table);
	p.runs[0].members[0].record.n_params = 820000;
	p.runs[1].members[0].record.n_params = 11000000;
	table = table_of(&p);
	assert_non_null(strstr(table, "NOTE: these runs are of different models, 820k to 11M parameters"));
	free(table);
	report_release(&p);
}

static void test_two_texts_under_one_path(void **state) {
	(void)state;
	static const struct made runs[] = {{"a", "diloco", "/here/book", BOOK, 1, 100, 2.0},
									   {"b", "diloco", "/here/book", OTHER, 2, 100, 5.0},
									   {"c", "ddp", "/here/book", OTHER, 1, 100, 4.0}};
	struct lab_report p;
	collect(runs, 3, &p);
	assert_int_equal(p.n_groups, 3);
	assert_string_equal(p.groups[0].label, "a data=book:11111111");
	assert_string_equal(p.groups[1].label, "b data=book:22222222");
	assert_true(isnan(report_against_baseline(&p, &p.groups[0]))); /* none was trained on its text */
	assert_true(fabs(report_against_baseline(&p, &p.groups[1]) - 0.25) < 1e-9);
	char *table = table_of(&p);
	assert_null(strstr(table, "text: "));
	free(table);
	report_release(&p);
}

static void test_other_heldout_tokens(void **state) {
	(void)state;
	static const struct made runs[] = {{"a", "diloco", "book", BOOK, 1, 100, 2.0},
									   {"b", "diloco", "book", BOOK, 2, 200, 2.1},
									   {"c", "ddp", "book", BOOK, 1, 200, 2.0}};
	struct lab_report p;
	collect(runs, 3, &p);
	assert_int_equal(p.n_groups, 3);
	assert_int_equal(report_eval_tokens(&p).tokens, 0);
	assert_true(isnan(report_against_baseline(&p, &p.groups[0])));
	assert_true(fabs(report_against_baseline(&p, &p.groups[1]) - 0.05) < 1e-9);
	report_release(&p);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_text_under_two_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_models_are_noticed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_texts_under_one_path, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_heldout_tokens, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
