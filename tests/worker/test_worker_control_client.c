/* test_worker_control_client.c: which documents are followed when the coordinator was away, and
 * another store is served when it is back. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/control/patch.h"
#include "tests/common/check.h"
#include "tests/net/web_server.h"
#include "worker/join/control_http.h"

static const uint8_t run_id[NET_RUN_ID_BYTES] = {5};

enum { POLLS = 3000, POLL_US = 10000, HTTP_AWAY = 503, HTTP_NONE = 204, HTTP_PATCH = 226 };

/* What the coordinator does in turn. */
static const struct stage {
	bool away;
	uint64_t seq, term;
} stages[] = {
	{.seq = 50, .term = 1}, {.away = true},         {.seq = 20, .term = 0}, {.seq = 21, .term = 0},
	{.seq = 22, .term = 2}, {.seq = 23, .term = 2}, {.seq = 60, .term = 2},
};
enum { STAGES = sizeof stages / sizeof stages[0] };

struct served {
	uint8_t bytes[IDENTITY_SIGNED_MAX_BYTES];
	size_t n;
};

struct plane {
	struct identity run, worker;
	struct web_server server;
	struct served docs[STAGES];
	struct served patches[STAGES]; /* of the first document */
	atomic_bool sends_patches;
	atomic_int patched, whole; /* documents sent */
	atomic_int stage;
	atomic_bool holds_documents, refuses_reports;
	atomic_int config_status, configs_asked, notice_reason; /* of the next answers; reason 0: no notice */
	atomic_int held;                                        /* document requests that it has not answered */
	atomic_bool probes;                                     /* reports are answered by probes */
	atomic_int reach_status;                                /* of the next answers to questions how it is reached */
	atomic_int questions;
	/* In the last report that was answered by probes: results, the first one, and its number. */
	atomic_int reported_n, reported_result, reported_seq;
	struct http_client *http;
	struct control_client *control;
	int documents, older, configs, notices, waits, refusals;
	atomic_int joins_asked; /* the first two wait for a person, the third is refused */
	char config[64];        /* the last one; "-": none */
	struct notice notice;
	uint8_t notice_bytes[NOTICE_MAX_BYTES], probes_bytes[PROBES_MAX_BYTES], reach_bytes[REACH_TEST_REPLY_MAX_BYTES];
	int probed, reaches, pairs;
	struct probes taken;
	struct reach_test_reply reach; /* the last one; no host: there was none, and `why` */
	bool final;
	char why[256];
	bool away;
	uint64_t seq, older_seq;
};

static void answer_report(struct plane *p, struct web_reply *reply) {
	const struct notice n = {.kind = NOTICE_NOT_COUNTED, .reason = (uint8_t)atomic_load(&p->notice_reason), .round = 7};
	struct rv_writer w = rv_writer_of(p->notice_bytes, sizeof p->notice_bytes);
	reply->status = atomic_load(&p->refuses_reports) ? HTTP_AWAY : HTTP_NONE;
	if (n.reason == 0 || reply->status == HTTP_AWAY)
		return;
	notice_encode(&n, &w);
	reply->status = 200;
	reply->body = p->notice_bytes;
	reply->body_bytes = rv_writer_len(&w);
}

static void answer_with_probes(struct plane *p, const struct web_request *rq, struct web_reply *reply) {
	const struct probes probes = {.n = 1, .list = {{.id = 5, .n = 1, .addrs = {{"11.0.0.9:7434"}}}}};
	struct rv_writer w = rv_writer_of(p->probes_bytes, sizeof p->probes_bytes);
	probes_encode(&probes, &w);
	reply->status = 200;
	reply->body = p->probes_bytes;
	reply->body_bytes = rv_writer_len(&w);
	static struct report rep; /* one is under way */
	if (report_decode(rq->body, rq->body_bytes, &rep, NULL) != RV_OK)
		return;
	atomic_store(&p->reported_seq, (int)rep.seq);
	atomic_store(&p->reported_result, rep.probed.list[0].results[0]);
	atomic_store(&p->reported_n, rep.probed.n);
}

