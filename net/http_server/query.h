/* query.h: whole numbers after the '?' of an address, and in form bodies: "after=7",
 * "member=3&banned=1". */
#ifndef RV_NET_HTTP_SERVER_QUERY_H
#define RV_NET_HTTP_SERVER_QUERY_H

#include <stddef.h>
#include <stdint.h>

enum query_result { QUERY_ABSENT, QUERY_NUMBER, QUERY_INVALID };

/* Looks for `name` in text (n bytes, no terminator needed; NULL with n = 0 is fine). QUERY_NUMBER:
 * *out is its value; QUERY_INVALID: it occurs twice, or its value is not 1 to 19 decimal digits.
 * Other names are ignored; nothing is decoded (a digit needs no escaping). */
enum query_result query_number(const char *text, size_t n, const char *name, uint64_t *out);

#endif
