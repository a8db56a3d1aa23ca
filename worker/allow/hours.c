/* hours.c: see hours.h. */
#include "worker/allow/hours.h"

#include "base/assert.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DAYS = 7, ENTRY_BYTES = 64 };

static const char *const day_names[DAYS] = {"monday", "tuesday",  "wednesday", "thursday",
											"friday", "saturday", "sunday"};

/* ---- reading ---- */

static const char *skip_blanks(const char *at) {
	return at + strspn(at, " \t");
}

/* Takes a day's name, of three letters at least, and moves *at behind it. Returns -1 if there is
 * none. */
static int take_day(const char **at) {
	enum { LEAST = 3 };
	size_t n = 0;
	while (isalpha((unsigned char)(*at)[n]))
		n++;
	for (int day = 0; n >= LEAST && day < DAYS; day++)
		if (n <= strlen(day_names[day]) && strncasecmp(*at, day_names[day], n) == 0) {
			*at = skip_blanks(*at + n);
			return day;
		}
	return -1;
}

static bool take(const char **at, char c) {
	if (**at != c)
		return false;
	*at = skip_blanks(*at + 1);
	return true;
}

/* Takes a number of one or two digits. */
static int take_number(const char **at) {
	int v = -1;
	for (int i = 0; i < 2 && isdigit((unsigned char)**at); i++, (*at)++)
		v = (v < 0 ? 0 : 10 * v) + (**at - '0');
	return v;
}

/* Takes "18:30" or "18" as a minute of the day, of which 24:00 is the last. Returns -1 if it is
 * neither. */
static int take_time(const char **at) {
	enum { HOUR = 60 };
	const int hours = take_number(at);
	const int minutes = **at == ':' ? ((*at)++, take_number(at)) : 0;
	*at = skip_blanks(*at);
	if (hours < 0 || minutes < 0 || minutes >= HOUR || HOUR * hours + minutes > ALLOW_DAY_MINUTES)
		return -1;
	return HOUR * hours + minutes;
}

struct entry {
	int first_day, last_day; /* the last may be before the first: sat-mon */
	int begin, end;          /* minutes of the day; the end may be before the begin, or the same: a day */
};

static bool take_days(const char **at, struct entry *e) {
	e->first_day = 0;
	e->last_day = DAYS - 1;
	if (!isalpha((unsigned char)**at))
		return true;
	e->first_day = e->last_day = take_day(at);
	if (e->first_day >= 0 && take(at, '-'))
		e->last_day = take_day(at);
	return e->first_day >= 0 && e->last_day >= 0;
}

static bool take_hours(const char **at, struct entry *e) {
	e->begin = 0;
	e->end = ALLOW_DAY_MINUTES;
	if (**at == '\0')
		return true;
	e->begin = take_time(at);
	if (e->begin < 0 || e->begin == ALLOW_DAY_MINUTES || !take(at, '-'))
		return false;
	e->end = take_time(at);
	return e->end >= 0 && **at == '\0';
}

static void allow_span(struct allow_hours *h, int from, int minutes) {
	for (int i = 0; i < minutes; i++) {
		const int at = (from + i) % ALLOW_WEEK_MINUTES;
		h->may[at / 8] = (uint8_t)(h->may[at / 8] | 1 << at % 8);
	}
}

static void allow_entry(struct allow_hours *h, const struct entry *e) {
	const int days = (e->last_day - e->first_day + DAYS) % DAYS + 1;
	const int minutes = e->end > e->begin ? e->end - e->begin : ALLOW_DAY_MINUTES - e->begin + e->end;
	for (int i = 0; i < days; i++)
		allow_span(h, (e->first_day + i) % DAYS * ALLOW_DAY_MINUTES + e->begin, minutes);
}

enum rv_err allow_hours_parse(const char *text, struct allow_hours *out, struct rv_errtext *et) {
	*out = (struct allow_hours){.limited = *skip_blanks(text) != '\0'};
	for (const char *next = text; out->limited && next;) {
		char entry[ENTRY_BYTES];
		const char *comma = strchr(next, ',');
		const size_t n = comma ? (size_t)(comma - next) : strlen(next);
		const size_t kept = n < sizeof entry ? n : sizeof entry - 1;
		memcpy(entry, next, kept);
		entry[kept] = '\0';
		for (size_t end = kept; end > 0 && isspace((unsigned char)entry[end - 1]); end--)
			entry[end - 1] = '\0';
		struct entry e;
		const char *at = skip_blanks(entry);
		if (n >= sizeof entry || *at == '\0' || !take_days(&at, &e) || !take_hours(&at, &e))
			return rv_fail(et, RV_E_INVALID, "\"%s\": must be days and hours, such as mon-fri 18:00-8:00, sat, sun",
						   entry);
		allow_entry(out, &e);
		next = comma ? comma + 1 : NULL;
	}
	return RV_OK;
}

/* ---- asking ---- */

bool allow_hours_at(const struct allow_hours *h, int minute) {
	RV_ASSERT(minute >= 0 && minute < ALLOW_WEEK_MINUTES);
	return !h->limited || (h->may[minute / 8] >> minute % 8 & 1) != 0;
}

int allow_hours_change_in(const struct allow_hours *h, int minute) {
	const bool now = allow_hours_at(h, minute);
	int in = 1;
	while (in < ALLOW_WEEK_MINUTES && allow_hours_at(h, (minute + in) % ALLOW_WEEK_MINUTES) == now)
		in++;
	return in;
}
