/* stream.h: what protects a link's bytes, between a pipe and the frames: ciphertext in and out of
 * two buffers. Internal to net/ (the mesh's links).
 *
 * Ciphertext that arrived is fed; ciphertext to send gathers in `out`, so that many small records
 * leave in one write and a frame is encrypted whole, whatever the pipe takes at the moment. There
 * are two kinds of streams: TLS (tls_stream.c), and the simulator's, which states a key and
 * encrypts nothing (tests/sim/sim_stream.c). */
#ifndef RV_NET_MESH_STREAM_H
#define RV_NET_MESH_STREAM_H

#include "base/err.h"
#include "net/identity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* One frame of the largest size, the records around it, and as much again for answers of the
	 * handshake. */
	STREAM_OUT_MAX_BYTES = NET_MAX_CHUNK_BYTES + (1 << 17)
};

struct stream {
	void *self;        /* state of its kind, e.g. SSL */
	const uint8_t *in; /* ciphertext fed, not read yet */
	size_t in_bytes;
	uint8_t *out; /* [out_at, out_end) is to be sent */
	size_t out_at, out_end, out_cap;
	uint64_t key_bytes, key_max_bytes; /* bytes written under the current key; their limit */
	bool out_full;                     /* STREAM_OUT_MAX_BYTES were not enough, or there was no memory */
};

enum stream_io {
	STREAM_DONE,   /* the operation is complete */
	STREAM_WAIT,   /* all that was fed is used up */
	STREAM_CLOSED, /* the other side ended the stream properly */
	STREAM_FAULT   /* `et` names the fault; the stream is dead */
};

/* A kind of stream. */
struct stream_ops {
	/* Makes what all streams of a mesh share. `id` is borrowed. RV_E_NOMEM, RV_E_UNSUPPORTED. */
	enum rv_err (*setup)(const struct identity *id, void **shared, struct rv_errtext *et);
	void (*teardown)(void *shared); /* NULL is fine */
	/* Opens `s`, which must stay at its address from now on. RV_E_NOMEM. */
	enum rv_err (*open)(struct stream *s, void *shared, bool dialer, struct rv_errtext *et);
	void (*release)(struct stream *s); /* harmless on a zeroed struct */
	enum stream_io (*handshake)(struct stream *s, struct rv_errtext *et);
	/* Reads the other side's key after the handshake. RV_E_AUTH, RV_E_PROTOCOL. */
	enum rv_err (*secured)(struct stream *s, uint8_t key[NET_KEY_BYTES], struct rv_errtext *et);
	enum stream_io (*read)(struct stream *s, void *out, size_t cap, size_t *got, struct rv_errtext *et);
	/* Encrypts all of it; n > 0. */
	enum stream_io (*write)(struct stream *s, const void *data, size_t n, struct rv_errtext *et);
	void (*end)(struct stream *s); /* announces the end to the other side, best effort */
	/* Fills `out` with bytes that only the two ends of this stream know (RFC 8446 section 7.5). */
	bool (*exporter)(const struct stream *s, const char *label, uint8_t *out, size_t n);
};
extern const struct stream_ops tls_stream;

/* ---- for the kinds: the two buffers ---- */
/* Moves up to cap bytes that were fed into `out`; returns how many. */
size_t stream_take(struct stream *s, void *out, size_t cap);
/* Appends to the bytes to be sent. Returns false without room (a peer that asks for answers but
 * never reads). */
bool stream_put(struct stream *s, const void *data, size_t n);

/* ---- for the link ---- */
/* Feeds ciphertext, borrowed until STREAM_WAIT. Bytes fed before must be used up (asserted). */
void stream_feed(struct stream *s, const void *data, size_t n);
static inline size_t stream_pending(const struct stream *s) {
	return s->out_end - s->out_at;
}
/* Drops the first `n` pending bytes: they were sent. */
void stream_sent(struct stream *s, size_t n);

#endif
