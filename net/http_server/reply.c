/* reply.c: see reply.h. */
#include "net/http_server/reply.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <string.h>

void reply(struct evhttp_request *rq, int status, const char *type, const void *body, size_t n) {
	struct evkeyvalq *headers = evhttp_request_get_output_headers(rq);
	struct evbuffer *out = evhttp_request_get_output_buffer(rq);
	(void)evhttp_add_header(headers, "Cache-Control", "no-store");
	(void)evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	if (type != NULL)
		(void)evhttp_add_header(headers, "Content-Type", type);
	if (evhttp_request_get_command(rq) == EVHTTP_REQ_HEAD) {
		char length[24];
		(void)snprintf(length, sizeof length, "%zu", n);
		(void)evhttp_add_header(headers, "Content-Length", length);
	} else if (n > 0) {
		(void)evbuffer_add(out, body, n);
	}
	evhttp_send_reply(rq, status, NULL, NULL);
}

void reply_text(struct evhttp_request *rq, int status, const char *text) {
	char line[RV_ERRTEXT_BYTES + 1];
	int n = snprintf(line, sizeof line, "%s\n", text);
	reply(rq, status, "text/plain; charset=utf-8", line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

void reply_drop(struct evhttp_request *rq) {
	if (evhttp_request_get_connection(rq) == NULL)
		evhttp_request_free(rq);
}

int reply_status_of(enum rv_err e) {
	switch (e) {
	case RV_E_AUTH:
		return STATUS_FORBIDDEN;
	case RV_E_INVALID:
	case RV_E_RANGE:
		return STATUS_BAD_REQUEST;
	case RV_E_NOTFOUND:
		return STATUS_NOT_FOUND;
	case RV_E_OVER:
		return STATUS_GONE;
	case RV_E_WAITING:
		return STATUS_ACCEPTED;
	case RV_E_PROTOCOL:
	case RV_E_FULL:
		return STATUS_CONFLICT;
	case RV_E_IO:
	case RV_E_BUSY:
	case RV_E_NOMEM:
		return STATUS_UNAVAILABLE;
	default:
		return STATUS_ERROR;
	}
}

void reply_result(struct evhttp_request *rq, enum rv_err e, const struct rv_errtext *et) {
	if (e == RV_OK)
		reply(rq, STATUS_NO_CONTENT, NULL, NULL, 0);
	else
		reply_text(rq, reply_status_of(e), et->text);
}
