/* raw_client.c: see raw_client.h. */
#include "raw_client.h"

#include "net/tls.h"
#include "tests/common/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void use_rsa(SSL_CTX *ctx) {
	EVP_PKEY *key = EVP_RSA_gen(2048);
	X509 *cert = X509_new();
	assert_true(key != NULL && cert != NULL);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_set_pubkey(cert, key);
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	assert_int_equal(SSL_CTX_use_certificate(ctx, cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
	X509_free(cert);
	EVP_PKEY_free(key);
}

/* Connects from the host 127.0.0.0 + `host`. */
static void connect_from(struct raw_client *c, uint32_t host, uint16_t port) {
	*c = (struct raw_client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000 + host)};
	assert_true(c->fd >= 0);
	assert_int_equal(bind(c->fd, (struct sockaddr *)&sa, sizeof sa), 0);
	sa.sin_port = htons(port);
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(c->fd, (struct sockaddr *)&sa, sizeof sa), 0);
	assert_int_equal(fcntl(c->fd, F_SETFL, O_NONBLOCK), 0);
}

void raw_open_silent(struct raw_client *c, uint32_t host, uint16_t port) {
	connect_from(c, host, port);
	c->secured = true;
}

void raw_open(struct raw_client *c, uint16_t port, const struct raw_options *o) {
	connect_from(c, 1, port);
	if (o == NULL) {
		c->secured = true;
		return;
	}
	c->ctx = SSL_CTX_new(TLS_client_method());
	assert_non_null(c->ctx);
	SSL_CTX_set_max_proto_version(c->ctx, o->max_version);
	if (o->id != NULL)
		assert_true(tls_identify(c->ctx, o->id));
	if (o->rsa)
		use_rsa(c->ctx);
	if (o->alpn != NULL)
		SSL_CTX_set_alpn_protos(c->ctx, (const unsigned char *)o->alpn, (unsigned)strlen(o->alpn));
	c->ssl = SSL_new(c->ctx);
	SSL_set_fd(c->ssl, c->fd);
	SSL_set_connect_state(c->ssl);
}

void raw_close(struct raw_client *c) {
	SSL_free(c->ssl);
	SSL_CTX_free(c->ctx);
	close(c->fd);
	ERR_clear_error();
}

static int raw_read(struct raw_client *c, void *out, size_t cap) {
	if (c->ssl == NULL) {
		ssize_t n = recv(c->fd, out, cap, 0);
		c->closed = n == 0 || (n < 0 && errno != EAGAIN);
		return (int)n;
	}
	ERR_clear_error();
	int n = SSL_read(c->ssl, out, (int)cap);
	int e = SSL_get_error(c->ssl, n);
	c->closed = n <= 0 && e != SSL_ERROR_WANT_READ && e != SSL_ERROR_WANT_WRITE;
	return n;
}

void raw_step(void *client) {
	struct raw_client *c = client;
	if (c->closed)
		return;
	if (!c->secured) {
		ERR_clear_error();
		int rc = SSL_do_handshake(c->ssl);
		int e = SSL_get_error(c->ssl, rc);
		c->secured = rc == 1;
		c->closed = rc != 1 && e != SSL_ERROR_WANT_READ && e != SSL_ERROR_WANT_WRITE;
		return;
	}
	uint8_t scrap[256];
	int n = raw_read(c, scrap, sizeof scrap);
	for (int i = 0; i < n && c->got_bytes < sizeof c->got; i++)
		c->got[c->got_bytes++] = scrap[i];
}

void raw_send(struct raw_client *c, const void *data, size_t n) {
	if (c->ssl != NULL)
		assert_int_equal(SSL_write(c->ssl, data, (int)n), (int)n);
	else
		assert_int_equal(send(c->fd, data, n, MSG_NOSIGNAL), n);
}

void raw_send_frame(struct raw_client *c, const struct frame_header *h, const void *body, size_t body_bytes) {
	uint8_t head[FRAME_HEADER_BYTES];
	frame_header_encode(h, head);
	raw_send(c, head, sizeof head);
	if (body_bytes > 0)
		raw_send(c, body, body_bytes);
}

void raw_make_hello(struct raw_client *c, const struct identity *id, const uint8_t run_id[NET_RUN_ID_BYTES],
					uint32_t member, struct frame_hello *out) {
	static const char label[] = "EXPORTER-rivulet-hello";
	uint8_t exporter[FRAME_EXPORTER_BYTES], message[FRAME_HELLO_SIGNED_BYTES];
	assert_int_equal(SSL_export_keying_material(c->ssl, exporter, sizeof exporter, label, sizeof label - 1, NULL, 0, 0),
					 1);
	*out = (struct frame_hello){.protocol = FRAME_VERSION, .role = FRAME_DIALER, .member = member};
	memcpy(out->run_id, run_id, NET_RUN_ID_BYTES);
	frame_hello_signed(exporter, run_id, FRAME_DIALER, message);
	identity_sign(id, message, sizeof message, out->signature);
}

void raw_send_hello(struct raw_client *c, const struct frame_hello *hello, const uint8_t run_id[NET_RUN_ID_BYTES]) {
	uint8_t body[FRAME_HELLO_BYTES];
	frame_hello_encode(hello, body);
	struct frame_header h = frame_header_of(FRAME_HELLO, frame_run_tag(run_id), sizeof body);
	raw_send_frame(c, &h, body, sizeof body);
}
