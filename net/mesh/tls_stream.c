/* tls_stream.c: OpenSSL between two byte buffers (net/mesh/tls_stream.h). */
#include "net/mesh/tls_stream.h"

#include "base/assert.h"
#include "net/tls.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_FIRST_BYTES = 4096 };

/* ---- the BIO: where OpenSSL takes and puts ciphertext ------------------------------------------------------------ */

static int bio_read(BIO *bio, char *out, int cap) {
	struct tls_stream *s = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	if (s->in_bytes == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	size_t n = s->in_bytes < (size_t)cap ? s->in_bytes : (size_t)cap;
	memcpy(out, s->in, n);
	s->in += n;
	s->in_bytes -= n;
	return (int)n;
}

/* Room for n more bytes behind out_end; false past the limit (a peer that makes us answer but never reads). */
static bool make_room(struct tls_stream *s, size_t n) {
	size_t pending = s->out_end - s->out_at;
	if (s->out_end + n <= s->out_cap)
		return true;
	if (pending + n > TLS_STREAM_OUT_MAX_BYTES)
		return false;
	if (pending > 0)
		memmove(s->out, s->out + s->out_at, pending);
	s->out_at = 0;
	s->out_end = pending;
	size_t cap = s->out_cap > 0 ? s->out_cap : OUT_FIRST_BYTES;
	while (cap < pending + n)
		cap *= 2;
	if (cap > TLS_STREAM_OUT_MAX_BYTES)
		cap = TLS_STREAM_OUT_MAX_BYTES;
	if (cap == s->out_cap)
		return true;
	uint8_t *out = realloc(s->out, cap);
	if (out == NULL)
		return false;
	s->out = out;
	s->out_cap = cap;
	return true;
}

static int bio_write(BIO *bio, const char *data, int n) {
	struct tls_stream *s = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	if (n <= 0 || !make_room(s, (size_t)n)) {
		s->out_full = true;
		return -1;
	}
	memcpy(s->out + s->out_end, data, (size_t)n);
	s->out_end += (size_t)n;
	return n;
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

enum rv_err tls_stream_kind_init(struct tls_stream_kind *k, SSL_CTX *ctx, struct rv_errtext *et) {
	k->ctx = ctx;
	k->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "rivulet link");
	if (k->method != NULL && BIO_meth_set_read(k->method, bio_read) == 1 &&
		BIO_meth_set_write(k->method, bio_write) == 1 && BIO_meth_set_ctrl(k->method, bio_ctrl) == 1 &&
		BIO_meth_set_create(k->method, bio_create) == 1)
		return RV_OK;
	tls_stream_kind_release(k);
	return rv_fail(et, RV_E_NOMEM, "no memory for TLS");
}

void tls_stream_kind_release(struct tls_stream_kind *k) {
	SSL_CTX_free(k->ctx);
	BIO_meth_free(k->method);
	*k = (struct tls_stream_kind){0};
}

/* ---- the stream -------------------------------------------------------------------------------------------------- */

enum rv_err tls_stream_init(struct tls_stream *s, const struct tls_stream_kind *k, bool dialer, struct rv_errtext *et) {
	*s = (struct tls_stream){.ssl = SSL_new(k->ctx), .key_max_bytes = TLS_STREAM_KEY_BYTES};
	BIO *bio = BIO_new(k->method);
	if (s->ssl == NULL || bio == NULL) {
		BIO_free(bio);
		tls_stream_release(s);
		return rv_fail(et, RV_E_NOMEM, "no memory for a TLS connection");
	}
	BIO_set_data(bio, s);
	SSL_set_bio(s->ssl, bio, bio);
	if (dialer)
		SSL_set_connect_state(s->ssl);
	else
		SSL_set_accept_state(s->ssl);
	return RV_OK;
}

void tls_stream_release(struct tls_stream *s) {
	SSL_free(s->ssl);
	free(s->out);
	*s = (struct tls_stream){0};
}

void tls_stream_feed(struct tls_stream *s, const void *data, size_t n) {
	RV_ASSERT(s->in_bytes == 0);
	s->in = data;
	s->in_bytes = n;
}

static enum tls_io outcome(struct tls_stream *s, int rc, const char *what, struct rv_errtext *et) {
	if (rc > 0)
		return TLS_IO_DONE;
	switch (SSL_get_error(s->ssl, rc)) {
	case SSL_ERROR_WANT_READ:
		return TLS_IO_WAIT;
	case SSL_ERROR_ZERO_RETURN:
		return TLS_IO_CLOSED;
	default:
		rv_fail(et, RV_E_PROTOCOL, "%s: %s", what,
				s->out_full ? "it makes us answer but does not read the answers" : tls_error_text());
		return TLS_IO_FAULT;
	}
}

enum tls_io tls_stream_handshake(struct tls_stream *s, struct rv_errtext *et) {
	ERR_clear_error();
	return outcome(s, SSL_do_handshake(s->ssl), "TLS handshake", et);
}

enum tls_io tls_stream_read(struct tls_stream *s, void *out, size_t cap, size_t *got, struct rv_errtext *et) {
	ERR_clear_error();
	return outcome(s, SSL_read_ex(s->ssl, out, cap, got), "TLS", et);
}

enum tls_io tls_stream_write(struct tls_stream *s, const void *data, size_t n, struct rv_errtext *et) {
	RV_ASSERT(n > 0 && n <= INT_MAX);
	ERR_clear_error();
	s->key_bytes += n;
	if (s->key_bytes > s->key_max_bytes && SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
		s->key_bytes = n; /* goes out in front of these */
	size_t written = 0;
	enum tls_io io = outcome(s, SSL_write_ex(s->ssl, data, n, &written), "TLS", et);
	if (io != TLS_IO_WAIT)
		return io;
	rv_fail(et, RV_E_PROTOCOL, "TLS: the other side renegotiates");
	return TLS_IO_FAULT;
}

void tls_stream_close(struct tls_stream *s) {
	ERR_clear_error();
	(void)SSL_shutdown(s->ssl);
	ERR_clear_error();
}

bool tls_stream_exporter(const struct tls_stream *s, const char *label, uint8_t *out, size_t n) {
	return SSL_export_keying_material(s->ssl, out, n, label, strlen(label), NULL, 0, 0) == 1;
}

size_t tls_stream_pending(const struct tls_stream *s) {
	return s->out_end - s->out_at;
}

void tls_stream_sent(struct tls_stream *s, size_t n) {
	RV_ASSERT(n <= tls_stream_pending(s));
	s->out_at += n;
	if (s->out_at == s->out_end)
		s->out_at = s->out_end = 0;
}
