/* control_client.c: nine requests that may each be under way once: invite, configuration, join,
 * report, document, pair tickets, evidence, reachability test, held-out loss. */
#include "worker/join/control_client.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/loss_curve.h"
#include "base/planted.h"
#include "base/rng.h"
#include "net/identity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	FIRST_PAUSE_US = 100 * RV_US_PER_MS,
	LAST_PAUSE_US = 5 * RV_US_PER_S,
	WAIT_PAUSE_US = 4 * RV_US_PER_S, /* at least, between two questions that a person has to decide */
	REQUEST_TIMEOUT_MS = 10000,
	POLL_TIMEOUT_MS = 40000, /* the coordinator holds a document request for up to 20 s */
	REFUSAL_MAX_BYTES = 4096,
	REFUSAL_SHOWN_BYTES = 300,
	HTTP_OK = 200,
	HTTP_ACCEPTED = 202,
	HTTP_NO_CONTENT = 204,
	HTTP_IM_USED = 226, /* RFC 3229: a patch */
	HTTP_BAD_REQUEST = 400,
	HTTP_NOT_FOUND = 404,
	HTTP_BAD_METHOD = 405,
	HTTP_TIMEOUT = 408,
	HTTP_CONFLICT = 409,
	HTTP_GONE = 410,
	HTTP_TOO_MANY = 429,
	HTTP_SERVER_ERROR = 500,
};

/* One kind of request: wanted, under way, or waiting to be tried again. */
struct call {
	struct control_client *c;
	bool wanted, under_way;
	uint32_t request; /* of control_ops, when under way */
	int64_t pause_us, not_before_us;
};

struct control_client {
	struct control_ops ops;
	struct control_client_owner owner;
	uint32_t highest; /* version that this program speaks */
	struct rv_rng rng;
	bool away;
	struct call invite, config, join, report, document, pairs, reach, evidence, heldout;
	struct pair_request peers; /* of `pairs` */
	struct pair_reply tickets;
	struct reach_test_request question; /* of `reach` */
	struct reach_test_reply answer;
	struct join_request join_request;
	struct report latest;      /* to send */
	struct probed_list probed; /* goes into each */
	bool latest_changed;       /* since the one under way was made */
	bool has_document;
	uint64_t seq, term; /* of the latest document */
	/* The client asks for documents after `heard_seq`, the number of the last one to arrive, which
	 * an older store may have lowered. `afresh`: for the current one, as another store may be
	 * served after an absence. */
	uint64_t heard_seq;
	bool afresh;
	bool keeps_heard;        /* ops.open keeps the document `heard_seq`: the next one may be a patch of it */
	uint32_t version;        /* spoken, from the latest document; 0 before the first one */
	uint32_t report_version; /* of the report under way */
	struct document doc;
	struct join_reply joined;
	struct notice notice; /* the last one passed to the owner */
	uint8_t buffer[NET_MAX_REPORT_BYTES];
};

size_t control_client_size(void) {
	return sizeof(struct control_client);
}

struct control_client *control_client_init(void *memory, const struct control_client_config *cfg) {
	struct control_client *c = memory;
	RV_ASSERT(cfg->version >= CONTROL_VERSION_MIN);
	memset(c, 0, sizeof *c);
	c->ops = cfg->ops;
	c->owner = cfg->owner;
	c->highest = cfg->version;
	c->rng = rv_rng_of(cfg->seed, 0);
	c->invite.c = c->config.c = c->join.c = c->report.c = c->document.c = c->pairs.c = c->reach.c = c->evidence.c =
		c->heldout.c = c;
	return c;
}

/* ---- pauses ---- */

static void succeeded(struct call *k) {
	RV_ASSERT(k->under_way);
	k->under_way = false;
	k->pause_us = k->not_before_us = 0;
	if (k->c->away) {
		k->c->away = false;
		k->c->owner.on_away(k->c->owner.ctx, false, "");
	}
}

static void failed(struct call *k, const char *text) {
	struct control_client *c = k->c;
	RV_ASSERT(k->under_way && k->wanted);
	k->under_way = false;
	k->wanted = k != &c->join || !RV_BUG("join-once");
	k->pause_us = k->pause_us == 0 ? FIRST_PAUSE_US : k->pause_us * 2;
	if (k->pause_us > LAST_PAUSE_US && !RV_BUG("pause-without-end"))
		k->pause_us = LAST_PAUSE_US;
	int64_t jitter_us = (int64_t)rv_rng_below(&c->rng, (uint64_t)k->pause_us / 2);
	k->not_before_us = c->ops.now_us(c->ops.ctx) + k->pause_us / 2 + jitter_us;
	c->afresh = true;
	if (!c->away) {
		c->away = true;
		c->owner.on_away(c->owner.ctx, true, text);
	}
}

