/* hours.h: the hours of the week at which a computer may train, as a person writes them:
 *
 *     mon-fri 18:00-8:00, sat, sun       weekday evenings and nights, and the whole weekend
 *     22-6                               every night
 *
 * Entries are separated by commas. An entry has days (a day, or the first and last of some; every
 * day if there are none), then hours (the whole day if there are none). Hours that end before they
 * begin go on into the next day. All in the computer's local time. Any thread. */
#ifndef RV_WORKER_ALLOW_HOURS_H
#define RV_WORKER_ALLOW_HOURS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { ALLOW_DAY_MINUTES = 24 * 60, ALLOW_WEEK_MINUTES = 7 * ALLOW_DAY_MINUTES };

struct allow_hours {
	bool limited;                        /* false: always */
	uint8_t may[ALLOW_WEEK_MINUTES / 8]; /* a bit for each minute of the week, from Monday 0:00 on */
};

/* Reads `text`; "" is always. RV_E_INVALID names the entry and shows an example. */
enum rv_err allow_hours_parse(const char *text, struct allow_hours *out, struct rv_errtext *et);
/* Returns whether that minute of the week [0, ALLOW_WEEK_MINUTES) is one of them. */
bool allow_hours_at(const struct allow_hours *h, int minute);
/* Returns the minutes from `minute` on until the answer is another one; ALLOW_WEEK_MINUTES:
 * never. */
int allow_hours_change_in(const struct allow_hours *h, int minute);

#endif
