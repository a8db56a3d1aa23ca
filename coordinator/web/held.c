/* held.c: see held.h. Requests for documents are held equally long, so their list is in the order
 * in which they end; so is that of pages. */
#include "coordinator/web/held.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "net/http_server/reply.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum held_kind { HELD_DOCUMENT, HELD_REPORT, HELD_JOIN, HELD_PAGE, HELD_KINDS };

struct held {
	struct held_requests *all;
	TAILQ_ENTRY(held) link;
	struct evhttp_request *rq; /* it has the bytes of a report or a join */
	uint8_t key[NET_KEY_BYTES];
	enum held_kind kind;
	struct document_wish wish;
	int64_t until_us;
};

TAILQ_HEAD(held_list, held);

struct held_requests {
	struct held_config cfg;
	struct held_list lists[HELD_KINDS]; /* the first to end comes first, of documents and pages */
	uint64_t looked_seq;                /* of the documents for which all were looked at last */
	uint64_t looked_ended;              /* likewise connections_ended */
};

enum rv_err held_new(const struct held_config *cfg, struct held_requests **out, struct rv_errtext *et) {
	struct held_requests *a = calloc(1, sizeof *a);
	*out = a;
	if (a == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the web server");
	a->cfg = *cfg;
	for (int kind = 0; kind < HELD_KINDS; kind++)
		TAILQ_INIT(&a->lists[kind]);
	return RV_OK;
}

void held_free(struct held_requests *a) {
	for (int kind = 0; kind < HELD_KINDS; kind++)
		RV_ASSERT(a == NULL || TAILQ_EMPTY(&a->lists[kind]));
	free(a);
}

static void forget(struct held *h) {
	TAILQ_REMOVE(&h->all->lists[h->kind], h, link);
	free(h);
}

/* Takes a request off its list, which its connection no longer ends. Returns it. */
static struct evhttp_request *release(struct held *h) {
	struct evhttp_request *rq = h->rq;
	evhttp_connection_set_closecb(evhttp_request_get_connection(rq), NULL, NULL);
	forget(h);
	return rq;
}

void held_end_all(struct held_requests *a) {
	for (int kind = 0; kind < HELD_KINDS; kind++)
		while (!TAILQ_EMPTY(&a->lists[kind]))
			(void)release(TAILQ_FIRST(&a->lists[kind]));
}

static bool listens(const struct held_requests *a, const uint8_t key[NET_KEY_BYTES]) {
	const struct held *h;
	TAILQ_FOREACH(h, &a->lists[HELD_DOCUMENT], link) {
		if (memcmp(h->key, key, NET_KEY_BYTES) == 0)
			return true;
	}
	return false;
}

/* Forgets a closed connection, and its request with it. */
static void on_closed(struct evhttp_connection *ec, void *held) {
	struct held *h = held;
	struct held_requests *a = h->all;
	uint8_t key[NET_KEY_BYTES];
	enum held_kind kind = h->kind;
	(void)ec;
	memcpy(key, h->key, sizeof key);
	reply_drop(h->rq);
	forget(h);
	if (kind != HELD_DOCUMENT || listens(a, key))
		return; /* or an older connection, replaced by a newer one */
	service_listens(a->cfg.service, rv_clock_monotonic_us(), key, false);
	a->cfg.changed(a->cfg.owner);
}

/* Holds a request. Returns NULL without memory, after answering that. */
static struct held *hold(struct held_requests *a, struct evhttp_request *rq, const uint8_t *key, enum held_kind kind,
						 int64_t until_us) {
	struct held *h = calloc(1, sizeof *h);
	if (h == NULL) {
		reply_text(rq, STATUS_UNAVAILABLE, "no memory");
		return NULL;
	}
	*h = (struct held){.all = a, .rq = rq, .kind = kind, .until_us = until_us};
	memcpy(h->key, key, sizeof h->key);
	TAILQ_INSERT_TAIL(&a->lists[kind], h, link);
	evhttp_connection_set_closecb(evhttp_request_get_connection(rq), on_closed, h);
	return h;
}

void held_report(struct held_requests *a, struct evhttp_request *rq, const uint8_t key[NET_KEY_BYTES],
				 int64_t until_us) {
	(void)hold(a, rq, key, HELD_REPORT, until_us);
}

void held_join(struct held_requests *a, struct evhttp_request *rq, const uint8_t key[NET_KEY_BYTES]) {
	(void)hold(a, rq, key, HELD_JOIN, 0);
}

void held_page(struct held_requests *a, struct evhttp_request *rq, int64_t now_us) {
	static const uint8_t nobody[NET_KEY_BYTES] = {0};
	(void)hold(a, rq, nobody, HELD_PAGE, now_us + RV_US_PER_S);
}

/* ---- documents ---- */

static void send_document(struct evhttp_request *rq, const struct document_reply *d) {
	reply(rq, d->is_patch ? STATUS_IM_USED : STATUS_OK, "application/octet-stream", d->bytes, d->n);
	RV_FAILPOINT("document.after");
}

/* Returns the member's news in *out, or the fault; RV_OK and nothing: there is none. */
static enum rv_err find_news(const struct held_requests *a, const uint8_t *key, const struct document_wish *wish,
							 struct document_reply *out, struct rv_errtext *et) {
	RV_TRY(service_document(a->cfg.service, key, wish, out, et));
	if (out->n > 0)
		RV_FAILPOINT("document.before");
	return RV_OK;
}

void held_document(struct held_requests *a, struct evhttp_request *rq, const uint8_t key[NET_KEY_BYTES],
				   const struct document_wish *wish, int64_t now_us, int64_t until_us) {
	struct document_reply news;
	struct rv_errtext et = {0};
	enum rv_err e = find_news(a, key, wish, &news, &et);
	if (e != RV_OK) {
		reply_text(rq, reply_status_of(e), et.text);
	} else if (news.n > 0) {
		send_document(rq, &news);
	} else if (news.is_away) {
		reply(rq, STATUS_NO_CONTENT, NULL, NULL, 0);
	} else {
		struct held *h = hold(a, rq, key, HELD_DOCUMENT, until_us);
		if (h == NULL)
			return;
		h->wish = *wish;
		service_listens(a->cfg.service, now_us, key, true);
	}
}

/* Sends it its news, if it has any. */
static void look_at(struct held_requests *a, struct held *h) {
	struct document_reply news;
	struct rv_errtext et = {0};
	enum rv_err e = find_news(a, h->key, &h->wish, &news, &et);
	if (e != RV_OK)
		reply_text(release(h), reply_status_of(e), et.text);
	else if (news.n > 0)
		send_document(release(h), &news);
	else if (news.is_away || connections_has_ended(a->cfg.connections, h->rq))
		reply(release(h), STATUS_NO_CONTENT, NULL, NULL, 0);
}

/* Looks at all when there are new documents, or connections were ended for others. */
static void look_at_all(struct held_requests *a) {
	const uint64_t seq = service_document_seq(a->cfg.service), ended = connections_ended(a->cfg.connections);
	if (seq == a->looked_seq && ended == a->looked_ended)
		return;
	a->looked_seq = seq;
	a->looked_ended = ended;
	for (struct held *h = TAILQ_FIRST(&a->lists[HELD_DOCUMENT]), *next; h != NULL; h = next) {
		next = TAILQ_NEXT(h, link);
		look_at(a, h);
	}
}

static void end_polls(struct held_requests *a, int64_t now_us) {
	struct held *h;
	while ((h = TAILQ_FIRST(&a->lists[HELD_DOCUMENT])) != NULL && now_us >= h->until_us)
		reply(release(h), STATUS_NO_CONTENT, NULL, NULL, 0);
}

/* Takes reports first: documents may change by them. */
static void take_reports(struct held_requests *a, int64_t now_us) {
	for (struct held *h = TAILQ_FIRST(&a->lists[HELD_REPORT]), *next; h != NULL; h = next) {
		next = TAILQ_NEXT(h, link);
		if (now_us >= h->until_us)
			a->cfg.take_report(a->cfg.owner, release(h), now_us);
	}
}

static void answer_joins(struct held_requests *a, int64_t now_us) {
	struct held *h;
	while (!service_joins_gather(a->cfg.service) && (h = TAILQ_FIRST(&a->lists[HELD_JOIN])) != NULL)
		a->cfg.answer_join(a->cfg.owner, release(h), now_us);
}

static void refuse_pages(struct held_requests *a, int64_t now_us) {
	struct held *h;
	while ((h = TAILQ_FIRST(&a->lists[HELD_PAGE])) != NULL && now_us >= h->until_us)
		reply_text(release(h), STATUS_TOO_MANY, "too many pages for this address: wait a few seconds");
}

void held_tick(struct held_requests *a, int64_t now_us) {
	refuse_pages(a, now_us);
	answer_joins(a, now_us);
	take_reports(a, now_us);
	look_at_all(a);
	end_polls(a, now_us);
}

int64_t held_deadline_us(const struct held_requests *a) {
	const struct held *h = TAILQ_FIRST(&a->lists[HELD_DOCUMENT]);
	int64_t at = h != NULL ? h->until_us : INT64_MAX;
	h = TAILQ_FIRST(&a->lists[HELD_PAGE]);
	at = h != NULL && h->until_us < at ? h->until_us : at;
	TAILQ_FOREACH(h, &a->lists[HELD_REPORT], link) {
		at = h->until_us < at ? h->until_us : at;
	}
	return at;
}
