/* test_worker_settings.c: what a volunteer says once is kept: through a restart, until it is said
 * otherwise. */
#include "tests/train/train_fixture.h"
#include "worker/options/settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scene {
	char dir[256], path[300];
	struct worker_options o;
};

static struct scene scene;

static void set(const char *name, const char *value) {
	assert_ok(rv_options_set(worker_options_table, &scene.o, name, value, &et));
}

static int setup(void **state) {
	*state = &scene;
	memset(&scene, 0, sizeof scene);
	scratch_make(scene.dir, sizeof scene.dir);
	snprintf(scene.path, sizeof scene.path, "%s/worker.conf", scene.dir);
	rv_options_defaults(worker_options_table, &scene.o);
	set("dir", scene.dir);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	scratch_remove(scene.dir);
	return 0;
}

static void store(void) {
	assert_ok(settings_store(&scene.o, &et));
}

/* As the next start finds them, when it says only --dir. */
static void start_again(void) {
	rv_options_defaults(worker_options_table, &scene.o);
	set("dir", scene.dir);
	assert_ok(settings_recall(&scene.o, &et));
	assert_string_equal(scene.o.dir, scene.dir);
}

static void read_file(char *out, size_t cap) {
	FILE *f = fopen(scene.path, "r");
	assert_non_null(f);
	size_t n = fread(out, 1, cap - 1, f);
	out[n] = '\0';
	fclose(f);
}

