/* api_member.c: what workers send: joins, reports, evidence, requests for tickets, for reachability
 * tests, for documents and for the run's text. */
#include "base/clock.h"
#include "coordinator/web/api_internal.h"
#include "net/control/reach_test.h"
#include "net/http_server/query.h"

#include <stdio.h>
#include <string.h>

enum {
	REFUSALS_BURST = 20, /* joins, and questions about invites, with a wrong token, per address */
	TESTS_BURST = 120,   /* questions before a join, per address: of the invite, and news of a reachability test */
	TESTS_PER_S = 4,
	EVIDENCE_BURST = 4 + NET_MAX_AUDITS, /* of one member; then four a second: sums of rows that were asked for */
	TICKETS_BURST = 4, /* of one member, as the next; a member asks for all tickets that it needs at once */
	DOCUMENTS_BURST = 400,
	DOCUMENTS_PER_S = 200,
	WHOLE_BURST = 200, /* documents that are no patches: up to 196 kB each */
	WHOLE_PER_S = 4
};

void api_member_init(struct api *a) {
	rate_limit_init(&a->refusals, REFUSALS_BURST, 1);
	member_pace_init(&a->tickets, TICKETS_BURST, 1);
	member_pace_init(&a->evidence, EVIDENCE_BURST, 4);
	member_pace_init(&a->documents, DOCUMENTS_BURST, DOCUMENTS_PER_S);
	member_pace_init(&a->whole, WHOLE_BURST, WHOLE_PER_S);
	rate_limit_init(&a->tests, TESTS_BURST, TESTS_PER_S);
}

static void refuse_join(struct api *a, const struct request *q, enum rv_err e, const struct rv_errtext *et) {
	bool refused = e == RV_E_AUTH || e == RV_E_INVALID; /* a valid token is never delayed by invalid ones */
	if (refused && !rate_limit_allows(&a->refusals, q->sight.host, q->now_us)) {
		reply_text(q->rq, STATUS_TOO_MANY, "too many refused joins from this address: wait a few seconds");
		return;
	}
	if (refused)
		rate_limit_count(&a->refusals, q->sight.host, q->now_us);
	reply_text(q->rq, reply_status_of(e), et->text);
}

static void answer_join(struct api *a, const struct request *q) {
	struct rv_writer w = rv_writer_of(a->buffer, sizeof a->buffer);
	struct rv_errtext et = {0};
	enum rv_err e = service_join(a->service, q->now_us, q->key, q->body, q->n, &w, &et);
	if (e == RV_OK)
		reply(q->rq, STATUS_OK, "application/octet-stream", a->buffer, rv_writer_len(&w));
	else
		refuse_join(a, q, e, &et);
}

void api_answer_held_join(void *api, struct evhttp_request *rq, int64_t now_us) {
	uint8_t key[NET_KEY_BYTES];
	struct request q = api_request_of(rq, key, now_us);
	answer_join(api, &q);
}

static void serve_join(struct api *a, const struct request *q) {
	struct rv_errtext et = {0};
	bool waits = false;
	enum rv_err e = service_begin_join(a->service, q->now_us, q->key, q->body, q->n, &waits, &et);
	if (e != RV_OK)
		refuse_join(a, q, e, &et);
	else if (waits)
		held_join(a->held, q->rq, q->key);
	else
		answer_join(a, q);
}

/* Returns false, and answers, if this address asks too often. */
static bool may_test(struct api *a, const struct request *q, const char *too_many) {
	const bool may = rate_limit_allows(&a->tests, q->sight.host, q->now_us);
	if (may)
		rate_limit_count(&a->tests, q->sight.host, q->now_us);
	else
		reply_text(q->rq, STATUS_TOO_MANY, too_many);
	return may;
}

static void serve_invite(struct api *a, const struct request *q) {
	struct rv_errtext et = {0};
	if (!may_test(a, q, "too many questions about invites from this address: wait a minute"))
		return;
	enum rv_err e = service_check_invite(a->service, q->now_us, q->key, q->body, q->n, &et);
	if (e == RV_OK)
		reply(q->rq, STATUS_NO_CONTENT, NULL, NULL, 0);
	else
		refuse_join(a, q, e, &et);
}

static void take_report(struct api *a, const struct request *q) {
	struct rv_errtext et = {0};
	enum rv_err e = service_report(a->service, q->now_us, q->key, &q->sight, q->body, q->n, &et);
	if (e != RV_OK) {
		reply_text(q->rq, reply_status_of(e), et.text);
		return;
	}
	uint8_t bytes[SERVICE_REPORT_REPLY_BYTES];
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	if (service_report_reply(a->service, q->now_us, q->key, &w))
		reply(q->rq, STATUS_OK, "application/octet-stream", bytes, rv_writer_len(&w));
	else
		reply(q->rq, STATUS_NO_CONTENT, NULL, NULL, 0);
}

void api_take_held_report(void *api, struct evhttp_request *rq, int64_t now_us) {
	uint8_t key[NET_KEY_BYTES];
	struct request q = api_request_of(rq, key, now_us);
	take_report(api, &q);
}

static void serve_report(struct api *a, const struct request *q) {
	int member = service_find_member(a->service, q->key);
	int64_t at_us = member >= 0 ? report_pace_take(&a->pace, (uint32_t)member, q->now_us) : q->now_us;
	if (at_us <= q->now_us)
		take_report(a, q);
	else
		held_report(a->held, q->rq, q->key, at_us);
}

