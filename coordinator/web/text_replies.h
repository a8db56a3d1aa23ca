/* text_replies.h: sends files of the run's text to members: in parts of 64 KiB, as text_turns.h
 * says; requests beyond its bounds are answered 503 with Retry-After. Single-threaded. */
#ifndef RV_COORDINATOR_TEXT_REPLIES_H
#define RV_COORDINATOR_TEXT_REPLIES_H

#include "base/event.h"
#include "coordinator/service/service.h"
#include "coordinator/web/connections.h"
#include "coordinator/web/served_text.h"
#include "coordinator/web/text_turns.h"

#include <event2/http.h>

struct text_replies_config {
	struct served_text *text; /* borrowed; NULL: there is none, every answer is 404 */
	int64_t bytes_per_s;      /* of all answers together; 0: no limit */
	struct connections *connections;
	struct rv_events *events;     /* borrowed; NULL: no log */
	void (*changed)(void *owner); /* deadlines may have moved */
	void *owner;
};

struct text_replies; /* opaque */
/* Makes a server of the run's text that has no request yet. RV_E_NOMEM. */
enum rv_err text_replies_new(const struct text_replies_config *cfg, struct text_replies **out, struct rv_errtext *et);
void text_replies_free(struct text_replies *r); /* it is empty, asserted; NULL is fine */
/* Forgets all; their connections are about to be closed. */
void text_replies_end_all(struct text_replies *r);

/* Answers a member's request for the file `name`, with its range, from the next text_replies_tick
 * on. */
void text_replies_take(struct text_replies *r, struct evhttp_request *rq, const uint8_t key[NET_KEY_BYTES],
					   const char *name);
/* Sends what is due. May close connections: not to be called while one of their requests is being
 * taken. */
void text_replies_tick(struct text_replies *r, int64_t now_us);
int64_t text_replies_deadline_us(const struct text_replies *r); /* INT64_MAX: none */
const struct text_totals *text_replies_totals(const struct text_replies *r);

#endif
