/* Events: JSON that parses, text without escapes, levels, the log file, a full disk, threads, a
 * terminal's progress line. */
#include "base/event.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sink {
	char *text;
	size_t n;
	FILE *file; /* a temporary file: events ask for its descriptor */
	struct rv_events *ev;
};

static struct sink sink_open(bool json, enum rv_level level, const char *log_path) {
	struct sink s = {.file = tmpfile()};
	assert_non_null(s.file);
	struct rv_events_config cfg = {.out = s.file, .json = json, .level = level, .log_path = log_path};
	assert_ok(rv_events_new(&cfg, &s.ev, &et));
	return s;
}

static void sink_close(struct sink *s) {
	rv_events_free(s->ev);
	long n = ftell(s->file);
	assert_true(n >= 0);
	s->n = (size_t)n;
	s->text = calloc(1, s->n + 1);
	assert_non_null(s->text);
	rewind(s->file);
	assert_int_equal(fread(s->text, 1, s->n, s->file), s->n);
	(void)fclose(s->file);
}

static void json_lines_carry_every_kind(void **state) {
	(void)state;
	struct sink s = sink_open(true, RV_INFO, NULL);
	const struct rv_field *fields =
		RV_FIELDS(rv_field_int("round", INT64_MIN), rv_field_double("loss", 2.125), rv_field_double("nan", NAN),
				  rv_field_str("peer", "a\"\n\033[2J"), rv_field_str("none", NULL), rv_field_bool("ok", true),
				  rv_field_str("bytes", "\xff\xfe!"));
	rv_event(s.ev, RV_WARN, "round", fields, "round %d, \"%s\"", 3, "q");
	rv_progress(s.ev, 0, "x", 1, 2, "step", NULL);
	sink_close(&s);
	json_error_t error;
	json_t *o = json_loads(s.text, 0, &error);
	assert_non_null(o);
	assert_string_equal(json_string_value(json_object_get(o, "event")), "round");
	assert_string_equal(json_string_value(json_object_get(o, "level")), "warn");
	assert_string_equal(json_string_value(json_object_get(o, "text")), "round 3, \"q\"");
	assert_string_equal(json_string_value(json_object_get(o, "peer")), "a\"\n\033[2J");
	assert_string_equal(json_string_value(json_object_get(o, "bytes")), "\?\?!");
	assert_true(json_integer_value(json_object_get(o, "round")) == INT64_MIN);
	assert_true(json_real_value(json_object_get(o, "loss")) == 2.125);
	assert_true(json_real_value(json_object_get(o, "t")) > 1.6e9);
	assert_true(json_is_null(json_object_get(o, "nan")) && json_is_null(json_object_get(o, "none")));
	assert_true(json_is_true(json_object_get(o, "ok")));
	assert_ptr_equal(strchr(s.text, '\n'), s.text + s.n - 1); /* one line, no progress */
	json_decref(o);
	free(s.text);
}

/* A fault is the program's last line for people; a log, and whoever reads JSON, gets it as an
 * event. */
static void what_people_read_elsewhere_is_only_logged(void **state) {
	(void)state;
	char dir[64], path[80];
	scratch_make(dir, sizeof dir);
	(void)snprintf(path, sizeof path, "%s/log", dir);
	struct sink s = sink_open(false, RV_INFO, path);
	rv_event_in_log(s.ev, RV_ERROR, "failed", RV_NO_FIELDS, "disk %s", "gone");
	rv_event(s.ev, RV_DEBUG, "detail", RV_NO_FIELDS, "the log file gets every event");
	sink_close(&s);
	assert_string_equal(s.text, "");
	free(s.text);
	char *log = scratch_read(path, NULL);
	assert_non_null(strstr(log, "disk gone"));
	assert_non_null(strstr(log, "every event"));
	free(log);
	s = sink_open(true, RV_INFO, NULL);
	rv_event_in_log(s.ev, RV_ERROR, "failed", RV_NO_FIELDS, "disk gone");
	sink_close(&s);
	assert_non_null(strstr(s.text, "\"event\":\"failed\""));
	free(s.text);
}

