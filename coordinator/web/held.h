/* held.h: requests that are answered later: for a document until the sender has news, reports that
 * come too soon, joins until their records are durable, and those of strangers that ask too often.
 * Single-threaded. */
#ifndef RV_COORDINATOR_HELD_H
#define RV_COORDINATOR_HELD_H

#include "coordinator/service/service.h"
#include "coordinator/web/connections.h"

#include <event2/http.h>

struct held_requests;

struct held_config {
	struct service *service;
	struct connections *connections;
	/* Answers a report that was held. */
	void (*take_report)(void *owner, struct evhttp_request *rq, int64_t now_us);
	/* Answers a join that was held, by service_join. */
	void (*answer_join)(void *owner, struct evhttp_request *rq, int64_t now_us);
	void (*changed)(void *owner); /* after a connection was closed: deadlines may have moved */
	void *owner;
};

/* Makes an empty list; borrows what `cfg` points to. RV_E_NOMEM. */
enum rv_err held_new(const struct held_config *cfg, struct held_requests **out, struct rv_errtext *et);
void held_free(struct held_requests *a); /* it is empty, asserted; NULL is fine */
/* Forgets all; their connections are about to be closed, and not by their members. */
void held_end_all(struct held_requests *a);

/* Answers a request for a document of the holder of `key` with its news, or holds it until it has
 * some, and until `until_us` at most. */
void held_document(struct held_requests *a, struct evhttp_request *rq, const uint8_t key[NET_KEY_BYTES],
				   const struct document_wish *wish, int64_t now_us, int64_t until_us);
/* Holds a report until then. */
void held_report(struct held_requests *a, struct evhttp_request *rq, const uint8_t key[NET_KEY_BYTES],
				 int64_t until_us);
/* Holds a join that service_begin_join took until no joins gather. A connection that closes
 * meanwhile takes nothing back: the same key gets its membership when it asks again. */
void held_join(struct held_requests *a, struct evhttp_request *rq, const uint8_t key[NET_KEY_BYTES]);
/* Refuses a page that comes too soon, after a second: one that asks again at once would have more
 * refusals than pages. */
void held_page(struct held_requests *a, struct evhttp_request *rq, int64_t now_us);

/* Answers those that are due. Costs nothing while no document has news. */
void held_tick(struct held_requests *a, int64_t now_us);
int64_t held_deadline_us(const struct held_requests *a); /* INT64_MAX: none */

#endif
