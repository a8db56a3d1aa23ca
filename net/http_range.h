/* http_range.h: ranges of bytes in requests over HTTP (RFC 9110, section 14). Pure functions. */
#ifndef RV_NET_HTTP_RANGE_H
#define RV_NET_HTTP_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_RANGE_TEXT_BYTES = 96 };

struct http_range {
	bool is_given;        /* false: all bytes */
	bool is_suffix;       /* the last `first` bytes; else from `first` to `last` */
	uint64_t first, last; /* `last` UINT64_MAX: to the end */
};

/* Reads the value of a Range header, n bytes: "bytes=A-B", "bytes=A-" or "bytes=-N". Anything else,
 * such as several ranges, is none, as RFC 9110 allows. */
struct http_range http_range_read(const char *value, size_t n);
/* Cuts the range to a file of `bytes` bytes: *first and *n of what to send. Returns the status:
 * 200, 206 or 416 (no byte of the file is in it). */
int http_range_cut(const struct http_range *r, uint64_t bytes, uint64_t *first, uint64_t *n);
/* Writes the value of Content-Range for the status 206 or 416. */
void http_range_text(int status, uint64_t first, uint64_t n, uint64_t bytes, char out[static HTTP_RANGE_TEXT_BYTES]);

#endif
