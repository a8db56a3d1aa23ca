/* allow.c: see allow.h. */
#include "worker/allow/allow.h"

#include "base/assert.h"
#include "worker/allow/heat.h"

#include <stddef.h>

enum {
	DAY_S = 24 * 60 * 60,
	/* Kept back of a limit on bytes: for what a line of 100 Mbit/s brings in the second in which a
	 * pause begins, and for what a paused worker exchanges with the coordinator in a day. */
	RESERVE_SHARE = 10,
	RESERVE_MAX_BYTES = 16 << 20
};

/* ---- bytes ---- */

static int days_apart(const struct allow_kept *k, const struct allow_time *t) {
	const int64_t s = t->wall_s - k->counted_s;
	return (int)((s < 0 ? -s : s) / DAY_S);
}

/* Returns a number that is larger for later dates. */
static int64_t date_of(int year, int month, int day) {
	return ((int64_t)year * 13 + month) * 32 + day;
}

/* Returns whether the counts are of another day than today. A clock that is set back a little, as
 * at midnight, does not give the day a second time. */
static bool is_another_day(const struct allow_kept *k, const struct allow_time *t) {
	const int64_t counted = date_of(k->year, k->month, k->day), today = date_of(t->year, t->month, t->day);
	return today > counted || (today < counted && days_apart(k, t) >= 1);
}

static void count(struct allow *a, const struct allow_time *t, uint64_t line_bytes) {
	struct allow_kept *k = &a->kept;
	const uint64_t more = line_bytes - a->seen_bytes;
	RV_ASSERT(line_bytes >= a->seen_bytes);
	a->seen_bytes = line_bytes;
	const bool begins = is_another_day(k, t);
	if (begins) {
		k->day_bytes = 0;
		if (k->year != t->year || k->month != t->month)
			k->month_bytes = 0;
		k->year = t->year;
		k->month = t->month;
		k->day = t->day;
	}
	if (begins || t->wall_s > k->counted_s)
		k->counted_s = t->wall_s;
	k->day_bytes += more;
	k->month_bytes += more;
}

static uint64_t usable(uint64_t limit) {
	const uint64_t reserve = limit / RESERVE_SHARE < RESERVE_MAX_BYTES ? limit / RESERVE_SHARE : RESERVE_MAX_BYTES;
	return limit - reserve;
}

static uint64_t left_of(uint64_t limit, uint64_t used) {
	if (limit == 0)
		return UINT64_MAX;
	return used < usable(limit) ? usable(limit) - used : 0;
}

static uint64_t least(uint64_t a, uint64_t b) {
	return a < b ? a : b;
}

uint64_t allow_bytes_left(const struct allow *a) {
	return least(left_of(a->limits.day_bytes, a->kept.day_bytes), left_of(a->limits.month_bytes, a->kept.month_bytes));
}

/* ---- reasons ---- */

typedef bool holds(const struct allow *a, const struct allow_time *t, const struct allow_readings *r);

static bool by_person(const struct allow *a, const struct allow_time *t, const struct allow_readings *r) {
	(void)r;
	return a->kept.paused_until_s > t->wall_s;
}

static bool outside_hours(const struct allow *a, const struct allow_time *t, const struct allow_readings *r) {
	(void)r;
	return !allow_hours_at(&a->limits.hours, t->minute);
}

static bool day_is_used(const struct allow *a, const struct allow_time *t, const struct allow_readings *r) {
	(void)t, (void)r;
	return left_of(a->limits.day_bytes, a->kept.day_bytes) == 0;
}

static bool month_is_used(const struct allow *a, const struct allow_time *t, const struct allow_readings *r) {
	(void)t, (void)r;
	return left_of(a->limits.month_bytes, a->kept.month_bytes) == 0;
}

static bool is_metered(const struct allow *a, const struct allow_time *t, const struct allow_readings *r) {
	(void)t;
	return a->limits.pause_on_metered && r->on_metered == ALLOW_YES;
}

static bool on_battery(const struct allow *a, const struct allow_time *t, const struct allow_readings *r) {
	(void)t;
	return a->limits.pause_on_battery && r->on_battery == ALLOW_YES;
}