static void answer_reach(struct plane *p, struct web_reply *reply) {
	const struct reach_test_reply r = {.seen = "11.0.0.9", .n_probers = 2, .done = true};
	struct rv_writer w = rv_writer_of(p->reach_bytes, sizeof p->reach_bytes);
	reach_test_reply_encode(&r, CONTROL_VERSION, &w);
	atomic_fetch_add(&p->questions, 1);
	reply->status = atomic_load(&p->reach_status);
	bool ok = reply->status == 200;
	reply->body = ok ? (const void *)p->reach_bytes : "too many tests\n";
	reply->body_bytes = ok ? rv_writer_len(&w) : strlen("too many tests\n");
}

/* Answers with a patch to who has the first document, else with a whole one. */
static void answer_document(struct plane *p, const char *path, int stage, struct web_reply *reply) {
	const char *have = strstr(path, "have=");
	bool is_patch = atomic_load(&p->sends_patches) && have != NULL && strtoull(have + 5, NULL, 10) == stages[0].seq;
	const struct served *doc = is_patch ? &p->patches[stage] : &p->docs[stage];
	atomic_fetch_add(is_patch ? &p->patched : &p->whole, 1);
	reply->status = is_patch ? HTTP_PATCH : reply->status;
	reply->body = doc->bytes;
	reply->body_bytes = doc->n;
}

static void serve(void *ctx, const struct web_request *rq, struct web_reply *reply) {
	struct plane *p = ctx;
	int stage = atomic_load(&p->stage);
	const char *after = strstr(rq->path, "after=");
	if (strcmp(rq->path, "/v1/config") == 0) {
		atomic_fetch_add(&p->configs_asked, 1);
		reply->status = atomic_load(&p->config_status);
		reply->body = "rounds = 7\n";
		reply->body_bytes = strlen("rounds = 7\n");
	} else if (strcmp(rq->path, "/v1/join") == 0) {
		bool waits = atomic_fetch_add(&p->joins_asked, 1) < 2;
		reply->status = waits ? 202 : 403;
		reply->body = waits ? "join: the operator decides\n" : "join: refused\n";
		reply->body_bytes = strlen(reply->body);
	} else if (strcmp(rq->path, "/v1/report") == 0 && atomic_load(&p->probes))
		answer_with_probes(p, rq, reply);
	else if (strcmp(rq->path, "/v1/report") == 0)
		answer_report(p, reply);
	else if (strcmp(rq->path, "/v1/reach-test") == 0)
		answer_reach(p, reply);
	else if (after != NULL && atomic_load(&p->holds_documents)) {
		atomic_fetch_add(&p->held, 1);
		reply->hang = true;
	} else if (stages[stage].away)
		reply->status = HTTP_AWAY;
	else if (after != NULL && strtoull(after + 6, NULL, 10) >= stages[stage].seq)
		reply->status = HTTP_NONE;
	else
		answer_document(p, rq->path, stage, reply);
}

static void on_config(void *ctx, const char *text) {
	struct plane *p = ctx;
	p->configs++;
	snprintf(p->config, sizeof p->config, "%s", text ? text : "-");
}

static void on_notice(void *ctx, const struct notice *n) {
	struct plane *p = ctx;
	p->notices++;
	p->notice = *n;
}

static void on_probes(void *ctx, const struct probes *probes) {
	struct plane *p = ctx;
	p->probed++;
	p->taken = *probes;
}

static void on_reach(void *ctx, const struct reach_test_reply *reply, bool final, const char *why) {
	struct plane *p = ctx;
	p->reaches++;
	p->reach = reply != NULL ? *reply : (struct reach_test_reply){.n = 0};
	p->final = final;
	(void)snprintf(p->why, sizeof p->why, "%s", why);
}

