/* http_client.h: the worker's requests to its coordinator, and the wait in the worker's event loop.
 *
 * Asynchronous HTTPS (libcurl multi) to the coordinator of one run: TLS 1.3 only, the server's key
 * must serve the run (net/serving_cert.h), our identity as client certificate. Names and dates in
 * certificates, proxies, .netrc and the environment play no part. A request ends with exactly one
 * callback; the caller retries (every request of the control plane may be repeated).
 *
 * One thread owns the client; other threads may call only http_client_wakeup. The process must
 * ignore SIGPIPE (base/signals.h does): OpenSSL writes to sockets that may be gone. */
#ifndef RV_NET_HTTP_CLIENT_H
#define RV_NET_HTTP_CLIENT_H

#include "base/err.h"
#include "net/address.h"
#include "net/identity.h"
#include "net/serving_cert.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HTTP_MAX_REQUESTS = 8, /* at the same time */
	HTTP_MAX_PATH_BYTES = 256
};

struct http_client_config {
	struct address server;
	struct run_trust trust;          /* what is believed at first of who serves the run */
	const struct identity *identity; /* used during http_client_new only */
	const char *server_name;         /* for error texts: "coordinator" when NULL; borrowed */
	int64_t connect_timeout_ms;      /* 0: 10 s */
};

struct http_reply {
	enum rv_err err;     /* RV_OK: the server answered, whatever the status */
	int status;          /* 200, ...; 0 when err */
	const uint8_t *body; /* borrowed until the callback returns; NUL-terminated for convenience */
	size_t body_bytes;
	const char *text; /* if err: for people, e.g. "coordinator 10.0.0.1:7433 refused the connection: is it running?" */
};

struct http_request {
	const char *path; /* "/v1/report"; copied */
	const void *body; /* NULL: GET; else POST (application/octet-stream); copied */
	size_t body_bytes;
	uint64_t range_begin, range_bytes; /* GET: a part of the file ("Range"); range_bytes 0: all of it */
	size_t max_reply_bytes;            /* a longer reply ends the request with RV_E_RANGE */
	int64_t timeout_ms;                /* the whole request; 0: 30 s */
	void (*done)(void *ctx, const struct http_reply *reply); /* may start other requests; may not free the client */
	void *ctx;
};

struct http_client;

/* Makes a client; borrows what `cfg` points to until it is freed. RV_E_NOMEM, RV_E_INVALID
 * (address). */
enum rv_err http_client_new(const struct http_client_config *cfg, struct http_client **out, struct rv_errtext *et);
/* Frees the client; requests under way end without a callback. `c` may be NULL. */
void http_client_free(struct http_client *c);

/* Returns what the client believes now of who serves the run; borrowed. It changes when a server
 * brings a newer serving certificate, in http_client_poll. */
const struct run_trust *http_client_trust(const struct http_client *c);

/* Sets how long sent data may stay unacknowledged before a connection made from now on is dropped
 * (TCP_USER_TIMEOUT, RFC 5482; keepalive probes follow it). 10 s until this is called. */
void http_client_set_unacknowledged(struct http_client *c, int64_t ms);

/* Starts a request. *id (may be NULL) is never 0. RV_E_FULL: HTTP_MAX_REQUESTS under way;
 * RV_E_NOMEM, RV_E_INVALID (path). */
enum rv_err http_client_start(struct http_client *c, const struct http_request *rq, uint32_t *id,
							  struct rv_errtext *et);
/* Ends a request without its callback; an id that has ended already is ignored. */
void http_client_cancel(struct http_client *c, uint32_t id);

/* Sets *out to the numeric address that the last answer came from. Returns false until the server
 * has answered once. */
bool http_client_met(const struct http_client *c, struct address *out);
/* Sets *out to this machine's own end of that connection. Returns false until then. */
bool http_client_own(const struct http_client *c, struct address *out);
/* Shuts down the connections whose local address this machine no longer has: requests on them end
 * with a fault now, not when they time out. */
void http_client_drop_stranded(struct http_client *c);
/* Shuts down all connections, as after this machine slept. */
void http_client_drop_all(struct http_client *c);

/* Bytes of HTTP, without what TLS and TCP add, of the requests that have ended. */
struct http_traffic {
	uint64_t tx_bytes, rx_bytes;
};
struct http_traffic http_client_traffic(const struct http_client *c);

/* Waits until one of `fds` is ready (fills revents: POLLIN, POLLOUT, POLLERR, POLLHUP), a request
 * progresses, http_client_wakeup is called, or `timeout_us` is over (rounded up to a millisecond;
 * negative: no limit), at most a minute. Then advances the requests and calls their callbacks.
 * RV_E_IO: waiting failed. */
enum rv_err http_client_poll(struct http_client *c, struct pollfd *fds, int n_fds, int64_t timeout_us,
							 struct rv_errtext *et);
/* Ends the current or the next wait at once. Callable from any thread, not from signal handlers. */
void http_client_wakeup(struct http_client *c);

#endif