/* Returns true if the coordinator understood and refuses: a retry would not help. */
static bool is_refusal(int status) {
	return status >= HTTP_BAD_REQUEST && status < HTTP_SERVER_ERROR && status != HTTP_TIMEOUT &&
		   status != HTTP_TOO_MANY;
}

/* Copies the answer's line, without the "join: " that it may begin with. */
static void copy_line(const struct http_reply *r, const char *what, char text[RV_ERRTEXT_BYTES]) {
	const char *why = r->body ? (const char *)r->body : "";
	const size_t n = strlen(what);
	if (strncmp(why, what, n) == 0 && why[n] == ':')
		why += n + 1 + strspn(why + n + 1, " ");
	int why_bytes = (int)strcspn(why, "\r\n");
	snprintf(text, RV_ERRTEXT_BYTES, "%.*s", why_bytes < REFUSAL_SHOWN_BYTES ? why_bytes : REFUSAL_SHOWN_BYTES, why);
}

/* Writes what the coordinator answers, for people. */
static void describe_answer(const struct http_reply *r, const char *what, char text[RV_ERRTEXT_BYTES]) {
	char why[RV_ERRTEXT_BYTES];
	copy_line(r, what, why);
	snprintf(text, RV_ERRTEXT_BYTES, "%s: the coordinator answers %d: %.*s", what, r->status, (int)REFUSAL_SHOWN_BYTES,
			 why);
}

/* Handles what is not the expected answer. */
static void not_ok(struct call *k, const struct http_reply *r, const char *what) {
	struct control_client *c = k->c;
	char text[RV_ERRTEXT_BYTES];
	if (r->err != RV_OK) {
		failed(k, r->text);
		return;
	}
	describe_answer(r, what, text);
	if (!is_refusal(r->status)) {
		failed(k, text);
		return;
	}
	const bool is_over = r->status == HTTP_GONE;
	if (is_over)
		copy_line(r, what, text);
	succeeded(k);
	k->wanted = false;
	c->owner.on_refused(c->owner.ctx, is_over ? RV_E_OVER : RV_E_AUTH, text);
}

static void start(struct call *k, struct http_request rq) {
	const struct control_ops *ops = &k->c->ops;
	struct rv_errtext et = {0};
	RV_ASSERT(k->wanted && !k->under_way);
	rq.ctx = k;
	rq.timeout_ms = k == &k->c->document ? POLL_TIMEOUT_MS : REQUEST_TIMEOUT_MS;
	k->under_way = true;
	if (ops->start(ops->ctx, &rq, &k->request, &et) != RV_OK)
		failed(k, et.text);
}

/* ---- the run's configuration ---- */

/* Ends if this is not the run's coordinator: a wrong link stays wrong. A member, which asks without
 * a token, waits for the right one to come back. */
static bool is_impostor(struct call *k, const struct http_reply *r) {
	if (r->err != RV_E_AUTH || (k == &k->c->join && !k->c->join_request.has_token))
		return false;
	k->under_way = k->wanted = false;
	k->c->owner.on_refused(k->c->owner.ctx, r->err, r->text);
	return true;
}

/* Returns true if the answer is there. */
static bool is_answered(struct call *k, const struct http_reply *r, const char *what) {
	if (is_impostor(k, r))
		return false;
	bool ok = r->err == RV_OK && r->status == HTTP_OK;
	if (!ok)
		not_ok(k, r, what);
	return ok;
}

static void config_done(void *ctx, const struct http_reply *r) {
	struct call *k = ctx;
	struct control_client *c = k->c;
	if (!is_answered(k, r, "configuration"))
		return;
	succeeded(k);
	k->wanted = false;
	c->owner.on_config(c->owner.ctx, r->body ? (const char *)r->body : "");
}

static void start_config(struct control_client *c) {
	start(&c->config,
		  (struct http_request){.path = "/v1/config", .max_reply_bytes = NET_MAX_CONFIG_BYTES, .done = config_done});
}

