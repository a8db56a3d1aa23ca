/* The report of a directory as the demo leaves it: four workers' files are one run, beside two of
 * the lab. */
#include "tests/lab/lab_fixture.h"

#include "lab/report/chart_csv.h"
#include "lab/report/columns.h"
#include "lab/report/report_page.h"
#include "tests/lab/metrics_text.h"
#include "tests/lab/report_fixture.h"

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
	scratch_make(dir, sizeof dir);
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
	scratch_remove(dir);
	return 0;
}

static void print_page(const struct lab_report *p, FILE *out) {
	struct report_figures f;
	assert_int_equal(report_figures_make(p, &f, NULL), RV_OK);
	report_print_html(p, &f, out);
	report_figures_release(&f);
}

static const struct report_run *run_named(const struct lab_report *p, const char *label) {
	for (int i = 0; i < p->n_runs; i++)
		if (strcmp(p->runs[i].label, label) == 0)
			return &p->runs[i];
	fail_msg("no run '%s'", label);
	return NULL;
}

static void test_collects(void **state) {
	(void)state;
	struct lab_report p;
	const char *paths[] = {dir};
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(p.n_runs, 3);
	const struct report_run *real = run_named(&p, "Rivulet, 3 workers");
	assert_int_equal(real->n_members, 3);
	assert_true(real == &p.runs[0]); /* before the lab's */
	assert_string_equal(real->members[2].record.name, "worker2");
	assert_true(real->totals.loss == 2.25);
	assert_true(report_baseline(&p, NULL)->runs == run_named(&p, "data-parallel"));
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
	scratch_make(place, sizeof place);
	snprintf(path, sizeof path, "%s/" METRICS_FILE, place);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct lab_report p;
		const char *paths[] = {place};
		char *text = NULL;
		size_t n = 0;
		FILE *f = fopen(path, "w");
		assert_non_null(f);
		assert_true(fprintf(f, "%s%s", run, cases[i].rounds) > 0);
		assert_int_equal(fclose(f), 0);
		assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
		assert_string_equal(p.runs[0].label, cases[i].label);
		f = open_memstream(&text, &n);
		report_print_table(&p, f);
		print_page(&p, f);
		assert_int_equal(fclose(f), 0);
		assert_null(strstr(text, "nan"));
		assert_non_null(strstr(text, "1 of 1 runs has not ended; the first: Rivulet, "));
		free(text);
		report_release(&p);
	}
	unlink(path);
	scratch_remove(place);
}

/* The first participant's last evaluation is old and it never measured the end; another's file
 * holds more rounds. */
static void test_a_result_is_of_the_end(void **state) {
	(void)state;
#define RUN(member)                                                                                                    \
	"{\"kind\":\"run\",\"name\":\"w\",\"role\":\"worker\",\"method\":\"diloco\",\"codec\":\"int8\","                   \
	"\"member\":" #member ",\"workers\":2,\"n_params\":1000,\"steps_per_round\":10}\n"
#define ROUND(n, tokens) "{\"kind\":\"round\",\"round\":" #n ",\"participants\":2,\"tokens\":" #tokens "}\n"
#define EVAL(n, loss)    "{\"kind\":\"eval\",\"round\":" #n ",\"loss\":" #loss "}\n"
#define END(loss)        "{\"kind\":\"end\",\"round\":3,\"loss\":" #loss "}\n"
	static const char first[] = RUN(0) ROUND(3, 20) EVAL(1, 2.5),
					  second[] = RUN(1) ROUND(1, 100) ROUND(2, 200) ROUND(3, 300);
	static const struct {
		const char *first_end, *second_end;
		double loss;
	} cases[] = {{"", "", 2.5},
				 {END(null), END(null), NAN},
				 {"", END(null), NAN},
				 {"", END(1.5), 1.5},
				 {EVAL(3, 1.25) END(null), "", 1.25}};
	char place[256];
	scratch_make(place, sizeof place);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[1024];
		const char *paths[] = {place};
		struct lab_report p;
		snprintf(text, sizeof text, "%s%s", first, cases[i].first_end);
		report_fixture_file(place, "w0", METRICS_FILE, text);
		snprintf(text, sizeof text, "%s%s", second, cases[i].second_end);
		report_fixture_file(place, "w1", METRICS_FILE, text);
		assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
		assert_int_equal(p.n_runs, 1);
		assert_int_equal(p.runs[0].totals.tokens, 300);
		if (isnan(cases[i].loss))
			assert_true(isnan(p.runs[0].totals.loss));
		else
			assert_true(p.runs[0].totals.loss == cases[i].loss);
		report_release(&p);
	}
	scratch_remove(place);
