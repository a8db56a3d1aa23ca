/* test_torture_net.c: identities, TLS, peer links and the HTTPS client, while every call that can
 * fail fails in turn. A fault has a text; a link that is lost is told of and heals when nothing
 * fails any more; an answer is the right one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "base/clock.h"
#include "net/address.h"
#include "net/http_client.h"
#include "net/tls.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "tests/net/mesh_world.h"
#include "tests/net/web_server.h"
#include "tests/torture/torture.h"

static const uint8_t run_id[NET_RUN_ID_BYTES] = {5};

enum { TRIALS = 100, MESH_TRIALS = 16, MESH_STEPS = 100, BULK = 3, BULK_BYTES = 1000, HEAL_TRIES = 60 };

/* ---- identities and TLS ---- */

struct keys {
	char dir[64], path[96];
	struct identity made;
	bool is_made;
};

static void begin_keys(void *ctx) {
	struct keys *k = ctx;
	(void)unlink(k->path);
	k->is_made = false;
}

static void run_keys(void *ctx) {
	struct keys *k = ctx;
	struct identity again = {0};
	struct rv_errtext et = {0};
	SSL_CTX *tls = NULL;
	bool created = false;
	k->is_made = torture_ok(identity_load_or_create(k->path, &k->made, &created, &et), &et);
	if (!k->is_made)
		return;
	assert_true(created);
	if (torture_ok(identity_load(k->path, &again, &et), &et))
		assert_memory_equal(again.key, k->made.key, NET_KEY_BYTES);
	if (torture_ok(tls_context_new(&k->made, TLS_CLIENTS_MUST, &tls, &et), &et))
		assert_non_null(tls);
	SSL_CTX_free(tls);
	struct address name = {.host = "127.0.0.1", .port = 7}, numeric;
	(void)torture_ok(address_resolve(&name, &numeric, &et), &et);
}

static void check_keys(void *ctx) {
	struct keys *k = ctx;
	struct identity now = {0};
	struct rv_errtext et = {0};
	bool created;
	if (identity_load_or_create(k->path, &now, &created, &et) != RV_OK)
		fail_msg("afterwards: %s", et.text);
	if (k->is_made)
		assert_memory_equal(now.key, k->made.key, NET_KEY_BYTES);
}

static void identities_and_tls(void **state) {
	(void)state;
	struct keys k = {0};
	scratch_make_in_memory(k.dir, sizeof k.dir);
	(void)snprintf(k.path, sizeof k.path, "%s/identity.key", k.dir);
	torture(&(struct torture){"identities and TLS", begin_keys, run_keys, check_keys, &k, TRIALS});
	scratch_remove(k.dir);
}

/* ---- peer links ---- */

struct mesh {
	struct world world;
	struct peers *third;
};

static void begin_mesh(void *ctx) {
	struct mesh *m = ctx;
	struct world *w = &m->world;
	world_init(w, 2, NULL);
	for (int i = 0; i < 2; i++) {
		struct node *n = &w->nodes[i];
		n->bulk_bytes = BULK_BYTES;
		n->bulk_body = malloc(BULK_BYTES);
		assert_non_null(n->bulk_body);
		memset(n->bulk_body, 'a' + i, BULK_BYTES);
		n->bulk[1 - i] = BULK;
		n->pings[1 - i] = 1;
	}
}

static bool all_done(struct world *w) {
	return world_all_linked(w, NULL) && world_quiet_bulk(w, NULL);
}

static void run_mesh(void *ctx) {
	struct mesh *m = ctx;
	struct world *w = &m->world;
	struct rv_errtext et = {0};
	struct peers_config cfg = w->nodes[0].cfg;
	m->third = NULL;
	(void)torture_ok(peers_new(&cfg, &m->third, &et), &et);
	world_allow_all(w);
	for (int i = 0; i < MESH_STEPS && !all_done(w); i++) {
		world_step(w);
		if (i > MESH_STEPS / 2)
			w->now_us += RV_US_PER_S / 10; /* pauses before another dial */
	}
}

static int told(const struct world *w) {
	int n = 0;
	for (int i = 0; i < 2; i++)
		n += w->nodes[i].troubles + w->nodes[i].downs[1 - i];
	return n;
}

/* With the next document they find each other again, and what is sent from then on arrives; what
 * was lost was told. */
