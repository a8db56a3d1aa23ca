/* reply.h: answers to requests over HTTP, with the statuses of docs/protocol.md. Each ends its
 * request. */
#ifndef RV_NET_HTTP_SERVER_REPLY_H
#define RV_NET_HTTP_SERVER_REPLY_H

#include "base/err.h"

#include <event2/http.h>
#include <stddef.h>

enum {
	STATUS_OK = 200,
	STATUS_ACCEPTED = 202, /* not done yet: a person decides first */
	STATUS_NO_CONTENT = 204,
	STATUS_PARTIAL = 206,
	STATUS_IM_USED = 226, /* RFC 3229: what changed since what the sender has */
	STATUS_BAD_REQUEST = 400,
	STATUS_UNAUTHORIZED = 401,
	STATUS_FORBIDDEN = 403,
	STATUS_NOT_FOUND = 404,
	STATUS_METHOD = 405,
	STATUS_CONFLICT = 409,
	STATUS_GONE = 410, /* the run has ended */
	STATUS_TOO_MANY = 429,
	STATUS_ERROR = 500,
	STATUS_UNAVAILABLE = 503
};

/* Sends `n` bytes of `body`, after what the request's output buffer already holds. `type`: NULL:
 * none. HEAD is answered without the body. */
void reply(struct evhttp_request *rq, int status, const char *type, const void *body, size_t n);
/* Sends a line for people. */
void reply_text(struct evhttp_request *rq, int status, const char *text);
/* Sends 204, or the fault. */
void reply_result(struct evhttp_request *rq, enum rv_err e, const struct rv_errtext *et);
/* Frees a request that has no answer, in the callback of its connection's end: evhttp frees it
 * unless it has parted it from the connection, as for one that the client closed. */
void reply_drop(struct evhttp_request *rq);
/* Returns the status of a fault. */
int reply_status_of(enum rv_err e);

#endif
