/* sim_http.c: what a worker's control client (worker/join/control_client.h) stands on: requests
 * that the network may lose, double and delay, and the clock. A lost request or answer is a
 * connection that broke: the client hears of it after a fifth of its timeout, for all times of a
 * universe are about a fifth of the real ones. */
#include "sim.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES_SHORTER = 5 };

static enum http_what what_of(const char *path) {
	static const char *const paths[] = {
		[HTTP_CONFIG] = "/v1/config",      [HTTP_JOIN] = "/v1/join",          [HTTP_REPORT] = "/v1/report",
		[HTTP_DOCUMENT] = "/v1/document?", [HTTP_PAIRS] = "/v1/pair-tickets", [HTTP_EVIDENCE] = "/v1/evidence"};
	for (int what = HTTP_CONFIG; what < HTTP_WHATS; what++)
		if (strncmp(path, paths[what], strlen(paths[what])) == 0)
			return (enum http_what)what;
	RV_UNREACHABLE("a path that no coordinator knows");
}

/* ---- answers ---- */

static void answer(struct sim *s, int host, const struct http_head *head, const struct http_reply *reply) {
	struct sim_worker *w = &s->workers[host];
	struct sim_call call = w->calls[head->what];
	if (head->life != w->life || head->id == 0 || call.id != head->id)
		return; /* to a former process, or to a request that is over */
	w->calls[head->what] = (struct sim_call){.id = 0};
	call.done(call.ctx, reply);
}

void http_receive(struct sim *s, int host, const struct packet *p) {
	struct http_head head;
	memcpy(&head, p->data, sizeof head);
	const struct http_reply closed = {.err = RV_E_CLOSED, .text = "the coordinator closed the connection"};
	const struct http_reply reply = {
		.status = head.status, .body = p->data + sizeof head, .body_bytes = p->n - sizeof head, .text = ""};
	answer(s, host, &head, head.status == 0 ? &closed : &reply);
}

static void times_out(struct sim *s, int host, void *arg) {
	const struct http_head head = *(struct http_head *)arg;
	const struct http_reply reply = {.err = RV_E_TIMEOUT, .text = "the coordinator did not answer in time"};
	free(arg);
	if (s->workers[host].calls[head.what].id != head.id)
		return;
	answer(s, host, &head, &reply);
	worker_turn(s, host);
}

/* ---- the client's operations ---- */

static enum rv_err start(void *ctx, const struct http_request *rq, uint32_t *id, struct rv_errtext *et) {
	struct sim_worker *w = ctx;
	struct sim *s = w->sim;
	struct http_head head = {.what = (uint8_t)what_of(rq->path), .life = w->life, .after = UINT64_MAX};
	const char *after = strstr(rq->path, "&after=");
	(void)et;
	RV_ASSERT(w->calls[head.what].id == 0 && (rq->body_bytes <= NET_MAX_REPORT_BYTES || head.what == HTTP_EVIDENCE));
	head.id = *id = ++w->last_call;
	head.version = w->version;
	if (after != NULL)
		head.after = strtoull(after + strlen("&after="), NULL, 10);
	w->calls[head.what] = (struct sim_call){.id = head.id, .done = rq->done, .ctx = rq->ctx};
	struct packet *p = packet_new(w->host, SIM_COORDINATOR, PACKET_REQUEST, NULL, sizeof head + rq->body_bytes);
	memcpy(p->data, &head, sizeof head);
	if (rq->body_bytes > 0)
		memcpy(p->data + sizeof head, rq->body, rq->body_bytes);
	sim_send(s, p);
	struct http_head *timeout = sim_alloc(sizeof *timeout);
	*timeout = head;
	sim_at(s, s->now_us + rq->timeout_ms * SIM_MS / TIMES_SHORTER, w->host, w->life, times_out, timeout);
	return RV_OK;
}

static void cancel(void *ctx, uint32_t id) {
	struct sim_worker *w = ctx;
	for (int what = HTTP_CONFIG; what < HTTP_WHATS; what++)
		if (w->calls[what].id == id)
			w->calls[what] = (struct sim_call){.id = 0};
}

static int64_t now_us(void *ctx) {
	return ((struct sim_worker *)ctx)->sim->now_us;
}

/* Documents are not signed here: nobody forges any. */
static enum rv_err open_document(void *ctx, bool is_patch, const uint8_t *in, size_t n_in, const uint8_t **bytes,
								 size_t *n, struct rv_errtext *et) {
	RV_ASSERT(!is_patch); /* the simulated coordinator sends whole ones */
	(void)ctx;
	(void)et;
	*bytes = in;
	*n = n_in;
	return RV_OK;
}

