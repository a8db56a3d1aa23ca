/* http_client.h: the worker's line to its coordinator, and the wait at the heart of the worker's event loop.
 *
 * Asynchronous HTTPS (libcurl multi) to one server that is known by its raw Ed25519 key: TLS 1.3 only, the key pinned,
 * our identity as client certificate. Names and dates in certificates, proxies, .netrc and the environment play no
 * part. A request ends with exactly one callback; retrying is the caller's (every request of the control plane may be
 * repeated). One thread owns the client; only http_client_wakeup may be called from others. The
 * process must ignore SIGPIPE (base/signals.h does): OpenSSL writes to sockets that may be gone.
 */
#ifndef RV_NET_HTTP_CLIENT_H
#define RV_NET_HTTP_CLIENT_H

#include "base/err.h"
#include "net/address.h"
#include "net/identity.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HTTP_MAX_REQUESTS = 8, /* at once */
	HTTP_MAX_PATH_BYTES = 256
};

struct http_client_config {
	struct address server;
	uint8_t server_key[NET_KEY_BYTES];
	const struct identity *identity; /* used during http_client_new only */
	const char *server_name;         /* for error texts: "coordinator" when NULL; borrowed */
	int64_t connect_timeout_ms;      /* 0: 10 s */
};

struct http_reply {
	enum rv_err err;     /* RV_OK: the server answered, whatever the status */
	int status;          /* 200, ...; 0 when err */
	const uint8_t *body; /* borrowed until the callback returns; NUL-terminated for convenience */
	size_t body_bytes;
	const char *text; /* err: for people, e.g. "coordinator 10.0.0.1:7433 refused the connection: is it running?" */
};

struct http_request {
	const char *path; /* "/v1/report"; copied */
	const void *body; /* NULL: GET; else POST (application/octet-stream); copied */
	size_t body_bytes;
	size_t max_reply_bytes;                                  /* a longer reply ends the request with RV_E_RANGE */
	int64_t timeout_ms;                                      /* the whole request; 0: 30 s */
	void (*done)(void *ctx, const struct http_reply *reply); /* may start other requests; may not free the client */
	void *ctx;
};

struct http_client;

/* What `cfg` points to is borrowed. One thread, but for http_client_wakeup. RV_E_NOMEM, RV_E_INVALID (address). */
enum rv_err http_client_new(const struct http_client_config *cfg, struct http_client **out, struct rv_errtext *et);
/* Requests under way end without a callback. NULL is fine. */
void http_client_free(struct http_client *c);

/* Drops connections made from now on once what was sent stays unacknowledged for `ms` (TCP_USER_TIMEOUT, RFC 5482;
 * keepalive probes too). 10 s until then. */
void http_client_set_unacknowledged(struct http_client *c, int64_t ms);

/* RV_E_FULL: HTTP_MAX_REQUESTS under way; RV_E_NOMEM, RV_E_INVALID (path). *id (may be NULL) is never 0. */
enum rv_err http_client_start(struct http_client *c, const struct http_request *rq, uint32_t *id,
							  struct rv_errtext *et);
/* Ends a request without its callback; an id that has ended already is ignored. */
void http_client_cancel(struct http_client *c, uint32_t id);

/* Returns false until the server has answered once; then *out is its numeric address, as the last answer came from it.
 */
bool http_client_met(const struct http_client *c, struct address *out);
/* Shuts down the connections whose local address this machine no longer has: requests on them end with a fault now, not
 * when they time out. */
void http_client_drop_stranded(struct http_client *c);

/* The event loop's wait: until one of fds is ready (revents are filled; POLLIN and POLLOUT, POLLERR and POLLHUP), a
 * request moves, http_client_wakeup, or timeout_us (rounded up to a millisecond; negative: no limit). At most a minute
 * in any case. Then moves the requests and calls their callbacks. RV_E_IO: it cannot wait any more. */
enum rv_err http_client_poll(struct http_client *c, struct pollfd *fds, int n_fds, int64_t timeout_us,
							 struct rv_errtext *et);
/* Ends the current or the next wait at once. From any thread; not from signal handlers. */
void http_client_wakeup(struct http_client *c);

#endif
