/* allowed_file.c: see allowed_file.h. */
#include "worker/session/allowed_file.h"

#include "base/file.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODE = 0600, MOST_BYTES = 4096 };

static void path_of(const char *dir, char out[PATH_MAX]) {
	(void)snprintf(out, PATH_MAX, "%s/" ALLOWED_FILE, dir);
}

/* Takes a number in [0, most]. */
static bool take(const json_t *o, const char *key, int64_t most, int64_t *out) {
	const json_t *v = json_object_get(o, key);
	*out = json_integer_value(v);
	return json_is_integer(v) && *out >= 0 && *out <= most;
}

static bool parse(const json_t *o, struct allow_kept *out) {
	enum { YEARS = 10000, MONTHS = 12, DAYS = 31 };
	int64_t year, month, day, day_bytes, month_bytes;
	const bool ok = take(o, "year", YEARS, &year) && take(o, "month", MONTHS, &month) && take(o, "day", DAYS, &day) &&
					take(o, "counted_at", INT64_MAX, &out->counted_s) &&
					take(o, "bytes_today", INT64_MAX / 2, &day_bytes) &&
					take(o, "bytes_this_month", INT64_MAX / 2, &month_bytes) &&
					take(o, "paused_until", INT64_MAX, &out->paused_until_s);
	if (!ok)
		return false;
	out->year = (int)year;
	out->month = (int)month;
	out->day = (int)day;
	out->day_bytes = (uint64_t)day_bytes;
	out->month_bytes = (uint64_t)month_bytes;
	return true;
}

enum rv_err allowed_file_read(const char *dir, struct allow_kept *out, struct rv_errtext *et) {
	char path[PATH_MAX];
	uint8_t *text;
	size_t n;
	*out = (struct allow_kept){.year = 0};
	path_of(dir, path);
	const enum rv_err e = rv_file_read(path, MOST_BYTES, &text, &n, et);
	if (e == RV_E_NOTFOUND)
		return RV_OK;
	RV_TRY(e);
	json_t *o = json_loadb((const char *)text, n, JSON_REJECT_DUPLICATES, NULL);
	const bool ok = parse(o, out);
	json_decref(o);
	free(text);
	if (ok)
		return RV_OK;
	*out = (struct allow_kept){.year = 0};
	return rv_fail(et, RV_E_CORRUPT, "%s is damaged", path);
}

enum rv_err allowed_file_write(const char *dir, const struct allow_kept *k, struct rv_errtext *et) {
	char path[PATH_MAX];
	path_of(dir, path);
	json_t *o =
		json_pack("{s:i, s:i, s:i, s:I, s:I, s:I, s:I}", "year", k->year, "month", k->month, "day", k->day,
				  "counted_at", (json_int_t)k->counted_s, "bytes_today", (json_int_t)k->day_bytes, "bytes_this_month",
				  (json_int_t)k->month_bytes, "paused_until", (json_int_t)k->paused_until_s);
	char *text = o ? json_dumps(o, JSON_INDENT(2)) : NULL;
	json_decref(o);
	if (!text)
		return rv_fail(et, RV_E_NOMEM, "no memory to write %s", path);
	const enum rv_err e = rv_file_write_atomic(path, text, strlen(text), MODE, et);
	free(text);
	return e;
}