static void on_pairs(void *ctx, const struct pair_reply *reply) {
	((struct plane *)ctx)->pairs += reply == NULL;
}

static void on_joined(void *ctx, const struct join_reply *r) {
	(void)ctx;
	(void)r;
	fail();
}

static void on_waiting(void *ctx, const char *text) {
	struct plane *p = ctx;
	p->waits++;
	(void)snprintf(p->why, sizeof p->why, "%s", text);
}

static void on_document(void *ctx, const struct document *d) {
	struct plane *p = ctx;
	p->documents++;
	p->seq = d->seq;
}

static void on_older(void *ctx, const struct document *d, uint64_t seen) {
	struct plane *p = ctx;
	p->older++;
	p->older_seq = d->seq;
	assert_int_equal(seen, 50);
}

static void on_refused(void *ctx, enum rv_err e, const char *text) {
	struct plane *p = ctx;
	if (atomic_load(&p->joins_asked) == 0)
		fail_msg("%s: %s", rv_err_name(e), text);
	p->refusals++;
}

static void on_away(void *ctx, bool away, const char *text) {
	(void)text;
	((struct plane *)ctx)->away = away;
}

static void make_documents(struct plane *p) {
	static uint8_t bytes[NET_MAX_DOCUMENT_BYTES];
	for (int i = 0; i < STAGES; i++) {
		static struct document d;
		d = (struct document){.seq = stages[i].seq, .term = stages[i].term, .phase = RUN_OPEN, .final_round = 30};
		struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
		document_encode(&d, CONTROL_VERSION, &w);
		size_t n = rv_writer_len(&w);
		assert_int_equal(signed_make(&p->run, IDENTITY_DOCUMENT_DOMAIN, bytes, n, p->docs[i].bytes, NULL), RV_OK);
		p->docs[i].n = NET_SIG_BYTES + n;
	}
}

static void make_patches(struct plane *p) {
	struct patch_tools tools = {0};
	struct patch_base base = {0};
	assert_int_equal(patch_base_begin(&base, p->docs[0].bytes + NET_SIG_BYTES, p->docs[0].n - NET_SIG_BYTES, NULL),
					 RV_OK);
	for (int i = 1; i < STAGES; i++) {
		struct served *to = &p->patches[i];
		memcpy(to->bytes, p->docs[i].bytes, NET_SIG_BYTES);
		assert_int_equal(patch_make(&tools, &base, p->docs[i].bytes + NET_SIG_BYTES, p->docs[i].n - NET_SIG_BYTES,
									to->bytes + NET_SIG_BYTES, sizeof to->bytes - NET_SIG_BYTES, &to->n, NULL),
						 RV_OK);
		to->n += NET_SIG_BYTES;
	}
	patch_base_release(&base);
	patch_tools_release(&tools);
}

static int set_up(void **state) {
	struct plane *p = calloc(1, sizeof *p);
	const uint8_t run_seed[IDENTITY_SEED_BYTES] = {2}, worker_seed[IDENTITY_SEED_BYTES] = {1};
	*state = p;
	identity_of_seed(run_seed, &p->run);
	identity_of_seed(worker_seed, &p->worker);
	make_documents(p);
	make_patches(p);
	web_start(&p->server, &p->run, serve, p);
	struct http_client_config cfg = {.server = {.host = "127.0.0.1", .port = p->server.port}, .identity = &p->worker};
	const struct control_client_owner owner = {.ctx = p,
											   .on_config = on_config,
											   .on_notice = on_notice,
											   .on_probes = on_probes,
											   .on_reach = on_reach,
											   .on_joined = on_joined,
											   .on_waiting = on_waiting,
											   .on_pairs = on_pairs,
											   .on_document = on_document,
											   .on_older = on_older,
											   .on_refused = on_refused,
											   .on_away = on_away};
	cfg.trust = run_trust_of(run_id, p->run.key);
	assert_int_equal(http_client_new(&cfg, &p->http, NULL), RV_OK);
	assert_int_equal(control_client_new(p->http, 1, &owner, &p->control, NULL), RV_OK);
	control_client_follow(p->control);
	return 0;
}

