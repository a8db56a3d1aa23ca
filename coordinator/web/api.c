/* api.c: see api.h. */
#include "coordinator/web/api.h"

#include "base/clock.h"
#include "coordinator/service/member_pace.h"
#include "coordinator/service/report_pace.h"
#include "coordinator/web/dashboard.h"
#include "coordinator/web/held.h"
#include "coordinator/web/rate_limit.h"
#include "coordinator/web/status_cache.h"
#include "net/control/reach_test.h"
#include "net/http_server/query.h"
#include "net/http_server/reply.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHART_WIDTH_LEAST = 240, /* pixels */
	CHART_WIDTH_MOST = 2000,
	REFUSALS_BURST = 20, /* joins with a wrong token, per address */
	TESTS_BURST = 120,   /* requests for a reachability test, per address: a worker asks for news of one */
	TESTS_PER_S = 4,
	EVIDENCE_BURST = 4, /* of one member; then one a second. A worker shows it every 2 s */
	TICKETS_BURST = 4,  /* of one member, as the next; a member asks for all tickets that it needs at once */
	DOCUMENTS_BURST = 400,
	DOCUMENTS_PER_S = 200,
	WHOLE_BURST = 200, /* documents that are no patches: up to 196 kB each */
	WHOLE_PER_S = 4,
	JOIN_REPLY_MAX_BYTES = NET_MAX_CONFIG_BYTES + 512,
	COPY_PATH_BYTES = 4096 /* as long as the kernel takes */
};

struct api {
	struct service *service;
	struct connections *connections;
	uint8_t run_key[NET_KEY_BYTES];
	void (*changed)(void *owner);
	void *owner;
	struct held_requests *held;
	struct text_replies *text;
	struct rate_limit refusals, tests;
	struct report_pace pace;
	struct member_pace tickets;          /* requests for pair tickets: each ticket is a signature */
	struct member_pace evidence;         /* what members show: a list of hashes and signatures to check */
	struct member_pace documents, whole; /* requests for documents; those that no patch can answer */
	struct status_cache status;
	uint8_t buffer[JOIN_REPLY_MAX_BYTES];
};

/* The arguments of a handler. */
struct request {
	struct evhttp_request *rq;
	const uint8_t *key; /* NULL: no certificate */
	struct member_sight sight;
	const void *body;
	size_t n;
	int64_t now_us;
};

/* ---- requests ---- */

