/* hf_fields.c: reads typed fields and keeps the first fault. */
#include "train/model/hf_fields.h"

#include "train/model/hf_keys.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

struct hf_fields hf_begin(const json_t *json, struct rv_errtext *et) {
	return (struct hf_fields){.json = json, .read = json_object(), .et = et};
}

enum rv_err hf_end(struct hf_fields *f) {
	json_decref(f->read);
	f->read = NULL;
	return f->err;
}

/* Returns a field and records its key; without memory for that, the key is refused later. */
static const json_t *get(struct hf_fields *f, const char *key) {
	const json_t *v = json_object_get(f->json, key);
	(void)json_object_set_new(f->read, key, json_true());
	return json_is_null(v) ? NULL : v;
}

bool hf_has(struct hf_fields *f, const char *key) {
	return get(f, key) != NULL;
}

/* Keeps the first fault: `e`, with what is wrong with the field `key`. */
__attribute__((format(printf, 4, 5))) static void fault(struct hf_fields *f, enum rv_err e, const char *key,
														const char *fmt, ...) {
	char why[RV_ERRTEXT_BYTES];
	va_list ap;
	if (f->err != RV_OK)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	f->err = rv_fail(f->et, e, "\"%.80s\"%s", key, why);
}

static void wrong_type(struct hf_fields *f, const char *key, const char *want) {
	fault(f, RV_E_CORRUPT, key, " must be %s", want);
}

static void unsupported(struct hf_fields *f, const char *key, const char *have, const char *want) {
	fault(f, RV_E_UNSUPPORTED, key, " is %.80s; only %s is computed here", have, want);
}

void hf_refuse(struct hf_fields *f, const char *key, const char *why) {
	fault(f, RV_E_UNSUPPORTED, key, ": %s", why);
}

static void need(struct hf_fields *f, const char *key) {
	if (!hf_has(f, key))
		fault(f, RV_E_CORRUPT, key, " is missing");
}

int64_t hf_int(struct hf_fields *f, const char *key, int64_t fallback) {
	const json_t *v = get(f, key);
	if (!v)
		return fallback;
	if (json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) <= INT32_MAX)
		return json_integer_value(v);
	wrong_type(f, key, "a number without a fraction, from 0 to 2147483647");
	return fallback;
}

int64_t hf_positive_int(struct hf_fields *f, const char *key, int64_t fallback) {
	int64_t value = hf_int(f, key, fallback);
	if (hf_has(f, key) && value == 0)
		wrong_type(f, key, "a number from 1");
	return value;
}

double hf_real(struct hf_fields *f, const char *key, double fallback) {
	const json_t *v = get(f, key);
	if (!v)
		return fallback;
	if (json_is_number(v) && isfinite(json_number_value(v)))
		return json_number_value(v);
	wrong_type(f, key, "a number");
	return fallback;
}

bool hf_bool(struct hf_fields *f, const char *key, bool fallback) {
	const json_t *v = get(f, key);
	if (!v)
		return fallback;
	if (!json_is_boolean(v))
		wrong_type(f, key, "true or false");
	return json_is_true(v);
}

const char *hf_string(struct hf_fields *f, const char *key, const char *fallback) {
	const json_t *v = get(f, key);
	if (!v)
		return fallback;
	if (json_is_string(v))
		return json_string_value(v);
	wrong_type(f, key, "a text");
	return fallback;
}

double hf_need_real(struct hf_fields *f, const char *key) {
	need(f, key);
	return hf_real(f, key, 1);
}

int64_t hf_need_int(struct hf_fields *f, const char *key) {
	need(f, key);
	return hf_int(f, key, 1);
}

void hf_refuse_null(struct hf_fields *f, const char *key) {
	if (json_is_null(json_object_get(f->json, key)))
		wrong_type(f, key, "a value: it is null");
}

void hf_expect_bool(struct hf_fields *f, const char *key, bool fallback, bool want) {
	if (hf_bool(f, key, fallback) != want)
		unsupported(f, key, want ? "false" : "true", want ? "true" : "false");
}

void hf_expect_int(struct hf_fields *f, const char *key, int64_t fallback, int64_t want) {
	const int64_t value = hf_int(f, key, fallback);
	if (value != want)
		fault(f, RV_E_UNSUPPORTED, key, " is %" PRId64 "; only %" PRId64 " is computed here", value, want);
}

void hf_expect_real(struct hf_fields *f, const char *key, double fallback, double want) {
	const double value = hf_real(f, key, fallback);
	if ((float)value != (float)want)
		fault(f, RV_E_UNSUPPORTED, key, " is %g; only %g is computed here", value, want);
}

void hf_expect_empty(struct hf_fields *f, const char *key) {
	const json_t *v = get(f, key);
	if (v && json_object_size(v) + json_array_size(v) > 0)
		unsupported(f, key, "not empty", "an empty one");
}

/* Reports whether `value` is one of "a|b". */
static bool is_choice(const char *value, const char *choices) {
	size_t n = strlen(value);
	for (const char *c = choices; n > 0 && c; c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL)
		if (strncmp(c, value, n) == 0 && (c[n] == '|' || c[n] == '\0'))
			return true;
	return false;
}

void hf_expect_string(struct hf_fields *f, const char *key, const char *fallback, const char *choices) {
	const char *value = hf_string(f, key, fallback);
	if (!is_choice(value, choices))
		fault(f, RV_E_UNSUPPORTED, key, " is \"%.60s\"; only %s is computed here", value, choices);
}

void hf_expect_architecture(struct hf_fields *f, const char *choices) {
	static const char key[] = "architectures";
	const json_t *list = get(f, key), *v;
	size_t i;
	if (!list)
		return;
	if (!json_is_array(list) || json_array_size(list) == 0) {
		wrong_type(f, key, "a list of names");
		return;
	}
	json_array_foreach((json_t *)list, i, v) if (json_is_string(v) && is_choice(json_string_value(v), choices)) return;
	const char *first = json_string_value(json_array_get(list, 0));
	unsupported(f, key, first ? first : "no name", choices);
}

struct hf_fields hf_enter(struct hf_fields *f, const char *key) {
	const json_t *v = get(f, key);
	if (v && !json_is_object(v)) {
		wrong_type(f, key, "an object");
		v = NULL;
	}
	struct hf_fields part = hf_begin(v, f->et);
	part.err = f->err;
	return part;
}

void hf_leave(struct hf_fields *f, struct hf_fields *part) {
	f->err = hf_end(part);
}

void hf_refuse_unread(struct hf_fields *f) {
	const char *key;
	json_t *v;
	json_object_foreach((json_t *)(uintptr_t)f->json, key, v) {
		if (!json_is_null(v) && !json_object_get(f->read, key) && !hf_key_is_harmless(key))
			hf_refuse(f, key, hf_key_why(key));
	}
}

int64_t hf_context(int64_t positions) {
	for (const struct rv_option *o = run_config_options; o->name; o++)
		if (strcmp(o->name, "context") == 0 && (double)positions > o->max)
			return (int64_t)o->max;
	return positions;
}
