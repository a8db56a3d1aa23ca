/* http_range.c: see http_range.h. */
#include "net/http_range.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

enum { DIGITS_MAX = 18, OK = 200, PARTIAL = 206, NOT_SATISFIABLE = 416 };

/* Bytes that are still to be read, not NUL-terminated. */
struct rest {
	const char *at;
	size_t n;
};

static bool take_char(struct rest *r, char c) {
	if (r->n == 0 || *r->at != c)
		return false;
	r->at++;
	r->n--;
	return true;
}

/* Reads decimal digits. Returns false if there are none, or too many for a file's size. */
static bool take_number(struct rest *r, uint64_t *out) {
	size_t digits = 0;
	for (*out = 0; r->n > 0 && isdigit((unsigned char)*r->at) && digits < DIGITS_MAX; digits++, r->at++, r->n--)
		*out = *out * 10 + (uint64_t)(*r->at - '0');
	return digits > 0 && !(r->n > 0 && isdigit((unsigned char)*r->at));
}

struct http_range http_range_read(const char *value, size_t n) {
	static const char unit[] = "bytes=";
	const struct http_range none = {.is_given = false};
	struct http_range out = {.is_given = true, .last = UINT64_MAX};
	const size_t skip = sizeof unit - 1;
	if (n < skip || strncasecmp(value, unit, skip) != 0)
		return none;
	struct rest r = {value + skip, n - skip};
	out.is_suffix = r.n > 0 && *r.at == '-';
	if ((!out.is_suffix && !take_number(&r, &out.first)) || !take_char(&r, '-'))
		return none;
	if (out.is_suffix ? !take_number(&r, &out.first) : r.n > 0 && !take_number(&r, &out.last))
		return none;
	return r.n > 0 || (!out.is_suffix && out.last < out.first) ? none : out;
}

int http_range_cut(const struct http_range *r, uint64_t bytes, uint64_t *first, uint64_t *n) {
	*first = 0;
	*n = bytes;
	if (!r->is_given)
		return OK;
	if (r->is_suffix ? r->first == 0 || bytes == 0 : r->first >= bytes)
		return NOT_SATISFIABLE;
	if (r->is_suffix) {
		*n = r->first < bytes ? r->first : bytes;
		*first = bytes - *n;
		return PARTIAL;
	}
	*first = r->first;
	*n = (r->last < bytes ? r->last + 1 : bytes) - r->first;
	return PARTIAL;
}

void http_range_text(int status, uint64_t first, uint64_t n, uint64_t bytes, char out[static HTTP_RANGE_TEXT_BYTES]) {
	if (status == PARTIAL)
		(void)snprintf(out, HTTP_RANGE_TEXT_BYTES, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, first, first + n - 1,
					   bytes);
	else
		(void)snprintf(out, HTTP_RANGE_TEXT_BYTES, "bytes */%" PRIu64, bytes);
}
