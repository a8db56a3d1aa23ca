/* The certificate that browsers see: the same after a restart; the operator's; the new one soon
 * after its files change; the earlier one while they hold a pair that does not belong together.
 * Workers are shown the run's key in each case. And what a proxy may pass on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "coordinator/web/web_cert.h"
#include "net/tls.h"
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/common/scratch.h"
#include "tests/coordinator/coordinator_process.h"

#define BROWSERS "ECDSA+SHA256:RSA-PSS+SHA256" /* what they know */
enum { PRINT_BYTES = 32, RSA_BITS = 2048 };

struct print {
	unsigned char bytes[PRINT_BYTES];
};

static char dir[64];
static struct rv_errtext why;

static int set_up(void **state) {
	(void)state;
	scratch_make(dir, sizeof dir);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	scratch_remove(dir);
	return 0;
}

static const char *file(const char *name) {
	static char path[8][E2E_PATH];
	static int next;
	char *at = path[next++ % 8];
	(void)snprintf(at, E2E_PATH, "%s/%s", dir, name);
	return at;
}

/* ---- files ---- */

static void put_key(const char *name, EVP_PKEY *key, const char *passphrase) {
	FILE *f = fopen(file(name), "w");
	assert_non_null(f);
	assert_int_equal(
		PEM_write_PrivateKey(f, key, passphrase ? EVP_aes_256_cbc() : NULL, NULL, 0, NULL, (void *)passphrase), 1);
	assert_int_equal(fclose(f), 0);
}

/* Writes a certificate of `key`, signed by it (Ed25519 as well). */
static void put_cert(const char *name, EVP_PKEY *key) {
	X509 *x = X509_new();
	FILE *f = fopen(file(name), "w");
	assert_true(x != NULL && f != NULL && tls_self_sign(x, key));
	assert_int_equal(PEM_write_X509(f, x), 1);
	assert_int_equal(fclose(f), 0);
	X509_free(x);
}

static void put_pair(const char *cert, const char *key_file, EVP_PKEY *key) {
	put_cert(cert, key);
	put_key(key_file, key, NULL);
	EVP_PKEY_free(key);
}

static enum rv_err use(const char *cert, const char *key) {
	struct identity id;
	SSL_CTX *ctx = NULL;
	struct web_cert w = {.cert = ""};
	const uint8_t seed[IDENTITY_SEED_BYTES] = {9};
	identity_of_seed(seed, &id);
	(void)snprintf(w.cert, sizeof w.cert, "%s", file(cert));
	(void)snprintf(w.key, sizeof w.key, "%s", file(key));
	assert_ok(tls_context_new(&id, TLS_CLIENTS_MAY, &ctx, &et));
	const enum rv_err e = web_cert_use(&w, ctx, &why);
	if (e == RV_OK)
		assert_false(web_cert_changed(&w));
	SSL_CTX_free(ctx);
	return e;
}

static void files_that_serve_and_files_that_do_not(void **state) {
	(void)state;
	put_pair("a.crt", "a.key", EVP_EC_gen("P-256"));
	put_pair("b.crt", "b.key", EVP_EC_gen("P-384"));
	put_pair("c.crt", "c.key", EVP_RSA_gen(RSA_BITS));
	put_pair("d.crt", "d.key", EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"));
	EVP_PKEY *locked = EVP_EC_gen("P-256");
	put_cert("e.crt", locked);
	put_key("e.key", locked, "secret");
	EVP_PKEY_free(locked);
	assert_ok(use("a.crt", "a.key"));
	assert_ok(use("b.crt", "b.key"));
	assert_ok(use("c.crt", "c.key"));
	assert_int_equal(use("d.crt", "d.key"), RV_E_INVALID); /* it would stand in the serving key's place */
	assert_non_null(strstr(why.text, "must be ECDSA"));
	assert_int_equal(use("e.crt", "e.key"), RV_E_INVALID);
	assert_int_equal(use("a.crt", "b.key"), RV_E_INVALID);
	assert_int_equal(use("a.key", "a.key"), RV_E_INVALID);
	assert_int_equal(use("none", "a.key"), RV_E_IO);
	assert_non_null(strstr(why.text, "none: cannot be read"));
}

static void one_that_is_made_is_made_once(void **state) {
	(void)state;
	struct stat before, after;
	assert_ok(web_cert_make(file("web.pem"), &et));
	assert_int_equal(stat(file("web.pem"), &before), 0);
	assert_int_equal(before.st_mode & 0777, 0600);
	assert_ok(web_cert_make(file("web.pem"), &et));
	assert_int_equal(stat(file("web.pem"), &after), 0);
	assert_true(before.st_ino == after.st_ino);
	assert_ok(use("web.pem", "web.pem"));
}

/* ---- a coordinator ---- */

/* Connects a client that has no key of its own and knows these algorithms. */
static SSL *connect_to(const struct coordinator *c, const char *sigalgs, SSL_CTX **ctx) {
	struct sockaddr_storage sa;
	socklen_t n = sizeof sa;
	*ctx = SSL_CTX_new(TLS_client_method());
	assert_int_equal(SSL_CTX_set1_sigalgs_list(*ctx, sigalgs), 1);
	SSL *ssl = SSL_new(*ctx);
	assert_true(address_to_socket(&c->at, &sa, &n));
	const int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0 && connect(fd, (struct sockaddr *)&sa, n) == 0);
	assert_int_equal(SSL_set_fd(ssl, fd), 1);
	assert_int_equal(SSL_connect(ssl), 1);
	return ssl;
}

static void disconnect(SSL *ssl, SSL_CTX *ctx) {
	const int fd = SSL_get_fd(ssl);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	(void)close(fd);
}

