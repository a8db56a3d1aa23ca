/* allowed.c: holds the worker to what its person allows (worker/allow): reads clock and sensors,
 * counts the bytes of the line, pauses the session and the threads that compute, and keeps the
 * counts over restarts. */
#include "worker/session/internal.h"

#include "kernels/gate.h"
#include "worker/allow/allow.h"
#include "worker/session/allowed_file.h"

#include <stdio.h>
#include <time.h>

#define TURN_US        (250 * RV_US_PER_MS)
#define STORE_EVERY_US (30 * RV_US_PER_S)

/* ---- the platform of the core ---- */

static struct allow_time time_now(void) {
	static const int days_of[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	enum { FROM_YEAR = 1900, FEBRUARY = 1, MONDAY = 1 };
	const time_t wall = time(NULL);
	struct tm t = {.tm_mday = 1};
	(void)localtime_r(&wall, &t);
	const int year = t.tm_year + FROM_YEAR;
	const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return (struct allow_time){.wall_s = wall,
							   .year = year,
							   .month = t.tm_mon + 1,
							   .day = t.tm_mday,
							   .minute = (t.tm_wday + 7 - MONDAY) % 7 * ALLOW_DAY_MINUTES + 60 * t.tm_hour + t.tm_min,
							   .second = t.tm_sec < 60 ? t.tm_sec : 59,
							   .month_days = days_of[t.tm_mon] + (t.tm_mon == FEBRUARY && leap)};
}

static struct allow_limits limits_of(const struct worker_options *o) {
	enum { MINUTE_S = 60 };
	struct allow_limits l = {.day_bytes = (uint64_t)o->max_per_day,
							 .month_bytes = (uint64_t)o->max_per_month,
							 .pause_on_battery = !o->on_battery,
							 .pause_on_metered = !o->on_metered,
							 .idle_s = MINUTE_S * o->only_idle,
							 .cpu_celsius = (double)o->max_cpu_temp,
							 .gpu_celsius = (double)o->max_gpu_temp};
	(void)allow_hours_parse(o->hours, &l.hours, NULL); /* worker_options_check has read it */
	return l;
}

static bool trains_on_gpu(const struct session *s) {
	struct device_choice device;
	return device_choose(s->opt->device, &device, NULL) == RV_OK && device_is_gpu(&device);
}

/* Nothing is read where nothing depends on it. */
static void open_sensors(struct session *s) {
	struct session_allowed *a = &s->local->allowed;
	const struct allow_limits *l = &a->core.limits;
	const bool wanted =
		l->pause_on_battery || l->pause_on_metered || l->idle_s > 0 || l->cpu_celsius > 0 || l->gpu_celsius > 0;
	struct rv_errtext et;
	if (!wanted || a->sensors)
		return;
	const struct sensors_config cfg = {.root = "", .gpu = trains_on_gpu(s)};
	if (sensors_open(&cfg, &a->sensors, &et) != RV_OK)
		rv_event(s->events, RV_WARN, "sensors", RV_NO_FIELDS,
				 "this computer is not asked for battery, use and temperatures, so these limit nothing: %s", et.text);
}

/* ---- what is kept ---- */

static void store(struct session *s, int64_t now_us) {
	struct session_allowed *a = &s->local->allowed;
	struct rv_errtext et;
	a->stored_us = now_us;
	a->stored_bytes = a->core.kept.day_bytes;
	if (s->lock_fd < 0 || allowed_file_write(s->opt->dir, &a->core.kept, &et) == RV_OK)
		return;
	if (!a->told_unstored)
		rv_event(s->events, RV_WARN, "allowed", RV_NO_FIELDS, "today's bytes would be lost at a restart: %s", et.text);
	a->told_unstored = true;
}

void session_open_allowed(struct session *s) {
	struct session_allowed *a = &s->local->allowed;
	struct rv_errtext et;
	if (!a->opened && allowed_file_read(s->opt->dir, &a->core.kept, &et) != RV_OK)
		rv_event(s->events, RV_WARN, "allowed", RV_NO_FIELDS, "the bytes of the day and the month are counted anew: %s",
				 et.text);
	a->opened = true;
	session_allowed_changed(s);
}

void session_allowed_changed(struct session *s) {
	struct session_allowed *a = &s->local->allowed;
	a->core.limits = limits_of(s->opt);
	a->turn_us = 0;
	open_sensors(s);
}

/* ---- turns ---- */

static void log_change(struct session *s, enum allow_why before) {
	const struct allow *a = &s->local->allowed.core;
	char until[64] = "";
	const time_t at = (time_t)a->until_s;
	struct tm t;
	rv_progress_clear(s->events);
	if (a->why == ALLOW_WORKS) {
		rv_event(s->events, RV_INFO, "resumed", RV_FIELDS(rv_field_str("paused_by", allow_why_name(before))),
				 "Going on; it takes part in the next round.");
		return;
	}
	if (a->until_s > 0 && localtime_r(&at, &t))
		(void)strftime(until, sizeof until, " Until %a %H:%M.", &t);
	rv_event(s->events, RV_INFO, "paused",
			 RV_FIELDS(rv_field_str("why", allow_why_name(a->why)), rv_field_int("until", a->until_s)), "Paused. %s%s",
			 allow_why_text(a->why), until);
}

/* Holds the threads that compute back while the session is paused, but not once it ends: it saves
 * then. */
static void follow(struct session *s, int64_t now_us) {
	const bool pauses = s->local->allowed.core.why != ALLOW_WORKS;
	if (!session_is_up(s))
		return;
	session_core_pause(s->core, now_us, pauses);
	s->history.was_paused |= pauses;
	gate_hold(session_core_is_paused(s->core) && session_core_phase(s->core) == SESSION_RUNNING);
}

void session_turn_allowed(struct session *s, int64_t now_us) {
	struct session_allowed *a = &s->local->allowed;
	const uint64_t bytes = session_line_bytes(s).both + a->before_bytes;
	const bool used_up = bytes - a->core.seen_bytes > allow_bytes_left(&a->core);
	if (now_us < a->turn_us && !used_up) {
		follow(s, now_us);
		return;
	}
	const struct allow_time now = time_now();
	const struct allow_readings r = a->sensors ? sensors_latest(a->sensors) : allow_readings_unknown();
	const enum allow_why before = a->core.why;
	const bool changed = allow_turn(&a->core, &now, &r, bytes);
	a->turn_us = now_us + TURN_US;
	follow(s, now_us);
	if (changed)
		log_change(s, before);
	const bool counted = a->core.kept.day_bytes != a->stored_bytes && now_us - a->stored_us >= STORE_EVERY_US;
	if (changed || counted)
		store(s, now_us);
}

void session_wish(struct session *s, int64_t seconds) {
	struct allow *a = &s->local->allowed.core;
	const int64_t now_us = rv_clock_monotonic_us();
	if (seconds > 0)
		allow_pause(a, time(NULL), seconds);
	else
		allow_resume(a);
	s->local->allowed.turn_us = 0;
	session_turn_allowed(s, now_us);
	store(s, now_us); /* before the person reads that it is so */
}

void session_close_allowed(struct session *s) {
	struct session_allowed *a = &s->local->allowed;
	if (!a->opened)
		return;
	const struct allow_time now = time_now();
	const struct allow_readings unknown = allow_readings_unknown();
	a->before_bytes += session_line_bytes(s).both;
	gate_hold(false);
	struct allow counted = a->core; /* what this session ends with; a pause goes on in the next one */
	(void)allow_turn(&counted, &now, &unknown, a->before_bytes);
	a->core.kept = counted.kept;
	a->core.seen_bytes = counted.seen_bytes;
	store(s, rv_clock_monotonic_us());
}

/* ---- for people ---- */

static json_t *answer_of(enum allow_answer a) {
	return a == ALLOW_UNKNOWN ? json_null() : json_boolean(a == ALLOW_YES);
}

static json_t *real_or_null(double v) {
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *readings_json(const struct session_allowed *a) {
	const struct allow_readings r = a->sensors ? sensors_latest(a->sensors) : allow_readings_unknown();
	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "on_battery", answer_of(r.on_battery),
					 "battery_percent", real_or_null(r.battery_percent), "on_metered", answer_of(r.on_metered),
					 "idle_s", r.idle_s >= 0 ? json_integer(r.idle_s) : json_null(), "idle_source", r.idle_source,
					 "cpu_celsius", real_or_null(r.cpu_celsius), "gpu_celsius", real_or_null(r.gpu_celsius),
					 "others_percent", real_or_null(r.others_percent));
}

json_t *session_allowed_json(const struct session *s) {
	const struct session_allowed *a = &s->local->allowed;
	const struct allow_kept *k = &a->core.kept;
	return json_pack("{s:b, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "paused", a->core.why != ALLOW_WORKS, "why",
					 allow_why_name(a->core.why), "text", allow_why_text(a->core.why), "until",
					 (json_int_t)a->core.until_s, "bytes_today", (json_int_t)k->day_bytes, "bytes_this_month",
					 (json_int_t)k->month_bytes, "max_per_day", (json_int_t)a->core.limits.day_bytes, "max_per_month",
					 (json_int_t)a->core.limits.month_bytes, "readings", readings_json(a));
}
