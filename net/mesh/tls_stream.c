/* tls_stream.c: OpenSSL between the two buffers of a stream (net/mesh/stream.h). */
#include "net/mesh/stream.h"

#include "base/assert.h"
#include "net/tls.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

/* Plaintext of one's own after which there are new traffic keys: 2^22 full records, well under the
 * 2^24.5 that AES-GCM bears (RFC 8446 section 5.5). A link of a long run gets there. */
#define KEY_BYTES (UINT64_C(1) << 36)

/* What the streams of a mesh share. */
struct shared {
	SSL_CTX *ctx;
	BIO_METHOD *method;
};

/* ---- the BIO: where OpenSSL takes and puts ciphertext ---- */

static int bio_read(BIO *bio, char *out, int cap) {
	struct stream *s = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	if (s->in_bytes > 0)
		return (int)stream_take(s, out, (size_t)cap);
	BIO_set_retry_read(bio);
	return -1;
}

static int bio_write(BIO *bio, const char *data, int n) {
	BIO_clear_retry_flags(bio);
	return n > 0 && stream_put(BIO_get_data(bio), data, (size_t)n) ? n : -1;
}

static long bio_ctrl(BIO *bio, int command, long larg, void *parg) {
	(void)bio;
	(void)larg;
	(void)parg;
	return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static int bio_create(BIO *bio) {
	BIO_set_init(bio, 1);
	return 1;
}

static BIO_METHOD *new_method(void) {
	BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "rivulet link");
	if (m != NULL && BIO_meth_set_read(m, bio_read) == 1 && BIO_meth_set_write(m, bio_write) == 1 &&
		BIO_meth_set_ctrl(m, bio_ctrl) == 1 && BIO_meth_set_create(m, bio_create) == 1)
		return m;
	BIO_meth_free(m);
	return NULL;
}

/* ---- what all streams share ---- */

static void teardown(void *shared) {
	struct shared *k = shared;
	if (k == NULL)
		return;
	SSL_CTX_free(k->ctx);
	BIO_meth_free(k->method);
	free(k);
}

static enum rv_err setup(const struct identity *id, void **shared, struct rv_errtext *et) {
	SSL_CTX *ctx;
	RV_TRY(tls_context_new(id, TLS_CLIENTS_MUST, &ctx, et));
	struct shared *k = malloc(sizeof *k);
	BIO_METHOD *method = k != NULL ? new_method() : NULL;
	if (method == NULL || !tls_offer_peer_protocol(ctx)) {
		BIO_meth_free(method);
		SSL_CTX_free(ctx);
		free(k);
		return rv_fail(et, RV_E_NOMEM, "no memory for TLS");
	}
	tls_accept_peer_protocol(ctx);
	*k = (struct shared){.ctx = ctx, .method = method};
	*shared = k;
	return RV_OK;
}

/* ---- the stream ---- */

static void release_stream(struct stream *s) {
	SSL_free(s->self);
	free(s->out);
	*s = (struct stream){0};
}

static enum rv_err open_stream(struct stream *s, void *shared, bool dialer, struct rv_errtext *et) {
	const struct shared *k = shared;
	*s = (struct stream){.self = SSL_new(k->ctx), .key_max_bytes = KEY_BYTES};
	BIO *bio = BIO_new(k->method);
	if (s->self == NULL || bio == NULL) {
		BIO_free(bio);
		release_stream(s);
		return rv_fail(et, RV_E_NOMEM, "no memory for a TLS connection");
	}
	BIO_set_data(bio, s);
	SSL_set_bio(s->self, bio, bio);
	if (dialer)
		SSL_set_connect_state(s->self);
	else
		SSL_set_accept_state(s->self);
	return RV_OK;
}

static enum stream_io outcome(struct stream *s, int rc, const char *what, struct rv_errtext *et) {
	if (rc > 0)
		return STREAM_DONE;
	switch (SSL_get_error(s->self, rc)) {
	case SSL_ERROR_WANT_READ:
		return STREAM_WAIT;
	case SSL_ERROR_ZERO_RETURN:
		return STREAM_CLOSED;
	default:
		rv_fail(et, RV_E_PROTOCOL, "%s: %s", what,
				s->out_full ? "it makes us answer but does not read the answers" : tls_error_text());
		return STREAM_FAULT;
	}
}

static enum stream_io handshake(struct stream *s, struct rv_errtext *et) {
	ERR_clear_error();
	return outcome(s, SSL_do_handshake(s->self), "TLS handshake", et);
}

static enum stream_io read_stream(struct stream *s, void *out, size_t cap, size_t *got, struct rv_errtext *et) {
	ERR_clear_error();
	return outcome(s, SSL_read_ex(s->self, out, cap, got), "TLS", et);
}

static enum stream_io write_stream(struct stream *s, const void *data, size_t n, struct rv_errtext *et) {
	RV_ASSERT(n > 0 && n <= INT_MAX);
	ERR_clear_error();
	s->key_bytes += n;
	if (s->key_bytes > s->key_max_bytes && SSL_key_update(s->self, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
		s->key_bytes = n; /* goes out in front of these */
	size_t written = 0;
	enum stream_io io = outcome(s, SSL_write_ex(s->self, data, n, &written), "TLS", et);
	if (io != STREAM_WAIT)
		return io;
	rv_fail(et, RV_E_PROTOCOL, "TLS: the other side renegotiates");
	return STREAM_FAULT;
}

static void end_stream(struct stream *s) {
	ERR_clear_error();
	(void)SSL_shutdown(s->self);
	ERR_clear_error();
}

static bool exporter(const struct stream *s, const char *label, uint8_t *out, size_t n) {
	return SSL_export_keying_material(s->self, out, n, label, strlen(label), NULL, 0, 0) == 1;
}

static enum rv_err secured(struct stream *s, uint8_t key[NET_KEY_BYTES], struct rv_errtext *et) {
	if (!tls_is_peer_protocol(s->self))
		return rv_fail(et, RV_E_PROTOCOL, "TLS is up, but not for \"%s\" (ALPN)", TLS_PEER_PROTOCOL);
	if (!tls_peer_key(s->self, key))
		return rv_fail(et, RV_E_AUTH, "the other side showed no Ed25519 certificate");
	return RV_OK;
}

const struct stream_ops tls_stream = {.setup = setup,
									  .teardown = teardown,
									  .open = open_stream,
									  .release = release_stream,
									  .handshake = handshake,
									  .secured = secured,
									  .read = read_stream,
									  .write = write_stream,
									  .end = end_stream,
									  .exporter = exporter};