static void write_settings(const char *text) {
	FILE *f = fopen(scene.path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void every_choice_survives_the_restart(void **state) {
	(void)state;
	static const char *const choices[][2] = {{"shard", "3"},
											 {"keep-snapshots", "5"},
											 {"keep-log", "7"},
											 {"threads", "3"},
											 {"device", "cpu"},
											 {"recompute", "block"},
											 {"micro-batch", "3"},
											 {"moments", "int8"},
											 {"short-of-memory", "warn"},
											 {"eval-every", "0"},

											 {"listen", ":7444"},
											 {"map-port", "no"},
											 {"advertise", "home.example.org:7444"},
											 {"max-up", "1mbit"},
											 {"max-down", "20mbit"},
											 {"max-donate", "500kbit"},
											 {"log-file", "/var/log/a # \"strange\" name"}};
	struct worker_options before;
	for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
		set(choices[i][0], choices[i][1]);
	before = scene.o;
	store();
	start_again();
	assert_memory_equal(&scene.o, &before, sizeof before);
	struct stat st;
	assert_int_equal(stat(scene.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* An option that comes later is kept too, unless somebody decides here that it is not. */
static void every_option_is_decided_about(void **state) {
	(void)state;
	static const char *const not_kept[] = {"dir", "data", "tokenizer", "init", "name", "yes", "link-file"};
	char text[SETTINGS_TEXT_BYTES], line[64];
	for (const struct rv_option *o = worker_options_table; o->name; o++) {
		bool kept = true;
		for (size_t i = 0; i < sizeof not_kept / sizeof not_kept[0]; i++)
			kept = kept && strcmp(o->name, not_kept[i]) != 0;
		rv_options_defaults(worker_options_table, &scene.o);
		set("dir", scene.dir);
		const char *other = o->type == RV_OPT_CHOICE  ? strrchr(o->choices, '|') + 1
							: o->type == RV_OPT_RATE  ? "1mbit"
							: o->type == RV_OPT_INT   ? "4"
							: o->type == RV_OPT_BYTES ? "4KiB"
							: o->type == RV_OPT_BOOL  ? (strcmp(o->fallback, "no") == 0 ? "yes" : "no")
													  : "/other";
		if (strcmp(o->name, "dir") != 0)
			set(o->name, other);
		store();
		read_file(text, sizeof text);
		snprintf(line, sizeof line, "\n%s = ", o->name);
		assert_int_equal(strstr(text, line) != NULL, kept);
	}
}

static void what_is_taken_back_is_gone(void **state) {
	(void)state;
	char text[SETTINGS_TEXT_BYTES], shown[SETTINGS_SHOWN_BYTES];
	set("max-up", "1mbit");
	set("threads", "2");
	store();
	start_again();
	settings_describe(&scene.o, shown);
	assert_string_equal(shown, "threads = 2, max-up = 1mbit");
	set("max-up", "unlimited");
	settings_describe(&scene.o, shown);
	assert_string_equal(shown, "threads = 2"); /* the other is not as it was */
	store();
	read_file(text, sizeof text);
	assert_null(strstr(text, "max-up"));
	start_again();
	assert_int_equal(scene.o.max_up, 0);
	assert_int_equal(scene.o.threads, 2);
}

static void a_directory_that_keeps_nothing_changes_nothing(void **state) {
	(void)state;
	char shown[SETTINGS_SHOWN_BYTES];
	start_again();
	assert_int_equal(scene.o.max_up, 0);
	settings_describe(&scene.o, shown);
	assert_string_equal(shown, "");
}

/* A log is written where it was, wherever the next start is made. */
static void a_relative_path_is_kept_as_it_was_meant(void **state) {
	(void)state;
	char here[PATH_MAX], want[PATH_MAX + 16];
	assert_non_null(getcwd(here, sizeof here));
	snprintf(want, sizeof want, "%s/w.log", here);
	set("log-file", "w.log");
	store();
	start_again();
	assert_string_equal(scene.o.log_file, want);
}

static void is_refused(const char *text, const char *why) {
	struct rv_errtext et = {0};
	write_settings(text);
	enum rv_err e = settings_recall(&scene.o, &et);
	assert_true(e == RV_E_INVALID || e == RV_E_RANGE);
	if (!strstr(et.text, scene.path) || !strstr(et.text, why))
		fail_msg("'%s' and '%s' are expected in: %s", scene.path, why, et.text);
	set("dir", scene.dir);
}

/* Ignoring it would let a worker run uncapped. */
static void a_damaged_file_is_refused(void **state) {
	(void)state;
	char whole[SETTINGS_TEXT_BYTES], cut[SETTINGS_TEXT_BYTES];
	set("max-up", "1mbit");
	set("threads", "2");
	store();
	read_file(whole, sizeof whole);
	for (size_t n = 0; n < strlen(whole); n++) {
		snprintf(cut, sizeof cut, "%.*s", (int)n, whole);
		is_refused(cut, "cut short");
	}
	is_refused("max-up = 1mbti\n# end\n", "1mbti");
	is_refused("max-up = 1kbit\n# end\n", "100kbit");
	is_refused("max-op = 1mbit\n# end\n", "did you mean max-up");
	is_refused("data = /x\n# end\n", "data");
	is_refused("max-up = 1mbit\nmax-up = 2mbit\n# end\n", "twice");
	static char long_text[SETTINGS_TEXT_BYTES + 100];
	memset(long_text, '#', sizeof long_text - 1);
	is_refused(long_text, "");
}

/* One at a time, as `rivulet-worker set` does. */
static void one_option_at_a_time(void **state) {
	(void)state;
	struct rv_errtext why = {0};
	struct worker_options before = scene.o;
	assert_ok(settings_set(&scene.o, "max-per-day", "2GB", &et));
	assert_ok(settings_set(&scene.o, "hours", "mon-fri 18:00-8:00", &et));
	assert_ok(settings_set(&scene.o, "on-battery", "yes", &et));
	assert_int_equal(scene.o.max_per_day, 2000000000);
	assert_false(settings_same(&before, &scene.o, "hours"));
	assert_true(settings_same(&before, &scene.o, "max-up"));
	store();
	start_again();
	assert_string_equal(scene.o.hours, "mon-fri 18:00-8:00");
	assert_true(scene.o.on_battery && !scene.o.on_metered);
	assert_int_equal(settings_set(&scene.o, "dir", "/elsewhere", &why), RV_E_INVALID); /* not one that is kept */
	assert_int_equal(settings_set(&scene.o, "max-dawn", "1", &why), RV_E_INVALID);
	assert_non_null(strstr(why.text, "did you mean max-down?"));
	assert_int_equal(settings_set(&scene.o, "cpu-share", "101", &why), RV_E_RANGE);
	assert_ok(settings_set(&scene.o, "hours", "", &et));
	assert_ok(settings_set(&scene.o, "on-battery", "no", &et));
	assert_true(settings_same(&before, &scene.o, "hours") && settings_same(&before, &scene.o, "on-battery"));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(every_choice_survives_the_restart),
		T(every_option_is_decided_about),
		T(what_is_taken_back_is_gone),
		T(a_directory_that_keeps_nothing_changes_nothing),
		T(a_relative_path_is_kept_as_it_was_meant),
		T(a_damaged_file_is_refused),
		T(one_option_at_a_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
