/* test_worker_allow.c: hours of the week, bytes of the day and the month with a clock that moves,
 * what the computer reports, and what a person wants: when a worker may work. */
#include "tests/common/check.h"
#include "worker/allow/allow.h"

#include <string.h>

enum { MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SATURDAY, SUNDAY };

static int at(int day, int hour, int minute) {
	return day * ALLOW_DAY_MINUTES + 60 * hour + minute;
}

/* ---- hours ---- */

static struct allow_hours hours_of(const char *text) {
	struct allow_hours h;
	struct rv_errtext et = {0};
	if (allow_hours_parse(text, &h, &et) != RV_OK)
		fail_msg("%s: %s", text, et.text);
	return h;
}

/* Asserts the answer in each minute of the week. */
static void assert_minutes(const struct allow_hours *h, bool (*expected)(int day, int minute)) {
	for (int m = 0; m < ALLOW_WEEK_MINUTES; m++)
		if (allow_hours_at(h, m) != expected(m / ALLOW_DAY_MINUTES, m % ALLOW_DAY_MINUTES))
			fail_msg("wrong on day %d at %d:%02d", m / ALLOW_DAY_MINUTES, m / 60 % 24, m % 60);
}

static bool nights_and_weekend(int day, int minute) {
	const bool evening = day <= FRIDAY && minute >= 18 * 60;
	const bool morning = day >= TUESDAY && day <= SATURDAY && minute < 8 * 60;
	return evening || morning || day >= SATURDAY;
}

static bool every_night(int day, int minute) {
	(void)day;
	return minute >= 22 * 60 || minute < 6 * 60 + 30;
}

static bool over_sunday(int day, int minute) {
	return (day == SATURDAY && minute >= 12 * 60) || day == SUNDAY || (day == MONDAY && minute < 12 * 60);
}

static bool always(int day, int minute) {
	(void)day, (void)minute;
	return true;
}

static void test_hours(void **state) {
	(void)state;
	struct allow_hours h = hours_of("mon-fri 18:00-8:00, sat, sun");
	assert_minutes(&h, nights_and_weekend);
	h = hours_of(" 22 - 6:30 ");
	assert_minutes(&h, every_night);
	h = hours_of("Saturday-Monday 12-24,sun-mon 0-12");
	assert_true(allow_hours_at(&h, at(MONDAY, 23, 59)));
	h = hours_of("sat 12-24, sun, mon 0-12");
	assert_minutes(&h, over_sunday);
	h = hours_of("fri-thu");
	assert_minutes(&h, always);
	h = hours_of("");
	assert_false(h.limited);
	assert_minutes(&h, always);
}

static void test_hours_that_are_none(void **state) {
	(void)state;
	static const char *const wrong[] = {"never",    "mo 8-9",     "mon 8",    "mon 25-3", "mon 8:60-9",
										"mon,,tue", "mon 8-9-10", "mon- 8-9", "24-3",     "mon 8-9 pm",
										"8:-9",     "mondays",    ",",        "mon 8-"};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct allow_hours h;
		struct rv_errtext et = {0};
		if (allow_hours_parse(wrong[i], &h, &et) != RV_E_INVALID)
			fail_msg("\"%s\" is accepted", wrong[i]);
		assert_non_null(strstr(et.text, "such as"));
	}
}

static void test_the_next_change(void **state) {
	(void)state;
	const struct allow_hours h = hours_of("sun 20-4"), all = hours_of("");
	assert_int_equal(allow_hours_change_in(&h, at(SUNDAY, 19, 0)), 60);
	assert_int_equal(allow_hours_change_in(&h, at(SUNDAY, 23, 59)), 4 * 60 + 1); /* over the end of the week */
	assert_int_equal(allow_hours_change_in(&h, at(MONDAY, 4, 0)), 6 * ALLOW_DAY_MINUTES + 16 * 60);
	assert_int_equal(allow_hours_change_in(&all, 0), ALLOW_WEEK_MINUTES);
}

/* ---- a clock ---- */

enum { DAY_S = 24 * 60 * 60, HOUR_S = 60 * 60 };

/* The calendar of these tests: May 2026 begins on a Friday; all months have 31 days. */
static struct allow_time time_of(int64_t wall_s) {
	const int64_t days = wall_s / DAY_S, of_day_s = wall_s % DAY_S;
	return (struct allow_time){.wall_s = wall_s,
							   .year = 2026,
							   .month = 1 + (int)(days / 31),
							   .day = 1 + (int)(days % 31),
							   .minute = (int)((days + FRIDAY) % 7) * ALLOW_DAY_MINUTES + (int)(of_day_s / 60),
							   .second = (int)(of_day_s % 60),
							   .month_days = 31};
}

