/* probe_answer.c: see probe_answer.h. */
#include "net/mesh/probe_answer.h"

#include "net/mesh/handshake.h"

#include <stdlib.h>

struct call {
	bool used;
	int64_t until_us;
	struct handshake tls;
};

struct probe_answer {
	struct pipe_ops net;
	const struct stream_ops *stream;
	void *shared;
	int listener;
	uint16_t port;
	struct call calls[PROBE_ANSWERS];
};

enum rv_err probe_answer_new(const struct probe_answer_config *cfg, struct probe_answer **out, struct rv_errtext *et) {
	struct probe_answer *a = calloc(1, sizeof *a);
	*out = NULL;
	if (a == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory to answer probes");
	a->net = cfg->pipe != NULL ? *cfg->pipe : socket_pipe;
	a->stream = cfg->stream != NULL ? cfg->stream : &tls_stream;
	a->listener = -1;
	enum rv_err e = a->stream->setup(cfg->identity, &a->shared, et);
	if (e == RV_OK)
		e = a->net.listen(a->net.ctx, cfg->listen, 0, &a->listener, &a->port, et);
	if (e != RV_OK)
		probe_answer_free(a);
	else
		*out = a;
	return e;
}

static void end_call(struct call *c) {
	if (c->used)
		handshake_close(&c->tls);
	c->used = false;
}

void probe_answer_free(struct probe_answer *a) {
	if (a == NULL)
		return;
	for (int i = 0; i < PROBE_ANSWERS; i++)
		end_call(&a->calls[i]);
	if (a->listener >= 0)
		a->net.close(a->net.ctx, a->listener);
	a->stream->teardown(a->shared);
	free(a);
}

uint16_t probe_answer_port(const struct probe_answer *a) {
	return a->port;
}

/* Returns a free place, or that of the oldest call, which ends. */
static struct call *make_room(struct probe_answer *a) {
	struct call *oldest = &a->calls[0];
	for (int i = 0; i < PROBE_ANSWERS; i++) {
		if (!a->calls[i].used)
			return &a->calls[i];
		if (a->calls[i].until_us < oldest->until_us)
			oldest = &a->calls[i];
	}
	end_call(oldest);
	return oldest;
}

static void accept_calls(struct probe_answer *a, int64_t now_us) {
	struct address from;
	int pipe;
	for (int i = 0; i < PROBE_ANSWERS && (pipe = a->net.accept(a->net.ctx, a->listener, &from)) >= 0; i++) {
		struct call *c = make_room(a);
		c->until_us = now_us + PROBE_ANSWER_US;
		c->used = handshake_open(&c->tls, &a->net, a->stream, a->shared, pipe, false, NULL) == RV_OK;
	}
}

int probe_answer_pollfds(const struct probe_answer *a, struct pollfd fds[PROBE_ANSWER_FDS]) {
	int n = 0;
	fds[n++] = (struct pollfd){.fd = a->listener, .events = POLLIN};
	for (int i = 0; i < PROBE_ANSWERS; i++)
		if (a->calls[i].used)
			fds[n++] = (struct pollfd){.fd = a->calls[i].tls.pipe, .events = a->calls[i].tls.events};
	return n;
}

int64_t probe_answer_deadline_us(const struct probe_answer *a) {
	int64_t at = INT64_MAX;
	for (int i = 0; i < PROBE_ANSWERS; i++)
		if (a->calls[i].used && a->calls[i].until_us < at)
			at = a->calls[i].until_us;
	return at;
}

static void serve(struct call *c, int64_t now_us, const struct pollfd *fds, int n) {
	uint8_t key[NET_KEY_BYTES];
	for (int i = 0; i < n && c->used; i++)
		if (fds[i].fd == c->tls.pipe && fds[i].revents != 0 && handshake_step(&c->tls, key, NULL) != RV_E_BUSY)
			end_call(c);
	if (c->used && now_us >= c->until_us)
		end_call(c);
}

void probe_answer_handle(struct probe_answer *a, int64_t now_us, const struct pollfd *fds, int n) {
	for (int i = 0; i < PROBE_ANSWERS; i++)
		serve(&a->calls[i], now_us, fds, n);
	if (n > 0 && fds[0].revents != 0)
		accept_calls(a, now_us);
}
