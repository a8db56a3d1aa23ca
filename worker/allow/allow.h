/* allow.h: whether a worker may work now: what its person wants, the hours, the bytes of the day
 * and the month, and what the computer reports of itself. A core without I/O: no clock, no files,
 * no threads; the platform (worker/session/allowed.c) brings the time, the readings and the
 * counters, and keeps struct allow_kept over restarts.
 *
 * All reasons for a pause are looked at each time; the first of enum allow_why that holds is named.
 * A reading that is unknown limits nothing. */
#ifndef RV_WORKER_ALLOW_ALLOW_H
#define RV_WORKER_ALLOW_ALLOW_H

#include "worker/allow/hours.h"
#include "worker/allow/readings.h"

/* The reason of a pause, in the order in which one is named. */
enum allow_why {
	ALLOW_WORKS, /* none */
	ALLOW_PERSON,
	ALLOW_HOURS,
	ALLOW_DAY_BYTES,
	ALLOW_MONTH_BYTES,
	ALLOW_METERED,
	ALLOW_BATTERY,
	ALLOW_IN_USE,
	ALLOW_CPU_HEAT,
	ALLOW_GPU_HEAT,
	ALLOW_WHYS
};

/* The limits of a person. A zeroed struct, but for the two `pause_on` fields, limits nothing. */
struct allow_limits {
	struct allow_hours hours;
	uint64_t day_bytes, month_bytes; /* on the line, both directions; 0: any number */
	bool pause_on_battery, pause_on_metered;
	int64_t idle_s;                  /* least time since the computer was used; 0: does not matter */
	double cpu_celsius, gpu_celsius; /* 0: no limit */
};

/* The local time. */
struct allow_time {
	int64_t wall_s;       /* since 1970 */
	int year, month, day; /* 2026, 1..12, 1..31 */
	int minute;           /* of the week, from Monday 0:00 on */
	int second;           /* of the minute */
	int month_days;       /* of this month */
};

/* The part that must outlive a process. */
struct allow_kept {
	int year, month, day; /* of the counts; 0: there are none */
	int64_t counted_s;    /* latest wall time of a count of this day */
	uint64_t day_bytes, month_bytes;
	int64_t paused_until_s; /* by the person; 0: not paused; ALLOW_FOREVER: until told otherwise */
};

#define ALLOW_FOREVER INT64_MAX

/* Zeroed, it has counted nothing, and works. Owned and moved by the caller. */
struct allow {
	struct allow_limits limits;
	struct allow_kept kept;
	uint64_t seen_bytes; /* the platform's counter at the last turn */
	bool hot_cpu, hot_gpu;
	enum allow_why why; /* at the last turn */
	int64_t until_s;    /* wall time when the reason is over, as far as is known; 0: not known */
};

/* Counts the bytes that came since the last turn (`line_bytes` grows since the process started, all
 * bytes of its line) and decides. Returns true if the reason is another one than before. */
bool allow_turn(struct allow *a, const struct allow_time *now, const struct allow_readings *r, uint64_t line_bytes);
/* Pauses for `seconds`, at least 1, or ALLOW_FOREVER; ends such a pause. The next turn acts. */
void allow_pause(struct allow *a, int64_t now_s, int64_t seconds);
void allow_resume(struct allow *a);
/* Returns the bytes that may still be sent and received until a pause; UINT64_MAX: any number. The
 * pause comes while something is left of the limit, for what is on its way then, and for the
 * coordinator. */
uint64_t allow_bytes_left(const struct allow *a);
/* Returns the reason in plain words, as a whole sentence; "" for ALLOW_WORKS. Static. */
const char *allow_why_text(enum allow_why why);
/* Returns a name for programs: "hours". Static. */
const char *allow_why_name(enum allow_why why);

#endif
