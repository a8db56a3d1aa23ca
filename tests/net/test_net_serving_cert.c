/* Serving certificates: whom a program believes to serve a run, by itself and over TLS. */
#include "net/http_client.h"
#include "net/serving_cert.h"
#include "net/tls.h"

#include "base/clock.h"
#include "tests/common/check.h"
#include "tests/net/web_server.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t run_id[NET_RUN_ID_BYTES] = {5}, other_run[NET_RUN_ID_BYTES] = {6};

static struct identity identity_number(uint8_t number) {
	uint8_t seed[IDENTITY_SEED_BYTES] = {number};
	struct identity id;
	identity_of_seed(seed, &id);
	return id;
}

static struct serving_cert cert_of(const struct identity *root, uint32_t serial, const struct identity *serving) {
	struct serving_cert c;
	serving_cert_make(root, run_id, serial, serving->key, &c);
	return c;
}

static void certificates_bind_everything(void **state) {
	(void)state;
	const struct identity root = identity_number(1), a = identity_number(2), b = identity_number(3);
	struct serving_cert c = cert_of(&root, 7, &a), changed;
	uint8_t bytes[SERVING_CERT_BYTES];
	assert_true(serving_cert_verify(root.key, run_id, &c));
	assert_false(serving_cert_verify(root.key, other_run, &c));
	assert_false(serving_cert_verify(a.key, run_id, &c));
	changed = c;
	changed.serial++;
	assert_false(serving_cert_verify(root.key, run_id, &changed));
	changed = c;
	memcpy(changed.key, b.key, NET_KEY_BYTES);
	assert_false(serving_cert_verify(root.key, run_id, &changed));
	changed = c;
	changed.signature[0] ^= 1;
	assert_false(serving_cert_verify(root.key, run_id, &changed));
	serving_cert_encode(&c, bytes);
	serving_cert_decode(bytes, &changed);
	assert_memory_equal(&changed, &c, sizeof c);
}

/* Go's parser, and so Prometheus, refuses a whole certificate for a larger number. */
static void the_extension_s_name_is_one_that_others_parse(void **state) {
	(void)state;
	const char *at = TLS_SERVING_CERT_OID;
	while (*at) {
		char *end;
		assert_true(strtoull(at, &end, 10) <= INT32_MAX && end > at);
		at = *end == '.' ? end + 1 : end;
	}
}

static void assert_refused(struct run_trust *t, const struct serving_cert *c, const char *why) {
	struct rv_errtext et;
	assert_int_equal(run_trust_take(t, c, &et), RV_E_AUTH);
	assert_non_null(strstr(et.text, why));
}

static void only_newer_keys_are_believed(void **state) {
	(void)state;
	const struct identity root = identity_number(1), a = identity_number(2), b = identity_number(3);
	struct run_trust t = run_trust_of(run_id, root.key);
	struct serving_cert c = cert_of(&root, 2, &a);
	assert_memory_equal(run_trust_key(&t), root.key, NET_KEY_BYTES); /* serves the run itself */
	assert_int_equal(run_trust_take(&t, &c, NULL), RV_OK);
	assert_memory_equal(run_trust_key(&t), a.key, NET_KEY_BYTES);
	assert_int_equal(run_trust_take(&t, &c, NULL), RV_OK); /* again */
	c = cert_of(&root, 1, &b);
	assert_refused(&t, &c, "replaced it");
	c = cert_of(&root, 2, &b); /* two keys with one number: the first one stays */
	assert_refused(&t, &c, "replaced it");
	c = cert_of(&a, 3, &b); /* a serving key certifies nobody */
	assert_refused(&t, &c, "root key did not sign");
	assert_memory_equal(run_trust_key(&t), a.key, NET_KEY_BYTES);
	c = cert_of(&root, 3, &b);
	assert_int_equal(run_trust_take(&t, &c, NULL), RV_OK);
	assert_memory_equal(run_trust_key(&t), b.key, NET_KEY_BYTES);
}

/* ---- over TLS ---- */

static void hello(void *ctx, const struct web_request *rq, struct web_reply *reply) {
	(void)ctx, (void)rq;
	reply->body = "hello";
	reply->body_bytes = 5;
}

struct outcome {
	bool done;
	enum rv_err err;
};

static void on_done(void *ctx, const struct http_reply *r) {
	struct outcome *o = ctx;
	o->done = true;
	o->err = r->err;
}

/* Asks a server that has this identity and shows this certificate (NULL: none); *trust is what the
 * client believes, before and after. */
static enum rv_err ask_server(const struct identity *serving, const struct serving_cert *cert,
							  struct run_trust *trust) {
	const struct identity worker = identity_number(9);
	struct web_server server;
	struct http_client *c;
	struct outcome o = {.done = false};
	web_start(&server, serving, hello, NULL);
	if (cert != NULL)
		assert_true(tls_identify_serving(server.ctx, serving, cert));
	const struct http_client_config cfg = {
		.server = {.host = "127.0.0.1", .port = server.port}, .trust = *trust, .identity = &worker};
	assert_ok(http_client_new(&cfg, &c, &et));
	const struct http_request rq = {.path = "/", .max_reply_bytes = 100, .done = on_done, .ctx = &o};
	assert_ok(http_client_start(c, &rq, NULL, &et));
	while (!o.done)
		assert_ok(http_client_poll(c, NULL, 0, RV_US_PER_S, &et));
	*trust = *http_client_trust(c);
	http_client_free(c);
	web_stop(&server);
	return o.err;
}

static void a_server_must_serve_the_run(void **state) {
	(void)state;
	const struct identity root = identity_number(1), a = identity_number(2), b = identity_number(3);
	struct run_trust t = run_trust_of(run_id, root.key);
	const struct serving_cert of_a = cert_of(&root, 1, &a), of_b = cert_of(&root, 2, &b), forged = cert_of(&b, 9, &b);
	assert_int_equal(ask_server(&root, NULL, &t), RV_OK);
	assert_int_equal(ask_server(&a, NULL, &t), RV_E_AUTH);    /* nobody vouches for it */
	assert_int_equal(ask_server(&b, &of_a, &t), RV_E_AUTH);   /* another key's certificate */
	assert_int_equal(ask_server(&b, &forged, &t), RV_E_AUTH); /* of another root */
	assert_int_equal(t.cert.serial, 0);
	assert_int_equal(ask_server(&a, &of_a, &t), RV_OK);
	assert_int_equal(t.cert.serial, 1);
	assert_int_equal(ask_server(&root, NULL, &t), RV_E_AUTH); /* it has handed over */
	assert_int_equal(ask_server(&a, NULL, &t), RV_OK);        /* known by now */
	assert_int_equal(ask_server(&b, &of_b, &t), RV_OK);
	assert_int_equal(t.cert.serial, 2);
	assert_int_equal(ask_server(&a, &of_a, &t), RV_E_AUTH); /* stolen, and replaced */
	assert_int_equal(t.cert.serial, 2);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(certificates_bind_everything),
		cmocka_unit_test(the_extension_s_name_is_one_that_others_parse),
		cmocka_unit_test(only_newer_keys_are_believed),
		cmocka_unit_test(a_server_must_serve_the_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
