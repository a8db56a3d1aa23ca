/* The report of a directory as the demo leaves it: four workers' files are one run, beside two of the lab. */
#include "tests/lab/lab_fixture.h"

#include "lab/report.h"
#include "tests/lab/metrics_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[256];
static const char *const names[] = {"worker0", "worker1", "worker2", "data-parallel", "one-worker", "coordinator"};

static void path_of(const char *name, const char *file, char out[static 400]) {
	snprintf(out, 400, "%s/%s%s", dir, name, file);
}

static int setup(void **state) {
	(void)state;
	char path[400];
	fixture_make_dir(dir, sizeof dir);
	for (int i = 0; i < 6; i++) {
		path_of(names[i], "", path);
		assert_int_equal(mkdir(path, 0755), 0);
		path_of(names[i], "/" METRICS_FILE, path);
		if (i < 3)
			write_metrics(path, names[i], "worker", "diloco", (uint32_t)i, 3, 4);
		else if (i < 5)
			write_metrics(path, names[i], "lab", "ddp", 0, i == 3 ? 3 : 1, 4);
	}
	return 0;
}

static int teardown(void **state) {
	(void)state;
	char path[400];
	for (int i = 0; i < 6; i++) {
		path_of(names[i], "/" METRICS_FILE, path);
		unlink(path);
	}
	fixture_remove_dir(dir);
	return 0;
}

static const struct report_run *run_named(const struct report *p, const char *label) {
	for (int i = 0; i < p->n_runs; i++)
		if (strcmp(p->runs[i].label, label) == 0)
			return &p->runs[i];
	fail_msg("no run '%s'", label);
	return NULL;
}

static void test_collects(void **state) {
	(void)state;
	struct report p;
	const char *paths[] = {dir};
	assert_int_equal(report_collect(&p, paths, 1, NULL), RV_OK);
	assert_int_equal(p.n_runs, 3);
	const struct report_run *real = run_named(&p, "Rivulet, 3 workers");
	assert_int_equal(real->n_members, 3);
	assert_true(real == &p.runs[0]); /* before the lab's */
	assert_string_equal(real->members[2].name, "worker2");
	assert_true(real->totals.loss == 2.25);
	assert_true(report_baseline(&p) == run_named(&p, "data-parallel"));
	assert_true(run_named(&p, "one-worker")->totals.bytes_sent == 0);
	report_release(&p);
}

/* A run of which one worker's directory is here, and nothing was evaluated yet. */
static void test_counts_who_took_part(void **state) {
	(void)state;
	static const char run[] = "{\"kind\":\"run\",\"name\":\"w\",\"role\":\"worker\",\"method\":\"diloco\",\"codec\":"
							  "\"int8\",\"member\":0,\"workers\":1,\"n_params\":1000,\"steps_per_round\":10}\n";
	static const struct {
		const char *rounds, *label;
	} cases[] = {
		{"", "Rivulet, 1 worker"},
		{"{\"kind\":\"round\",\"round\":1,\"participants\":4}\n", "Rivulet, 4 workers"},
		{"{\"kind\":\"round\",\"round\":1,\"participants\":4}\n{\"kind\":\"round\",\"round\":2,\"participants\":3,"
		 "\"train_loss\":null}\n",
		 "Rivulet, 3 to 4 workers"},
	};
	char place[256], path[400];
	fixture_make_dir(place, sizeof place);
	snprintf(path, sizeof path, "%s/" METRICS_FILE, place);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct report p;
		const char *paths[] = {place};
		char *text = NULL;
		size_t n = 0;
		FILE *f = fopen(path, "w");
		assert_non_null(f);
		assert_true(fprintf(f, "%s%s", run, cases[i].rounds) > 0);
		assert_int_equal(fclose(f), 0);
		assert_int_equal(report_collect(&p, paths, 1, NULL), RV_OK);
		assert_string_equal(p.runs[0].label, cases[i].label);
		f = open_memstream(&text, &n);
		report_print_table(&p, f);
		report_print_html(&p, f);
		assert_int_equal(fclose(f), 0);
		assert_null(strstr(text, "nan"));
		free(text);
		report_release(&p);
	}
	unlink(path);
	fixture_remove_dir(place);
}

static char *printed(void (*print)(const struct report *, FILE *)) {
	struct report p;
	const char *paths[] = {dir};
	assert_int_equal(report_collect(&p, paths, 1, NULL), RV_OK);
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	assert_non_null(f);
	print(&p, f);
	assert_int_equal(fclose(f), 0);
	report_release(&p);
	return text;
}

static void test_table(void **state) {
	(void)state;
	char *text = printed(report_print_table);
	assert_non_null(strstr(text, "Rivulet, 3 workers"));
	assert_non_null(strstr(text, "2.2500"));
	assert_non_null(strstr(text, "40 x")); /* 4 bytes x 10 steps against 1 byte, and 1 % more than the formula */
	assert_non_null(strstr(text, "the formula and 0.99 %"));
	assert_non_null(strstr(text, "40 times fewer"));
	assert_null(strstr(text, "nan"));
	free(text);
}

static void test_page(void **state) {
	(void)state;
	char *text = printed(report_print_html);
	assert_non_null(strstr(text, "<!doctype html>"));
	assert_non_null(strstr(text, "prefers-color-scheme:dark"));
	assert_non_null(strstr(text, "worker2"));
	assert_non_null(strstr(text, "+1.0"));
	assert_null(strstr(text, "<script"));
	assert_null(strstr(text, "http://")); /* nothing is fetched from anywhere */
	assert_null(strstr(text, "https://"));
	assert_null(strstr(text, ">nan"));
	free(text);
}

static void test_refusals(void **state) {
	(void)state;
	struct report p;
	struct rv_errtext et = {0};
	const char *nothing[] = {"/nonexistent"};
	assert_fault(report_collect(&p, nothing, 1, &et), RV_E_NOTFOUND, &et, "/nonexistent");
	char path[400];
	const char *many[REPORT_MAX_RUNS + 2];
	path_of("one-worker", "", path);
	for (int i = 0; i < REPORT_MAX_RUNS + 1; i++)
		many[i] = path;
	assert_fault(report_collect(&p, many, REPORT_MAX_RUNS + 1, &et), RV_E_RANGE, &et, "more than");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collects), cmocka_unit_test(test_counts_who_took_part),
		cmocka_unit_test(test_table),    cmocka_unit_test(test_page),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
