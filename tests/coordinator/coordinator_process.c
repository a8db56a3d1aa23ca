/* coordinator_process.c: see coordinator_process.h. */
#include "tests/coordinator/coordinator_process.h"

#include "coordinator/store/run_keys.h"
#include "net/control/signed_roots.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS_MAX = 32, REQUEST_TIMEOUT_MS = 120000 };

/* ---- processes ---- */

int coordinator_command(char *out, size_t cap, const char *const *args) {
	const char *argv[ARGS_MAX] = {COORDINATOR_PROGRAM};
	for (int i = 0; args[i] != NULL; i++) {
		assert_true(i + 2 < ARGS_MAX);
		argv[i + 1] = args[i];
	}
	return process_run(out, cap, argv);
}

bool coordinator_try_start(struct coordinator *c, int *exit_status) {
	if (!e2e_try_start_coordinator(&c->e, exit_status))
		return false;
	assert_ok(address_parse(c->e.listen, &c->at, &et));
	return true;
}

void coordinator_start(struct coordinator *c) {
	int status;
	if (!coordinator_try_start(c, &status))
		fail_msg("the coordinator of %s ended with %d", c->dir, status);
}

static void read_keys(const struct coordinator *c, struct run_keys *out) {
	char path[E2E_PATH + 16];
	(void)snprintf(path, sizeof path, "%s/run.key", c->dir);
	assert_ok(run_keys_load(path, out, &et));
}

void coordinator_make(struct coordinator *c, const char *config) {
	coordinator_make_for(c, config, 0);
}

void coordinator_make_for(struct coordinator *c, const char *config, int n_workers) {
	struct invite in;
	struct run_keys keys;
	memset(c, 0, sizeof *c);
	e2e_open(&c->e, config, n_workers);
	c->e.coordinator_program = COORDINATOR_PROGRAM;
	e2e_path(&c->e, "coordinator", c->dir);
	assert_ok(address_parse(c->e.listen, &c->at, &et));
	coordinator_invite_many(c, 1, &in);
	memcpy(c->run_id, in.run_id, sizeof c->run_id);
	memcpy(c->root, in.key, sizeof c->root);
	read_keys(c, &keys);
	memcpy(c->serving, keys.serving.key, sizeof c->serving);
}

int coordinator_stop(struct coordinator *c) {
	process_signal(&c->e.coordinator, SIGTERM);
	return process_wait(&c->e.coordinator);
}

void coordinator_remove(struct coordinator *c) {
	if (c->e.coordinator.pid != 0)
		(void)coordinator_stop(c);
	scratch_remove_only(c->dir,
						(const char *const[]){"run.conf", "run.key", "root.key", "store.db", "store.db-wal",
											  "store.db-journal", "store.db.replaced", "listen", "address",
											  "relay-ports", "lock", "rounds.jsonl", "report", "web.pem", NULL});
	e2e_close(&c->e);
}

void coordinator_invite(struct coordinator *c, struct invite *out) {
	e2e_make_links(&c->e, 0, 1);
	assert_ok(invite_parse(c->e.links[0], out, &et));
}

void coordinator_invite_many(struct coordinator *c, int uses, struct invite *out) {
	char text[4096], number[16];
	(void)snprintf(number, sizeof number, "%d", uses);
	assert_int_equal(coordinator_command(text, sizeof text,
										 (const char *const[]){"invite", "--dir", c->dir, "--uses", number, NULL}),
					 0);
	char *link = strstr(text, "rivulet://");
	assert_non_null(link);
	link[strcspn(link, " \r\n\"")] = '\0';
	assert_ok(invite_parse(link, out, &et));
}

/* ---- clients ---- */

static void connect_as_identity(struct client *k, const struct coordinator *c, const uint8_t *server_key) {
	k->timeout_ms = c->timeout_ms > 0 ? c->timeout_ms : REQUEST_TIMEOUT_MS;
	struct http_client_config cfg = {.server = c->at, .identity = &k->id, .connect_timeout_ms = k->timeout_ms};
	k->name = "tester";
	memcpy(k->run_id, c->run_id, sizeof k->run_id);
	cfg.trust = run_trust_of(c->run_id, server_key != NULL ? server_key : c->root);
	assert_ok(http_client_new(&cfg, &k->http, &et));
}