void control_client_ask_config(struct control_client *c) {
	c->config.wanted = true;
}

/* ---- the invite ---- */

static void invite_done(void *ctx, const struct http_reply *r) {
	struct call *k = ctx;
	if (is_impostor(k, r))
		return;
	const bool is_unknown = r->status == HTTP_NOT_FOUND || r->status == HTTP_BAD_METHOD; /* an older coordinator */
	if (r->err != RV_OK || (r->status != HTTP_NO_CONTENT && !is_unknown)) {
		not_ok(k, r, "join");
		return;
	}
	succeeded(k);
	k->wanted = false;
	control_client_ask_config(k->c);
}

static void start_invite(struct control_client *c) {
	struct rv_writer w = rv_writer_of(c->buffer, sizeof c->buffer);
	join_request_encode(&c->join_request, &w);
	start(&c->invite, (struct http_request){.path = "/v1/invite",
											.body = c->buffer,
											.body_bytes = rv_writer_len(&w),
											.max_reply_bytes = REFUSAL_MAX_BYTES,
											.done = invite_done});
}

void control_client_check_invite(struct control_client *c, const struct join_request *rq) {
	c->join_request = *rq;
	c->invite.wanted = true;
}

/* ---- join ---- */

/* A person has to decide first: asks again later. */
static void join_waits(struct call *k, const struct http_reply *r) {
	struct control_client *c = k->c;
	char text[RV_ERRTEXT_BYTES];
	copy_line(r, "join", text);
	succeeded(k);
	k->not_before_us = c->ops.now_us(c->ops.ctx) + WAIT_PAUSE_US + (int64_t)rv_rng_below(&c->rng, WAIT_PAUSE_US / 2);
	if (c->owner.on_waiting != NULL)
		c->owner.on_waiting(c->owner.ctx, text);
}

static void join_done(void *ctx, const struct http_reply *r) {
	struct call *k = ctx;
	struct control_client *c = k->c;
	struct rv_errtext et = {0};
	if (r->err == RV_OK && r->status == HTTP_ACCEPTED) {
		join_waits(k, r);
		return;
	}
	if (!is_answered(k, r, "join"))
		return;
	if (join_reply_decode(r->body, r->body_bytes, &c->joined, &et) != RV_OK) {
		failed(k, et.text);
		return;
	}
	succeeded(k);
	k->wanted = false;
	c->owner.on_joined(c->owner.ctx, &c->joined);
}

static void start_join(struct control_client *c) {
	struct rv_writer w = rv_writer_of(c->buffer, sizeof c->buffer);
	join_request_encode(&c->join_request, &w);
	start(&c->join, (struct http_request){.path = "/v1/join",
										  .body = c->buffer,
										  .body_bytes = rv_writer_len(&w),
										  .max_reply_bytes = NET_MAX_CONFIG_BYTES + REFUSAL_MAX_BYTES,
										  .done = join_done});
}

void control_client_join(struct control_client *c, const struct join_request *rq) {
	c->join_request = *rq;
	c->join.wanted = true;
}

/* ---- reports ---- */

/* Repeats the request for a document after the coordinator was unreachable: the one under way may
 * wait on a dead connection until its timeout. */
static void ask_again_for_document(struct control_client *c) {
	if (!c->document.under_way)
		return;
	c->ops.cancel(c->ops.ctx, c->document.request);
	c->document.under_way = false;
}

static bool same_notice(const struct notice *a, const struct notice *b) {
	const bool same_rest = a->kind != NOTICE_RESTS || a->until_round == b->until_round;
	return a->kind == b->kind && a->reason == b->reason && a->n_others == b->n_others && same_rest &&
		   memcmp(a->others, b->others, sizeof a->others) == 0;
}

/* Passes on probes; the notice, if there is one, comes with the reports after it. */
static void take_probes(struct control_client *c, const struct http_reply *r) {
	struct probes p;
	if (probes_decode(r->body, r->body_bytes, &p, NULL) == RV_OK)
		c->owner.on_probes(c->owner.ctx, &p);
}

/* Passes on a changed notice; no body, or one of a later release, is no notice. */
static void take_notice(struct control_client *c, const struct http_reply *r) {
	struct notice n = {.kind = NOTICE_NONE};
	if (r->status == HTTP_OK && notice_decode(r->body, r->body_bytes, &n, NULL) != RV_OK)
		n = (struct notice){.kind = NOTICE_NONE};
	if (same_notice(&n, &c->notice))
		return;
	c->notice = n;
	c->owner.on_notice(c->owner.ctx, &n);
}

