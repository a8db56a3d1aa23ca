/* handshake.c: see handshake.h. */
#include "net/mesh/handshake.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

static enum rv_err broken(int error, struct rv_errtext *et) {
	(void)rv_fail_errno(et, error, "TLS handshake");
	return RV_E_IO;
}

/* Sends what is pending, as far as the pipe takes it. */
static enum rv_err flush(struct handshake *h, struct rv_errtext *et) {
	struct stream *s = &h->stream;
	while (stream_pending(s) > 0) {
		ssize_t n = h->net->write(h->net->ctx, h->pipe, s->out + s->out_at, stream_pending(s));
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return broken(errno, et);
		stream_sent(s, (size_t)n);
	}
	h->events = (short)(POLLIN | (stream_pending(s) > 0 ? POLLOUT : 0));
	return RV_OK;
}

/* Moves the handshake on with what was fed. */
static enum rv_err shake(struct handshake *h, struct rv_errtext *et) {
	switch (h->kind->handshake(&h->stream, et)) {
	case STREAM_DONE:
		return RV_OK;
	case STREAM_WAIT:
		return RV_E_BUSY;
	case STREAM_CLOSED:
		return rv_fail(et, RV_E_CLOSED, "TLS handshake: the other side closed the connection");
	default:
		return RV_E_PROTOCOL;
	}
}

enum rv_err handshake_open(struct handshake *h, const struct pipe_ops *net, const struct stream_ops *kind, void *shared,
						   int pipe, bool dialer, struct rv_errtext *et) {
	*h = (struct handshake){.net = net, .kind = kind, .pipe = pipe, .events = POLLIN};
	enum rv_err e = kind->open(&h->stream, shared, dialer, et);
	if (e == RV_OK && dialer)
		e = shake(h, et);
	if (e == RV_E_BUSY || e == RV_OK)
		e = flush(h, et);
	if (e != RV_OK)
		handshake_close(h);
	return e;
}

enum rv_err handshake_step(struct handshake *h, uint8_t key[NET_KEY_BYTES], struct rv_errtext *et) {
	uint8_t bytes[4096];
	enum rv_err e = flush(h, et);
	while (e == RV_OK || e == RV_E_BUSY) {
		ssize_t n = h->net->read(h->net->ctx, h->pipe, bytes, sizeof bytes);
		if (n < 0)
			return errno == EAGAIN ? RV_E_BUSY : broken(errno, et);
		h->got += (size_t)n;
		if (n == 0 || h->got > HANDSHAKE_MAX_BYTES)
			return rv_fail(et, RV_E_CLOSED, "TLS handshake: the connection ended after %zu bytes", h->got);
		stream_feed(&h->stream, bytes, (size_t)n);
		e = shake(h, et);
		h->stream.in_bytes = 0; /* what follows the handshake is of no interest */
		enum rv_err flushed = flush(h, et);
		h->is_done = e == RV_OK;
		if (h->is_done)
			return h->kind->secured(&h->stream, key, et);
		e = flushed != RV_OK ? flushed : e;
	}
	return e;
}

void handshake_close(struct handshake *h) {
	if (h->is_done) {
		h->kind->end(&h->stream);
		(void)flush(h, NULL);
	}
	h->kind->release(&h->stream);
	h->net->close(h->net->ctx, h->pipe);
}