#undef RUN
#undef ROUND
#undef EVAL
#undef END
}

static char *printed(void (*print)(const struct lab_report *, FILE *)) {
	struct lab_report p;
	const char *paths[] = {dir};
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
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
	assert_null(strstr(text, "not ended"));
	free(text);
}

static void test_page(void **state) {
	(void)state;
	char *text = printed(print_page);
	assert_non_null(strstr(text, "<!doctype html>"));
	assert_non_null(strstr(text, "prefers-color-scheme:dark"));
	assert_non_null(strstr(text, "worker2"));
	assert_non_null(strstr(text, "+1.0"));
	assert_non_null(strstr(text, "default-src 'none'")); /* nothing is fetched from anywhere */
	assert_null(strstr(text, ">nan"));
	free(text);
}

static void test_refusals(void **state) {
	(void)state;
	struct lab_report p;
	struct rv_errtext et = {0};
	const char *nothing[] = {"/nonexistent"};
	assert_fault(report_collect(&p, nothing, 1, &report_fixture_line, &et), RV_E_NOTFOUND, &et, "/nonexistent");
	report_release(&p);
	char path[400];
	path_of("coordinator", "", path);
	const char *empty[] = {path};
	assert_fault(report_collect(&p, empty, 1, &report_fixture_line, &et), RV_E_NOTFOUND, &et, "coordinator");
	report_release(&p);
}