static void text_is_for_people(void **state) {
	(void)state;
	struct sink s = sink_open(false, RV_INFO, NULL);
	rv_event(s.ev, RV_INFO, "hello", RV_NO_FIELDS, "peer %s joined", "\033]0;evil\a");
	rv_event(s.ev, RV_ERROR, "bad", RV_NO_FIELDS, "disk full");
	rv_progress(s.ev, 0, "x", 1, 2, "step", NULL); /* not a terminal: nothing */
	sink_close(&s);
	assert_non_null(strstr(s.text, " peer ?]0;evil? joined\n"));
	assert_non_null(strstr(s.text, " error: disk full\n"));
	assert_null(strchr(s.text, '\033'));
	assert_null(strchr(s.text, '\r'));
	free(s.text);
}

static void less_severe_events_are_dropped(void **state) {
	(void)state;
	for (enum rv_level level = RV_DEBUG; level <= RV_ERROR; level++) {
		struct sink s = sink_open(true, level, NULL);
		for (enum rv_level l = RV_DEBUG; l <= RV_ERROR; l++)
			rv_event(s.ev, l, "e", RV_NO_FIELDS, "x");
		sink_close(&s);
		size_t lines = 0;
		for (size_t i = 0; i < s.n; i++)
			lines += s.text[i] == '\n';
		assert_int_equal(lines, RV_ERROR - level + 1);
		free(s.text);
	}
}

static void long_sentences_are_cut(void **state) {
	(void)state;
	static char longer[100000];
	memset(longer, 'x', sizeof longer - 1);
	struct sink s = sink_open(true, RV_INFO, NULL);
	rv_event(s.ev, RV_INFO, "e", RV_FIELDS(rv_field_str("all", longer)), "%s", longer);
	sink_close(&s);
	json_t *o = json_loads(s.text, 0, NULL);
	assert_non_null(o);
	assert_int_equal(json_string_length(json_object_get(o, "text")), 1023);
	assert_int_equal(json_string_length(json_object_get(o, "all")), sizeof longer - 1);
	json_decref(o);
	free(s.text);
}

static void the_log_file_gets_json_whatever_the_screen_shows(void **state) {
	(void)state;
	char dir[64], path[80], line[512];
	scratch_make(dir, sizeof dir);
	(void)snprintf(path, sizeof path, "%s/log", dir);
	for (int i = 0; i < 2; i++) { /* the second run appends */
		struct sink s = sink_open(false, RV_INFO, path);
		rv_event(s.ev, RV_INFO, "start", RV_FIELDS(rv_field_int("i", i)), "start");
		sink_close(&s);
		free(s.text);
	}
	FILE *log = fopen(path, "r");
	assert_non_null(log);
	int lines = 0;
	while (fgets(line, sizeof line, log)) {
		json_t *o = json_loads(line, 0, NULL);
		assert_non_null(o);
		assert_int_equal(json_integer_value(json_object_get(o, "i")), lines++);
		json_decref(o);
	}
	assert_int_equal(lines, 2);
	(void)fclose(log);
	assert_int_equal(unlink(path), 0);
}

static void a_log_that_cannot_be_opened_is_refused(void **state) {
	(void)state;
	struct rv_events *ev;
	struct rv_errtext et = {0};
	struct rv_events_config cfg = {.out = stderr, .log_path = "/nonexistent/log"};
	assert_int_equal(rv_events_new(&cfg, &ev, &et), RV_E_NOTFOUND);
	assert_null(ev);
	assert_non_null(strstr(et.text, "/nonexistent/log"));
	rv_events_free(NULL);
}

static void a_full_disk_does_not_stop_the_program(void **state) {
	(void)state;
	struct sink s = sink_open(true, RV_INFO, "/dev/full");
	for (int i = 0; i < 100; i++)
		rv_event(s.ev, RV_INFO, "e", RV_NO_FIELDS, "still here");
	sink_close(&s);
	assert_true(s.n > 100 * strlen("still here"));
	free(s.text);
}

enum { THREADS = 4, EVENTS = 500 };