static int tear_down(void **state) {
	struct plane *p = *state;
	control_client_free(p->control);
	http_client_free(p->http);
	web_stop(&p->server);
	free(p);
	return 0;
}

static bool went_away(const struct plane *p) {
	return p->away;
}

static bool heard_older(const struct plane *p) {
	return p->older > 0;
}

static bool follows(const struct plane *p) {
	return p->documents > 0 && p->seq == stages[atomic_load(&p->stage)].seq;
}

static void poll_until(struct plane *p, bool (*done)(const struct plane *)) {
	for (int i = 0; i < POLLS && !done(p); i++) {
		control_client_tick(p->control, rv_clock_monotonic_us());
		assert_int_equal(http_client_poll(p->http, NULL, 0, POLL_US, NULL), RV_OK);
	}
	assert_true(done(p));
}

static bool waits(const struct plane *p) {
	return p->waits > 0;
}

static bool is_refused(const struct plane *p) {
	return p->refusals == 1;
}

static void a_join_that_waits_for_a_person_is_asked_again_later(void **state) {
	struct plane *p = *state;
	const struct join_request rq = {.protocol = CONTROL_VERSION, .name = "w"};
	int64_t before_us = rv_clock_monotonic_us();
	poll_until(p, follows);
	control_client_join(p->control, &rq);
	poll_until(p, waits);
	assert_string_equal(p->why, "the operator decides");
	assert_false(p->away);         /* the coordinator answers */
	for (int i = 0; i < 20; i++) { /* not at once */
		control_client_tick(p->control, before_us + 4 * RV_US_PER_S - 1);
		assert_int_equal(http_client_poll(p->http, NULL, 0, POLL_US, NULL), RV_OK);
	}
	assert_int_equal(atomic_load(&p->joins_asked), 1);
	control_client_hurry(p->control);
	p->waits = 0;
	poll_until(p, waits);
	control_client_hurry(p->control);
	poll_until(p, is_refused);
	assert_int_equal(atomic_load(&p->joins_asked), 3);
}

static void an_older_store_is_told_and_a_later_term_of_it_followed(void **state) {
	struct plane *p = *state;
	poll_until(p, follows);
	atomic_store(&p->stage, 1);
	poll_until(p, went_away);
	atomic_store(&p->stage, 2); /* another store: it counts from less, and is of the term before */
	poll_until(p, heard_older);
	assert_int_equal(p->older_seq, 20);
	atomic_store(&p->stage, 3);
	for (int i = 0; i < 20; i++) {
		control_client_tick(p->control, rv_clock_monotonic_us());
		assert_int_equal(http_client_poll(p->http, NULL, 0, POLL_US, NULL), RV_OK);
	}
	assert_int_equal(p->documents, 1);
	atomic_store(&p->stage, 4); /* its operator begins a later term */
	poll_until(p, follows);
	atomic_store(&p->stage, 5);
	poll_until(p, follows);
	assert_int_equal(p->documents, 3);
	assert_int_equal(p->older, 2); /* each */
}

/* One of what the worker has; and one of something else, after which it asks for the whole. */
static void a_document_comes_as_a_patch(void **state) {
	struct plane *p = *state;
	atomic_store(&p->sends_patches, true);
	poll_until(p, follows);
	atomic_store(&p->stage, STAGES - 1);
	poll_until(p, follows);
	assert_int_equal(atomic_load(&p->patched), 1);
	assert_int_equal(atomic_load(&p->whole), 1);
	assert_false(p->away);
}