/* By whatever name, and whether or not a directory above it is named too. */
static void test_a_run_counts_once(void **state) {
	(void)state;
	char place[256], again[300], one[300];
	struct lab_report p;
	const char *paths[] = {place, again, one};
	scratch_make(place, sizeof place);
	snprintf(again, sizeof again, "%s/.", place);
	snprintf(one, sizeof one, "%s/a", place);
	report_fixture_cell(place, "a", "diloco", 4, 1, "a");
	report_fixture_cell(place, "b", "diloco", 4, 2, "b");
	assert_int_equal(report_collect(&p, paths, 3, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(p.n_groups, 1);
	assert_int_equal(p.groups[0].n_runs, 2);
	assert_int_equal(p.n_again, 3);
	assert_int_equal(p.n_skipped, 2);
	assert_non_null(strstr(p.skipped[0], "/.: 2 of the runs here were named before"));
	assert_non_null(strstr(p.skipped[1], "/a: 1 of the runs here were named before"));
	report_release(&p);
	scratch_remove(place);
}

/* A file without a run line, lines that are no JSON, a damaged sweep.json, a cell that has not
 * begun. */
static void test_what_cannot_be_read_is_named_and_skipped(void **state) {
	(void)state;
	char place[256];
	struct lab_report p;
	const char *paths[] = {place, "/nonexistent"};
	scratch_make(place, sizeof place);
	report_fixture_cell(place, "good", "diloco", 4, 1, "good");
	report_fixture_file(place, "empty", METRICS_FILE, "");
	report_fixture_file(place, "torn", METRICS_FILE, "{\"kind\":\"ru");
	report_fixture_file(place, "waiting", "sweep.json", "{}");
	report_fixture_cell(place, "odd", "diloco", 4, 2, "odd");
	report_fixture_file(place, "odd", "sweep.json", "[[[[");
	assert_int_equal(report_collect(&p, paths, 2, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(p.n_runs, 1);
	assert_int_equal(p.n_skipped, 5);
	assert_non_null(strstr(p.skipped[0], "empty"));
	assert_non_null(strstr(p.skipped[1], "odd/sweep.json"));
	assert_non_null(strstr(p.skipped[2], "torn"));
	assert_non_null(strstr(p.skipped[3], "has not begun"));
	assert_non_null(strstr(p.skipped[4], "/nonexistent"));
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	assert_non_null(out);
	report_print_table(&p, out);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "left out: 5, the first: "));
	free(text);
	report_release(&p);
	scratch_remove(place);
}

/* ---- sweeps ---- */

static void test_seeds_become_a_mean(void **state) {
	(void)state;
	char place[256];
	struct lab_report p;
	const char *paths[] = {place};
	scratch_make(place, sizeof place);
	report_fixture_sweep(place);
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(p.n_runs, REPORT_FIXTURE_RUNS);
	assert_int_equal(p.n_groups, 4);
	assert_int_equal(p.n_series, 2);
	assert_string_equal(p.groups[0].label, "ddp");
	assert_string_equal(p.groups[1].label, "diloco H=4");
	assert_string_equal(p.groups[1].series_label, "diloco");
	assert_true(report_steps_per_sync(&p.groups[0]) == 1);
	for (int i = 0; i < p.n_groups; i++) {
		assert_int_equal(p.groups[i].n_runs, 3);
		assert_int_equal(p.groups[i].n_ended, 3);
		assert_true(fabs(p.groups[i].loss.sd - REPORT_FIXTURE_SD) < 1e-9); /* of three that lie evenly */
	}
	assert_true(fabs(p.groups[3].loss.mean - report_fixture_loss(64, 2)) < 1e-9);
	assert_true(p.groups[3].wall_s.mean < p.groups[1].wall_s.mean);
	assert_true(p.groups[1].wall_s.mean < p.groups[0].wall_s.mean);
	report_release(&p);
	scratch_remove(place);
}

/* A configuration that has diverged has no loss, and its place in every figure. */
static void test_diverged(void **state) {
	(void)state;
	char place[256];
	struct lab_report p;
	struct report_figures f;
	const char *paths[] = {place};
	scratch_make(place, sizeof place);
	report_fixture_sweep(place);
	report_fixture_diverged(place, "a", 32, 1, 4);
	report_fixture_diverged(place, "b", 32, 2, 3);
	report_fixture_diverged(place, "c", 16, 4, 2); /* one of four */
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(p.n_groups, 5);
	const struct report_group *some = &p.groups[2], *all = &p.groups[3];
	assert_string_equal(all->label, "diloco H=32");
	assert_int_equal(all->n_diverged, 2);
	assert_true(isnan(all->loss.mean) && all->diverged_round == 3);
	assert_true(fabs(some->loss.mean - report_fixture_loss(16, 2)) < 1e-9); /* of those that ended */
	assert_int_equal(report_figures_make(&p, &f, NULL), RV_OK);
	for (int i = 0; i < f.n_lines; i++) {
		const struct line_chart *c = &f.lines[i];
		assert_int_equal(c->n_marks, 2);
		assert_string_equal(c->marks[0].text, "diverged 1 of 4, first in round 2");
		assert_string_equal(c->marks[1].text, "diverged 2 of 2, first in round 3");
	}
	assert_true(f.lines[0].marks[1].x == 32); /* H */
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	report_print_table(&p, out);
	report_print_html(&p, &f, out);
	report_csv_runs(&p, out);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "diloco H=32: diverged 2 of 2, first in round 3."));
	assert_null(strstr(text, "not ended"));
	assert_null(strstr(text, "nan"));
	assert_non_null(strstr(text, "✕ at the top: diloco: diverged 1 of 4, first in round 2; diloco: diverged 2 of 2"));
	assert_non_null(strstr(text, "<td class=\"text\">2 of 2, first in round 3</td>"));
	assert_non_null(strstr(text, "<td>diverged</td>"));
	assert_non_null(strstr(text, ",1,diverged,2,"));
	free(text);
	report_figures_release(&f);
	report_release(&p);
	scratch_remove(place);
}

