/* query.c: see query.h. */
#include "net/http_server/query.h"

#include <stdbool.h>
#include <string.h>

enum { DIGITS_MAX = 19 }; /* 10^19 - 1 fits into 64 bits */

static bool parse_digits(const char *text, size_t n, uint64_t *out) {
	uint64_t v = 0;
	if (n == 0 || n > DIGITS_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(text[i] - '0');
	}
	*out = v;
	return true;
}

enum query_result query_number(const char *text, size_t n, const char *name, uint64_t *out) {
	enum query_result result = QUERY_ABSENT;
	size_t name_n = strlen(name);
	for (size_t at = 0, len; at < n; at += len + 1) {
		const char *field = text + at, *end = memchr(field, '&', n - at);
		len = end != NULL ? (size_t)(end - field) : n - at;
		if (len < name_n || memcmp(field, name, name_n) != 0 || (len > name_n && field[name_n] != '='))
			continue;
		bool number = len > name_n && parse_digits(field + name_n + 1, len - name_n - 1, out);
		if (!number || result != QUERY_ABSENT)
			return QUERY_INVALID;
		result = QUERY_NUMBER;
	}
	return result;
}