static void a_patch_that_does_not_fit_is_followed_by_the_whole(void **state) {
	struct plane *p = *state;
	atomic_store(&p->sends_patches, true);
	p->patches[STAGES - 1].bytes[0] ^= 1; /* its signature */
	poll_until(p, follows);
	atomic_store(&p->stage, STAGES - 1);
	poll_until(p, follows);
	assert_int_equal(atomic_load(&p->patched), 1);
	assert_int_equal(atomic_load(&p->whole), 2);
	assert_false(p->away);
}

static bool has_pairs(const struct plane *p) {
	return p->pairs > 0;
}

/* A request for tickets with as many peers as a row has is sent, whatever the answer is. */
static void tickets_for_a_whole_row_are_asked_for(void **state) {
	struct plane *p = *state;
	atomic_store(&p->holds_documents, true);
	poll_until(p, follows);
	uint32_t peers[NET_MAX_ROW];
	for (uint32_t i = 0; i < NET_MAX_ROW; i++)
		peers[i] = 100000 + i;
	control_client_ask_pairs(p->control, peers, NET_MAX_ROW);
	poll_until(p, has_pairs);
}

static bool has_config(const struct plane *p) {
	return p->configs > 0;
}

static bool asked_twice(const struct plane *p) {
	return atomic_load(&p->configs_asked) >= 2;
}

/* Asked for until it is answered. */
static void the_configuration_is_asked_for_before_the_join(void **state) {
	struct plane *p = *state;
	atomic_store(&p->holds_documents, true); /* else each poll is answered at once, and pauses outlast all polls */
	atomic_store(&p->config_status, HTTP_AWAY);
	control_client_ask_config(p->control);
	poll_until(p, asked_twice);
	assert_int_equal(p->configs, 0);
	atomic_store(&p->config_status, 200);
	poll_until(p, has_config);
	assert_string_equal(p->config, "rounds = 7\n");
}

static bool is_reported(const struct plane *p) {
	return control_client_reported(p->control);
}

static void report(struct plane *p, int notice_reason, uint64_t seq) {
	const struct report rep = {.boot = 1,
							   .seq = seq,
							   .phase = WORKER_TRAINING,
							   .n_chunks = 4,
							   .n_candidates = 1,
							   .candidates[0].addr = ":7000",
							   .round = 7};
	atomic_store(&p->notice_reason, notice_reason);
	control_client_report(p->control, &rep);
	poll_until(p, is_reported);
}

/* Each report is answered with it; the owner hears when it changes, and when it is over. */
static void a_notice_is_told_once(void **state) {
	struct plane *p = *state;
	atomic_store(&p->holds_documents, true);
	poll_until(p, follows);
	report(p, 0, 1);
	assert_int_equal(p->notices, 0);
	report(p, NOTICE_UNREACHED, 2);
	report(p, NOTICE_UNREACHED, 3);
	assert_int_equal(p->notices, 1);
	assert_int_equal(p->notice.reason, NOTICE_UNREACHED);
	report(p, NOTICE_DIVERGED, 4);
	assert_int_equal(p->notices, 2);
	report(p, 200, 5); /* of a later release: as if there were none */
	assert_int_equal(p->notices, 3);
	assert_int_equal(p->notice.kind, NOTICE_NONE);
	report(p, 0, 6);
	assert_int_equal(p->notices, 3);
}

static bool has_probed_again(const struct plane *p) {
	return atomic_load(&p->reported_n) == 1;
}

/* A notice that stands is neither lost nor told again; the result is sent at once. */
static void probes_come_with_reports_and_their_results_go_with_them(void **state) {
	struct plane *p = *state;
	const struct probed_list result = {.n = 1, .list = {{.id = 5, .n = 1, .results = {PROBE_OPEN}}}};
	atomic_store(&p->holds_documents, true);
	poll_until(p, follows);
	report(p, NOTICE_UNREACHED, 1);
	atomic_store(&p->probes, true);
	report(p, NOTICE_UNREACHED, 2);
	assert_int_equal(p->probed, 1);
	assert_int_equal(p->taken.list[0].id, 5);
	assert_int_equal(atomic_load(&p->reported_n), 0);
	control_client_probed(p->control, &result);
	poll_until(p, has_probed_again);
	assert_int_equal(atomic_load(&p->reported_result), PROBE_OPEN);
	assert_int_equal(atomic_load(&p->reported_seq), 2);
	atomic_store(&p->probes, false);
	report(p, NOTICE_UNREACHED, 3);
	assert_int_equal(p->notices, 1);
}