/* A loss that is finite and absurd does not flatten all others. */
static void test_worse_than_guessing(void **state) {
	(void)state;
	char place[256];
	struct lab_report p;
	struct report_figures f;
	const char *paths[] = {place};
	scratch_make(place, sizeof place);
	report_fixture_sweep(place);
	report_fixture_cell(place, "absurd", "diloco", 64, 900, "absurd"); /* 2.6 + 0.01 times 900 */
	for (int seed = 1; seed <= 3; seed++) {
		char id[16];
		snprintf(id, sizeof id, "3-%d", seed);
		report_fixture_file(place, id, METRICS_FILE, NULL);
		report_fixture_file(place, id, "sweep.json", NULL);
		report_fixture_file(place, id, "run.conf", NULL);
	}
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(report_figures_make(&p, &f, NULL), RV_OK);
	const struct line_chart *c = &f.lines[0];
	assert_int_equal(c->n_marks, 1);
	assert_string_equal(c->marks[0].text, "worse than guessing, 11.6000");
	assert_true(c->marks[0].x == 64 && c->y_most > 6 && c->y_most < 6.2);
	for (int s = 0; s < c->n_series; s++)
		for (int i = 0; i < c->series[s].n; i++)
			assert_int_equal(chart_shows(c, &c->series[s], i), c->series[s].x[i] != 64);
	report_figures_release(&f);
	report_release(&p);
	scratch_remove(place);
}

/* A copy of a run is not two seeds. */
static void test_a_run_twice_is_no_sample(void **state) {
	(void)state;
	char place[256];
	struct lab_report p;
	const char *paths[] = {place};
	scratch_make(place, sizeof place);
	report_fixture_cell(place, "one", "diloco", 4, 1, "one");
	report_fixture_cell(place, "copy", "diloco", 4, 1, "one");
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(p.n_groups, 2);
	assert_true(isnan(p.groups[0].loss.sd));
	report_release(&p);
	scratch_remove(place);
}

static char *read_csv(const char *place, const char *name) {
	static char text[64 << 10];
	char path[400];
	snprintf(path, sizeof path, "%s/csv/%s.csv", place, name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	assert_int_equal(fclose(f), 0);
	return text;
}

static void test_figures_as_csv(void **state) {
	(void)state;
	char place[256], csv[300];
	struct lab_report p;
	struct report_figures f;
	const char *paths[] = {place};
	scratch_make(place, sizeof place);
	report_fixture_sweep(place);
	snprintf(csv, sizeof csv, "%s/csv", place);
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(report_figures_make(&p, &f, NULL), RV_OK);
	assert_int_equal(f.n_lines, 6);
	assert_int_equal(report_write_csv(&p, &f, csv, NULL), RV_OK);
	assert_string_equal(read_csv(place, "loss-against-h"),
						"series,steps_between_exchanges,loss,loss_sd\r\n\"ddp\",1,2.02,0.01\r\n"
						"\"diloco\",4,2.22,0.01\r\n\"diloco\",16,2.42,0.01\r\n\"diloco\",64,2.62,0.01\r\n");
	const char *const others[] = {
		"runs",        "configurations",  "time", "loss-against-bytes", "loss-against-wall-clock", "curve-tokens",
		"curve-bytes", "curve-wall-clock"};
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		assert_non_null(strstr(read_csv(place, others[i]), "\r\n\""));
		assert_null(strstr(read_csv(place, others[i]), "nan"));
	}
	report_figures_release(&f);
	report_release(&p);
	scratch_remove(place);
}

/* What the page says outside its library. */
static void test_hostile_names(void **state) {
	(void)state;
	char place[256];
	const char *paths[] = {place};
	struct lab_report p;
	scratch_make(place, sizeof place);
	for (int i = 0; i < REPORT_FIXTURE_HOSTILE; i++) {
		char id[16];
		snprintf(id, sizeof id, "run%d", i);
		report_fixture_cell(place, id, "diloco", 4, 1, report_fixture_hostile[i]);
		report_fixture_file(place, id, "sweep.json", NULL); /* not of a sweep: the name is shown */
	}
	report_fixture_file(place, "<b>=torn\xff", METRICS_FILE, "\n");
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	char *text = NULL, *csv = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	print_page(&p, f);
	assert_int_equal(fclose(f), 0);
	f = open_memstream(&csv, &n);
	report_csv_runs(&p, f);
	assert_int_equal(fclose(f), 0);
	assert_null(strstr(text, "<img"));
	assert_null(strstr(text, "<script>alert"));
	assert_null(strchr(text, '\xff'));
	assert_non_null(strstr(text, "&lt;b&gt;=torn?"));
	const char *script = strstr(text, "<script>");
	assert_true(script && !strstr(script + 1, "<script"));
	assert_non_null(strstr(csv, "\r\n\"'=cmd"));
	assert_non_null(strstr(csv, "\r\n\"' @SUM"));
	assert_null(strstr(csv, "\r\n\"="));
	assert_non_null(strstr(csv, "\"\">"));
	free(text);
	free(csv);
	report_release(&p);
	scratch_remove(place);
}

