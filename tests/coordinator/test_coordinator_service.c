/* The service over a store that fails on demand: nothing undurable is ever said; a full disk
 * passes; other faults are final. And what people see. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/service/service.h"
#include "coordinator/web/dashboard.h"
#include "tests/common/check.h"
#include "tests/common/memory_store.h"
#include "tests/coordinator/run_chunks.h"

struct bench {
	struct memory_store store;
	struct identity run;
	struct service *service;
	int64_t now_us;
	uint64_t seq;
	/* In reports from now on: */
	uint8_t storage;
	uint64_t compute_us;
	bool nameless;                                  /* who joins from now on */
	const struct report *state;                     /* whose round and chain; NULL: the run's */
	uint8_t liar;                                   /* who claims everything that a report can hold; 0: nobody */
	void (*alter)(struct report *rep, uint8_t who); /* what else it says; NULL: nothing */
	struct member_sight sight;                      /* of whoever reports */
};

static int open_bench(void **state, const char *config) {
	struct bench *b = calloc(1, sizeof *b);
	uint8_t seed[IDENTITY_SEED_BYTES] = {3};
	*state = b;
	identity_of_seed(seed, &b->run);
	memory_store_init(&b->store);
	b->now_us = 1000000;
	b->sight = (struct member_sight){.host = "10.1.1.1", .own = "10.1.1.2"};
	struct service_config cfg = {.run = &b->run,
								 .run_id = {5},
								 .config = config,
								 .store = &b->store.store,
								 .advertise = {.host = "train.example.org", .port = 7433}};
	assert_ok(service_new(&cfg, b->now_us, &b->service, &et));
	return 0;
}

static int set_up(void **state) {
	return open_bench(state, "rounds = 4\nmin-workers = 2\nsilence-ms = 4000\n");
}

static int set_up_rows(void **state) {
	return open_bench(state, "rounds = 4\nmin-workers = 2\nsilence-ms = 4000\nrow-size = 4\nownership = equal\n");
}

static int tear_down(void **state) {
	struct bench *b = *state;
	service_free(b->service);
	memory_store_release(&b->store);
	free(b);
	return 0;
}

static enum rv_err join(struct bench *b, uint8_t who, struct join_reply *out) {
	char links[1][INVITE_MAX_BYTES];
	uint8_t key[NET_KEY_BYTES] = {who}, body[256], reply[NET_MAX_CONFIG_BYTES + 256];
	struct join_request rq = {.protocol = CONTROL_VERSION, .run_id = {5}, .has_token = true, .name = "it's \"me\""};
	struct invite in;
	struct rv_errtext et = {0};
	enum rv_err failing = b->store.failing;
	b->store.failing = RV_OK;
	assert_int_equal(service_invite(b->service, NULL, 1, links, &et), RV_OK);
	b->store.failing = failing;
	assert_int_equal(invite_parse(links[0], &in, &et), RV_OK);
	memcpy(rq.token, in.token, sizeof rq.token);
	if (b->nameless)
		rq.name[0] = '\0';
	struct rv_writer w = rv_writer_of(body, sizeof body), r = rv_writer_of(reply, sizeof reply);
	join_request_encode(&rq, &w);
	enum rv_err e = service_join(b->service, b->now_us, key, body, rv_writer_len(&w), &r, &et);
	if (e == RV_OK)
		assert_int_equal(join_reply_decode(reply, rv_writer_len(&r), out, &et), RV_OK);
	return e;
}

static void document(struct bench *b, struct document *out) {
	const uint8_t *bytes, key[NET_KEY_BYTES] = {1};
	size_t bytes_n;
	const struct document_wish wish = {.version = CONTROL_VERSION, .any = true};
	struct document_reply r;
	assert_int_equal(service_document(b->service, key, &wish, &r, NULL), RV_OK);
	assert_ok(signed_open(b->run.key, IDENTITY_DOCUMENT_DOMAIN, r.bytes, r.n, &bytes, &bytes_n, &et));
	assert_ok(document_decode(bytes, bytes_n, out, &et));
	assert_int_equal(out->seq, service_document_seq(b->service));
}

static void claim_everything(struct report *rep) {
	rep->tokens = UINT64_C(1) << 62;
	rep->loss = rep->tokens_per_s = 3.3e38f;
	rep->tx_bytes = rep->rx_bytes = rep->compute_us = rep->reduce_us = rep->inner_step = UINT64_MAX;
	rep->up_bytes_per_s = rep->down_bytes_per_s = UINT64_MAX;
}

/* ":port", or "host:port": then the host is given, too. */
static void put_candidates(struct report *rep, const char *addr) {
	rep->n_candidates = addr[0] == ':' ? 1 : 2;
	(void)snprintf(rep->candidates[0].addr, NET_ADDR_BYTES, "%s", strrchr(addr, ':'));
	rep->candidates[1].kind = CANDIDATE_GIVEN;
	(void)snprintf(rep->candidates[1].addr, NET_ADDR_BYTES, "%s", addr);
}