static void *emit(void *arg) {
	struct rv_events *ev = arg;
	for (int i = 0; i < EVENTS; i++) {
		rv_event(ev, RV_INFO, "e", RV_FIELDS(rv_field_int("i", i)), "sentence %d", i);
		rv_progress(ev, i, "label", (uint64_t)i, EVENTS, "step", NULL);
	}
	return NULL;
}

static void threads_do_not_mix_lines(void **state) {
	(void)state;
	struct sink s = sink_open(true, RV_INFO, NULL);
	pthread_t t[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, emit, s.ev), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	sink_close(&s);
	int lines = 0;
	for (char *line = s.text, *end; *line; line = end + 1, lines++) {
		end = strchr(line, '\n');
		assert_non_null(end);
		json_t *o = json_loadb(line, (size_t)(end - line), 0, NULL);
		assert_non_null(o);
		json_decref(o);
	}
	assert_int_equal(lines, THREADS * EVENTS);
	free(s.text);
}

/* What a terminal of that kind is sent; false: there are no terminals here. */
static bool on_a_terminal(const char *kind, char *text, size_t cap) {
	int screen, terminal;
	struct winsize size = {.ws_col = 80, .ws_row = 10};
	if (openpty(&screen, &terminal, NULL, NULL, &size) != 0)
		return false;
	FILE *out = fdopen(terminal, "w");
	assert_non_null(out);
	assert_int_equal(kind ? setenv("TERM", kind, 1) : unsetenv("TERM"), 0);
	struct rv_events *ev;
	struct rv_events_config cfg = {.out = out};
	assert_int_equal(rv_events_new(&cfg, &ev, NULL), RV_OK);
	rv_progress(ev, 0, "get", 0, 10, "byte", NULL);
	rv_progress(ev, 1000000, "get", 5, 10, "byte", NULL);
	rv_progress(ev, 1000001, "get", 6, 10, "byte", NULL); /* too soon: not drawn */
	rv_event(ev, RV_INFO, "e", RV_NO_FIELDS, "sentence");
	rv_progress_clear(ev);
	rv_events_free(ev);
	(void)fclose(out);
	size_t n = 0;
	ssize_t k;
	while (n < cap - 1 && (k = read(screen, text + n, cap - 1 - n)) > 0) /* EIO after the last byte */
		n += (size_t)k;
	text[n] = '\0';
	close(screen);
	return true;
}

static void a_terminal_gets_a_progress_line(void **state) {
	(void)state;
	char text[1024];
	if (!on_a_terminal("xterm", text, sizeof text)) {
		print_message("no pseudo-terminals here (is /dev/pts mounted?): skipped\n");
		skip();
	}
	assert_non_null(strstr(text, "\rget ["));
	assert_non_null(strstr(text, "50% 5/10 byte  5 byte/s  ETA 0:01"));
	assert_null(strstr(text, "6/10"));
	assert_non_null(strstr(text, "\r\033[K")); /* cleared before the sentence */
	assert_non_null(strstr(text, " sentence"));
}

/* It could not be drawn over there. */
static void a_dumb_terminal_gets_sentences_only(void **state) {
	(void)state;
	const char *const kinds[] = {"dumb", "", NULL};
	for (int i = 0; i < 3; i++) {
		char text[1024];
		if (!on_a_terminal(kinds[i], text, sizeof text))
			skip();
		assert_null(strchr(text, '\033'));
		assert_null(strstr(text, "get"));
		assert_non_null(strstr(text, " sentence"));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_lines_carry_every_kind),
		cmocka_unit_test(what_people_read_elsewhere_is_only_logged),
		cmocka_unit_test(text_is_for_people),
		cmocka_unit_test(less_severe_events_are_dropped),
		cmocka_unit_test(long_sentences_are_cut),
		cmocka_unit_test(the_log_file_gets_json_whatever_the_screen_shows),
		cmocka_unit_test(a_log_that_cannot_be_opened_is_refused),
		cmocka_unit_test(a_full_disk_does_not_stop_the_program),
		cmocka_unit_test(threads_do_not_mix_lines),
		cmocka_unit_test(a_terminal_gets_a_progress_line),
		cmocka_unit_test(a_dumb_terminal_gets_sentences_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