void client_init(struct client *k, const struct coordinator *c, uint32_t who, const uint8_t *server_key) {
	uint8_t seed[IDENTITY_SEED_BYTES] = {1};
	memcpy(seed + 4, &who, sizeof who);
	identity_of_seed(seed, &k->id);
	connect_as_identity(k, c, server_key);
}

void client_init_operator(struct client *k, const struct coordinator *c) {
	struct run_keys keys;
	read_keys(c, &keys);
	k->id = keys.serving;
	connect_as_identity(k, c, NULL);
}

void client_release(struct client *k) {
	http_client_free(k->http);
	identity_release(&k->id);
}

struct call {
	struct answer *answer;
	bool done;
};

static void on_done(void *ctx, const struct http_reply *r) {
	struct call *call = ctx;
	struct answer *a = call->answer;
	call->done = true;
	a->err = r->err;
	a->status = r->status;
	a->n = 0;
	a->text[0] = '\0';
	if (r->err != RV_OK) {
		(void)snprintf(a->text, sizeof a->text, "%s", r->text);
		return;
	}
	assert_true(r->body_bytes <= sizeof a->body);
	memcpy(a->body, r->body, r->body_bytes);
	a->n = r->body_bytes;
}

const struct answer *client_ask(struct client *k, const char *path, const void *body, size_t n) {
	static struct answer answer;
	struct call call = {.answer = &answer};
	struct http_request rq = {.path = path,
							  .body = body,
							  .body_bytes = n,
							  .max_reply_bytes = sizeof answer.body,
							  .timeout_ms = k->timeout_ms,
							  .done = on_done,
							  .ctx = &call};
	assert_ok(http_client_start(k->http, &rq, NULL, &et));
	while (!call.done)
		assert_ok(http_client_poll(k->http, NULL, 0, 1000000, &et));
	return &answer;
}

int client_join(struct client *k, const struct coordinator *c, const struct invite *in, struct join_reply *out) {
	struct join_request rq = {.protocol = CONTROL_VERSION, .software = "test"};
	uint8_t body[512];
	struct rv_writer w = rv_writer_of(body, sizeof body);
	(void)snprintf(rq.name, sizeof rq.name, "%s", k->name);
	memcpy(rq.run_id, c->run_id, sizeof rq.run_id);
	if (in != NULL) {
		rq.has_token = in->has_token;
		memcpy(rq.token, in->token, sizeof rq.token);
	}
	join_request_encode(&rq, &w);
	assert_false(w.failed);
	const struct answer *a = client_ask(k, "/v1/join", body, rv_writer_len(&w));
	if (a->status == 200 && out != NULL)
		assert_ok(join_reply_decode(a->body, a->n, out, &et));
	return a->status;
}

int client_report(struct client *k, const struct report *rep) {
	uint8_t body[NET_MAX_REPORT_BYTES];
	struct report is_signed = *rep;
	const struct seal_ops ops = seal_ed25519(&k->id);
	report_sign(&is_signed, k->run_id, &ops);
	struct rv_writer w = rv_writer_of(body, sizeof body);
	report_encode(&is_signed, CONTROL_VERSION, &w);
	assert_false(w.failed);
	return client_ask(k, "/v1/report", body, rv_writer_len(&w))->status;
}

int client_document(struct client *k, uint64_t after, struct document *out) {
	char path[64];
	const uint8_t *bytes;
	size_t n;
	struct rv_errtext et = {0};
	(void)snprintf(path, sizeof path, "/v1/document?version=%d&after=%llu", (int)CONTROL_VERSION,
				   (unsigned long long)after);
	const struct answer *a = client_ask(k, path, NULL, 0);
	if (a->status != 200)
		return a->status;
	assert_int_equal(signed_open(run_trust_key(http_client_trust(k->http)), IDENTITY_DOCUMENT_DOMAIN, a->body, a->n,
								 &bytes, &n, &et),
					 RV_OK);
	if (document_decode(bytes, n, out, &et) != RV_OK)
		fail_msg("document: %s", et.text);
	return a->status;
}