static void check_mesh(void *ctx) {
	struct mesh *m = ctx;
	struct world *w = &m->world;
	bool lost = !all_done(w);
	world_allow_all(w);
	for (int i = 0; i < HEAL_TRIES && !world_all_linked(w, NULL); i++)
		world_advance(w, 2 * RV_US_PER_S);
	assert_true(world_all_linked(w, NULL));
	uint32_t before = w->nodes[1].got_pings[0];
	w->nodes[0].pings[1]++;
	for (int i = 0; i < WORLD_MAX_STEPS && w->nodes[1].got_pings[0] == before; i++) {
		peers_pump(w->nodes[0].peers, w->now_us);
		world_step(w);
	}
	assert_int_not_equal(w->nodes[1].got_pings[0], before);
	bool gap = w->nodes[0].bad_body || w->nodes[1].bad_body; /* chunks are numbered */
	if (gap || (lost && !world_quiet_bulk(w, NULL)))
		assert_true(told(w) > 0);
	peers_free(m->third);
	world_release(w);
}

static void peer_links(void **state) {
	(void)state;
	static struct mesh m;
	torture(&(struct torture){"peer links", begin_mesh, run_mesh, check_mesh, &m, MESH_TRIALS});
}

/* ---- the HTTPS client ---- */

enum { FAULTY_MS = 3000, HEALED_MS = 60000 };

static const char sent[] = "the body of a request";

struct web {
	struct identity worker, run;
	struct web_server server;
	int answers, right;
};

static void echo(void *ctx, const struct web_request *rq, struct web_reply *reply) {
	(void)ctx;
	reply->body = rq->body;
	reply->body_bytes = rq->body_bytes;
}

static void on_answer(void *ctx, const struct http_reply *r) {
	struct web *w = ctx;
	w->answers++;
	if (r->err != RV_OK) {
		assert_true(r->text != NULL && r->text[0] != '\0');
		return;
	}
	assert_int_equal(r->status, 200);
	assert_int_equal(r->body_bytes, sizeof sent);
	assert_memory_equal(r->body, sent, sizeof sent);
	w->right++;
}

static bool ask(struct web *w, int64_t timeout_ms) {
	struct http_client_config cfg = {.server = {.host = "127.0.0.1", .port = w->server.port}, .identity = &w->worker};
	struct http_request rq = {.path = "/echo",
							  .body = sent,
							  .body_bytes = sizeof sent,
							  .max_reply_bytes = 4096,
							  .timeout_ms = timeout_ms,
							  .done = on_answer,
							  .ctx = w};
	struct http_client *c = NULL;
	struct rv_errtext et = {0};
	bool going = true;
	w->answers = w->right = 0;
	cfg.trust = run_trust_of(run_id, w->run.key);
	if (torture_ok(http_client_new(&cfg, &c, &et), &et) && torture_ok(http_client_start(c, &rq, NULL, &et), &et))
		for (int64_t end = rv_clock_monotonic_us() + 2 * timeout_ms * RV_US_PER_MS;
			 going && w->answers == 0 && rv_clock_monotonic_us() < end;)
			going = torture_ok(http_client_poll(c, NULL, 0, RV_US_PER_S / 50, &et), &et);
	else
		going = false;
	http_client_free(c);
	assert_true(w->answers == 1 || !going); /* an answer, or a fault that was told */
	return w->right == 1;
}

static void begin_web(void *ctx) {
	struct web *w = ctx;
	web_start(&w->server, &w->run, echo, w);
}

static void run_web(void *ctx) {
	(void)ask(ctx, FAULTY_MS);
}

static void check_web(void *ctx) {
	struct web *w = ctx;
	assert_true(ask(w, HEALED_MS));
	web_stop(&w->server);
}

static void https_client(void **state) {
	(void)state;
	static const uint8_t seeds[2][IDENTITY_SEED_BYTES] = {{1}, {2}};
	static struct web w;
	identity_of_seed(seeds[0], &w.worker);
	identity_of_seed(seeds[1], &w.run);
	torture(&(struct torture){"HTTPS client", begin_web, run_web, check_web, &w, 24});
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identities_and_tls),
		cmocka_unit_test(peer_links),
		cmocka_unit_test(https_client),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