static void report_done(void *ctx, const struct http_reply *r) {
	struct call *k = ctx;
	struct control_client *c = k->c;
	if (r->err == RV_OK && r->status == HTTP_CONFLICT && c->report_version > CONTROL_VERSION_MIN) {
		c->version = CONTROL_VERSION_MIN; /* another release has taken the coordinator's place */
		failed(k, "report: the coordinator speaks another version of the protocol than before");
		return;
	}
	if (r->err != RV_OK || r->status / 100 != HTTP_OK / 100) {
		not_ok(k, r, "report");
		return;
	}
	if (k->c->latest.phase == WORKER_READY)
		RV_FAILPOINT("ready.after");
	if (k->c->latest.phase == WORKER_VOTED)
		RV_FAILPOINT("vote.after");
	if (c->away)
		ask_again_for_document(c);
	succeeded(k);
	if (r->status == HTTP_OK && probes_are(r->body, r->body_bytes))
		take_probes(c, r);
	else
		take_notice(c, r);
	k->wanted = c->latest_changed;
}

static void start_report(struct control_client *c) {
	struct rv_writer w = rv_writer_of(c->buffer, sizeof c->buffer);
	c->report_version = c->version; /* a document may change it before the answer comes */
	c->latest.probed = c->probed;
	report_encode(&c->latest, c->version, &w);
	RV_ASSERT(!w.failed); /* addresses of members are numeric, so the largest report fits */
	c->latest_changed = false;
	start(&c->report, (struct http_request){.path = "/v1/report",
											.body = c->buffer,
											.body_bytes = rv_writer_len(&w),
											.max_reply_bytes = REFUSAL_MAX_BYTES,
											.done = report_done});
}

void control_client_report(struct control_client *c, const struct report *r) {
	c->latest = *r;
	c->latest_changed = c->report.wanted = true;
}

void control_client_probed(struct control_client *c, const struct probed_list *probed) {
	c->probed = *probed;
	if (c->latest.phase != 0) /* else its first report has it */
		c->latest_changed = c->report.wanted = true;
}

bool control_client_reported(const struct control_client *c) {
	return !c->report.wanted;
}

/* ---- documents ---- */

static enum rv_err open_document(struct control_client *c, const struct http_reply *r, struct rv_errtext *et) {
	const uint8_t *bytes;
	size_t n;
	RV_TRY(c->ops.open(c->ops.ctx, r->status == HTTP_IM_USED, r->body, r->body_bytes, &bytes, &n, et));
	return document_decode(bytes, n, &c->doc, et);
}

/* Asks for the whole document, at once, where a patch does not make one: the coordinator keeps
 * another one than was meant. Returns false if it was no patch, or not asked for. */
static bool ask_for_the_whole(struct call *k, const struct http_reply *r, bool had_one) {
	if (r->status != HTTP_IM_USED || !had_one)
		return false;
	succeeded(k);
	k->c->afresh = true;
	return true;
}

/* Returns true if the document is new; in a later term with any number, as an older store counts
 * from less. */
static bool is_news(const struct control_client *c) {
	return !c->has_document || c->doc.seq > c->seq || c->doc.term > c->term;
}

static void take_document(struct control_client *c) {
	c->has_document = true;
	c->seq = c->doc.seq;
	c->term = c->doc.term;
	c->owner.on_document(c->owner.ctx, &c->doc);
}

static void document_done(void *ctx, const struct http_reply *r) {
	struct call *k = ctx;
	struct control_client *c = k->c;
	struct rv_errtext et = {0};
	if (r->err == RV_OK && r->status == HTTP_NO_CONTENT) {
		succeeded(k);
		k->wanted = !RV_BUG("poll-not-renewed");
		return;
	}
	if (r->err != RV_OK || (r->status != HTTP_OK && r->status != HTTP_IM_USED)) {
		not_ok(k, r, "document");
		return;
	}
	const bool had_one = c->keeps_heard;
	c->keeps_heard = open_document(c, r, &et) == RV_OK;
	if (!c->keeps_heard) {
		if (!ask_for_the_whole(k, r, had_one))
			failed(k, et.text);
		return;
	}
	succeeded(k);
	c->version = c->doc.version;
	c->heard_seq = c->doc.seq;
	c->afresh = false;
	if (is_news(c))
		take_document(c);
	else if (c->doc.seq < c->seq)
		c->owner.on_older(c->owner.ctx, &c->doc, c->seq);
}

