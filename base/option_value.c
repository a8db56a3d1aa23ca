/* option_value.c: the values of options as text. */
#include "base/option_value.h"

#include "base/assert.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	double scale;
};

static const struct unit byte_units[] = {
	{"", 1},       {"B", 1},        {"K", 1024},  {"KiB", 1024}, {"KB", 1e3},     {"kB", 1e3},
	{"M", 0x1p20}, {"MiB", 0x1p20}, {"MB", 1e6},  {"G", 0x1p30}, {"GiB", 0x1p30}, {"GB", 1e9},
	{"T", 0x1p40}, {"TiB", 0x1p40}, {"TB", 1e12}, {NULL, 0},
};
static const struct unit time_units[] = {
	{"", 1},       {"ms", 1},      {"us", 1e-3},       {"s", 1e3},           {"m", 60e3}, {"min", 60e3},
	{"h", 3600e3}, {"d", 86400e3}, {"w", 7 * 86400e3}, {"y", 365 * 86400e3}, {NULL, 0},
};
/* Units of rates, in bytes per second. Bits and bytes differ by eight, so a number without a unit
 * is refused. */
static const struct unit rate_units[] = {
	{"bit", 0.125},    {"Kbit", 125},     {"kbit", 125},     {"Mbit", 125e3},   {"mbit", 125e3},
	{"Gbit", 125e6},   {"gbit", 125e6},   {"B", 1},          {"kB", 1e3},       {"KB", 1e3},
	{"MB", 1e6},       {"GB", 1e9},       {"bit/s", 0.125},  {"Kbit/s", 125},   {"kbit/s", 125},
	{"Mbit/s", 125e3}, {"mbit/s", 125e3}, {"Gbit/s", 125e6}, {"gbit/s", 125e6}, {"B/s", 1},
	{"KB/s", 1e3},     {"kB/s", 1e3},     {"MB/s", 1e6},     {"GB/s", 1e9},     {NULL, 0},
};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

/* A type of options: how its values are written, read and stored. */
struct kind {
	const char *takes;         /* for people; NULL: the choices */
	const char *placeholder;   /* after `--name` in --help */
	const struct unit *units;  /* NULL: a number has none */
	const char *smallest_unit; /* for people */
	/* Reads `text` into the field of the options' struct. */
	enum rv_err (*parse)(const struct rv_option *o, const char *text, void *field, struct rv_errtext *et);
	/* Writes the field's text into `out` (RV_OPTION_TEXT_BYTES). */
	void (*print)(const struct rv_option *o, const void *field, char *out);
};
static const struct kind *kind_of(const struct rv_option *o);

bool rv_option_is_text(const struct rv_option *o) {
	return o->type == RV_OPT_STRING || o->type == RV_OPT_ENUM || o->type == RV_OPT_LIST;
}

bool rv_option_has_choices(const struct rv_option *o) {
	return o->type == RV_OPT_ENUM || o->type == RV_OPT_CHOICE;
}

const char *rv_option_type_text(const struct rv_option *o) {
	return rv_option_has_choices(o) ? o->choices : kind_of(o)->takes;
}

const char *rv_option_placeholder(const struct rv_option *o) {
	return kind_of(o)->placeholder;
}

static bool is_bounded(const struct rv_option *o) {
	return o->min != 0 || o->max != 0;
}

/* Writes a limit in the largest unit that shows it exactly in few digits. */
static void limit_text(const struct rv_option *o, double v, char *out, size_t cap) {
	const struct unit *best = &no_units[0];
	for (const struct unit *u = kind_of(o)->units; u && u->name; u++) {
		bool shown = o->type == RV_OPT_RATE ? strstr(u->name, "bit") && !strchr(u->name, '/')
											: u->scale < 1e3 || o->type == RV_OPT_DURATION_MS || strstr(u->name, "iB");
		if (shown && u->scale >= best->scale && v != 0 && fmod(v, u->scale) == 0)
			best = u;
	}
	if (fabs(v) <= 0x1p53 && v == trunc(v))
		(void)snprintf(out, cap, "%.0f%s", v / best->scale, best->name);
	else
		(void)snprintf(out, cap, "%.15g%s", v / best->scale, best->name);
}

