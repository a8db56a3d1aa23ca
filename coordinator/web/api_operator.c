/* api_operator.c: the operator's commands, which come with the run's key. */
#include "coordinator/web/api_internal.h"
#include "net/http_server/query.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

enum { COPY_PATH_BYTES = 4096 /* as long as the kernel takes */ };

/* Reads a number from a body like "member=3&banned=1". */
static bool form_number(const struct request *q, const char *name, uint64_t *out) {
	return query_number(q->body, q->n, name, out) == QUERY_NUMBER;
}

static void serve_admin_status(struct api *a, const struct request *q) {
	size_t n = 0;
	const char *query = api_query_of(q, &n);
	uint64_t from = 0;
	if (query_number(query, n, "from", &from) == QUERY_INVALID || from >= NET_NO_MEMBER) {
		reply_text(q->rq, STATUS_BAD_REQUEST, "status: from must be a member's number");
		return;
	}
	json_t *o = service_status_page(a->service, q->now_us, (uint32_t)from);
	api_reply_made(q, "application/json", o != NULL ? json_dumps(o, JSON_COMPACT) : NULL);
	json_decref(o);
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
		api_reply_made(q, "application/json", json_dumps(list, JSON_COMPACT));
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

const struct api_route api_operator_routes[] = {
	{EVHTTP_REQ_GET, "/v1/admin/status", serve_admin_status, false},
	{EVHTTP_REQ_POST, "/v1/admin/invite", serve_invite, false},
	{EVHTTP_REQ_GET, "/v1/admin/invites", serve_invites, false},
	{EVHTTP_REQ_POST, "/v1/admin/revoke", serve_revoke, false},
	{EVHTTP_REQ_GET, "/v1/admin/pending", serve_pending, false},
	{EVHTTP_REQ_POST, "/v1/admin/approve", serve_approve, false},
	{EVHTTP_REQ_POST, "/v1/admin/refuse", serve_refuse, false},
	{EVHTTP_REQ_POST, "/v1/admin/ban", serve_ban, false},
	{EVHTTP_REQ_POST, "/v1/admin/rollback", serve_rollback, false},
	{EVHTTP_REQ_POST, "/v1/admin/copy", serve_copy, false},
	{.path = NULL},
};
