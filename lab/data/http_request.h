/* http_request.h: the head of an HTTP/1.1 request (RFC 9112) for a file of one directory. Pure
 * functions: bytes in, the request out. */
#ifndef RV_LAB_DATA_HTTP_REQUEST_H
#define RV_LAB_DATA_HTTP_REQUEST_H

#include "net/http_range.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_HEAD_BYTES = 8192, HTTP_NAME_BYTES = 64 };

enum http_status {
	HTTP_OK = 200,
	HTTP_PARTIAL = 206,
	HTTP_BAD_REQUEST = 400,
	HTTP_NOT_FOUND = 404,
	HTTP_NOT_ALLOWED = 405,
	HTTP_NOT_SATISFIABLE = 416,
	HTTP_UNAVAILABLE = 503
};

struct http_request_head {
	enum http_status fault;     /* HTTP_OK: the fields below hold */
	char name[HTTP_NAME_BYTES]; /* of a published file; no slash, no leading dot */
	bool wants_body;            /* false: HEAD */
	bool keeps_alive;
	struct http_range range;
};

/* Returns the length of a head that `bytes` begin with, its empty line included; 0: not whole. */
size_t http_head_length(const char *bytes, size_t n);
/* Reads a whole head of n bytes. */
struct http_request_head http_request_of(const char *head, size_t n);
#endif
