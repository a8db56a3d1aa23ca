/* json_limits.c: counts brackets and separators outside of strings. */
#include "base/json_limits.h"

/* Returns the index after the string that begins at text[at]. */
static size_t skip_string(const uint8_t *text, size_t n, size_t at) {
	for (at++; at < n && text[at] != '"'; at++)
		at += text[at] == '\\';
	return at < n ? at + 1 : n;
}

enum rv_err rv_json_check_limits(const uint8_t *text, size_t n, size_t max_containers, size_t max_values,
								 struct rv_errtext *et) {
	size_t containers = 0, values = 0;
	for (size_t at = 0; at < n;) {
		uint8_t c = text[at];
		containers += c == '[' || c == '{';
		values += c == ',' || c == ':';
		at = c == '"' ? skip_string(text, n, at) : at + 1;
	}
	if (containers > max_containers)
		return rv_fail(et, RV_E_RANGE, "%zu arrays and objects: the limit is %zu", containers, max_containers);
	if (values > max_values)
		return rv_fail(et, RV_E_RANGE, "%zu values: the limit is %zu", values, max_values);
	return RV_OK;
}