void rv_option_range_text(const struct rv_option *o, char *out, size_t cap) {
	char low[64], high[64];
	out[0] = '\0';
	if (!is_bounded(o) || rv_option_is_text(o) || rv_option_has_choices(o) || o->type == RV_OPT_BOOL)
		return;
	limit_text(o, o->min, low, sizeof low);
	limit_text(o, o->max, high, sizeof high);
	(void)snprintf(out, cap, "[%s, %s]%s", low, high, o->type == RV_OPT_RATE && o->min > 0 ? ", or 0" : "");
}

void rv_option_facts_text(const struct rv_option *o, char *out, size_t cap) {
	char range[160];
	rv_option_range_text(o, range, sizeof range);
	const char *fallback = !o->fallback ? "required" : o->fallback[0] ? o->fallback : "none";
	const bool chosen = rv_option_has_choices(o);
	(void)snprintf(out, cap, "(%s%s%s%s%s%s)", o->fallback ? "default: " : "", fallback, chosen ? "; one of " : "",
				   chosen ? o->choices : "", range[0] ? "; range: " : "", range);
}

const char *rv_option_group(const struct rv_option *o) {
	return o->group ? o->group : "Options";
}

bool rv_option_begins_group(const struct rv_option *table, const struct rv_option *o) {
	for (const struct rv_option *p = table; p < o; p++)
		if (strcmp(rv_option_group(p), rv_option_group(o)) == 0)
			return false;
	return true;
}

static enum rv_err fail_malformed(const struct rv_option *o, const char *text, struct rv_errtext *et) {
	return rv_fail(et, RV_E_INVALID, "%s = %.100s: must be %s", o->name, text[0] ? text : "(nothing)",
				   rv_option_type_text(o));
}

static enum rv_err check_range(const struct rv_option *o, double v, const char *text, struct rv_errtext *et) {
	bool none = o->type == RV_OPT_RATE && v == 0;
	if (!is_bounded(o) || none || (v >= o->min && v <= o->max))
		return RV_OK;
	char range[160];
	rv_option_range_text(o, range, sizeof range);
	return rv_fail(et, RV_E_RANGE, "%s = %.100s: must be in %s", o->name, text, range);
}

/* Reads a plain decimal: no hex, NaN, infinity or leading space, unlike strtod. Sets *end after
 * it. */
static bool read_decimal(const char *text, double *v, const char **end) {
	size_t n = text[0] == '-' || text[0] == '+';
	if (!isdigit((unsigned char)text[n]) && text[n] != '.')
		return false;
	if (text[n] == '0' && (text[n + 1] == 'x' || text[n + 1] == 'X'))
		return false;
	char *stop;
	*v = strtod(text, &stop);
	*end = stop;
	return stop != text && isfinite(*v);
}

static enum rv_err parse_double(const struct rv_option *o, const char *text, void *field, struct rv_errtext *et) {
	const char *end;
	double v;
	if (!read_decimal(text, &v, &end) || *end)
		return fail_malformed(o, text, et);
	RV_TRY(check_range(o, v, text, et));
	*(double *)field = v == 0 ? 0 : v; /* no negative zero: equal values have equal texts */
	return RV_OK;
}

/* Reads a number that is all digits: exact over the whole of int64_t. */
static enum rv_err parse_whole(const struct rv_option *o, const char *text, int64_t *out, struct rv_errtext *et) {
	char *end;
	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (*end)
		return fail_malformed(o, text, et);
	if (errno == ERANGE || v == INT64_MIN) /* INT64_MIN marks "not set" */
		return rv_fail(et, RV_E_RANGE, "%s = %.100s: does not fit in 63 bits", o->name, text);
	*out = v;
	return RV_OK;
}

