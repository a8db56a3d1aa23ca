/* The page in a real browser (Chromium, headless): everything is drawn, at a phone's width and a desk's, light and
 * dark, with hostile names in it, with scripts and without; where they run, the pointer shows numbers and the legend hides
 * lines; nothing is fetched, nothing complains on the console, nothing is wider than the screen. Skipped where there is no
 * Chromium. */
#include "tests/lab/lab_fixture.h"

#include "lab/report/report_page.h"
#include "tests/lab/report_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUTPUT_BYTES = 1 << 20, FRAMES = 3, ROWS = 5 + REPORT_FIXTURE_HOSTILE };

static char dir[256], output[OUTPUT_BYTES], complaints[OUTPUT_BYTES];

static void read_text(const char *name, char out[OUTPUT_BYTES]) {
	char path[400];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	out[fread(out, 1, OUTPUT_BYTES - 1, f)] = '\0';
	assert_int_equal(fclose(f), 0);
}

static void write_page(void) {
	char path[400];
	struct report p;
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
}

static const char *browser(void) {
	static const char *const names[] = {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (access(names[i], X_OK) == 0)
			return names[i];
	return NULL;
}

/* Loads probe.html; its document is then in `output`, what the console said in `complaints`. */
static void probe(bool dark) {
	char command[2048];
	snprintf(
		command, sizeof command,
		"cp '%s' %s/probe.html && timeout -k 5 250 %s --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
		"--user-data-dir=%s/profile --no-first-run --enable-logging=stderr --allow-file-access-from-files "
		"--host-resolver-rules='MAP * ~NOTFOUND' --blink-settings=preferredColorScheme=%d --window-size=1100,1000 "
		"--virtual-time-budget=10000 --dump-dom file://%s/probe.html >%s/dom 2>%s/stderr",
		REPORT_PROBE, dir, browser(), dir, !dark, dir, dir, dir);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own command */
	read_text("dom", output);
	read_text("stderr", complaints);
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
	assert_int_equal(value_of(line, "strangers"), 0);
	assert_int_equal(value_of(line, "requests"), 0);
	assert_int_equal(value_of(line, "dark"), dark);
	assert_non_null(strstr(line, dark ? "background=.13.17.23." : "background=.255.255.255."));
}

/* The frame that may not run scripts is told so. */
static void check_console(void) {
	for (const char *at = complaints; (at = strstr(at, "CONSOLE")); at++) {
		size_t n = strcspn(at, "\n");
		char line[1024];
		snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), at);
		if (!strstr(line, "sandboxed"))
			fail_msg("%s", line);
	}
}

static void check_scheme(bool dark) {
	int n = 0;
	probe(dark);
	assert_non_null(strstr(output, "\nprobed\n"));
	const char *line = strstr(output, "<pre>frame ");
	for (; line && n < FRAMES; line = strstr(line + 1, "\nframe ")) {
		check_frame(line + 1, dark);
		n++;
	}
	assert_int_equal(n, FRAMES);
	check_console();
}

static int setup(void **state) {
	(void)state;
	fixture_make_dir(dir, sizeof dir);
	write_page();
	return 0;
}

static int teardown(void **state) {
	(void)state;
	report_fixture_remove(dir);
	return 0;
}

static void look(bool dark) {
	if (!browser()) {
		print_message("no chromium here: the page was not looked at (apt-get install chromium)\n");
		skip();
	}
	check_scheme(dark);
}

static void test_light(void **state) {
	(void)state;
	look(false);
}

static void test_dark(void **state) {
	(void)state;
	look(true);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_light),
		cmocka_unit_test(test_dark),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
