/* connections.h: the TLS connections of the web server, counted and timed. evhttp makes one
 * bufferevent for each accepted socket; this module makes it, knows it by its SSL object, and ends
 * those that take too long. Single-threaded. */
#ifndef RV_COORDINATOR_CONNECTIONS_H
#define RV_COORDINATOR_CONNECTIONS_H

#include "base/err.h"
#include "net/address.h"
#include "net/limits.h"

#include <event2/bufferevent.h>
#include <event2/http.h>
#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>

struct connections;

/* The sender of a connection's requests; a stranger shows no key of this run. */
enum connection_role { CONNECTION_STRANGER, CONNECTION_MEMBER, CONNECTION_OPERATOR };

/* Limit of connections per member. A worker needs three; a restarted one may have left as many
 * behind. */
enum { CONNECTIONS_PER_MEMBER = 6 };

/* Makes the connections' table. `ctx` is borrowed. on_full(ctx, true) when `max` are open: accept
 * no more; (ctx, false) when there is room again.
 *
 * So that no client can keep the others out, some are ended, the oldest first: a member's beyond
 * CONNECTIONS_PER_MEMBER; strangers' from one address beyond a fourth of `max`; and if fewer than
 * an eighth of `max` (at most 8) are free for the operator, strangers' beyond an eighth of `max`,
 * then those of the member that has most. The operator's are never ended for others. RV_E_NOMEM. */
enum rv_err connections_new(SSL_CTX *ctx, int max, void (*on_full)(void *owner, bool full), void *owner,
							struct connections **out, struct rv_errtext *et);
/* Sets where the coordinator is: the answer to plain HTTP names it (plain_http.h). */
void connections_at(struct connections *c, const struct address *place);
/* Makes connections by another context from now on, which is borrowed; those that are open stay. */
void connections_use(struct connections *c, SSL_CTX *ctx);
/* Frees the table after all its bufferevents are gone (evhttp_free). NULL is fine. */
void connections_free(struct connections *c);

/* Makes a connection: evhttp_set_bevcb's callback; `connections` as void *. NULL without memory:
 * evhttp then continues with plain HTTP, and connections_is_secure() is false for every request on
 * it. */
struct bufferevent *connections_make(struct event_base *base, void *connections);
/* Returns false for a request to be refused: the functions below must not be called for it. */
bool connections_is_secure(struct evhttp_request *rq);
/* Marks that a whole request has arrived, which extends the connection's deadline. `key`: its
 * sender's; ignored for a stranger's. */
void connections_touch(struct connections *c, struct evhttp_request *rq, enum connection_role role, const uint8_t *key,
					   int64_t now_us);
/* Extends the deadline of a connection whose answer is being sent. */
void connections_extend(const struct connections *c, struct evhttp_request *rq, int64_t now_us);
/* Returns true if it was ended for others. evhttp does not read while a request waits for its
 * answer, so it frees the connection only when that is sent. */
bool connections_has_ended(const struct connections *c, struct evhttp_request *rq);
/* Returns how many were ended since the start: while it stays, none has ended. */
uint64_t connections_ended(const struct connections *c);
/* Ends every connection that has not sent a whole request for too long. Called about once a
 * second. */
void connections_sweep(struct connections *c, int64_t now_us);
int connections_count(const struct connections *c);

/* Writes the raw key of the client's certificate; returns false if it showed none. */
bool connections_key(struct evhttp_request *rq, uint8_t key[NET_KEY_BYTES]);
/* Writes the hosts at the two ends of the request's connection, as numbers; "" if it is gone. */
void connections_ends(struct evhttp_request *rq, char far[NET_ADDR_BYTES], char own[NET_ADDR_BYTES]);

#endif
