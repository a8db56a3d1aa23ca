/* connections.h: the TLS connections of the web server, counted and timed. evhttp makes one bufferevent for each
 * accepted socket; this module makes it, knows it by its SSL object, and ends those that take too long.
 * Single-threaded. */
#ifndef RV_COORDINATOR_CONNECTIONS_H
#define RV_COORDINATOR_CONNECTIONS_H

#include "base/err.h"
#include "net/limits.h"

#include <event2/bufferevent.h>
#include <event2/http.h>
#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>

struct connections;

/* `ctx` is borrowed. on_full(ctx, true) when `max` are open: accept no more; (ctx, false) when there is room again.
 * When it is full, the oldest connection that is not `known` (connections_touch) is ended; when more than a fourth of
 * `max` that are not known come from one address, the oldest of those. RV_E_NOMEM. */
enum rv_err connections_new(SSL_CTX *ctx, int max, void (*on_full)(void *owner, bool full), void *owner,
							struct connections **out, struct rv_errtext *et);
/* After all its bufferevents are gone (evhttp_free). NULL is fine. */
void connections_free(struct connections *c);

/* evhttp_set_bevcb's callback; `connections` as void *. NULL when there is no memory: evhttp goes on with plain HTTP
 * then, and connections_is_secure() is false for every request that comes that way. */
struct bufferevent *connections_make(struct event_base *base, void *connections);
/* False: refuse the request, and call nothing below for it. */
bool connections_is_secure(struct evhttp_request *rq);
/* A whole request has arrived: the connection may stay for another while. `known`: from a member or the operator. */
void connections_touch(struct connections *c, struct evhttp_request *rq, bool known, int64_t now_us);
/* Ends every connection that has not sent a whole request for too long. About once a second. */
void connections_sweep(struct connections *c, int64_t now_us);
int connections_count(const struct connections *c);

/* The raw key of the client's certificate; false: it showed none. */
bool connections_key(struct evhttp_request *rq, uint8_t key[NET_KEY_BYTES]);

#endif