/* Cell i of a sweep, with one seed; `conf`: its run.conf. */
static void add_cell(const char *place, int i, const char *method, uint64_t h, const char *conf) {
	char id[16];
	snprintf(id, sizeof id, "%d", i);
	report_fixture_cell(place, id, method, h, 1, id);
	report_fixture_file(place, id, "run.conf", conf);
}

/* What the method settles goes with its name; what somebody chose beside it is told. */
static void test_a_method_says_what_it_settles(void **state) {
	(void)state;
	static const char *const cells[][2] = {{"diloco", "updates = waited\n"},
										   {"diloco", "updates = waited\nfragments = 2\n"},
										   {"eager", "updates = eager\neager-share = 0.5\n"}};
	char place[256], conf[256];
	const char *paths[] = {place};
	struct lab_report p;
	scratch_make(place, sizeof place);
	for (int i = 0; i < 3; i++) {
		snprintf(conf, sizeof conf, "method = %s\nsteps-per-round = 4\nrounds = 48\nseed = 1\n%s", cells[i][0],
				 cells[i][1]);
		add_cell(place, i, cells[i][0], 4, conf);
	}
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(p.n_groups, 3);
	int n_eager = 0;
	for (int i = 0; i < 3; i++)
		n_eager += strcmp(p.groups[i].label, "eager") == 0;
	assert_int_equal(n_eager, 1);
	report_release(&p);
	scratch_remove(place);
}

/* 0.5 before 10, and H within a series. */
static void test_cells_are_sorted_as_people_would(void **state) {
	(void)state;
	static const char *const rates[] = {"10", "0.5"};
	char place[256], conf[256];
	const char *paths[] = {place};
	struct lab_report p;
	scratch_make(place, sizeof place);
	for (int i = 0; i < 4; i++) {
		snprintf(conf, sizeof conf, "method = diloco\nlr = %s\nsteps-per-round = %d\nrounds = %d\nseed = 1\n",
				 rates[i % 2], i < 2 ? 16 : 4, i < 2 ? 12 : 48);
		add_cell(place, i, "diloco", i < 2 ? 16 : 4, conf);
	}
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(p.n_groups, 4);
	assert_string_equal(p.groups[0].label, "lr=0.5 H=4");
	assert_string_equal(p.groups[1].label, "lr=0.5 H=16");
	assert_string_equal(p.groups[2].label, "lr=10 H=4");
	assert_string_equal(p.groups[3].series_label, "lr=10");
	report_release(&p);
	scratch_remove(place);
}

/* One cell that is unlike the others makes one name longer, not all. */
static void test_what_is_usual_is_not_said(void **state) {
	(void)state;
	char place[256], conf[256];
	const char *paths[] = {place};
	struct lab_report p;
	scratch_make(place, sizeof place);
	for (int i = 0; i < 4; i++) {
		snprintf(conf, sizeof conf, "method = diloco\nlr = %s\nclip = %d\nsteps-per-round = %d\nseed = 1\n",
				 i < 3 ? "0.5" : "1e+01", i < 3, 4 << i);
		add_cell(place, i, "diloco", (uint64_t)4 << i, conf);
	}
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(p.n_groups, 4);
	int n_told = 0;
	for (int i = 0; i < 4; i++) {
		char want[32];
		snprintf(want, sizeof want, "diloco H=%g", report_steps_per_sync(&p.groups[i]));
		n_told += strcmp(p.groups[i].label, "lr=10 clip=0 H=32") == 0;
		assert_true(report_steps_per_sync(&p.groups[i]) == 32 || strcmp(p.groups[i].label, want) == 0);
	}
	assert_int_equal(n_told, 1);
	report_release(&p);
	scratch_remove(place);
}