static void serve_pair_tickets(struct api *a, const struct request *q) {
	int slot = service_find_member(a->service, q->key);
	struct rv_writer w = rv_writer_of(a->buffer, PAIR_REPLY_MAX_BYTES);
	struct rv_errtext et = {0};
	if (slot >= 0 && !member_pace_take(&a->tickets, (uint32_t)slot, q->now_us)) {
		reply_text(q->rq, STATUS_TOO_MANY, "too many requests for pair tickets: wait a second");
		return;
	}
	enum rv_err e = service_pair_tickets(a->service, q->key, q->body, q->n, &w, &et);
	if (e == RV_OK)
		reply(q->rq, STATUS_OK, "application/octet-stream", a->buffer, rv_writer_len(&w));
	else
		reply_text(q->rq, reply_status_of(e), et.text);
}

static void serve_evidence(struct api *a, const struct request *q) {
	struct rv_errtext et = {0};
	const int slot = service_find_member(a->service, q->key);
	if (slot < 0) {
		reply_text(q->rq, STATUS_FORBIDDEN, "evidence: the key is of no member of this run");
		return;
	}
	if (!member_pace_take(&a->evidence, (uint32_t)slot, q->now_us)) {
		reply_text(q->rq, STATUS_TOO_MANY, "too much evidence: wait a second");
		return;
	}
	const enum rv_err e = service_evidence(a->service, q->now_us, q->key, q->body, q->n, &et);
	if (e == RV_OK)
		reply(q->rq, STATUS_NO_CONTENT, NULL, NULL, 0);
	else
		reply_text(q->rq, reply_status_of(e), et.text);
}

static void serve_reach_test(struct api *a, const struct request *q) {
	struct rv_writer w = rv_writer_of(a->buffer, REACH_TEST_REPLY_MAX_BYTES);
	struct rv_errtext et = {0};
	if (!may_test(a, q, "too many reachability tests from this address: wait a minute"))
		return;
	enum rv_err e = service_reach_test(a->service, q->now_us, q->key, &q->sight, q->body, q->n, &w, &et);
	if (e == RV_OK)
		reply(q->rq, STATUS_OK, "application/octet-stream", a->buffer, rv_writer_len(&w));
	else
		reply_text(q->rq, e == RV_E_BUSY ? STATUS_TOO_MANY : reply_status_of(e), et.text);
}

/* Returns the version for a document: "version=HIGHEST&least=LOWEST" that the worker speaks. 0:
 * none that we speak. Absent: the lowest of ours. */
static uint32_t wanted_version(const char *query, size_t n) {
	uint64_t highest = CONTROL_VERSION_MIN, lowest = 0;
	if (query_number(query, n, "version", &highest) == QUERY_INVALID || highest > UINT32_MAX ||
		query_number(query, n, "least", &lowest) == QUERY_INVALID || lowest > highest)
		return 0;
	return control_version_common((uint32_t)lowest, (uint32_t)highest);
}

static void refuse_version(const struct request *q) {
	char text[RV_ERRTEXT_BYTES];
	(void)snprintf(text, sizeof text,
				   "document: this coordinator (rivulet %s) speaks versions %d to %u of the protocol, and none of the "
				   "requested ones: update the older program",
				   RV_VERSION, (int)CONTROL_VERSION_MIN, control_version());
	reply_text(q->rq, STATUS_CONFLICT, text);
}

/* Returns false for a member that asks too often: an honest one asks again when there is news, and
 * for a whole document when it starts, or has lost the coordinator. */
static bool may_ask_for_document(struct api *a, const struct request *q, const struct document_wish *wish) {
	const int slot = service_find_member(a->service, q->key);
	if (slot < 0)
		return true; /* it is refused by name */
	return member_pace_take(&a->documents, (uint32_t)slot, q->now_us) &&
		   (wish->has_base || member_pace_take(&a->whole, (uint32_t)slot, q->now_us));
}

static void serve_document(struct api *a, const struct request *q) {
	size_t n = 0;
	const char *query = api_query_of(q, &n);
	struct document_wish wish = {.version = wanted_version(query, n)};
	enum query_result after = query_number(query, n, "after", &wish.after);
	enum query_result have = query_number(query, n, "have", &wish.have);
	wish.any = after == QUERY_ABSENT; /* also the one with which a run begins, whose number is 0 */
	wish.has_base = have == QUERY_NUMBER;
	if (after == QUERY_INVALID || have == QUERY_INVALID)
		reply_text(q->rq, STATUS_BAD_REQUEST, "document: after and have must be numbers");
	else if (wish.version == 0)
		refuse_version(q);
	else if (!may_ask_for_document(a, q, &wish))
		reply_text(q->rq, STATUS_TOO_MANY, "too many requests for documents: wait a second");
	else
		held_document(a->held, q->rq, q->key, &wish, q->now_us, q->now_us + API_HOLD_MS * RV_US_PER_MS);
}

#define TEXT_PATH "/v1/text/"

static void serve_text(struct api *a, const struct request *q) {
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(q->rq));
	if (service_find_member(a->service, q->key) < 0)
		reply_text(q->rq, STATUS_FORBIDDEN, "the run's text is for its members: join first");
	else
		text_replies_take(a->text, q->rq, q->key, path + strlen(TEXT_PATH));
}

const struct api_route api_member_routes[] = {
	{EVHTTP_REQ_POST, "/v1/invite", serve_invite, false},
	{EVHTTP_REQ_POST, "/v1/join", serve_join, false},
	{EVHTTP_REQ_POST, "/v1/report", serve_report, false},
	{EVHTTP_REQ_POST, "/v1/pair-tickets", serve_pair_tickets, false},
	{EVHTTP_REQ_POST, "/v1/evidence", serve_evidence, false},
	{EVHTTP_REQ_POST, "/v1/reach-test", serve_reach_test, false},
	{EVHTTP_REQ_GET, "/v1/document", serve_document, false},
	{EVHTTP_REQ_GET, TEXT_PATH, serve_text, true},
	{.path = NULL},
};
