/* test_torture_worker.c: the worker's side of the control plane and what it stores of its
 * membership, while every call that can fail fails in turn. It never gives up a request, and what
 * is stored of a join is stored whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/chain.h"
#include "base/clock.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/net/web_server.h"
#include "tests/torture/torture.h"
#include "worker/join/control_http.h"
#include "worker/join/membership.h"

enum { TRIALS = 100, CONTROL_TRIALS = 10, CONTROL_POLLS = 25, HEAL_POLLS = 6000, POLL_US = 10000 };

static const char config[] = "n-embd = 32\nn-head = 2\n";
static const uint8_t run_seed[IDENTITY_SEED_BYTES] = {2}, worker_seed[IDENTITY_SEED_BYTES] = {1};
static const uint8_t run_id[NET_RUN_ID_BYTES] = "0123456789abcdef";

static struct join_reply a_reply(const struct identity *run, const struct identity *worker) {
	struct join_reply r = {.member = 3};
	memcpy(r.run_id, run_id, sizeof r.run_id);
	(void)snprintf(r.config, sizeof r.config, "%s", config);
	r.run_hash = rv_run_hash(run_id, config);
	ticket_sign(run, run_id, r.member, worker->key, r.ticket);
	return r;
}

/* ---- membership ---- */

struct home {
	char dir[64], link[INVITE_MAX_BYTES];
	struct identity run;
	struct membership m;
	bool joined;
};

static void empty(void *ctx) {
	struct home *h = ctx;
	scratch_empty(h->dir);
	h->joined = false;
}

static void run_membership(void *ctx) {
	struct home *h = ctx;
	struct rv_errtext et = {0};
	memset(&h->m, 0, sizeof h->m);
	if (torture_ok(membership_load(h->dir, h->link, &h->m, &et), &et)) {
		struct join_reply r = a_reply(&h->run, &h->m.identity);
		h->joined = torture_ok(membership_join(h->dir, &h->m, &r, &et), &et);
	}
	membership_release(&h->m);
}

/* A member stays one; who is none can join. Nothing half. */
static void check_membership(void *ctx) {
	struct home *h = ctx;
	struct rv_errtext et = {0};
	memset(&h->m, 0, sizeof h->m);
	if (membership_load(h->dir, h->joined ? NULL : h->link, &h->m, &et) != RV_OK)
		fail_msg("afterwards: %s", et.text);
	if (h->joined)
		assert_true(h->m.joined && h->m.member == 3);
	struct join_reply r = a_reply(&h->run, &h->m.identity);
	if (!h->m.joined && membership_join(h->dir, &h->m, &r, &et) != RV_OK)
		fail_msg("afterwards: %s", et.text);
	assert_string_equal(h->m.config_text, config);
	membership_release(&h->m);
}

static void membership(void **state) {
	(void)state;
	static struct home h;
	struct invite in = {.has_token = true, .coordinator = {.host = "127.0.0.1", .port = 7433}};
	scratch_make_in_memory(h.dir, sizeof h.dir);
	identity_of_seed(run_seed, &h.run);
	memcpy(in.run_id, run_id, sizeof in.run_id);
	memcpy(in.key, h.run.key, sizeof in.key);
	invite_format(&in, h.link);
	torture(&(struct torture){"membership", empty, run_membership, check_membership, &h, TRIALS});
	scratch_remove(h.dir);
}

/* ---- the control plane ---- */

struct plane {
	struct identity run, worker;
	struct web_server server;
	uint8_t join[NET_MAX_CONFIG_BYTES + 512], signed_doc[IDENTITY_SIGNED_MAX_BYTES];
	uint8_t notice[NOTICE_MAX_BYTES];
	size_t join_bytes, doc_bytes, notice_bytes;
	/* The client of a trial. */
	struct http_client *http;
	struct control_client *control;
	int joins, documents, notices, refusals;
	bool failed; /* something said that it cannot go on, with a text */
};

static void serve(void *ctx, const struct web_request *rq, struct web_reply *reply) {
	const struct plane *p = ctx;
	if (strcmp(rq->path, "/v1/config") == 0) {
		reply->body = (const uint8_t *)config;
		reply->body_bytes = strlen(config);
	} else if (strcmp(rq->path, "/v1/join") == 0) {
		reply->body = p->join;
		reply->body_bytes = p->join_bytes;
	} else if (strcmp(rq->path, "/v1/report") == 0) {
		reply->body = p->notice;
		reply->body_bytes = p->notice_bytes;
	} else if (strstr(rq->path, "after=") != NULL) {
		reply->hang = true; /* the next document */
	} else {
		reply->body = p->signed_doc;
		reply->body_bytes = p->doc_bytes;
	}
}

static void on_config(void *ctx, const char *text) {
	struct join_request rq = {.protocol = CONTROL_VERSION, .protocol_min = CONTROL_VERSION_MIN};
	assert_string_equal(text, config);
	control_client_join(((struct plane *)ctx)->control, &rq);
}

static void on_notice(void *ctx, const struct notice *n) {
	((struct plane *)ctx)->notices++;
	assert_int_equal(n->kind, NOTICE_APART);
	assert_int_equal(n->others[0], 2);
}