/* Returns the fingerprint of the certificate for who knows these algorithms; asserts its kind. */
static struct print shown(const struct coordinator *c, const char *sigalgs, int kind) {
	struct print out = {{0}};
	unsigned digest_bytes = 0;
	SSL_CTX *ctx;
	SSL *ssl = connect_to(c, sigalgs, &ctx);
	X509 *x = SSL_get0_peer_certificate(ssl);
	assert_int_equal(EVP_PKEY_get_id(X509_get0_pubkey(x)), kind);
	assert_int_equal(X509_digest(x, EVP_sha256(), out.bytes, &digest_bytes), 1);
	disconnect(ssl, ctx);
	return out;
}

/* Returns the status of the answer to a request as nginx passes one on (docs/operators.md): by
 * HTTP/1.0, with the name of the page, and who asks in a header. */
static int through_a_proxy(const struct coordinator *c, const char *request) {
	char text[512], answer[64] = "";
	SSL_CTX *ctx;
	SSL *ssl = connect_to(c, BROWSERS, &ctx);
	const int n = snprintf(text, sizeof text,
						   "%s HTTP/1.0\r\nHost: run.example.org\r\nX-Forwarded-For: 203.0.113.9\r\n"
						   "Connection: close\r\nContent-Length: 0\r\n\r\n",
						   request);
	assert_int_equal(SSL_write(ssl, text, n), n);
	size_t got = 0;
	for (int more; got < sizeof answer - 1 && (more = SSL_read(ssl, answer + got, (int)(sizeof answer - 1 - got))) > 0;)
		got += (size_t)more;
	disconnect(ssl, ctx);
	assert_int_equal(strncmp(answer, "HTTP/1.", 7), 0);
	return atoi(answer + strlen("HTTP/1.0 "));
}

static bool equal(const struct print *a, const struct print *b) {
	return memcmp(a, b, sizeof *a) == 0;
}

static struct print to_a_browser(const struct coordinator *c) {
	return shown(c, BROWSERS, EVP_PKEY_EC);
}

static void expect_the_run_s_key(const struct coordinator *c) {
	(void)shown(c, BROWSERS ":ed25519", EVP_PKEY_ED25519);
}

static void the_same_after_a_restart(void **state) {
	(void)state;
	static struct coordinator c;
	coordinator_make(&c, "rounds = 10\n");
	const struct print first = to_a_browser(&c);
	expect_the_run_s_key(&c);
	assert_int_equal(coordinator_stop(&c), 0);
	coordinator_start(&c);
	const struct print second = to_a_browser(&c);
	assert_true(equal(&first, &second));
	coordinator_remove(&c);
}

static void the_operator_s_and_its_renewal(void **state) {
	(void)state;
	static struct coordinator c;
	char option[E2E_PATH + 16];
	coordinator_make(&c, "rounds = 10\n");
	const struct print own = to_a_browser(&c);
	assert_int_equal(coordinator_stop(&c), 0);
	put_pair("site.crt", "site.key", EVP_EC_gen("P-256"));
	const char *const both = "cat %s %s > %s.new && mv %s.new %s"; /* as programs that renew do */
	char out[256];
	assert_int_equal(process_shell(out, sizeof out, both, file("site.crt"), file("site.key"), file("site.pem"),
								   file("site.pem"), file("site.pem")),
					 0);
	(void)snprintf(option, sizeof option, "--web-cert=%s", file("site.pem"));
	c.e.coordinator_option = option;
	coordinator_start(&c);
	const struct print site = to_a_browser(&c);
	assert_false(equal(&site, &own));
	put_pair("other.crt", "other.key", EVP_EC_gen("P-256"));
	assert_int_equal(process_shell(out, sizeof out, both, file("other.crt"), file("site.key"), file("site.pem"),
								   file("site.pem"), file("site.pem")),
					 0);
	json_t *refused = e2e_wait_event(&c.e.coordinator, "web_cert", NULL, 0, NULL);
	assert_non_null(strstr(e2e_text(refused, "text"), "are shown the earlier certificate"));
	json_decref(refused);
	struct print now = to_a_browser(&c);
	assert_true(equal(&now, &site));
	assert_int_equal(process_shell(out, sizeof out, both, file("other.crt"), file("other.key"), file("site.pem"),
								   file("site.pem"), file("site.pem")),
					 0);
	for (struct deadline d = deadline_in(PROCESS_WAIT_S, "the new certificate"); equal(&now, &site);
		 now = to_a_browser(&c))
		deadline_pause(&d);
	expect_the_run_s_key(&c);
	coordinator_remove(&c);
}

/* A reverse proxy has no key, and so its visitors read what anybody may, and do nothing. */
static void a_proxy_passes_pages_on_and_nothing_else(void **state) {
	(void)state;
	static const char *const pages[] = {"GET /", "GET /v1/status", "GET /metrics", "HEAD /"};
	static const char *const others[] = {"GET /v1/admin/status", "POST /v1/admin/ban", "POST /v1/join",
										 "POST /v1/report", "GET /v1/document?after=0"};
	static struct coordinator c;
	coordinator_make(&c, "rounds = 10\n");
	for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
		assert_int_equal(through_a_proxy(&c, pages[i]), 200);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		assert_in_range(through_a_proxy(&c, others[i]), 400, 499);
	coordinator_remove(&c);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_that_serve_and_files_that_do_not),   cmocka_unit_test(one_that_is_made_is_made_once),
		cmocka_unit_test(a_proxy_passes_pages_on_and_nothing_else), cmocka_unit_test(the_same_after_a_restart),
		cmocka_unit_test(the_operator_s_and_its_renewal),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