/* Returns the parsed request; `key` holds the bytes that it points to. */
static struct request request_of(struct evhttp_request *rq, uint8_t key[NET_KEY_BYTES], int64_t now_us) {
	struct evbuffer *in = evhttp_request_get_input_buffer(rq);
	struct request q = {.rq = rq, .n = evbuffer_get_length(in), .now_us = now_us};
	connections_ends(rq, q.sight.host, q.sight.own);
	q.body = q.n > 0 ? evbuffer_pullup(in, -1) : NULL;
	q.body = q.body != NULL ? q.body : "";
	q.key = connections_key(rq, key) ? key : NULL;
	return q;
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

static void take_held_report(void *api, struct evhttp_request *rq, int64_t now_us) {
	uint8_t key[NET_KEY_BYTES];
	struct request q = request_of(rq, key, now_us);
	take_report(api, &q);
}

void api_end_waiting(struct api *a) {
	held_end_all(a->held);
	text_replies_end_all(a->text);
}

void api_tick(struct api *a, int64_t now_us) {
	held_tick(a->held, now_us);
	text_replies_tick(a->text, now_us);
}

int64_t api_deadline_us(const struct api *a) {
	const int64_t held_us = held_deadline_us(a->held), text_us = text_replies_deadline_us(a->text);
	return held_us < text_us ? held_us : text_us;
}

/* ---- for anyone ---- */

static void serve_dashboard(struct api *a, const struct request *q) {
	(void)a;
	(void)evhttp_add_header(evhttp_request_get_output_headers(q->rq), "Content-Security-Policy",
							"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
							"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	reply(q->rq, STATUS_OK, "text/html; charset=utf-8", dashboard_html, dashboard_html_bytes);
}

/* Replies with `text` and frees it; NULL: there was no memory for it. */
static void reply_made(const struct request *q, const char *type, char *text) {
	if (text == NULL)
		reply_text(q->rq, STATUS_UNAVAILABLE, "no memory");
	else
		reply(q->rq, STATUS_OK, type, text, strlen(text));
	free(text);
}

static void send_status(struct api *a, const struct request *q, bool details) {
	const char *text = status_cache_text(&a->status, a->service, q->now_us, details);
	if (text == NULL)
		reply_text(q->rq, STATUS_UNAVAILABLE, "no memory");
	else
		reply(q->rq, STATUS_OK, "application/json", text, strlen(text));
}

static void serve_status(struct api *a, const struct request *q) {
	send_status(a, q, false);
}

static const char *query_of(const struct request *q, size_t *n) {
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(q->rq));
	*n = query != NULL ? strlen(query) : 0;
	return query;
}

static void serve_chart(struct api *a, const struct request *q) {
	size_t n = 0;
	const char *query = query_of(q, &n);
	uint64_t width = CHART_WIDTH_LEAST;
	if (query_number(query, n, "width", &width) == QUERY_INVALID)
		reply_text(q->rq, STATUS_BAD_REQUEST, "chart: width must be a number of pixels");
	else
		reply_made(q, "image/svg+xml",
				   service_loss_chart(a->service, width < CHART_WIDTH_LEAST  ? CHART_WIDTH_LEAST
												  : width > CHART_WIDTH_MOST ? CHART_WIDTH_MOST
																			 : (int)width));
}

static void serve_heldout(struct api *a, const struct request *q) {
	char text[LOSS_CURVE_TEXT_BYTES];
	service_heldout_text(a->service, text);
	reply(q->rq, STATUS_OK, "text/plain; charset=utf-8", text, strlen(text));
}

static void serve_config(struct api *a, const struct request *q) {
	const char *text = service_run_config(a->service);
	const struct run_about about = service_about(a->service);
	char lines[RUN_ABOUT_BYTES];
	run_about_print(&about, lines);
	(void)evbuffer_add(evhttp_request_get_output_buffer(q->rq), lines, strlen(lines));
	reply(q->rq, STATUS_OK, "text/plain; charset=utf-8", text, strlen(text));
}

static void serve_metrics(struct api *a, const struct request *q) {
	reply_made(q, "text/plain; version=0.0.4; charset=utf-8", service_metrics(a->service, q->now_us));
}

/* ---- for workers ---- */

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

static void answer_held_join(void *api, struct evhttp_request *rq, int64_t now_us) {
	uint8_t key[NET_KEY_BYTES];
	struct request q = request_of(rq, key, now_us);
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
	if (!rate_limit_allows(&a->tests, q->sight.host, q->now_us)) {
		reply_text(q->rq, STATUS_TOO_MANY, "too many reachability tests from this address: wait a minute");
		return;
	}
	rate_limit_count(&a->tests, q->sight.host, q->now_us);
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
	const char *query = query_of(q, &n);
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

/* ---- for the operator ---- */

/* Reads a number from a body like "member=3&banned=1". */
static bool form_number(const struct request *q, const char *name, uint64_t *out) {
	return query_number(q->body, q->n, name, out) == QUERY_NUMBER;
}

static void serve_admin_status(struct api *a, const struct request *q) {
	send_status(a, q, true);
}

/* Reads the terms of an invite; what is absent is as usual. */
static bool form_terms(const struct request *q, struct invite_terms *out) {
	uint64_t uses = 1, lasts_ms = 0, approve = 0;
	bool ok = query_number(q->body, q->n, "uses", &uses) != QUERY_INVALID &&
			  query_number(q->body, q->n, "lasts_ms", &lasts_ms) != QUERY_INVALID &&
			  query_number(q->body, q->n, "approve", &approve) != QUERY_INVALID;
	if (!ok || uses > INT64_MAX || lasts_ms > INT64_MAX || approve > 1)
		return false;
	*out = (struct invite_terms){.uses = (int64_t)uses, .lasts_ms = (int64_t)lasts_ms, .approve = approve == 1};
	return true;
}

static void serve_invite(struct api *a, const struct request *q) {
	uint64_t count = 0;
	struct invite_terms terms;
	struct rv_errtext et = {0};
	if (!form_number(q, "count", &count) || count < 1 || count > SERVICE_INVITES_MAX) {
		reply_text(q->rq, STATUS_BAD_REQUEST, "invite: count must be a number from 1 to 256");
		return;
	}
	if (!form_terms(q, &terms)) {
		reply_text(q->rq, STATUS_BAD_REQUEST, "invite: uses, lasts_ms and approve=0|1 must be numbers");
		return;
	}
	char(*links)[INVITE_MAX_BYTES] = calloc(count, sizeof *links);
	enum rv_err e = links != NULL ? service_invite(a->service, &terms, (int)count, links, &et)
								  : rv_fail(&et, RV_E_NOMEM, "no memory");
	struct evbuffer *out = evhttp_request_get_output_buffer(q->rq);
	for (uint64_t i = 0; e == RV_OK && i < count; i++)
		(void)evbuffer_add_printf(out, "%s\n", links[i]);
	free(links);
	if (e == RV_OK)
		reply(q->rq, STATUS_OK, "text/plain; charset=utf-8", NULL, 0);
	else
		reply_text(q->rq, reply_status_of(e), et.text);
}

/* Replies with a list, or the fault. */
static void reply_list(const struct request *q, enum rv_err e, json_t *list, const struct rv_errtext *et) {
	if (e == RV_OK)
		reply_made(q, "application/json", json_dumps(list, JSON_COMPACT));
	else
		reply_text(q->rq, reply_status_of(e), et->text);
	json_decref(list);
}

static void serve_invites(struct api *a, const struct request *q) {
	json_t *list = NULL;
	struct rv_errtext et = {0};
	enum rv_err e = service_list_invites(a->service, &list, &et);
	reply_list(q, e, list, &et);
}

static void serve_pending(struct api *a, const struct request *q) {
	json_t *list = NULL;
	struct rv_errtext et = {0};
	enum rv_err e = service_list_askers(a->service, &list, &et);
	reply_list(q, e, list, &et);
}

/* Copies a body of text. */
static bool body_text(const struct request *q, char *out, size_t cap) {
	if (q->n >= cap || memchr(q->body, '\0', q->n) != NULL)
		return false;
	memcpy(out, q->body, q->n);
	out[q->n] = '\0';
	return true;
}

static void reply_decision(const struct request *q, enum rv_err e, const char *text, const struct rv_errtext *et) {
	reply_text(q->rq, e == RV_OK ? STATUS_OK : reply_status_of(e), e == RV_OK ? text : et->text);
}

static void serve_revoke(struct api *a, const struct request *q) {
	char name[INVITE_MAX_BYTES], text[SERVICE_DECISION_BYTES] = "";
	struct rv_errtext et = {0};
	enum rv_err e = body_text(q, name, sizeof name)
						? service_revoke(a->service, q->now_us, name, text, &et)
						: rv_fail(&et, RV_E_INVALID, "revoke: the body must be the ID of an invite, or its link");
	reply_decision(q, e, text, &et);
}

/* Approves or refuses the computer whose key begins with the body. */
static void decide(struct api *a, const struct request *q, bool approve) {
	char prefix[2 * NET_KEY_BYTES + 1], text[SERVICE_DECISION_BYTES] = "";
	struct rv_errtext et = {0};
	enum rv_err e = body_text(q, prefix, sizeof prefix)
						? service_decide(a->service, q->now_us, prefix, approve, text, &et)
						: rv_fail(&et, RV_E_INVALID, "members: the body must be the first hex digits of a key");
	reply_decision(q, e, text, &et);
}

static void serve_approve(struct api *a, const struct request *q) {
	decide(a, q, true);
}

static void serve_refuse(struct api *a, const struct request *q) {
	decide(a, q, false);
}

static void serve_ban(struct api *a, const struct request *q) {
	uint64_t member = 0, banned = 0;
	struct rv_errtext et = {0};
	enum rv_err e;
	if (!form_number(q, "member", &member) || !form_number(q, "banned", &banned) || member > UINT32_MAX || banned > 1)
		e = rv_fail(&et, RV_E_INVALID, "ban: member and banned=0|1 must be numbers");
	else
		e = service_ban(a->service, q->now_us, (uint32_t)member, banned == 1, &et);
	reply_result(q->rq, e, &et);
}

static void serve_rollback(struct api *a, const struct request *q) {
	uint64_t to_round = 0, force = 0;
	struct rv_errtext et = {0};
	char text[SERVICE_ROLLBACK_BYTES] = "";
	enum rv_err e;
	if (!form_number(q, "to_round", &to_round) || !form_number(q, "force", &force) || force > 1)
		e = rv_fail(&et, RV_E_INVALID, "rollback: to_round and force=0|1 must be numbers");
	else
		e = service_rollback(a->service, q->now_us, to_round, force == 1, text, &et);
	reply_text(q->rq, e == RV_OK ? STATUS_OK : reply_status_of(e), e == RV_OK ? text : et.text);
}

/* Copies the store to the path in the body. */
static void serve_copy(struct api *a, const struct request *q) {
	char path[COPY_PATH_BYTES];
	struct rv_errtext et = {0};
	if (q->n == 0 || q->n >= sizeof path || memchr(q->body, '\0', q->n) != NULL || *(const char *)q->body != '/') {
		reply_text(q->rq, STATUS_BAD_REQUEST, "copy: the body must be the absolute path of an empty file");
		return;
	}
	memcpy(path, q->body, q->n);
	path[q->n] = '\0';
	enum rv_err e = service_copy_store(a->service, path, &et);
	reply_result(q->rq, e, &et);
}

/* ---- routes ---- */

enum who { ANYONE, ANY_KEY, RUN_KEY };

static const struct route {
	enum evhttp_cmd_type method;
	const char *path;
	enum who who;
	void (*serve)(struct api *a, const struct request *q);
} routes[] = {
	{EVHTTP_REQ_GET, "/", ANYONE, serve_dashboard},
	{EVHTTP_REQ_GET, "/v1/status", ANYONE, serve_status},
	{EVHTTP_REQ_GET, "/v1/chart", ANYONE, serve_chart},
	{EVHTTP_REQ_GET, "/v1/heldout", ANYONE, serve_heldout},
	{EVHTTP_REQ_GET, "/v1/config", ANYONE, serve_config},
	{EVHTTP_REQ_GET, "/metrics", ANYONE, serve_metrics},
	{EVHTTP_REQ_POST, "/v1/join", ANY_KEY, serve_join},
	{EVHTTP_REQ_POST, "/v1/report", ANY_KEY, serve_report},
	{EVHTTP_REQ_POST, "/v1/pair-tickets", ANY_KEY, serve_pair_tickets},
	{EVHTTP_REQ_POST, "/v1/evidence", ANY_KEY, serve_evidence},
	{EVHTTP_REQ_POST, "/v1/reach-test", ANY_KEY, serve_reach_test},
	{EVHTTP_REQ_GET, "/v1/document", ANY_KEY, serve_document},
	{EVHTTP_REQ_GET, TEXT_PATH, ANY_KEY, serve_text},
	{EVHTTP_REQ_GET, "/v1/admin/status", RUN_KEY, serve_admin_status},
	{EVHTTP_REQ_POST, "/v1/admin/invite", RUN_KEY, serve_invite},
	{EVHTTP_REQ_GET, "/v1/admin/invites", RUN_KEY, serve_invites},
	{EVHTTP_REQ_POST, "/v1/admin/revoke", RUN_KEY, serve_revoke},
	{EVHTTP_REQ_GET, "/v1/admin/pending", RUN_KEY, serve_pending},
	{EVHTTP_REQ_POST, "/v1/admin/approve", RUN_KEY, serve_approve},
	{EVHTTP_REQ_POST, "/v1/admin/refuse", RUN_KEY, serve_refuse},
	{EVHTTP_REQ_POST, "/v1/admin/ban", RUN_KEY, serve_ban},
	{EVHTTP_REQ_POST, "/v1/admin/rollback", RUN_KEY, serve_rollback},
	{EVHTTP_REQ_POST, "/v1/admin/copy", RUN_KEY, serve_copy},
};

/* Returns true for the route's path, and for what is below it where it is TEXT_PATH. */
static bool leads_to(const struct route *r, const char *path) {
	return strcmp(r->path, path) == 0 || (r->serve == serve_text && strncmp(path, TEXT_PATH, strlen(TEXT_PATH)) == 0);
}

static const struct route *find_route(const char *path) {
	for (size_t i = 0; path != NULL && i < sizeof routes / sizeof routes[0]; i++)
		if (leads_to(&routes[i], path))
			return &routes[i];
	return NULL;
}

/* Returns true if the route has the method. HEAD is GET; reply() omits the body. */
static bool has_method(const struct route *r, enum evhttp_cmd_type method) {
	return method == r->method || (method == EVHTTP_REQ_HEAD && r->method == EVHTTP_REQ_GET);
}

/* Takes a member back that is away, before its request is handled; replies, and returns false, if
 * it cannot be. */
static bool recall(struct api *a, const struct request *q) {
	struct rv_errtext et = {0};
	enum rv_err e = service_recall(a->service, q->now_us, q->key, &et);
	if (e != RV_OK)
		reply_text(q->rq, e == RV_E_FULL ? STATUS_UNAVAILABLE : reply_status_of(e), et.text);
	return e == RV_OK;
}

static void dispatch(struct api *a, const struct route *r, const struct request *q) {
	if (r == NULL)
		reply_text(q->rq, STATUS_NOT_FOUND, "not found; / is the dashboard");
	else if (!has_method(r, evhttp_request_get_command(q->rq)))
		reply_text(q->rq, STATUS_METHOD, r->method == EVHTTP_REQ_POST ? "POST only" : "GET and HEAD only");
	else if (r->who != ANYONE && q->key == NULL)
		reply_text(q->rq, STATUS_UNAUTHORIZED, "this needs a TLS client certificate with an Ed25519 key");
	else if (r->who == RUN_KEY && memcmp(q->key, a->run_key, NET_KEY_BYTES) != 0)
		reply_text(q->rq, STATUS_FORBIDDEN, "only for the operator, who has the run's key");
	else if (r->who != ANY_KEY || recall(a, q))
		r->serve(a, q);
}

static enum connection_role role_of(const struct api *a, const uint8_t *key) {
	if (key == NULL)
		return CONNECTION_STRANGER;
	if (memcmp(key, a->run_key, NET_KEY_BYTES) == 0)
		return CONNECTION_OPERATOR;
	return service_find_member(a->service, key) >= 0 ? CONNECTION_MEMBER : CONNECTION_STRANGER;
}

void api_serve(struct evhttp_request *rq, void *api) {
	struct api *a = api;
	uint8_t key[NET_KEY_BYTES];
	if (!connections_is_secure(rq)) {
		reply_text(rq, STATUS_UNAVAILABLE, "no memory for a TLS connection: try again");
		return;
	}
	struct request q = request_of(rq, key, rv_clock_monotonic_us());
	const enum connection_role role = role_of(a, q.key);
	connections_touch(a->connections, rq, role, q.key, q.now_us);
	if (role == CONNECTION_MEMBER) /* its next requests here may be evidence */
		evhttp_connection_set_max_body_size(evhttp_request_get_connection(rq),
											(ev_ssize_t)service_evidence_max_bytes(a->service));
	dispatch(a, find_route(evhttp_uri_get_path(evhttp_request_get_evhttp_uri(rq))), &q);
	held_tick(a->held, q.now_us);
	a->changed(a->owner);
}

static void held_changed(void *api) {
	struct api *a = api;
	a->changed(a->owner);
}

static enum rv_err make_parts(struct api *a, const struct api_config *cfg, struct rv_errtext *et) {
	const struct held_config held = {.service = cfg->service,
									 .connections = cfg->connections,
									 .take_report = take_held_report,
									 .answer_join = answer_held_join,
									 .changed = held_changed,
									 .owner = a};
	const struct text_replies_config text = {.text = cfg->text,
											 .bytes_per_s = cfg->text_bytes_per_s,
											 .connections = cfg->connections,
											 .events = cfg->events,
											 .changed = held_changed,
											 .owner = a};
	RV_TRY(held_new(&held, &a->held, et));
	RV_TRY(text_replies_new(&text, &a->text, et));
	service_show_text(a->service, cfg->text ? text_replies_totals(a->text) : NULL);
	return RV_OK;
}

enum rv_err api_new(const struct api_config *cfg, struct api **out, struct rv_errtext *et) {
	struct api *a = calloc(1, sizeof *a);
	*out = a;
	if (a == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the web server");
	a->service = cfg->service;
	a->connections = cfg->connections;
	memcpy(a->run_key, cfg->run_key, sizeof a->run_key);
	a->changed = cfg->changed;
	a->owner = cfg->owner;
	rate_limit_init(&a->refusals, REFUSALS_BURST, 1);
	member_pace_init(&a->tickets, TICKETS_BURST, 1);
	member_pace_init(&a->evidence, EVIDENCE_BURST, 1);
	member_pace_init(&a->documents, DOCUMENTS_BURST, DOCUMENTS_PER_S);
	member_pace_init(&a->whole, WHOLE_BURST, WHOLE_PER_S);
	rate_limit_init(&a->tests, TESTS_BURST, TESTS_PER_S);
	enum rv_err e = make_parts(a, cfg, et);
	if (e != RV_OK) {
		api_free(a);
		*out = NULL;
	}
	return e;
}

void api_free(struct api *a) {
	if (a == NULL)
		return;
	service_show_text(a->service, NULL);
	held_free(a->held);
	text_replies_free(a->text);
	status_cache_release(&a->status);
	free(a);
}