/* Reads a number and one of the type's units. */
static enum rv_err parse_scaled(const struct rv_option *o, const char *text, int64_t *out, struct rv_errtext *et) {
	const char *end;
	double v;
	if (!read_decimal(text, &v, &end))
		return fail_malformed(o, text, et);
	while (*end == ' ')
		end++;
	const struct unit *u = kind_of(o)->units;
	while (u->name && strcmp(u->name, end) != 0)
		u++;
	if (!u->name)
		return fail_malformed(o, text, et);
	v *= u->scale;
	if (fabs(v) >= 0x1p63)
		return rv_fail(et, RV_E_RANGE, "%s = %.100s: does not fit in 63 bits", o->name, text);
	if (v != trunc(v))
		return rv_fail(et, RV_E_INVALID, "%s = %.100s: not a whole number of %s", o->name, text,
					   kind_of(o)->smallest_unit);
	*out = (int64_t)v;
	return RV_OK;
}

/* Returns true for "0" and the words for no limit. */
static bool is_no_rate(const char *text) {
	return strcmp(text, "0") == 0 || strcmp(text, "unlimited") == 0 || strcmp(text, "none") == 0;
}

static enum rv_err parse_integer(const struct rv_option *o, const char *text, void *field, struct rv_errtext *et) {
	int64_t v = 0;
	size_t sign = text[0] == '-' || text[0] == '+';
	if (o->type == RV_OPT_RATE && is_no_rate(text))
		text = "0";
	if (!isdigit((unsigned char)text[sign]))
		return fail_malformed(o, text, et);
	const bool all_digits = strspn(text + sign, "0123456789") == strlen(text + sign);
	const bool is_bare = all_digits && (o->type != RV_OPT_RATE || strcmp(text, "0") == 0);
	if (o->type == RV_OPT_INT || is_bare)
		RV_TRY(parse_whole(o, text, &v, et));
	else
		RV_TRY(parse_scaled(o, text, &v, et));
	RV_TRY(check_range(o, (double)v, text, et));
	*(int64_t *)field = v;
	return RV_OK;
}

static enum rv_err parse_bool(const struct rv_option *o, const char *text, void *field, struct rv_errtext *et) {
	static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {"no", "false", "off", "0"};
	for (int i = 0; i < 4; i++) {
		if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
			*(bool *)field = strcmp(text, yes[i]) == 0;
			return RV_OK;
		}
	}
	return fail_malformed(o, text, et);
}

static enum rv_err parse_string(const struct rv_option *o, const char *text, void *field, struct rv_errtext *et) {
	size_t n = strlen(text), cap = o->cap < RV_OPTION_TEXT_BYTES ? o->cap : RV_OPTION_TEXT_BYTES;
	if (n >= cap)
		return rv_fail(et, RV_E_RANGE, "%s = %.60s...: %zu bytes, the limit is %zu", o->name, text, n, cap - 1);
	if (n == 0 && o->min > 0)
		return rv_fail(et, RV_E_INVALID, "%s = (nothing): give it a value, or leave it out", o->name);
	for (const char *c = text; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return rv_fail(et, RV_E_INVALID, "%s: holds the control character 0x%02x at byte %td", o->name,
						   (unsigned)(unsigned char)*c, c - text);
	}
	memset(field, 0, o->cap); /* padding too: equal values have equal bytes */
	memcpy(field, text, n + 1);
	return RV_OK;
}

/* Adds a text behind those that are there. */
static enum rv_err parse_list(const struct rv_option *o, const char *text, void *field, struct rv_errtext *et) {
	char one[RV_OPTION_TEXT_BYTES], *list = field;
	const struct rv_option single = {.name = o->name, .cap = sizeof one, .min = 1};
	const size_t n = strlen(list), cap = o->cap < RV_OPTION_TEXT_BYTES ? o->cap : RV_OPTION_TEXT_BYTES;
	RV_TRY(parse_string(&single, text, one, et));
	if (n + strlen(one) + 2 > cap)
		return rv_fail(et, RV_E_RANGE, "%s = %.60s: all of them together have more than %zu bytes", o->name, text,
					   cap - 2);
	(void)snprintf(list + n, cap - n, "%s%s", n > 0 ? "\n" : "", one);
	return RV_OK;
}