static bool has_reach(const struct plane *p) {
	return p->reaches > 0;
}

/* Before the join, so without a document that names a version. */
static void how_it_is_reached_is_asked_once_each_time(void **state) {
	struct plane *p = *state;
	const struct reach_test_request rq = {.n = 1, .addrs = {{":7434"}}};
	atomic_store(&p->holds_documents, true);
	atomic_store(&p->reach_status, 200);
	control_client_ask_reach(p->control, &rq);
	poll_until(p, has_reach);
	assert_string_equal(p->reach.seen, "11.0.0.9");
	static const struct {
		int status;
		bool final;
		const char *why;
	} refusals[] = {{429, true, "too many workers are tested at this moment; this one tests again later"},
					{503, false, "reach-test: the coordinator answers 503: too many tests"},
					{404, true, "reach-test: the coordinator answers 404: too many tests"}};
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		atomic_store(&p->reach_status, refusals[i].status);
		p->reaches = 0;
		control_client_ask_reach(p->control, &rq);
		control_client_ask_reach(p->control, &rq); /* in place of the other */
		poll_until(p, has_reach);
		assert_int_equal(p->final, refusals[i].final);
		assert_string_equal(p->why, refusals[i].why);
		assert_false(p->away);
	}
	assert_int_equal(atomic_load(&p->questions), 4);
}

/* The same coordinator is back: its document is known. */
static void what_is_known_is_not_told_again(void **state) {
	struct plane *p = *state;
	poll_until(p, follows);
	atomic_store(&p->stage, 1);
	poll_until(p, went_away);
	atomic_store(&p->stage, 0);
	for (int i = 0; i < POLLS && p->away; i++) {
		control_client_tick(p->control, rv_clock_monotonic_us());
		assert_int_equal(http_client_poll(p->http, NULL, 0, POLL_US, NULL), RV_OK);
	}
	assert_false(p->away);
	assert_int_equal(p->documents, 1);
	assert_int_equal(p->older, 0);
}

static bool is_held(const struct plane *p) {
	return atomic_load(&p->held) > 0;
}

/* As when the machine's address has changed: what was asked for before is never answered, and
 * nothing says so. */
static void a_document_is_asked_for_again_when_a_report_is_answered_again(void **state) {
	struct plane *p = *state;
	const struct report r = {
		.boot = 1, .phase = WORKER_TRAINING, .n_chunks = 1, .n_candidates = 1, .candidates[0].addr = ":1"};
	poll_until(p, follows);
	atomic_store(&p->holds_documents, true);
	poll_until(p, is_held);
	atomic_store(&p->refuses_reports, true);
	control_client_report(p->control, &r);
	poll_until(p, went_away);
	atomic_store(&p->stage, 4);
	atomic_store(&p->refuses_reports, false);
	poll_until(p, follows); /* long before the request's own timeout */
	assert_false(p->away);
	assert_true(control_client_reported(p->control));
}

/* ---- without a network ---- */

static struct http_request asked;
static char refusal[256];

static enum rv_err keep_request(void *ctx, const struct http_request *rq, uint32_t *id, struct rv_errtext *et) {
	(void)ctx, (void)et;
	asked = *rq;
	*id = 1;
	return RV_OK;
}

static enum rv_err refused_as;

static void keep_refusal(void *ctx, enum rv_err e, const char *text) {
	(void)ctx;
	refused_as = e;
	(void)snprintf(refusal, sizeof refusal, "%s", text);
}

