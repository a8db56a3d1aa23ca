/* The page in a real browser (Chromium, headless): everything is drawn, at a phone's width and a
 * desk's, light and dark, with hostile names in it, with scripts and without; where they run, the
 * pointer shows numbers and the legend hides lines; nothing is fetched, nothing complains on the
 * console, nothing is wider than the screen. Skipped where there is no Chromium. */
#include "tests/lab/lab_fixture.h"

#include "lab/report/report_page.h"
#include "tests/common/browser.h"
#include "tests/lab/report_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 4, ROWS = 5 + REPORT_FIXTURE_HOSTILE };

static char dir[256];
static struct browser_seen seen;

static void write_page(void) {
	char path[600];
	struct lab_report p;
	struct report_figures f;
	const char *paths[] = {dir};
	report_fixture_sweep(dir);
	report_fixture_diverged(dir, "diverged", 32, 1, 4);
	for (int i = 0; i < REPORT_FIXTURE_HOSTILE; i++) {
		char id[16];
		snprintf(id, sizeof id, "hostile%d", i);
		report_fixture_cell(dir, id, "diloco", 4, 1 + i, report_fixture_hostile[i]);
		report_fixture_file(dir, id, "sweep.json", NULL);
		report_fixture_file(dir, id, "run.conf", NULL);
	}
	report_fixture_file(dir, report_fixture_hostile[5], METRICS_FILE, "");
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(p.n_groups, ROWS);
	assert_int_equal(report_figures_make(&p, &f, NULL), RV_OK);
	snprintf(path, sizeof path, "%s/report.html", dir);
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	report_print_html(&p, &f, out);
	assert_int_equal(fclose(out), 0);
	report_figures_release(&f);
	report_release(&p);
	snprintf(path, sizeof path, "cp '%s' %s/probe.html", REPORT_PROBE, dir);
	assert_int_equal(system(path), 0); /* NOLINT(cert-env33-c): a test's own command */
}

static int value_of(const char *line, const char *key) {
	char name[32];
	snprintf(name, sizeof name, " %s=", key);
	const char *at = strstr(line, name), *end = strchr(line, '\n');
	assert_true(at && end && at < end);
	return atoi(at + strlen(name));
}

static void check_frame(const char *line, bool dark) {
	const int figures = value_of(line, "figures");
	assert_int_equal(figures, 8);
	assert_int_equal(value_of(line, "pictures"), figures);
	assert_true(value_of(line, "titles") > 20);
	assert_int_equal(value_of(line, "answers"), value_of(line, "scripts") ? 1101 : 111);
	assert_int_equal(value_of(line, "names"), value_of(line, "lines"));
	assert_int_equal(value_of(line, "rows"), ROWS);
	assert_int_equal(value_of(line, "downloads"), figures + 2);
	assert_int_equal(value_of(line, "overflow"), 0);
	assert_true(value_of(line, "width") < 1280 || value_of(line, "room") > 1200); /* wider than the text */
	assert_true(value_of(line, "hidden") > 0); /* the table is wider than its place, and shows it: */
	assert_int_equal(value_of(line, "shadows"), 2);
	assert_true(value_of(line, "scrollbar") > 0);
	assert_int_equal(value_of(line, "strangers"), 0);
	assert_int_equal(value_of(line, "requests"), 0);
	assert_int_equal(value_of(line, "dark"), dark);
	assert_non_null(strstr(line, dark ? "background=.13.17.23." : "background=.255.255.255."));
}

/* The frame that may not run scripts is told so. */
static void check_console(void) {
	for (const char *at = seen.complaints; (at = strstr(at, "CONSOLE")); at++) {
		size_t n = strcspn(at, "\n");
		char line[1024];
		snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), at);
		if (!strstr(line, "sandboxed"))
			fail_msg("%s", line);
	}
}

static void check_scheme(bool dark) {
	int n = 0;
	browser_look(dir, "probe.html", 1100, dark, &seen);
	assert_non_null(strstr(seen.dom, "\nprobed\n"));
	const char *line = strstr(seen.dom, "<pre>frame ");
	for (; line && n < FRAMES; line = strstr(line + 1, "\nframe ")) {
		check_frame(line + 1, dark);
		n++;
	}
	assert_int_equal(n, FRAMES);
	check_console();
}

static int setup(void **state) {
	(void)state;
	scratch_make(dir, sizeof dir);
	write_page();
	return 0;
}

static int teardown(void **state) {
	(void)state;
	scratch_remove(dir);
	return 0;
}

static void test_light(void **state) {
	(void)state;
	browser_need();
	check_scheme(false);
}

static void test_dark(void **state) {
	(void)state;
	browser_need();
	check_scheme(true);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_light),
		cmocka_unit_test(test_dark),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