static bool turn_with(struct allow *a, int64_t wall_s, const struct allow_readings *r, uint64_t bytes) {
	const struct allow_time t = time_of(wall_s);
	return allow_turn(a, &t, r, bytes);
}

static bool turn(struct allow *a, int64_t wall_s, uint64_t bytes) {
	const struct allow_readings r = allow_readings_unknown();
	return turn_with(a, wall_s, &r, bytes);
}

/* ---- bytes ---- */

static void test_the_bytes_of_a_day(void **state) {
	(void)state;
	enum { GB = 1000 * 1000 * 1000, MIB = 1 << 20 };
	struct allow a = {.limits = {.day_bytes = GB}};
	int64_t now_s = 10 * DAY_S + 20 * HOUR_S;
	assert_false(turn(&a, now_s, 0));
	assert_int_equal(allow_bytes_left(&a), GB - 16 * MIB);
	assert_false(turn(&a, now_s + 10, GB / 2));
	assert_int_equal(allow_bytes_left(&a), GB / 2 - 16 * MIB);
	assert_true(turn(&a, now_s + 20, GB - 5 * MIB)); /* all but what is kept back */
	assert_int_equal(a.why, ALLOW_DAY_BYTES);
	assert_int_equal(a.until_s, 11 * DAY_S);
	assert_false(turn(&a, 11 * DAY_S - 1, GB - 4 * MIB)); /* the coordinator's few */
	assert_int_equal(a.why, ALLOW_DAY_BYTES);
	assert_true(turn(&a, 11 * DAY_S, GB - 4 * MIB));
	assert_int_equal(a.why, ALLOW_WORKS);
	assert_int_equal(a.kept.day_bytes, 0);
	assert_int_equal(a.kept.month_bytes, GB - 4 * MIB);
}

static void test_the_bytes_of_a_month(void **state) {
	(void)state;
	struct allow a = {.limits = {.month_bytes = 3000}};
	uint64_t bytes = 0;
	assert_false(turn(&a, 28 * DAY_S, bytes));
	assert_false(turn(&a, 28 * DAY_S + 100, bytes += 1000));
	assert_false(turn(&a, 29 * DAY_S + 100, bytes += 1000));
	assert_true(turn(&a, 29 * DAY_S + HOUR_S, bytes += 710));
	assert_int_equal(a.why, ALLOW_MONTH_BYTES);
	assert_int_equal(a.until_s, 31 * DAY_S);
	assert_false(turn(&a, 30 * DAY_S + 23 * HOUR_S, bytes));
	assert_true(turn(&a, 31 * DAY_S, bytes));
	assert_int_equal(a.why, ALLOW_WORKS);
	assert_int_equal(a.kept.month_bytes, 0);
}

/* What an earlier process counted still counts, and its day is not begun anew. */
static void test_a_restart_keeps_the_count(void **state) {
	(void)state;
	struct allow a = {.limits = {.day_bytes = 1000}};
	assert_false(turn(&a, 5 * DAY_S + 100, 850));
	struct allow b = {.limits = a.limits, .kept = a.kept};
	assert_false(turn(&b, 5 * DAY_S + 200, 0));
	assert_true(turn(&b, 5 * DAY_S + 300, 95));
	assert_int_equal(b.kept.day_bytes, 945);
}

/* A clock that is set right around midnight does not give two days; one that was wrong by months
 * does not take the days after. */
static void test_a_clock_that_is_set(void **state) {
	(void)state;
	struct allow a = {.limits = {.day_bytes = 1000}};
	assert_true(turn(&a, 6 * DAY_S - 5, 995));
	assert_true(turn(&a, 6 * DAY_S + 1, 995)); /* the next day */
	assert_true(turn(&a, 6 * DAY_S + 2, 995 + 995));
	for (int s = -4; s < 0; s++) {
		assert_false(turn(&a, 6 * DAY_S + s, 995 + 995));
		assert_int_equal(a.why, ALLOW_DAY_BYTES);
	}
	assert_false(turn(&a, 6 * DAY_S + 3, 995 + 995));
	assert_int_equal(a.why, ALLOW_DAY_BYTES);
	assert_true(turn(&a, 3 * DAY_S, 995 + 995)); /* days back */
	assert_int_equal(a.why, ALLOW_WORKS);
	assert_int_equal(a.kept.day_bytes, 0);
}

static void test_no_limit_on_bytes(void **state) {
	(void)state;
	struct allow a = {.why = ALLOW_WORKS};
	assert_false(turn(&a, DAY_S, UINT64_C(1) << 60));
	assert_int_equal(allow_bytes_left(&a), UINT64_MAX);
	assert_int_equal(a.kept.day_bytes, UINT64_C(1) << 60);
}

/* ---- the person ---- */