static bool nearest_choice(const char *choices, const char *text, char *out, size_t cap) {
	enum { CHOICES_MAX = 16, CHOICE_BYTES = 64 };
	char names[CHOICES_MAX][CHOICE_BYTES];
	const char *list[CHOICES_MAX];
	int n = 0;
	for (const char *at = choices; n < CHOICES_MAX;) {
		int len = (int)strcspn(at, "|");
		(void)snprintf(names[n], CHOICE_BYTES, "%.*s", len, at);
		list[n] = names[n];
		n++;
		if (!at[len])
			break;
		at += len + 1;
	}
	const char *near = rv_nearest_name(text, list, n);
	if (near)
		(void)snprintf(out, cap, "%s", near);
	return near != NULL;
}

/* Returns the place of `text` among the choices; -1 if it is not one. */
static int find_choice(const char *choices, const char *text) {
	const size_t n = strlen(text);
	for (int place = 0;; place++) {
		const size_t len = strcspn(choices, "|");
		if (n > 0 && len == n && memcmp(choices, text, n) == 0)
			return place;
		if (!choices[len])
			return -1;
		choices += len + 1;
	}
}

static enum rv_err fail_choice(const struct rv_option *o, const char *text, struct rv_errtext *et) {
	char near[64];
	if (nearest_choice(o->choices, text, near, sizeof near))
		return rv_fail(et, RV_E_INVALID, "%s = %.100s: must be one of %s; did you mean %s?", o->name, text, o->choices,
					   near);
	return rv_fail(et, RV_E_INVALID, "%s = %.100s: must be one of %s", o->name, text, o->choices);
}

static enum rv_err parse_enum(const struct rv_option *o, const char *text, void *field, struct rv_errtext *et) {
	return find_choice(o->choices, text) >= 0 ? parse_string(o, text, field, et) : fail_choice(o, text, et);
}

static enum rv_err parse_choice(const struct rv_option *o, const char *text, void *field, struct rv_errtext *et) {
	const int place = find_choice(o->choices, text);
	if (place < 0)
		return fail_choice(o, text, et);
	*(int *)field = place;
	return RV_OK;
}

static void print_bool(const struct rv_option *o, const void *field, char *out) {
	(void)o;
	(void)snprintf(out, RV_OPTION_TEXT_BYTES, "%s", *(const bool *)field ? "yes" : "no");
}

static void print_integer(const struct rv_option *o, const void *field, char *out) {
	(void)o;
	(void)snprintf(out, RV_OPTION_TEXT_BYTES, "%" PRId64, *(const int64_t *)field);
}

/* Writes the fewest digits that read back as the same double. */
static void print_double(const struct rv_option *o, const void *field, char *out) {
	const double v = *(const double *)field;
	(void)o;
	for (int digits = 1; digits <= 17; digits++) {
		(void)snprintf(out, RV_OPTION_TEXT_BYTES, "%.*g", digits, v);
		if (strtod(out, NULL) == v)
			return;
	}
}

static void print_string(const struct rv_option *o, const void *field, char *out) {
	(void)o;
	(void)snprintf(out, RV_OPTION_TEXT_BYTES, "%s", (const char *)field);
}

static void print_choice(const struct rv_option *o, const void *field, char *out) {
	const char *at = o->choices;
	for (int i = 0; i < *(const int *)field; i++) {
		at += strcspn(at, "|");
		RV_ASSERT(*at == '|');
		at++;
	}
	(void)snprintf(out, RV_OPTION_TEXT_BYTES, "%.*s", (int)strcspn(at, "|"), at);
}