/* ---- the client's owner ---- */

static void on_config(void *ctx, const char *text) {
	struct sim_worker *w = ctx;
	struct join_request rq = {
		.protocol = w->version, .protocol_min = CONTROL_VERSION_MIN, .has_token = true, .software = "simulator"};
	RV_ASSERT(text != NULL);
	rq.token[0] = (uint8_t)(w->host + 1);
	(void)snprintf(rq.name, sizeof rq.name, "w%d", w->host);
	control_client_join(w->control, &rq);
}

static void on_joined(void *ctx, const struct join_reply *reply) {
	struct sim_worker *w = ctx;
	RV_ASSERT(w->session == NULL);
	worker_open(w->sim, w->host, reply->member);
	control_client_follow(w->control);
}

static void on_document(void *ctx, const struct document *d) {
	struct sim_worker *w = ctx;
	(void)session_core_on_document(w->session, d);
	if (!strangers_follows(w->sim, w->host, d))
		return;
	audits_follow(w->sim, w->host, d);
	scores_follow(w->sim, w->host, d);
}

static void on_older(void *ctx, const struct document *d, uint64_t seen) {
	struct sim_worker *w = ctx;
	sim_fail(w->sim, "w%d: document %llu after document %llu", w->host, (unsigned long long)d->seq,
			 (unsigned long long)seen);
}

static void on_notice(void *ctx, const struct notice *n) {
	const struct sim_worker *w = ctx;
	sim_fail(w->sim, "w%d: a notice that nobody sent, of kind %u", w->host, n->kind);
}

static void on_pairs(void *ctx, const struct pair_reply *reply) {
	const struct sim_worker *w = ctx;
	reach_core_tickets(w->reach.core, w->sim->now_us, reply);
}

static void on_probes(void *ctx, const struct probes *p) {
	const struct sim_worker *w = ctx;
	(void)p;
	sim_fail(w->sim, "w%d: a probe that no coordinator asks for", w->host);
}

static void on_reach(void *ctx, const struct reach_test_reply *reply, bool final, const char *why) {
	const struct sim_worker *w = ctx;
	(void)reply;
	(void) final;
	sim_fail(w->sim, "w%d: an answer to a question that nobody asks: %s", w->host, why);
}

static void on_refused(void *ctx, enum rv_err e, const char *text) {
	struct sim_worker *w = ctx;
	if (w->sim->banned[w->host] && e == RV_E_AUTH)
		w->ended_banned = true; /* it ends at its next turn */
	else
		sim_fail(w->sim, "w%d: refused (%s): %s", w->host, rv_err_name(e), text);
}

/* As rivulet-worker does: what waits to be asked again, or dialed, is due now. */
static void on_away(void *ctx, bool away, const char *text) {
	struct sim_worker *w = ctx;
	sim_say(w->sim, w->host, away ? "does not reach the coordinator: %s" : "reaches the coordinator again%s", text);
	if (w->session != NULL)
		session_core_on_away(w->session, w->sim->now_us, away);
	if (away)
		return;
	w->comebacks++;
	memset(w->dials, 0, sizeof w->dials); /* pauses begin anew, and so do the oracle's counts */
	control_client_hurry(w->control);
	if (w->mesh != NULL)
		peers_hurry(w->mesh, w->sim->now_us);
	if (w->reach.core != NULL)
		reach_core_hurry(w->reach.core, w->sim->now_us);
}

void http_open(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	const struct control_client_config cfg = {
		.ops = {.ctx = w, .start = start, .cancel = cancel, .now_us = now_us, .open = open_document},
		.owner = {.ctx = w,
				  .on_config = on_config,
				  .on_joined = on_joined,
				  .on_document = on_document,
				  .on_older = on_older,
				  .on_notice = on_notice,
				  .on_pairs = on_pairs,
				  .on_probes = on_probes,
				  .on_reach = on_reach,
				  .on_refused = on_refused,
				  .on_away = on_away},
		.version = w->version,
		.seed = s->opt.seed + w->life};
	if (w->control_memory == NULL)
		w->control_memory = sim_alloc(control_client_size());
	memset(w->calls, 0, sizeof w->calls);
	w->control = control_client_init(w->control_memory, &cfg);
	control_client_ask_config(w->control);
}