static void start_document(struct control_client *c) {
	char path[128];
	int n = snprintf(path, sizeof path, "/v1/document?version=%u&least=%d", c->highest, (int)CONTROL_VERSION_MIN);
	if (c->has_document && !c->afresh) /* else the current one, at once */
		n += snprintf(path + n, sizeof path - (size_t)n, "&after=%" PRIu64, c->heard_seq);
	if (c->keeps_heard)
		snprintf(path + n, sizeof path - (size_t)n, "&have=%" PRIu64, c->heard_seq);
	start(&c->document,
		  (struct http_request){.path = path, .max_reply_bytes = IDENTITY_SIGNED_MAX_BYTES, .done = document_done});
}

void control_client_follow(struct control_client *c) {
	c->document.wanted = true;
}

/* ---- pair tickets ---- */

/* Whatever the answer is, the mesh asks again for members that it does not reach; so no failure is
 * repeated here, and none ends the worker. */
static void pairs_done(void *ctx, const struct http_reply *r) {
	struct call *k = ctx;
	struct control_client *c = k->c;
	bool has = r->err == RV_OK && r->status == HTTP_OK &&
			   pair_reply_decode(r->body, r->body_bytes, &c->tickets, NULL) == RV_OK;
	k->under_way = k->wanted = false;
	c->owner.on_pairs(c->owner.ctx, has ? &c->tickets : NULL);
}

static void start_pairs(struct control_client *c) {
	const struct http_reply none = {.err = RV_E_IO};
	uint8_t body[PAIR_REQUEST_MAX_BYTES];
	struct rv_writer w = rv_writer_of(body, sizeof body);
	pair_request_encode(&c->peers, c->version, &w);
	const struct http_request rq = {.path = "/v1/pair-tickets",
									.body = body,
									.body_bytes = rv_writer_len(&w),
									.max_reply_bytes = PAIR_REPLY_MAX_BYTES + REFUSAL_MAX_BYTES,
									.timeout_ms = REQUEST_TIMEOUT_MS,
									.done = pairs_done,
									.ctx = &c->pairs};
	RV_ASSERT(!w.failed);
	c->pairs.under_way = true;
	if (c->ops.start(c->ops.ctx, &rq, &c->pairs.request, NULL) != RV_OK)
		pairs_done(&c->pairs, &none);
}

void control_client_ask_pairs(struct control_client *c, const uint32_t *peers, int n) {
	RV_ASSERT(!c->pairs.wanted && n > 0 && n <= NET_MAX_ROW);
	c->peers.n = (uint8_t)n;
	memcpy(c->peers.peers, peers, (size_t)n * sizeof peers[0]);
	c->pairs.wanted = true;
}

/* ---- evidence ---- */

/* The owner shows it again while documents ask for it. */
static void evidence_done(void *ctx, const struct http_reply *r) {
	struct call *k = ctx;
	(void)r;
	k->under_way = false;
}

bool control_client_show(struct control_client *c, const void *evidence, size_t n) {
	const struct http_request rq = {.path = "/v1/evidence",
									.body = evidence,
									.body_bytes = n,
									.max_reply_bytes = REFUSAL_MAX_BYTES,
									.timeout_ms = REQUEST_TIMEOUT_MS,
									.done = evidence_done,
									.ctx = &c->evidence};
	if (c->evidence.under_way || c->report.under_way || c->version == 0)
		return false; /* the coordinator takes long bodies only on a connection that it knows: the reports' */
	c->evidence.under_way = c->ops.start(c->ops.ctx, &rq, &c->evidence.request, NULL) == RV_OK;
	return c->evidence.under_way;
}

/* ---- the held-out loss ---- */

/* For people: a later question may have an answer. */
static void heldout_done(void *ctx, const struct http_reply *r) {
	struct call *k = ctx;
	k->under_way = false;
	if (r->err == RV_OK && r->status == HTTP_OK && r->body != NULL)
		k->c->owner.on_heldout(k->c->owner.ctx, (const char *)r->body);
}