static bool is_in_use(const struct allow *a, const struct allow_time *t, const struct allow_readings *r) {
	(void)t;
	return r->idle_s >= 0 && r->idle_s < a->limits.idle_s;
}

static bool cpu_is_hot(const struct allow *a, const struct allow_time *t, const struct allow_readings *r) {
	(void)t, (void)r;
	return a->hot_cpu;
}

static bool gpu_is_hot(const struct allow *a, const struct allow_time *t, const struct allow_readings *r) {
	(void)t, (void)r;
	return a->hot_gpu;
}

static const struct {
	const char *name, *text;
	holds *holds;
} reasons[ALLOW_WHYS] = {
	[ALLOW_WORKS] = {"", "", NULL},
	[ALLOW_PERSON] = {"person", "You paused it.", by_person},
	[ALLOW_HOURS] = {"hours", "It is outside the hours that you allow.", outside_hours},
	[ALLOW_DAY_BYTES] = {"bytes_today", "Today's bytes are used up.", day_is_used},
	[ALLOW_MONTH_BYTES] = {"bytes_this_month", "This month's bytes are used up.", month_is_used},
	[ALLOW_METERED] = {"metered", "The line in use costs by the byte.", is_metered},
	[ALLOW_BATTERY] = {"battery", "The computer runs on its battery.", on_battery},
	[ALLOW_IN_USE] = {"in_use", "Somebody uses the computer.", is_in_use},
	[ALLOW_CPU_HEAT] = {"cpu_heat", "The processor is too hot.", cpu_is_hot},
	[ALLOW_GPU_HEAT] = {"gpu_heat", "The GPU is too hot.", gpu_is_hot},
};

const char *allow_why_text(enum allow_why why) {
	RV_ASSERT(why < ALLOW_WHYS);
	return reasons[why].text;
}

const char *allow_why_name(enum allow_why why) {
	RV_ASSERT(why < ALLOW_WHYS);
	return reasons[why].name;
}

/* ---- turns ---- */

/* Returns when the next day begins, in wall time; a change to or from summer time within it is not
 * known here. */
static int64_t midnight_s(const struct allow_time *t) {
	const int of_day_s = t->minute % ALLOW_DAY_MINUTES * 60 + t->second;
	return t->wall_s + DAY_S - of_day_s;
}

static int64_t over_at_s(const struct allow *a, const struct allow_time *t) {
	switch (a->why) {
	case ALLOW_PERSON:
		return a->kept.paused_until_s == ALLOW_FOREVER ? 0 : a->kept.paused_until_s;
	case ALLOW_HOURS:
		return t->wall_s - t->second + 60 * (int64_t)allow_hours_change_in(&a->limits.hours, t->minute);
	case ALLOW_DAY_BYTES:
		return midnight_s(t);
	case ALLOW_MONTH_BYTES:
		return midnight_s(t) + (int64_t)(t->month_days - t->day) * DAY_S;
	default:
		return 0;
	}
}

bool allow_turn(struct allow *a, const struct allow_time *now, const struct allow_readings *r, uint64_t line_bytes) {
	RV_ASSERT(now->minute >= 0 && now->minute < ALLOW_WEEK_MINUTES && now->day >= 1 && now->day <= now->month_days);
	const enum allow_why before = a->why;
	count(a, now, line_bytes);
	if (a->kept.paused_until_s <= now->wall_s)
		a->kept.paused_until_s = 0;
	a->hot_cpu = allow_is_hot(a->hot_cpu, r->cpu_celsius, a->limits.cpu_celsius);
	a->hot_gpu = allow_is_hot(a->hot_gpu, r->gpu_celsius, a->limits.gpu_celsius);
	a->why = ALLOW_WORKS;
	for (enum allow_why why = ALLOW_WORKS + 1; why < ALLOW_WHYS && a->why == ALLOW_WORKS; why++)
		if (reasons[why].holds(a, now, r))
			a->why = why;
	a->until_s = over_at_s(a, now);
	return a->why != before;
}

void allow_pause(struct allow *a, int64_t now_s, int64_t seconds) {
	RV_ASSERT(seconds > 0);
	a->kept.paused_until_s = seconds < ALLOW_FOREVER - now_s ? now_s + seconds : ALLOW_FOREVER;
}

void allow_resume(struct allow *a) {
	a->kept.paused_until_s = 0;
}
