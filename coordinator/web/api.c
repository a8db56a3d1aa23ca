/* api.c: see api.h. */
#include "base/clock.h"
#include "coordinator/web/api_internal.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

/* ---- for the handlers ---- */

struct request api_request_of(struct evhttp_request *rq, uint8_t key[NET_KEY_BYTES], int64_t now_us) {
	struct evbuffer *in = evhttp_request_get_input_buffer(rq);
	struct request q = {.rq = rq, .n = evbuffer_get_length(in), .now_us = now_us};
	connections_ends(rq, q.sight.host, q.sight.own);
	q.body = q.n > 0 ? evbuffer_pullup(in, -1) : NULL;
	q.body = q.body != NULL ? q.body : "";
	q.key = connections_key(rq, key) ? key : NULL;
	return q;
}

const char *api_query_of(const struct request *q, size_t *n) {
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(q->rq));
	*n = query != NULL ? strlen(query) : 0;
	return query;
}

void api_reply_made(const struct request *q, const char *type, char *text) {
	if (text == NULL)
		reply_text(q->rq, STATUS_UNAVAILABLE, "no memory");
	else
		reply(q->rq, STATUS_OK, type, text, strlen(text));
	free(text);
}

/* ---- a request's way to its handler ---- */

enum who { ANYONE, ANY_KEY, RUN_KEY };

static const struct {
	enum who who;
	const struct api_route *routes;
} tables[] = {{ANYONE, api_anyone_routes}, {ANY_KEY, api_member_routes}, {RUN_KEY, api_operator_routes}};

static bool leads_to(const struct api_route *r, const char *path) {
	return strcmp(r->path, path) == 0 || (r->is_folder && strncmp(path, r->path, strlen(r->path)) == 0);
}

/* Returns the route of `path`, and who may take it; NULL: there is none. */
static const struct api_route *find_route(const char *path, enum who *who) {
	for (size_t i = 0; path != NULL && i < sizeof tables / sizeof tables[0]; i++)
		for (const struct api_route *r = tables[i].routes; r->path != NULL; r++)
			if (leads_to(r, path)) {
				*who = tables[i].who;
				return r;
			}
	return NULL;
}

/* Returns true if the route has the method. HEAD is GET; reply() omits the body. */
static bool has_method(const struct api_route *r, enum evhttp_cmd_type method) {
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

static void dispatch(struct api *a, const struct request *q) {
	enum who who = ANYONE;
	const struct api_route *r = find_route(evhttp_uri_get_path(evhttp_request_get_evhttp_uri(q->rq)), &who);
	if (r == NULL)
		reply_text(q->rq, STATUS_NOT_FOUND, "not found; / is the dashboard");
	else if (!has_method(r, evhttp_request_get_command(q->rq)))
		reply_text(q->rq, STATUS_METHOD, r->method == EVHTTP_REQ_POST ? "POST only" : "GET and HEAD only");
	else if (who != ANYONE && q->key == NULL)
		reply_text(q->rq, STATUS_UNAUTHORIZED, "this needs a TLS client certificate with an Ed25519 key");
	else if (who == RUN_KEY && memcmp(q->key, a->run_key, NET_KEY_BYTES) != 0)
		reply_text(q->rq, STATUS_FORBIDDEN, "only for the operator, who has the run's key");
	else if (who == ANYONE && q->is_stranger && !api_may_read(a, q))
		held_page(a->held, q->rq, q->now_us);
	else if (who != ANY_KEY || recall(a, q))
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
	struct request q = api_request_of(rq, key, rv_clock_monotonic_us());
	const enum connection_role role = role_of(a, q.key);
	q.is_stranger = role == CONNECTION_STRANGER;
	connections_touch(a->connections, rq, role, q.key, q.now_us);
	if (role == CONNECTION_MEMBER) /* its next requests here may be evidence */
		evhttp_connection_set_max_body_size(evhttp_request_get_connection(rq),
											(ev_ssize_t)service_evidence_max_bytes(a->service));
	dispatch(a, &q);
	held_tick(a->held, q.now_us);
	a->changed(a->owner);
}

/* ---- life ---- */

static void held_changed(void *api) {
	struct api *a = api;
	a->changed(a->owner);
}

static enum rv_err make_parts(struct api *a, const struct api_config *cfg, struct rv_errtext *et) {
	const struct held_config held = {.service = cfg->service,
									 .connections = cfg->connections,
									 .take_report = api_take_held_report,
									 .answer_join = api_answer_held_join,
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
	api_anyone_init(a);
	api_member_init(a);
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