static void expect_refusal(struct control_client *c, const char *body, const char *text) {
	const struct http_reply reply = {.status = 403, .body = (const uint8_t *)body, .body_bytes = strlen(body)};
	control_client_join(c, &(struct join_request){.protocol = CONTROL_VERSION_MIN});
	control_client_tick(c, 1);
	assert_string_equal(asked.path, "/v1/join");
	asked.done(asked.ctx, &reply);
	assert_string_equal(refusal, text);
	assert_int_equal(refused_as, RV_E_AUTH);
}

static void a_refusal_names_what_was_asked_once(void **state) {
	const struct control_client_config cfg = {
		.ops = {.start = keep_request}, .owner = {.on_refused = keep_refusal}, .version = CONTROL_VERSION_MIN};
	struct control_client *c = control_client_init(malloc(control_client_size()), &cfg);
	(void)state;
	expect_refusal(c, "join: the token is spent\n", "join: the coordinator answers 403: the token is spent");
	expect_refusal(c, "joining is over\n", "join: the coordinator answers 403: joining is over");
	free(c);
}

static void keep_config(void *ctx, const char *text) {
	(void)ctx;
	(void)snprintf(refusal, sizeof refusal, "%s", text);
}

/* Asks about the invite, gets this answer, and returns the path of the next question. */
static const char *after_invite(struct control_client *c, int status, const char *body) {
	const struct http_reply reply = {.status = status, .body = (const uint8_t *)body, .body_bytes = strlen(body)};
	refusal[0] = '\0';
	control_client_check_invite(c, &(struct join_request){.protocol = CONTROL_VERSION_MIN});
	control_client_tick(c, 1);
	assert_string_equal(asked.path, "/v1/invite");
	asked.done(asked.ctx, &reply);
	asked.path = "";
	control_client_tick(c, 1);
	return asked.path;
}

/* A link that is refused is, before its person reads what the run is. */
static void the_invite_is_asked_about_before_the_configuration(void **state) {
	const struct control_client_config cfg = {.ops = {.start = keep_request},
											  .owner = {.on_refused = keep_refusal, .on_config = keep_config},
											  .version = CONTROL_VERSION_MIN};
	static const int known[] = {204, 404, 405}; /* of an older coordinator */
	(void)state;
	struct control_client *c = control_client_init(malloc(control_client_size()), &cfg);
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		const struct http_reply config = {.status = 200, .body = (const uint8_t *)"rounds = 7\n", .body_bytes = 11};
		assert_string_equal(after_invite(c, known[i], ""), "/v1/config");
		asked.done(asked.ctx, &config);
		assert_string_equal(refusal, "rounds = 7\n");
	}
	assert_string_equal(after_invite(c, 403, "join: this invite is not known here\n"), "");
	assert_string_equal(refusal, "join: the coordinator answers 403: this invite is not known here");
	assert_int_equal(refused_as, RV_E_AUTH);
	assert_string_equal(after_invite(c, 410, "join: the run has ended: all 7 rounds are done\n"), "");
	assert_string_equal(refusal, "the run has ended: all 7 rounds are done");
	assert_int_equal(refused_as, RV_E_OVER);
	free(c);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_join_that_waits_for_a_person_is_asked_again_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_older_store_is_told_and_a_later_term_of_it_followed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_document_comes_as_a_patch, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tickets_for_a_whole_row_are_asked_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_patch_that_does_not_fit_is_followed_by_the_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_configuration_is_asked_for_before_the_join, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_notice_is_told_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(probes_come_with_reports_and_their_results_go_with_them, set_up, tear_down),
		cmocka_unit_test_setup_teardown(how_it_is_reached_is_asked_once_each_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_known_is_not_told_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_document_is_asked_for_again_when_a_report_is_answered_again, set_up,
										tear_down),
		cmocka_unit_test(a_refusal_names_what_was_asked_once),
		cmocka_unit_test(the_invite_is_asked_about_before_the_configuration),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