/* Writes a rate in the largest unit of bits that shows it exactly. */
static void print_rate(const struct rv_option *o, const void *field, char *out) {
	static const struct unit units[] = {{"gbit", 125e6}, {"mbit", 125e3}, {"kbit", 125}};
	const int64_t rate = *(const int64_t *)field;
	(void)o;
	for (int i = 0; i < 3; i++) {
		const int64_t scale = (int64_t)units[i].scale;
		if (rate == 0 || rate % scale != 0)
			continue;
		(void)snprintf(out, RV_OPTION_TEXT_BYTES, "%" PRId64 "%s", rate / scale, units[i].name);
		return;
	}
	(void)snprintf(out, RV_OPTION_TEXT_BYTES, rate == 0 ? "unlimited" : "%" PRId64 "B/s", rate);
}

static const struct kind kinds[] = {
	[RV_OPT_BOOL] = {"yes or no", "", .parse = parse_bool, .print = print_bool},
	[RV_OPT_INT] = {"a whole number", " N", .parse = parse_integer, .print = print_integer},
	[RV_OPT_DOUBLE] = {"a number", " X", .parse = parse_double, .print = print_double},
	[RV_OPT_STRING] = {"text", " TEXT", .parse = parse_string, .print = print_string},
	[RV_OPT_ENUM] = {NULL, " NAME", .parse = parse_enum, .print = print_string},
	[RV_OPT_CHOICE] = {NULL, " NAME", .parse = parse_choice, .print = print_choice},
	[RV_OPT_BYTES] = {"a size such as 4096, 64KiB or 1.5MB", " SIZE", byte_units, "bytes", parse_integer,
					  print_integer},
	[RV_OPT_DURATION_MS] = {"a duration such as 500ms, 20s, 5m, 2h, 7d, 4w or 1y (a bare number is milliseconds)",
							" TIME", time_units, "milliseconds", parse_integer, print_integer},
	[RV_OPT_RATE] = {"a rate in bits or bytes a second such as 20mbit or 2.5MB, or 0 or unlimited for no limit",
					 " RATE", rate_units, "bytes a second", parse_integer, print_rate},
	[RV_OPT_LIST] = {"text", " TEXT ...", .parse = parse_list, .print = print_string},
};

static const struct kind *kind_of(const struct rv_option *o) {
	RV_ASSERT((size_t)o->type < sizeof kinds / sizeof kinds[0]);
	return &kinds[o->type];
}

enum rv_err rv_option_value_parse(const struct rv_option *o, void *opts, const char *text, struct rv_errtext *et) {
	return kind_of(o)->parse(o, text, (char *)opts + o->offset, et);
}

void rv_option_value_print(const struct rv_option *o, const void *opts, char out[static RV_OPTION_TEXT_BYTES]) {
	kind_of(o)->print(o, (const char *)opts + o->offset, out);
}

bool rv_option_value_same(const struct rv_option *o, const void *a, const void *b) {
	char x[RV_OPTION_TEXT_BYTES], y[RV_OPTION_TEXT_BYTES];
	if (!rv_option_value_is_set(o, a) || !rv_option_value_is_set(o, b))
		return rv_option_value_is_set(o, a) == rv_option_value_is_set(o, b);
	rv_option_value_print(o, a, x);
	rv_option_value_print(o, b, y);
	return strcmp(x, y) == 0;
}

void rv_option_value_unset(const struct rv_option *o, void *opts) {
	void *field = (char *)opts + o->offset;
	RV_ASSERT(o->type != RV_OPT_BOOL);
	if (rv_option_is_text(o))
		memset(field, 0, o->cap);
	else if (o->type == RV_OPT_CHOICE)
		*(int *)field = -1;
	else if (o->type == RV_OPT_DOUBLE)
		*(double *)field = NAN;
	else
		*(int64_t *)field = INT64_MIN;
}

bool rv_option_value_is_set(const struct rv_option *o, const void *opts) {
	const void *field = (const char *)opts + o->offset;
	if (o->fallback)
		return true;
	if (rv_option_is_text(o))
		return *(const char *)field != '\0';
	if (o->type == RV_OPT_CHOICE)
		return *(const int *)field >= 0;
	if (o->type == RV_OPT_DOUBLE)
		return !isnan(*(const double *)field);
	return *(const int64_t *)field != INT64_MIN;
}
