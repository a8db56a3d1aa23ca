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

/* Whose a connection is, once it has sent a request: a stranger shows no key of this run. */
enum connection_role { CONNECTION_STRANGER, CONNECTION_MEMBER, CONNECTION_OPERATOR };

/* A worker needs three; one that was started again may have left as many behind. */
enum { CONNECTIONS_PER_MEMBER = 6 };

/* `ctx` is borrowed. on_full(ctx, true) when `max` are open: accept no more; (ctx, false) when there is room again.
 *
 * So that nobody can keep the others out, some are ended, the oldest first: of a member's those beyond
 * CONNECTIONS_PER_MEMBER; of strangers' from one address those beyond a fourth of `max`; and where fewer than an eighth
 * of `max` are free for the operator (8 at most), of strangers' those beyond an eighth of `max`, then of the member that
 * has most. The operator's are never ended for others. RV_E_NOMEM. */
enum rv_err connections_new(SSL_CTX *ctx, int max, void (*on_full)(void *owner, bool full), void *owner,
							struct connections **out, struct rv_errtext *et);
/* After all its bufferevents are gone (evhttp_free). NULL is fine. */
void connections_free(struct connections *c);

/* evhttp_set_bevcb's callback; `connections` as void *. NULL when there is no memory: evhttp goes on with plain HTTP
 * then, and connections_is_secure() is false for every request that comes that way. */
struct bufferevent *connections_make(struct event_base *base, void *connections);
/* False: refuse the request, and call nothing below for it. */
bool connections_is_secure(struct evhttp_request *rq);
/* A whole request has arrived: the connection may stay for another while. `key`: its sender's; not looked at where it is
 * a stranger's. */
void connections_touch(struct connections *c, struct evhttp_request *rq, enum connection_role role, const uint8_t *key,
					   int64_t now_us);
/* It was ended for others. evhttp does not read while a request waits for its answer, so it frees the connection only when
 * that is sent. */
bool connections_has_ended(const struct connections *c, struct evhttp_request *rq);
/* Ends every connection that has not sent a whole request for too long. About once a second. */
void connections_sweep(struct connections *c, int64_t now_us);
int connections_count(const struct connections *c);

/* The raw key of the client's certificate; false: it showed none. */
bool connections_key(struct evhttp_request *rq, uint8_t key[NET_KEY_BYTES]);
/* The hosts at the two ends of the request's connection, as numbers; "" where it is gone. */
void connections_ends(struct evhttp_request *rq, char far[NET_ADDR_BYTES], char own[NET_ADDR_BYTES]);

#endif