static void on_joined(void *ctx, const struct join_reply *r) {
	((struct plane *)ctx)->joins++;
	assert_int_equal(r->member, 3);
	assert_string_equal(r->config, config);
}

static void on_document(void *ctx, const struct document *d) {
	((struct plane *)ctx)->documents++;
	assert_int_equal(d->seq, 9);
	assert_int_equal(d->final_round, 30);
}

static void on_older(void *ctx, const struct document *d, uint64_t seen) {
	(void)ctx;
	(void)d;
	(void)seen;
	fail(); /* there is one document */
}

/* Nobody asks for any here. */
static void on_pairs(void *ctx, const struct pair_reply *reply) {
	(void)ctx;
	(void)reply;
	fail_msg("pair tickets that nobody asked for");
}

static void on_probes(void *ctx, const struct probes *p) {
	(void)ctx;
	(void)p;
	fail_msg("a probe that nobody asked for");
}

static void on_reach(void *ctx, const struct reach_test_reply *reply, bool final, const char *why) {
	(void)ctx;
	(void)reply;
	(void) final;
	fail_msg("an answer to a question that nobody asked: %s", why);
}

static void on_refused(void *ctx, enum rv_err e, const char *text) {
	(void)e;
	assert_true(text[0] != '\0');
	((struct plane *)ctx)->refusals++;
}

static void on_away(void *ctx, bool away, const char *text) {
	(void)ctx;
	assert_true(!away || text[0] != '\0');
}

static bool all_arrived(const struct plane *p) {
	return p->joins > 0 && p->documents > 0 && p->notices > 0 && control_client_reported(p->control);
}

static void poll_plane(struct plane *p, int polls) {
	struct rv_errtext et = {0};
	for (int i = 0; i < polls && !p->failed && !all_arrived(p); i++) {
		control_client_tick(p->control, rv_clock_monotonic_us());
		p->failed = !torture_ok(http_client_poll(p->http, NULL, 0, POLL_US, &et), &et);
	}
}

static void begin_plane(void *ctx) {
	struct plane *p = ctx;
	web_start(&p->server, &p->run, serve, p);
}

static void run_plane(void *ctx) {
	struct plane *p = ctx;
	struct rv_errtext et = {0};
	struct http_client_config cfg = {.server = {.host = "127.0.0.1", .port = p->server.port}, .identity = &p->worker};
	struct control_client_owner owner = {p,        on_config, on_joined, NULL,       on_document, on_older, on_notice,
										 on_pairs, on_probes, on_reach,  on_refused, on_away,     NULL};
	struct report rep = {
		.boot = 1, .seq = 1, .phase = WORKER_TRAINING, .n_chunks = 4, .n_candidates = 1, .candidates[0].addr = ":7000"};
	cfg.trust = run_trust_of(run_id, p->run.key);
	p->http = NULL;
	p->control = NULL;
	p->joins = p->documents = p->notices = p->refusals = 0;
	p->failed = !torture_ok(http_client_new(&cfg, &p->http, &et), &et) ||
				!torture_ok(control_client_new(p->http, 1, &owner, &p->control, &et), &et);
	if (p->failed)
		return;
	control_client_ask_config(p->control);
	control_client_follow(p->control);
	control_client_report(p->control, &rep);
	poll_plane(p, CONTROL_POLLS);
}

/* Whatever failed, once nothing does everything arrives, unless it was said that it cannot. */
static void check_plane(void *ctx) {
	struct plane *p = ctx;
	if (!p->failed) {
		poll_plane(p, HEAL_POLLS);
		assert_true(p->failed || all_arrived(p));
		assert_int_equal(p->refusals, 0);
	}
	control_client_free(p->control);
	http_client_free(p->http);
	web_stop(&p->server);
}

static void make_answers(struct plane *p) {
	static struct document d = {.seq = 9, .phase = RUN_OPEN, .final_round = 30};
	static uint8_t doc[NET_MAX_DOCUMENT_BYTES];
	struct join_reply r = a_reply(&p->run, &p->worker);
	struct rv_writer w = rv_writer_of(p->join, sizeof p->join);
	join_reply_encode(&r, CONTROL_VERSION, &w);
	p->join_bytes = rv_writer_len(&w);
	const struct notice apart = {.kind = NOTICE_APART, .n_others = 1, .others = {2}};
	w = rv_writer_of(p->notice, sizeof p->notice);
	notice_encode(&apart, &w);
	p->notice_bytes = rv_writer_len(&w);
	memcpy(d.run_id, run_id, sizeof d.run_id);
	d.run_hash = rv_run_hash(run_id, config);
	w = rv_writer_of(doc, sizeof doc);
	document_encode(&d, CONTROL_VERSION, &w);
	assert_int_equal(signed_make(&p->run, IDENTITY_DOCUMENT_DOMAIN, doc, rv_writer_len(&w), p->signed_doc, NULL),
					 RV_OK);
	p->doc_bytes = NET_SIG_BYTES + rv_writer_len(&w);
}

static void control_plane(void **state) {
	(void)state;
	static struct plane p;
	identity_of_seed(run_seed, &p.run);
	identity_of_seed(worker_seed, &p.worker);
	make_answers(&p);
	torture(&(struct torture){"control plane", begin_plane, run_plane, check_plane, &p, CONTROL_TRIALS});
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(membership),
		cmocka_unit_test(control_plane),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
