/* memory_pipe.c: see memory_pipe.h. */
#include "memory_pipe.h"

#include "base/assert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_PORT = 2000 };

static int add(struct memory_net *net, struct memory_end e) {
	RV_ASSERT(net->n < MEMORY_MAX_PIPES);
	e.used = true;
	net->ends[net->n] = e;
	return net->n++;
}

static uint8_t *buffer(void) {
	uint8_t *p = malloc(MEMORY_ROOM_BYTES);
	RV_ASSERT(p != NULL);
	return p;
}

static struct memory_end *other_of(struct memory_net *net, const struct memory_end *e) {
	return e->other >= 0 && net->ends[e->other].used ? &net->ends[e->other] : NULL;
}

static enum rv_err op_listen(void *ctx, const char *listen_on, int receive_bytes, int *listener, uint16_t *port,
							 struct rv_errtext *et) {
	(void)listen_on;
	(void)receive_bytes;
	(void)et;
	struct memory_net *net = ctx;
	*port = (uint16_t)(FIRST_PORT + net->n);
	*listener = add(net, (struct memory_end){.listens = true, .other = -1, .port = *port});
	return RV_OK;
}

/* The first end that came to this listener and was not accepted yet; -1: none. */
static int waiting_at(const struct memory_net *net, int listener) {
	for (int i = 0; i < net->n; i++) {
		const struct memory_end *e = &net->ends[i];
		if (e->used && !e->listens && !e->accepted && e->port == net->ends[listener].port)
			return i;
	}
	return -1;
}

static int op_accept(void *ctx, int listener, struct address *from) {
	struct memory_net *net = ctx;
	int at = waiting_at(net, listener);
	if (at < 0) {
		errno = EAGAIN;
		return -1;
	}
	net->ends[at].accepted = true;
	*from = (struct address){.host = "127.0.0.1", .port = (uint16_t)(FIRST_PORT + at)};
	return at;
}

static int listener_at(const struct memory_net *net, uint16_t port) {
	for (int i = 0; i < net->n; i++)
		if (net->ends[i].used && net->ends[i].listens && net->ends[i].port == port)
			return i;
	return -1;
}

static enum rv_err op_connect(void *ctx, const struct route *to, int receive_bytes, int *pipe, struct rv_errtext *et) {
	(void)receive_bytes;
	(void)et;
	struct memory_net *net = ctx;
	bool there = listener_at(net, to->at.port) >= 0;
	*pipe = add(net, (struct memory_end){.accepted = true, .connected = there, .refused = !there, .other = -1});
	if (!there)
		return RV_OK;
	int theirs = add(net, (struct memory_end){.connected = true, .other = *pipe, .port = to->at.port});
	net->ends[*pipe].other = theirs;
	net->ends[*pipe].in = buffer();
	net->ends[theirs].in = buffer();
	return RV_OK;
}

static enum rv_err op_connected(void *ctx, int pipe, const struct route *to, short *events, struct rv_errtext *et) {
	(void)to;
	(void)events;
	const struct memory_net *net = ctx;
	if (net->ends[pipe].refused)
		return rv_fail(et, RV_E_NOTFOUND, "connection refused: nobody listens there");
	return RV_OK;
}

static ssize_t op_read(void *ctx, int pipe, void *out, size_t cap) {
	struct memory_net *net = ctx;
	struct memory_end *e = &net->ends[pipe];
	size_t n = e->in_bytes < cap ? e->in_bytes : cap;
	if (n == 0 && !e->finished) {
		errno = EAGAIN;
		return -1;
	}
	memcpy(out, e->in, n);
	e->in_bytes -= n;
	memmove(e->in, e->in + n, e->in_bytes);
	return (ssize_t)n;
}

static ssize_t op_write(void *ctx, int pipe, const void *data, size_t n) {
	struct memory_net *net = ctx;
	struct memory_end *e = &net->ends[pipe], *to = other_of(net, e);
	if (to == NULL) {
		errno = ECONNRESET;
		return -1;
	}
	size_t room = MEMORY_ROOM_BYTES - to->in_bytes;
	if (room == 0) {
		errno = EAGAIN;
		return -1;
	}
	n = n < room ? n : room;
	memcpy(to->in + to->in_bytes, data, n);
	to->in_bytes += n;
	e->written += n;
	return (ssize_t)n;
}

static void op_info(void *ctx, int pipe, struct pipe_info *out) {
	struct memory_net *net = ctx;
	const struct memory_end *e = &net->ends[pipe], *to = other_of(net, e);
	net->infos++;
	size_t unread = to != NULL ? to->in_bytes : 0;
	*out = (struct pipe_info){.waiting = unread > MEMORY_WINDOW_BYTES ? unread - MEMORY_WINDOW_BYTES : 0,
							  .least_rtt_us = 1};
	out->delivered = e->written - out->waiting;
	out->rtt_us = out->least_rtt_us;
	out->sent = e->written;
	out->resent = e->lost_share > 0 ? e->written / e->lost_share : 0;
}

static void op_tune(void *ctx, int pipe) {
	(void)ctx;
	(void)pipe;
}

static void op_control_congestion(void *ctx, int pipe, const char *congestion, char used[16]) {
	struct memory_net *net = ctx;
	struct memory_end *e = &net->ends[pipe];
	if (!e->lacks_congestion)
		(void)snprintf(e->congestion, sizeof e->congestion, "%s", congestion);
	(void)snprintf(used, 16, "%s", e->congestion);
}

static bool op_is_stranded(void *ctx, int pipe) {
	(void)ctx;
	(void)pipe;
	return false;
}

static void op_end_at_close(void *ctx, int pipe) {
	(void)ctx;
	(void)pipe;
}

static void op_close(void *ctx, int pipe) {
	struct memory_net *net = ctx;
	struct memory_end *e = &net->ends[pipe], *to = other_of(net, e);
	if (to != NULL)
		to->finished = true;
	free(e->in);
	*e = (struct memory_end){.other = -1};
}

struct pipe_ops memory_pipe(struct memory_net *net) {
	return (struct pipe_ops){.ctx = net,
							 .listen = op_listen,
							 .accept = op_accept,
							 .connect = op_connect,
							 .connected = op_connected,
							 .read = op_read,
							 .write = op_write,
							 .info = op_info,
							 .tune = op_tune,
							 .control_congestion = op_control_congestion,
							 .is_stranded = op_is_stranded,
							 .end_at_close = op_end_at_close,
							 .close = op_close};
}

static short readiness(struct memory_net *net, int number) {
	const struct memory_end *e = &net->ends[number], *to = other_of(net, e);
	RV_ASSERT(e->used);
	if (e->listens)
		return waiting_at(net, number) >= 0 ? POLLIN : 0;
	bool in = e->in_bytes > 0 || e->finished;
	bool out = e->refused || to == NULL || to->in_bytes < MEMORY_ROOM_BYTES;
	return (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0));
}

int memory_poll(struct memory_net *net, struct pollfd *fds, int n) {
	int ready = 0;
	for (int i = 0; i < n; i++) {
		fds[i].revents = (short)(readiness(net, fds[i].fd) & fds[i].events);
		ready += fds[i].revents != 0;
	}
	return ready;
}

void memory_release(struct memory_net *net) {
	for (int i = 0; i < net->n; i++)
		free(net->ends[i].in);
}
