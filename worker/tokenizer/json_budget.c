/* json_budget.c: counts brackets and separators outside of strings. */
#include "worker/tokenizer/json_budget.h"

/* The index after the string that begins at text[at]. */
static size_t skip_string(const uint8_t *text, size_t n, size_t at) {
	for (at++; at < n && text[at] != '"'; at++)
		at += text[at] == '\\';
	return at < n ? at + 1 : n;
}

enum rv_err json_budget_check(const uint8_t *text, size_t n, struct rv_errtext *et) {
	size_t containers = 0, values = 0;
	for (size_t at = 0; at < n;) {
		uint8_t c = text[at];
		containers += c == '[' || c == '{';
		values += c == ',' || c == ':';
		at = c == '"' ? skip_string(text, n, at) : at + 1;
	}
	if (containers > JSON_MAX_CONTAINERS)
		return rv_fail(et, RV_E_RANGE, "%zu arrays and objects: the limit is %d", containers, JSON_MAX_CONTAINERS);
	if (values > JSON_MAX_VALUES)
		return rv_fail(et, RV_E_RANGE, "%zu values: the limit is %d", values, JSON_MAX_VALUES);
	return RV_OK;
}