static void test_a_pause(void **state) {
	(void)state;
	struct allow a = {.why = ALLOW_WORKS};
	allow_pause(&a, 1000, 3600);
	assert_true(turn(&a, 1001, 0));
	assert_int_equal(a.why, ALLOW_PERSON);
	assert_int_equal(a.until_s, 4600);
	struct allow b = {.kept = a.kept}; /* a restart */
	assert_true(turn(&b, 4599, 0));
	assert_true(turn(&b, 4600, 0));
	assert_int_equal(b.kept.paused_until_s, 0);
	allow_pause(&a, 2000, ALLOW_FOREVER);
	assert_false(turn(&a, INT64_C(40) * 365 * DAY_S % (11 * 31 * DAY_S), 0));
	assert_int_equal(a.until_s, 0);
	allow_resume(&a);
	assert_true(turn(&a, 2001, 0));
	assert_int_equal(a.why, ALLOW_WORKS);
}

static void test_hours_pause(void **state) {
	(void)state;
	struct allow a = {.limits = {.hours = hours_of("fri 10-11")}};
	assert_true(turn(&a, 9 * HOUR_S + 30, 0)); /* the first is a Friday */
	assert_int_equal(a.why, ALLOW_HOURS);
	assert_int_equal(a.until_s, 10 * HOUR_S);
	assert_true(turn(&a, 10 * HOUR_S, 0));
	assert_true(turn(&a, 11 * HOUR_S, 0));
	assert_int_equal(a.until_s, 7 * DAY_S + 10 * HOUR_S);
	allow_resume(&a); /* does not make it work at other hours */
	assert_false(turn(&a, 11 * HOUR_S + 1, 0));
}

/* ---- the computer ---- */

static void test_readings(void **state) {
	(void)state;
	struct allow a = {.limits = {.pause_on_battery = true, .pause_on_metered = true, .idle_s = 300}};
	struct allow_readings r = allow_readings_unknown();
	assert_false(turn_with(&a, 100, &r, 0)); /* unknown limits nothing */
	r.idle_s = 299;
	assert_true(turn_with(&a, 101, &r, 0));
	assert_int_equal(a.why, ALLOW_IN_USE);
	r.on_battery = ALLOW_YES;
	assert_true(turn_with(&a, 102, &r, 0));
	assert_int_equal(a.why, ALLOW_BATTERY);
	r.on_metered = ALLOW_YES;
	assert_true(turn_with(&a, 103, &r, 0));
	assert_int_equal(a.why, ALLOW_METERED);
	a.limits = (struct allow_limits){.idle_s = 0};
	assert_true(turn_with(&a, 104, &r, 0));
	assert_int_equal(a.why, ALLOW_WORKS);
	a.limits.idle_s = 300;
	r.idle_s = 300;
	assert_false(turn_with(&a, 105, &r, 0));
}

static void test_heat(void **state) {
	(void)state;
	struct allow a = {.limits = {.cpu_celsius = 80, .gpu_celsius = 70}};
	struct allow_readings r = allow_readings_unknown();
	r.cpu_celsius = 79.9;
	assert_false(turn_with(&a, 100, &r, 0));
	r.cpu_celsius = 80;
	assert_true(turn_with(&a, 101, &r, 0));
	assert_int_equal(a.why, ALLOW_CPU_HEAT);
	r.cpu_celsius = 75;
	assert_false(turn_with(&a, 102, &r, 0)); /* not cool enough yet */
	r.gpu_celsius = 71;
	r.cpu_celsius = 74.9;
	assert_true(turn_with(&a, 103, &r, 0));
	assert_int_equal(a.why, ALLOW_GPU_HEAT);
	r.gpu_celsius = 64;
	assert_true(turn_with(&a, 104, &r, 0));
	assert_int_equal(a.why, ALLOW_WORKS);
}

static void test_every_reason_has_words(void **state) {
	(void)state;
	for (enum allow_why why = ALLOW_WORKS + 1; why < ALLOW_WHYS; why++) {
		assert_true(strlen(allow_why_text(why)) > 10 && strchr(allow_why_text(why), '.'));
		for (enum allow_why other = ALLOW_WORKS; other < why; other++)
			assert_string_not_equal(allow_why_name(why), allow_why_name(other));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hours),
		cmocka_unit_test(test_hours_that_are_none),
		cmocka_unit_test(test_the_next_change),
		cmocka_unit_test(test_the_bytes_of_a_day),
		cmocka_unit_test(test_the_bytes_of_a_month),
		cmocka_unit_test(test_a_restart_keeps_the_count),
		cmocka_unit_test(test_a_clock_that_is_set),
		cmocka_unit_test(test_no_limit_on_bytes),
		cmocka_unit_test(test_a_pause),
		cmocka_unit_test(test_hours_pause),
		cmocka_unit_test(test_readings),
		cmocka_unit_test(test_heat),
		cmocka_unit_test(test_every_reason_has_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