static enum rv_err report(struct bench *b, uint8_t who, enum worker_phase phase, const char *addr) {
	static struct document d;
	uint8_t key[NET_KEY_BYTES] = {who}, body[NET_MAX_REPORT_BYTES];
	struct rv_errtext et = {0};
	document(b, &d);
	struct report rep = {.boot = 1,
						 .seq = ++b->seq,
						 .phase = (uint8_t)phase,
						 .round = d.round,
						 .tokens = 100,
						 .n_chunks = run_chunks("", 0),
						 .chain = d.chain,
						 .loss = (float)(2 + who),
						 .tokens_per_s = 10,
						 .tx_bytes = 1000 * b->seq,
						 .compute_us = b->compute_us,
						 .storage = b->storage};
	if (who == b->liar)
		claim_everything(&rep);
	if (phase == WORKER_REDUCING || phase == WORKER_VOTED)
		rep.attempt = d.attempt;
	if (b->state != NULL) {
		rep.round = rep.proven_round = b->state->round;
		rep.chain = rep.proven_chain = b->state->chain;
	}
	if (b->alter != NULL)
		b->alter(&rep, who);
	put_candidates(&rep, addr);
	struct rv_writer w = rv_writer_of(body, sizeof body);
	report_encode(&rep, CONTROL_VERSION, &w);
	return service_report(b->service, b->now_us, key, &b->sight, body, rv_writer_len(&w), &et);
}

static bool was_told(struct bench *b, const char *what) {
	json_t *s = service_status(b->service, b->now_us, false), *event;
	bool found = false;
	size_t i;
	json_array_foreach(json_object_get(s, "events"), i, event) {
		found = found || strstr(json_string_value(json_object_get(event, "text")), what) != NULL;
	}
	json_decref(s);
	return found;
}

static void commit_round(struct bench *b) {
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(report(b, who, WORKER_TRAINING, ":70"), RV_OK);
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(report(b, who, WORKER_READY, ":70"), RV_OK);
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(report(b, who, WORKER_VOTED, ":70"), RV_OK);
}

static void test_join_reply(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	uint8_t key[NET_KEY_BYTES] = {1};
	assert_int_equal(join(b, 1, &reply), RV_OK);
	assert_int_equal(reply.member, 0);
	assert_non_null(strstr(reply.config, "min-workers = 2"));
	assert_true(ticket_verify(b->run.key, reply.run_id, reply.member, key, reply.ticket));
	assert_true(service_find_member(b->service, key) >= 0);
	assert_int_equal(memory_store_last(&b->store).type, CORE_MEMBER);
}