void control_client_ask_heldout(struct control_client *c) {
	const struct http_request rq = {.path = "/v1/heldout",
									.max_reply_bytes = LOSS_CURVE_TEXT_BYTES,
									.timeout_ms = REQUEST_TIMEOUT_MS,
									.done = heldout_done,
									.ctx = &c->heldout};
	if (!c->heldout.under_way)
		c->heldout.under_way = c->ops.start(c->ops.ctx, &rq, &c->heldout.request, NULL) == RV_OK;
}

/* ---- reachability tests ---- */

/* The asker asks again, if it still wants to know. */
static void reach_done(void *ctx, const struct http_reply *r) {
	struct call *k = ctx;
	struct control_client *c = k->c;
	char why[RV_ERRTEXT_BYTES];
	k->under_way = k->wanted = false;
	bool is_answer = r->err == RV_OK && r->status == HTTP_OK;
	if (is_answer && reach_test_reply_decode(r->body, r->body_bytes, &c->answer, NULL) == RV_OK) {
		c->owner.on_reach(c->owner.ctx, &c->answer, false, "");
		return;
	}
	(void)snprintf(why, sizeof why, "%s", is_answer ? "the coordinator's answer is malformed" : r->text);
	if (r->err == RV_OK && r->status == HTTP_TOO_MANY)
		(void)snprintf(why, sizeof why, "%s", "too many workers are tested at this moment; this one tests again later");
	else if (r->err == RV_OK && !is_answer)
		describe_answer(r, "reach-test", why);
	c->owner.on_reach(c->owner.ctx, NULL, r->err == RV_OK && r->status < HTTP_SERVER_ERROR, why);
}

static void start_reach(struct control_client *c) {
	const struct http_reply none = {.err = RV_E_IO, .text = "no memory for a request"};
	struct rv_writer w = rv_writer_of(c->buffer, sizeof c->buffer);
	reach_test_request_encode(&c->question, c->version != 0 ? c->version : CONTROL_VERSION_MIN, &w);
	const struct http_request rq = {.path = "/v1/reach-test",
									.body = c->buffer,
									.body_bytes = rv_writer_len(&w),
									.max_reply_bytes = REACH_TEST_REPLY_MAX_BYTES + REFUSAL_MAX_BYTES,
									.timeout_ms = REQUEST_TIMEOUT_MS,
									.done = reach_done,
									.ctx = &c->reach};
	RV_ASSERT(!w.failed);
	c->reach.under_way = true;
	if (c->ops.start(c->ops.ctx, &rq, &c->reach.request, NULL) != RV_OK)
		reach_done(&c->reach, &none);
}

void control_client_ask_reach(struct control_client *c, const struct reach_test_request *rq) {
	if (c->reach.under_way)
		c->ops.cancel(c->ops.ctx, c->reach.request);
	c->reach.under_way = false;
	c->reach.wanted = true;
	c->question = *rq;
}

/* ---- time ---- */

/* Reports and pair tickets wait for the first document, which names the version spoken. */
static bool may_start(const struct call *k) {
	bool needs_version = k == &k->c->report || k == &k->c->pairs;
	return k->wanted && !k->under_way && (!needs_version || k->c->version != 0);
}

static bool is_due(const struct call *k, int64_t now_us) {
	return may_start(k) && now_us >= k->not_before_us;
}

void control_client_hurry(struct control_client *c) {
	struct call *calls[] = {&c->invite, &c->config, &c->join, &c->report, &c->document};
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
		calls[i]->pause_us = calls[i]->not_before_us = 0;
}

void control_client_tick(struct control_client *c, int64_t now_us) {
	if (is_due(&c->invite, now_us))
		start_invite(c);
	if (is_due(&c->config, now_us))
		start_config(c);
	if (is_due(&c->join, now_us))
		start_join(c);
	if (is_due(&c->report, now_us))
		start_report(c);
	if (is_due(&c->document, now_us))
		start_document(c);
	if (is_due(&c->pairs, now_us))
		start_pairs(c);
	if (is_due(&c->reach, now_us))
		start_reach(c);
}

int64_t control_client_deadline_us(const struct control_client *c) {
	const struct call *calls[] = {&c->invite, &c->config, &c->join, &c->report, &c->document, &c->pairs, &c->reach};
	int64_t at = INT64_MAX;
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
		if (may_start(calls[i]) && calls[i]->not_before_us < at)
			at = calls[i]->not_before_us;
	return at;
}
