/* tls_stream.h: one TLS connection as bytes in, bytes out: no socket. Internal to net/ (the mesh's links).
 *
 * Ciphertext that arrived is fed; ciphertext to send gathers in `out`, so that many small records leave in one write
 * and a frame is encrypted whole, whatever the socket takes at the moment.
 */
#ifndef RV_NET_MESH_TLS_STREAM_H
#define RV_NET_MESH_TLS_STREAM_H

#include "base/err.h"
#include "net/limits.h"

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* One frame of the largest size, the records around it, and as much again for answers of the handshake. */
	TLS_STREAM_OUT_MAX_BYTES = NET_MAX_CHUNK_BYTES + (1 << 17)
};

/* New traffic keys after so much of one's own plaintext: 2^22 full records, well under the 2^24.5 that AES-GCM bears
 * (RFC 8446 section 5.5). A link of a long run gets there. */
#define TLS_STREAM_KEY_BYTES (UINT64_C(1) << 36)

/* Shared by all streams of an owner. */
struct tls_stream_kind {
	SSL_CTX *ctx; /* owned */
	struct bio_method_st *method;
};
/* Takes `ctx` over, also on failure. */
enum rv_err tls_stream_kind_init(struct tls_stream_kind *k, SSL_CTX *ctx, struct rv_errtext *et);
void tls_stream_kind_release(struct tls_stream_kind *k);

struct tls_stream {
	SSL *ssl;
	const uint8_t *in; /* fed, not read yet */
	size_t in_bytes;
	uint8_t *out; /* [out_at, out_end) is to be sent */
	size_t out_at, out_end, out_cap;
	uint64_t key_bytes, key_max_bytes; /* written under the current key; TLS_STREAM_KEY_BYTES */
	bool out_full;                     /* TLS_STREAM_OUT_MAX_BYTES were not enough */
};

enum tls_io {
	TLS_IO_DONE,   /* did it */
	TLS_IO_WAIT,   /* all that was fed is used up */
	TLS_IO_CLOSED, /* the other side ended the stream properly */
	TLS_IO_FAULT   /* `et` says what; the stream is dead */
};

/* The stream must stay where it is (OpenSSL keeps its address). RV_E_NOMEM. */
enum rv_err tls_stream_init(struct tls_stream *s, const struct tls_stream_kind *k, bool dialer, struct rv_errtext *et);
void tls_stream_release(struct tls_stream *s); /* harmless on a zeroed struct */

/* Borrows until TLS_IO_WAIT. */
void tls_stream_feed(struct tls_stream *s, const void *data, size_t n);
enum tls_io tls_stream_handshake(struct tls_stream *s, struct rv_errtext *et);
enum tls_io tls_stream_read(struct tls_stream *s, void *out, size_t cap, size_t *got, struct rv_errtext *et);
/* Encrypts all of it. */
enum tls_io tls_stream_write(struct tls_stream *s, const void *data, size_t n, struct rv_errtext *et);
/* close_notify, best effort. */
void tls_stream_close(struct tls_stream *s);
/* RFC 8446 section 7.5. */
bool tls_stream_exporter(const struct tls_stream *s, const char *label, uint8_t *out, size_t n);

size_t tls_stream_pending(const struct tls_stream *s);
/* The first n pending bytes are on their way. */
void tls_stream_sent(struct tls_stream *s, size_t n);

#endif