/* Twenty data-parallel runs are all better than the one of DiLoCo, which is shown all the same. */
static void test_every_kind_is_drawn(void **state) {
	(void)state;
	char place[256], conf[256];
	const char *paths[] = {place};
	struct lab_report p;
	struct report_figures f;
	bool seen = false;
	scratch_make(place, sizeof place);
	for (int i = 0; i < 20; i++) {
		snprintf(conf, sizeof conf, "method = ddp\nlr = %d\nsteps-per-round = 16\nrounds = 12\nseed = 1\n", i);
		add_cell(place, i, "ddp", 16, conf);
	}
	report_fixture_cell(place, "last", "diloco", 64, 1, "last");
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(report_figures_make(&p, &f, NULL), RV_OK);
	for (int i = 0; i < f.n_lines; i++) {
		assert_int_equal(f.n_all[i], 21);
		assert_int_equal(f.lines[i].n_series, REPORT_MAX_LINES);
		for (int k = 0; k < f.lines[i].n_series; k++)
			seen |= strncmp(f.lines[i].series[k].label, "diloco", 6) == 0;
		assert_true(seen);
		seen = false;
	}
	report_figures_release(&f);
	report_release(&p);
	scratch_remove(place);
}

static void test_thousands_of_runs(void **state) {
	(void)state;
	enum { RUNS = 1200 };
	char place[256];
	const char *paths[] = {place};
	struct lab_report p;
	scratch_make(place, sizeof place);
	for (int i = 0; i < RUNS; i++) {
		char id[16];
		snprintf(id, sizeof id, "run%d", i);
		report_fixture_cell(place, id, "diloco", (uint64_t)i / 2 + 1, i % 2 + 1, id);
	}
	assert_int_equal(report_collect(&p, paths, 1, &report_fixture_line, NULL), RV_OK);
	assert_int_equal(p.n_groups, RUNS / 2);
	assert_int_equal(p.n_series, 1);
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	print_page(&p, f);
	assert_int_equal(fclose(f), 0);
	assert_non_null(strstr(text, "500 of 600 configurations"));
	assert_non_null(strstr(text, "12 of 600 lines"));
	assert_true(n < (4u << 20));
	free(text);
	report_release(&p);
	scratch_remove(place);
}

static void test_csv_of_lines(void **state) {
	(void)state;
	const double x[] = {0, 10}, y[] = {NAN, 2.5}, sd[] = {NAN, 0.25};
	struct line_chart c = {.id = "id", .x_column = "bytes", .x_log = true};
	c.series[c.n_series++] = (struct chart_series){.label = "-1+\"a\",<b>", .x = x, .y = y, .sd = sd, .n = 2};
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	chart_csv_lines(&c, f);
	assert_int_equal(fclose(f), 0);
	assert_string_equal(text, "series,bytes,loss,loss_sd\r\n\"'-1+\"\"a\"\",<b>\",0,,\r\n"
							  "\"'-1+\"\"a\"\",<b>\",10,2.5,0.25\r\n");
	free(text);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collects),
		cmocka_unit_test(test_counts_who_took_part),
		cmocka_unit_test(test_a_result_is_of_the_end),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_a_run_counts_once),
		cmocka_unit_test(test_what_cannot_be_read_is_named_and_skipped),
		cmocka_unit_test(test_seeds_become_a_mean),
		cmocka_unit_test(test_diverged),
		cmocka_unit_test(test_worse_than_guessing),
		cmocka_unit_test(test_a_run_twice_is_no_sample),
		cmocka_unit_test(test_figures_as_csv),
		cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_a_method_says_what_it_settles),
		cmocka_unit_test(test_cells_are_sorted_as_people_would),
		cmocka_unit_test(test_what_is_usual_is_not_said),
		cmocka_unit_test(test_every_kind_is_drawn),
		cmocka_unit_test(test_thousands_of_runs),
		cmocka_unit_test(test_csv_of_lines),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