static void test_full_disk_passes(void **state) {
	struct bench *b = *state;
	static struct document d;
	struct join_reply reply;
	uint8_t key[NET_KEY_BYTES] = {3};
	struct rv_errtext et = {0};
	char links[1][INVITE_MAX_BYTES];
	assert_int_equal(join(b, 1, &reply), RV_OK);
	assert_int_equal(join(b, 2, &reply), RV_OK);
	assert_int_equal(report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	assert_int_equal(report(b, 2, WORKER_TRAINING, ":70"), RV_OK);
	b->store.failing = RV_E_FULL;
	int before = b->store.n_records;
	assert_int_equal(join(b, 3, &reply), RV_E_BUSY);
	assert_true(service_find_member(b->service, key) < 0);
	assert_int_equal(service_invite(b->service, NULL, 1, links, &et), RV_E_BUSY);
	/* Everyone is ready, but no roster is announced that is not on the disk. */
	assert_int_equal(report(b, 1, WORKER_READY, ":70"), RV_OK);
	assert_int_equal(report(b, 2, WORKER_READY, ":70"), RV_OK);
	document(b, &d);
	assert_int_equal(d.phase, RUN_OPEN);
	assert_int_equal(b->store.n_records, before);
	assert_true(service_deadline_us(b->service) < INT64_MAX);
	assert_int_equal(service_fault(b->service, &et), RV_OK);
	/* Space again: the next tick writes what was waiting. */
	b->store.failing = RV_OK;
	service_tick(b->service, b->now_us += 1000000);
	assert_true(service_find_member(b->service, key) >= 0);
	document(b, &d);
	assert_int_equal(d.phase, RUN_REDUCE);
}

static void test_other_faults_are_final(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	struct rv_errtext et = {0};
	b->store.failing = RV_E_IO;
	assert_int_equal(join(b, 1, &reply), RV_E_IO);
	b->store.failing = RV_OK;
	assert_int_equal(service_fault(b->service, &et), RV_E_IO);
	assert_string_equal(et.text, "the store says no");
	uint8_t key[NET_KEY_BYTES] = {1};
	struct rv_writer w = {0};
	assert_int_equal(service_join(b->service, b->now_us, key, "", 0, &w, &et), RV_E_IO);
	service_tick(b->service, b->now_us += 1000000);
	assert_int_equal(b->store.n_records, 0);
}

/* Addresses that wait for the disk at the same moment take one transaction, and are announced when
 * it is durable; so do a member that gives up its slot and the one that gets it. */
static void test_what_waits_together_is_written_together(void **state) {
	struct bench *b = *state;
	enum { N = 20 };
	struct join_reply reply;
	for (uint8_t who = 1; who <= N; who++)
		assert_int_equal(join(b, who, &reply), RV_OK);
	b->store.failing = RV_E_FULL;
	for (uint8_t who = 1; who <= N; who++)
		(void)report(b, who, WORKER_TRAINING, ":7000");
	const int records = b->store.n_records, transactions = b->store.n_transactions;
	const uint64_t seq = service_document_seq(b->service);
	b->store.failing = RV_OK;
	service_tick(b->service, b->now_us += 2000000);
	assert_int_equal(b->store.n_records, records + N);
	assert_in_range(b->store.n_transactions - transactions, 1, 3);
	assert_true(service_document_seq(b->service) > seq);
	json_t *status = service_status(b->service, b->now_us, true);
	for (size_t i = 0; i < N; i++) {
		const json_t *m = json_array_get(json_object_get(status, "members"), i);
		assert_string_not_equal(json_string_value(json_object_get(m, "addr")), "");
	}
	json_decref(status);
}

static void test_report_fills_the_host(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	assert_int_equal(join(b, 1, &reply), RV_OK);
	assert_int_equal(report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	assert_string_equal(memory_store_last(&b->store).candidates[0].addr, "10.1.1.1:70");
	assert_int_equal(report(b, 1, WORKER_TRAINING, "198.51.100.7:71"), RV_OK); /* not believed */
	assert_string_equal(memory_store_last(&b->store).candidates[0].addr, "10.1.1.1:71");
	assert_false(was_told(b, "given address")); /* a member may yet get through to it */
	assert_int_equal(report(b, 9, WORKER_TRAINING, "198.51.100.7:71"), RV_E_AUTH);
	assert_int_equal(report(b, 1, WORKER_TRAINING, "host:71"), RV_E_INVALID);
}

static void test_status(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	assert_int_equal(join(b, 1, &reply), RV_OK);
	assert_int_equal(join(b, 2, &reply), RV_OK);
	commit_round(b);
	json_t *s = service_status(b->service, b->now_us, false);
	assert_int_equal(json_integer_value(json_object_get(s, "round")), 1);
	assert_string_equal(json_string_value(json_object_get(s, "phase")), "training");
	assert_true(json_real_value(json_object_get(s, "loss")) == 3.5);
	assert_int_equal(json_integer_value(json_object_get(s, "total_tokens")), 200);
	json_t *member = json_array_get(json_object_get(s, "members"), 0);
	assert_string_equal(json_string_value(json_object_get(member, "name")), "it's \"me\"");
	assert_null(json_object_get(member, "addr"));
	assert_int_equal(strlen(json_string_value(json_object_get(member, "key"))), 16);
	assert_int_equal(json_array_size(json_object_get(s, "history")), 1);
	assert_true(json_array_size(json_object_get(s, "events")) > 3);
	json_decref(s);
	s = service_status(b->service, b->now_us, true);
	member = json_array_get(json_object_get(s, "members"), 0);
	assert_string_equal(json_string_value(json_object_get(member, "addr")), "10.1.1.1:70");
	json_decref(s);
	assert_int_equal(b->store.stats[b->store.n_commits - 1].participants, 2);
	assert_int_equal(b->store.stats[b->store.n_commits - 1].tokens, 200);
	assert_true(b->store.stats[b->store.n_commits - 1].tx_bytes > 0);
}

/* One of three claims all that a report can hold: it is shown within bounds, the round's figures
 * are those of the others, and the totals are what the configuration allows. */
static void test_a_liar_does_not_move_the_figures(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	for (uint8_t who = 1; who <= 3; who++)
		assert_int_equal(join(b, who, &reply), RV_OK);
	b->liar = 3;
	for (int round = 0; round < 3; round++) {
		for (int phase = WORKER_TRAINING; phase <= WORKER_VOTED; phase++)
			for (uint8_t who = 1; who <= 3 && phase != WORKER_REDUCING; who++)
				assert_int_equal(report(b, who, (enum worker_phase)phase, ":70"), RV_OK);
		const struct commit_stats *c = &b->store.stats[b->store.n_commits - 1];
		assert_int_equal(c->round, round);
		assert_true(c->loss == 4);                      /* of 3, 4 and the lie */
		assert_int_equal(c->tokens, 200 + 8 * 64 * 30); /* batch x context x steps-per-round */
		assert_true(c->tx_bytes < 1000000 && c->compute_us == 0);
		assert_true(c->tokens_per_s <= 1e9 + 20);
	}
	assert_true(was_told(b, "member 2 reports more tokens than its steps can be"));
	json_t *s = service_status(b->service, b->now_us, true), *liar = json_array_get(json_object_get(s, "members"), 2);
	assert_int_equal(json_integer_value(json_object_get(s, "total_tokens")), 3 * (200 + 8 * 64 * 30));
	assert_true(json_real_value(json_object_get(liar, "loss")) <= 1e6);
	assert_true(json_integer_value(json_object_get(liar, "tx_bytes")) > 0);
	json_decref(s);
	char *metrics = service_metrics(b->service, b->now_us);
	assert_non_null(strstr(metrics, "rivulet_loss 4\n"));
	free(metrics);
}

static bool holds(const char *text, const char *part) {
	return strstr(text, part) != NULL;
}

static char *status_text(const struct bench *b, bool details) {
	json_t *s = service_status(b->service, b->now_us, details);
	char *text = json_dumps(s, JSON_COMPACT);
	json_decref(s);
	assert_non_null(text);
	return text;
}

/* Where members are is the operator's knowledge: not in the table, not in the news, not in the
 * metrics. */
static void test_no_address_is_for_everybody(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	assert_int_equal(join(b, 1, &reply), RV_OK);
	assert_int_equal(join(b, 2, &reply), RV_OK);
	commit_round(b);
	assert_int_equal(report(b, 1, WORKER_TRAINING, "[2001:db8::7]:7071"), RV_OK);
	assert_int_equal(report(b, 2, WORKER_TRAINING, "203.0.113.99:7072"), RV_OK);
	assert_int_equal(service_ban(b->service, b->now_us, 1, true, NULL), RV_OK);
	char *everybody = status_text(b, false), *operators = status_text(b, true);
	char *metrics = service_metrics(b->service, b->now_us);
	static const char *const secrets[] = {"10.1.1.1", ":7071", ":7072", "2001:db8", "203.0.113.99"};
	enum { SHOWN = 3 }; /* what a member only claims is shown to nobody */
	for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
		assert_true(i >= SHOWN || holds(operators, secrets[i]));
		assert_false(holds(everybody, secrets[i]) || holds(metrics, secrets[i]));
	}
	free(everybody);
	free(operators);
	free(metrics);
}

/* Members say no name unless their people want to. */
static void test_who_has_no_name_has_a_number(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	b->nameless = true;
	assert_int_equal(join(b, 1, &reply), RV_OK);
	json_t *s = service_status(b->service, b->now_us, false);
	const json_t *member = json_array_get(json_object_get(s, "members"), 0);
	assert_string_equal(json_string_value(json_object_get(member, "name")), "worker 0");
	json_decref(s);
}

/* Reports say 0 for a loss that is not known. */
static void test_a_loss_that_is_not_known_is_not_shown_as_one(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	assert_int_equal(join(b, 1, &reply), RV_OK);
	json_t *s = service_status(b->service, b->now_us, false);
	assert_true(json_is_null(json_object_get(json_array_get(json_object_get(s, "members"), 0), "loss")));
	json_decref(s);
	char *metrics = service_metrics(b->service, b->now_us);
	assert_non_null(metrics);
	assert_null(strstr(metrics, "rivulet_loss"));
	assert_null(strstr(metrics, "rivulet_member_loss{"));
	assert_non_null(strstr(metrics, "rivulet_member_up{member=\"0\"}"));
	free(metrics);
}

static json_t *time_of_member_0(struct bench *b) {
	json_t *s = service_status(b->service, b->now_us, false);
	json_t *t = json_incref(json_object_get(json_array_get(json_object_get(s, "members"), 0), "time"));
	json_decref(s);
	return t;
}

static void expect_time(struct bench *b, int64_t us, uint64_t compute_us) {
	json_t *t = time_of_member_0(b);
	assert_int_equal(json_integer_value(json_object_get(t, "us")), us);
	assert_int_equal(json_integer_value(json_object_get(t, "compute_us")), (json_int_t)compute_us);
	json_decref(t);
}

/* A worker that has trained for long before this coordinator started, and one that starts again. */
static void test_time_is_counted_from_the_first_report(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	assert_int_equal(join(b, 1, &reply), RV_OK);
	b->compute_us = UINT64_C(9000000000);
	assert_int_equal(report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	json_t *t = time_of_member_0(b);
	assert_true(json_is_null(t));
	json_decref(t);
	b->now_us += 1000000;
	b->compute_us += 700000;
	assert_int_equal(report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	expect_time(b, 1000000, 700000);
	b->compute_us = 10; /* a new process */
	b->now_us += 5000000;
	assert_int_equal(report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	b->now_us += 2000000;
	b->compute_us = 400010;
	assert_int_equal(report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	expect_time(b, 2000000, 400000);
}

static void test_status_is_whole_before_anything_happened(void **state) {
	struct bench *b = *state;
	json_t *s = service_status(b->service, b->now_us, true);
	assert_string_equal(json_string_value(json_object_get(s, "phase")), "waiting");
	assert_true(json_is_null(json_object_get(s, "loss")));
	assert_true(json_is_null(json_object_get(s, "eta_s")));
	json_decref(s);
}

/* A round has one number, in every event and in the table of workers; how many are committed is
 * said beside it. */
static void test_a_round_has_one_number(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(join(b, who, &reply), RV_OK);
	commit_round(b);
	json_t *s = service_status(b->service, b->now_us, false);
	json_t *member = json_array_get(json_object_get(s, "members"), 0);
	assert_int_equal(json_integer_value(json_object_get(member, "round")), 0);
	json_t *committed = json_array_get(json_object_get(s, "history"), 0);
	assert_int_equal(json_integer_value(json_object_get(committed, "round")), 0);
	json_decref(s);
	assert_true(was_told(b, "round 0, attempt 1: 2 workers average their gradients"));
	assert_true(was_told(b, "round 0 committed (1 of 4): 2 workers, loss 3.5000, 200 tokens"));
}

/* As the terminal's status and the workers' logs count: by thousands. */
static void test_the_page_counts_bytes_by_thousands(void **state) {
	(void)state;
	assert_non_null(memmem(dashboard_html, dashboard_html_bytes, " MB\"", 4));
	assert_null(memmem(dashboard_html, dashboard_html_bytes, "MiB", 3));
}

/* Too few workers for 20 s: who is missing is told, once, and shown. */
static void test_a_long_wait_names_who_is_missing(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	assert_int_equal(join(b, 1, &reply), RV_OK);
	assert_int_equal(join(b, 2, &reply), RV_OK);
	assert_int_equal(report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	for (int i = 0; i < 4; i++) {
		service_tick(b->service, b->now_us += 4900000);
		assert_int_equal(report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	}
	assert_false(was_told(b, "missing"));
	service_tick(b->service, b->now_us += 500000);
	assert_true(was_told(b, "1 of 2 workers are present; missing: member 1 'it's \"me\"' (never reported)"));
	json_t *s = service_status(b->service, b->now_us, false), *missing = json_object_get(s, "missing");
	assert_true(json_real_value(json_object_get(s, "waiting_s")) >= 20);
	assert_int_equal(json_array_size(missing), 1);
	assert_int_equal(json_integer_value(json_array_get(missing, 0)), 1);
	json_decref(s);
	assert_int_equal(report(b, 2, WORKER_TRAINING, ":70"), RV_OK);
	s = service_status(b->service, b->now_us, false);
	assert_true(json_is_null(json_object_get(s, "waiting_s")));
	assert_int_equal(json_array_size(json_object_get(s, "missing")), 0);
	json_decref(s);
	assert_int_equal(report(b, 2, WORKER_LEAVING, ":70"), RV_OK);
	assert_true(was_told(b, "member 1 was stopped and has left"));
}

/* A worker whose run is complete has not been stopped. */
static void test_a_worker_that_has_finished_is_not_stopped(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(join(b, who, &reply), RV_OK);
	for (int i = 0; i < 4; i++)
		commit_round(b);
	assert_int_equal(report(b, 2, WORKER_LEAVING, ":70"), RV_OK);
	assert_true(was_told(b, "member 1 has finished and left"));
	assert_false(was_told(b, "was stopped"));
}

/* One of two dies in the all-reduce: the attempt is held for it, and people hear why nothing
 * moves. */
static void test_an_all_reduce_that_waits_is_told(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(join(b, who, &reply), RV_OK);
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(report(b, who, WORKER_READY, ":70"), RV_OK);
	for (int i = 0; i < 8; i++) {
		service_tick(b->service, b->now_us += 4900000);
		assert_int_equal(report(b, 1, WORKER_REDUCING, ":70"), RV_OK);
	}
	json_t *s = service_status(b->service, b->now_us, false);
	assert_string_equal(json_string_value(json_object_get(s, "phase")), "averaging");
	assert_true(json_real_value(json_object_get(s, "waiting_s")) >= 20);
	json_decref(s);
	assert_true(was_told(b, "1 of 2 workers are present; missing: member 1"));
	assert_int_equal(report(b, 2, WORKER_REDUCING, ":70"), RV_OK);
	s = service_status(b->service, b->now_us, false);
	assert_true(json_is_null(json_object_get(s, "waiting_s")));
	json_decref(s);
}

static void test_the_run_ends(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	assert_int_equal(join(b, 1, &reply), RV_OK);
	assert_int_equal(join(b, 2, &reply), RV_OK);
	for (int round = 0; round < 4; round++)
		commit_round(b);
	json_t *s = service_status(b->service, b->now_us, false);
	assert_string_equal(json_string_value(json_object_get(s, "phase")), "done");
	assert_true(json_real_value(json_object_get(s, "eta_s")) == 0);
	json_decref(s);
}

/* For longer than it takes to be sure. */
static void report_for_long(struct bench *b, uint8_t first, uint8_t last) {
	for (int i = 0; i < 12; i++) {
		service_tick(b->service, b->now_us += 2000000);
		for (uint8_t who = first; who <= last; who++)
			assert_int_equal(report(b, who, WORKER_SYNCING, ":70"), RV_OK);
	}
}

static json_t *not_held(const struct bench *b) {
	json_t *s = service_status(b->service, b->now_us, false), *o = json_incref(json_object_get(s, "not_held"));
	json_decref(s);
	return o;
}

/* Those who have the last state have exited: that is how a run ends, and no reason to take rounds
 * back. */
static void test_who_is_late_for_the_end(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	static struct document d;
	for (uint8_t who = 1; who <= 3; who++)
		assert_int_equal(join(b, who, &reply), RV_OK);
	document(b, &d);
	struct report old = {.round = d.round, .chain = d.chain};
	for (int round = 0; round < 4; round++)
		commit_round(b);
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(report(b, who, WORKER_LEAVING, ":70"), RV_OK);
	b->state = &old;
	report_for_long(b, 3, 3);
	assert_true(
		was_told(b, "the run is complete, and nothing is lost: members that are present (2) have an older state"));
	assert_true(was_told(b, "start one that has them (member 0, 1)"));
	assert_false(was_told(b, "rollback"));
	assert_false(was_told(b, "the run waits at round"));
	json_t *o = not_held(b);
	assert_true(json_is_true(json_object_get(o, "complete")));
	assert_string_equal(json_string_value(json_object_get(o, "command")), "");
	json_decref(o);
}

/* The store is an old copy, and nobody has shown that its disk reaches so far back. */
static void test_no_round_is_advised_that_nobody_has_proven(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	struct rv_errtext et = {0};
	char text[SERVICE_ROLLBACK_BYTES];
	struct report later = {.round = 4, .chain.b = {7}};
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(join(b, who, &reply), RV_OK);
	commit_round(b);
	b->state = &later;
	report_for_long(b, 1, 2);
	assert_true(was_told(b, "serve the newest store"));
	assert_true(was_told(b, "a rollback to round 1 would leave nothing to continue from"));
	assert_true(was_told(b, "rivulet export"));
	assert_false(was_told(b, "--to-round"));
	json_t *o = not_held(b);
	assert_true(json_is_true(json_object_get(o, "ahead")));
	assert_string_equal(json_string_value(json_object_get(o, "command")), "");
	json_decref(o);
	assert_int_equal(service_rollback(b->service, b->now_us, 1, false, text, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "no state is left to go on from"));
	assert_int_equal(service_rollback(b->service, b->now_us, 1, true, text, &et), RV_OK);
	assert_non_null(strstr(text, "no present member has proven round 1"));
	assert_non_null(strstr(text, "rounds aside"));
}

/* A member that comes and goes with every report is not what the log is for. */
static void test_one_member_does_not_fill_the_log(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	assert_int_equal(join(b, 1, &reply), RV_OK);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(report(b, 1, i % 2 ? WORKER_TRAINING : WORKER_LEAVING, ":70"), RV_OK);
	assert_true(was_told(b, "member 0 causes many events"));
	assert_true(was_told(b, "1 invite link made")); /* still among the last hundred */
}

static void test_prometheus(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	assert_int_equal(join(b, 1, &reply), RV_OK);
	assert_int_equal(report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	char *text = service_metrics(b->service, b->now_us);
	assert_non_null(strstr(text, "\nrivulet_rounds 4\n"));
	assert_non_null(strstr(text, "\nrivulet_member_up{member=\"0\"} 1\n"));
	assert_non_null(strstr(text, "# TYPE rivulet_member_sent_bytes_total counter\n"));
	free(text);
}

static json_t *storage_of(struct bench *b, json_t **status) {
	*status = service_status(b->service, b->now_us, false);
	return json_object_get(json_array_get(json_object_get(*status, "members"), 0), "storage");
}

static bool stores_everything(struct bench *b) {
	json_t *status, *storage = storage_of(b, &status);
	bool is_null = json_is_null(storage);
	json_decref(status);
	return is_null;
}

static bool metrics_say(struct bench *b, const char *line) {
	char *text = service_metrics(b->service, b->now_us);
	bool said = strstr(text, line) != NULL;
	free(text);
	return said;
}

/* A worker whose disk is full: the operator sees it, and that it is over. */
static void test_a_disk_that_takes_nothing(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	json_t *status;
	assert_int_equal(join(b, 1, &reply), RV_OK);
	assert_int_equal(report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	assert_true(stores_everything(b));
	assert_true(metrics_say(b, "\nrivulet_member_storage_failing{member=\"0\"} 0\n"));
	b->storage = REPORT_STORAGE_ROUNDS | REPORT_STORAGE_CHECKPOINTS | REPORT_STORAGE_FULL;
	assert_int_equal(report(b, 1, WORKER_LEAVING, ":70"), RV_OK);
	json_t *storage = storage_of(b, &status);
	assert_string_equal(json_string_value(json_object_get(storage, "fails")), "results of rounds, checkpoints");
	assert_true(json_is_true(json_object_get(storage, "full")));
	json_decref(status);
	assert_true(metrics_say(b, "\nrivulet_member_storage_failing{member=\"0\"} 1\n"));
	assert_true(metrics_say(b, "\nrivulet_member_storage_full{member=\"0\"} 1\n"));
	assert_true(
		was_told(b, "cannot store results of rounds, checkpoints (its disk is full): it takes part in no round"));
	assert_true(was_told(b, "member 0 is not waited for until its disk takes results again"));
	assert_false(was_told(b, "has left"));
	uint8_t failing = b->storage;
	for (int flips = 0; flips < 3; flips++) { /* nearly full: shown as it is, told once */
		b->now_us += 5000000;
		b->storage = flips % 2 ? failing : 0;
		assert_int_equal(report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
		assert_int_equal(stores_everything(b), flips % 2 == 0);
	}
	for (int i = 0; i < 5; i++) {
		b->now_us += 5000000;
		assert_int_equal(report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	}
	assert_false(was_told(b, "stores everything again"));
	b->now_us += 5000000;
	assert_int_equal(report(b, 1, WORKER_TRAINING, ":70"), RV_OK);
	assert_true(was_told(b, "member 0 it's \"me\" stores everything again"));
}

/* Of four members the last one has other text, is far too large and points away; all owners but it
 * say so. */
static void one_is_unlike_the_others(struct report *rep, uint8_t who) {
	rep->loss = who == 4 ? 5.5f : 1.5f + 0.01f * (float)who;
	if (rep->phase != WORKER_VOTED)
		return;
	rep->n_measured = 4;
	rep->mean2 = 1;
	for (int i = 0; i < 4; i++)
		rep->measured[i] = (struct report_measured){.norm2 = 1, .dot = 0.5f};
	if (who == 4)
		rep->measured[0].norm2 = 3e38f; /* a lie */
	else
		rep->measured[3] = (struct report_measured){.norm2 = 16, .dot = -2, .clipped = rep->n_chunks};
}

static void round_of_four(struct bench *b) {
	static const enum worker_phase phases[] = {WORKER_TRAINING, WORKER_READY, WORKER_VOTED};
	for (size_t p = 0; p < sizeof phases / sizeof phases[0]; p++)
		for (uint8_t who = 1; who <= 4; who++)
			assert_int_equal(report(b, who, phases[p], ":70"), RV_OK);
}

static json_t *member_of(json_t *status, size_t member) {
	return json_array_get(json_object_get(status, "members"), member);
}

static void test_a_member_unlike_the_others_is_named(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	b->alter = one_is_unlike_the_others;
	for (uint8_t who = 1; who <= 4; who++)
		assert_int_equal(join(b, who, &reply), RV_OK);
	for (int round = 0; round < 3; round++) {
		json_t *o = service_status(b->service, b->now_us, false);
		assert_int_equal(json_array_size(json_object_get(member_of(o, 3), "outlier")), 0); /* one round may be luck */
		json_decref(o);
		round_of_four(b);
	}
	json_t *o = service_status(b->service, b->now_us, false), *odd = member_of(o, 3), *usual = member_of(o, 0);
	assert_int_equal(json_array_size(json_object_get(odd, "outlier")), 3);
	assert_int_equal(json_array_size(json_object_get(usual, "outlier")), 0);
	const json_t *c = json_object_get(odd, "contribution");
	assert_true(json_real_value(json_object_get(c, "norm")) == 4);
	assert_true(json_real_value(json_object_get(c, "cosine")) == -0.5);
	assert_true(json_real_value(json_object_get(json_object_get(usual, "contribution"), "norm")) == 1);
	assert_true(json_real_value(json_object_get(o, "loss")) < 1.6); /* of 1.51, 1.52, 1.53 and 5.5 */
	char *text = json_dumps(json_object_get(o, "events"), 0), *metrics = service_metrics(b->service, b->now_us);
	assert_non_null(strstr(text, "member 3: its loss is far from the others': 5.5, median 1.52"));
	assert_non_null(strstr(text, "member 3: its contribution is scaled down: 4 median norms"));
	assert_non_null(strstr(text, "member 3: its contribution points elsewhere: cosine -0.50"));
	assert_null(strstr(text, "member 0: its"));
	assert_non_null(strstr(metrics, "rivulet_member_contribution_norm_ratio{member=\"3\"} 4\n"));
	assert_non_null(strstr(metrics, "rivulet_member_contribution_cosine{member=\"3\"} -0.5\n"));
	assert_non_null(strstr(metrics, "rivulet_member_outlier{member=\"3\",kind=\"loss\"} 1\n"));
	assert_non_null(strstr(metrics, "rivulet_member_outlier{member=\"0\",kind=\"loss\"} 0\n"));
	free(metrics);
	free(text);
	json_decref(o);
}

/* Twelve members in rows of four. The last one is as above, by its row; in the middle row all
 * contributions are three times as large. */
static void one_row_is_large(struct report *rep, uint8_t who) {
	rep->loss = 1.5f;
	if (rep->phase != WORKER_VOTED)
		return;
	rep->n_measured = 4;
	rep->mean2 = 1;
	const bool large = (who - 1) / 4 == 1;
	for (int i = 0; i < 4; i++)
		rep->measured[i] = (struct report_measured){.norm2 = large ? 9 : 1, .dot = large ? 1.5f : 0.5f};
	if ((who - 1) / 4 == 2)
		rep->measured[3] = (struct report_measured){.norm2 = 16, .dot = -2, .clipped = rep->n_chunks};
}

static double norm_of(json_t *status, size_t member) {
	return json_real_value(json_object_get(json_object_get(member_of(status, member), "contribution"), "norm"));
}

static void test_rows_are_judged_together(void **state) {
	static const enum worker_phase phases[] = {WORKER_TRAINING, WORKER_READY, WORKER_VOTED};
	struct bench *b = *state;
	struct join_reply reply;
	b->alter = one_row_is_large;
	for (uint8_t who = 1; who <= 12; who++)
		assert_int_equal(join(b, who, &reply), RV_OK);
	for (int round = 0; round < 3; round++)
		for (size_t p = 0; p < sizeof phases / sizeof phases[0]; p++)
			for (uint8_t who = 1; who <= 12; who++) {
				json_t *o =
					phases[p] == WORKER_VOTED && who == 12 ? service_status(b->service, b->now_us, false) : NULL;
				for (size_t i = 0; o != NULL && i < 12; i++) {
					assert_true(json_is_true(json_object_get(member_of(o, i), "participant")));
					assert_int_equal(json_integer_value(json_object_get(member_of(o, i), "row")), i / 4);
				}
				json_decref(o);
				assert_int_equal(report(b, who, phases[p], ":70"), RV_OK);
			}
	json_t *o = service_status(b->service, b->now_us, false);
	for (size_t i = 0; i < 12; i++) {
		assert_int_equal(json_array_size(json_object_get(member_of(o, i), "outlier")), i == 11 ? 2 : 0);
		assert_float_equal(norm_of(o, i), i == 11 ? 4 : i / 4 == 1 ? 3 : 1, 1e-9);
	}
	json_decref(o);
}

static void test_ban(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	uint8_t key[NET_KEY_BYTES] = {1};
	struct rv_errtext et = {0};
	assert_int_equal(join(b, 1, &reply), RV_OK);
	assert_int_equal(service_ban(b->service, b->now_us, 4, true, &et), RV_E_NOTFOUND);
	assert_int_equal(service_ban(b->service, b->now_us, 0, true, &et), RV_OK);
	assert_true(service_find_member(b->service, key) < 0);
	assert_int_equal(service_ban(b->service, b->now_us, 0, false, &et), RV_OK);
	assert_true(service_find_member(b->service, key) >= 0);
}

/* It was refused for want of room, and is made durable as soon as there is some: before a join is
 * answered. */
static void test_ban_on_a_full_disk(void **state) {
	struct bench *b = *state;
	struct join_reply reply;
	struct rv_errtext et = {0};
	uint8_t key[NET_KEY_BYTES] = {1};
	assert_int_equal(join(b, 1, &reply), RV_OK);
	b->store.failing = RV_E_FULL;
	assert_int_equal(service_ban(b->service, b->now_us, 0, true, &et), RV_E_BUSY);
	assert_true(service_find_member(b->service, key) >= 0);
	b->store.failing = RV_OK;
	assert_int_equal(join(b, 1, &reply), RV_E_AUTH);
	assert_true(service_find_member(b->service, key) < 0);
}

static void test_invites(void **state) {
	struct bench *b = *state;
	char links[3][INVITE_MAX_BYTES];
	struct invite in;
	struct rv_errtext et = {0};
	assert_int_equal(service_invite(b->service, NULL, 0, links, &et), RV_E_RANGE);
	assert_int_equal(service_invite(b->service, NULL, SERVICE_INVITES_MAX + 1, links, &et), RV_E_RANGE);
	assert_int_equal(service_invite(b->service, NULL, 3, links, &et), RV_OK);
	assert_string_not_equal(links[0], links[1]);
	assert_int_equal(invite_parse(links[2], &in, &et), RV_OK);
	assert_string_equal(in.coordinator.host, "train.example.org");
	assert_memory_equal(in.key, b->run.key, sizeof in.key);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_join_reply, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full_disk_passes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_faults_are_final, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_report_fills_the_host, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_waits_together_is_written_together, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_status, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_liar_does_not_move_the_figures, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_address_is_for_everybody, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_who_has_no_name_has_a_number, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_loss_that_is_not_known_is_not_shown_as_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_time_is_counted_from_the_first_report, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_status_is_whole_before_anything_happened, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_round_has_one_number, set_up, tear_down),
		cmocka_unit_test(test_the_page_counts_bytes_by_thousands),
		cmocka_unit_test_setup_teardown(test_a_long_wait_names_who_is_missing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_worker_that_has_finished_is_not_stopped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_all_reduce_that_waits_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_run_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_who_is_late_for_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_round_is_advised_that_nobody_has_proven, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_member_does_not_fill_the_log, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_prometheus, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_disk_that_takes_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_member_unlike_the_others_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rows_are_judged_together, set_up_rows, tear_down),
		cmocka_unit_test_setup_teardown(test_ban, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ban_on_a_full_disk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_invites, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
