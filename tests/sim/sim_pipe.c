/* sim_pipe.c: simulated connections (sim_tcp.c) as the mesh's pipes (net/mesh/pipe.h). */
#include "sim_tcp.h"

#include "base/assert.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { LISTENER = 0 /* its number; those of connections begin at 1 */ };

/* ---- readiness, as poll(2) would tell ---- */

static short readiness(struct sim_worker *w, int number, short events) {
	struct sim_end *e = tcp_find(&w->ends, (uint32_t)number);
	if (number == LISTENER) {
		for (int i = 0; i < w->ends.n; i++)
			if (w->ends.end[i]->connected && !w->ends.end[i]->accepted)
				return POLLIN;
		return 0;
	}
	RV_ASSERT(e != NULL);
	bool in = e->in_end > e->in_at || e->finished || e->error != 0;
	bool out = e->error != 0 || (e->connected && (events & POLLOUT) != 0 && tcp_room(e, w->sim->now_us) > 0);
	e->starved = e->starved || ((events & POLLOUT) != 0 && !out);
	short ready = (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0) | (e->error != 0 ? POLLERR : 0));
	return (short)(ready & (events | POLLERR));
}

bool pipe_poll(struct sim_worker *w, struct pollfd *fds, int n) {
	bool any = false;
	for (int i = 0; i < n; i++) {
		fds[i].revents = readiness(w, fds[i].fd, fds[i].events);
		any = any || fds[i].revents != 0;
	}
	return any;
}

/* ---- the operations; ctx: struct sim_worker ---- */

static enum rv_err op_listen(void *ctx, const char *listen_on, int receive_bytes, int *listener, uint16_t *port,
							 struct rv_errtext *et) {
	(void)ctx;
	(void)listen_on;
	(void)receive_bytes;
	(void)et;
	*listener = LISTENER;
	*port = SIM_PORT;
	return RV_OK;
}

static int op_accept(void *ctx, int listener, struct address *from) {
	struct sim_worker *w = ctx;
	(void)listener;
	for (int i = 0; i < w->ends.n; i++) {
		struct sim_end *e = w->ends.end[i];
		if (!e->connected || e->accepted)
			continue;
		e->accepted = true;
		where_address(&e->at, from);
		return (int)e->number;
	}
	errno = EAGAIN;
	return -1;
}

static enum rv_err op_connect(void *ctx, const struct route *to, int receive_bytes, int *pipe, struct rv_errtext *et) {
	struct sim_worker *w = ctx;
	struct sim_where at;
	(void)receive_bytes;
	if (!where_parse(&to->at, &at))
		return rv_fail(et, RV_E_UNSUPPORTED, "\"%s\" is no address here", to->at.host);
	struct sim_end *e = tcp_dial(w->sim, w->host, &at, to->kind == ROUTE_PUNCH ? to->local_port : 0);
	if (e == NULL)
		return rv_fail(et, RV_E_BUSY, "the other side's packet came first");
	if (e->error == ENETUNREACH) {
		tcp_remove(&w->ends, e);
		return rv_fail_errno(et, ENETUNREACH, "connect");
	}
	if (to->kind == ROUTE_PUNCH && e->peer < w->sim->opt.n_workers && e->peer != w->host)
		oracle_punches(w->sim, w->host, e->peer, strchr(to->at.host, ':') != NULL);
	*pipe = (int)e->number;
	return RV_OK;
}

/* Shows the token: the first bytes on a fresh connection, for which there is room. */
static enum rv_err show_token(struct sim_worker *w, struct sim_end *e, const struct route *to) {
	struct relay_preamble shown = {.kind = RELAY_DATA};
	uint8_t preamble[RELAY_PREAMBLE_BYTES];
	memcpy(shown.token, to->token, sizeof shown.token);
	relay_preamble_encode(&shown, preamble);
	pipe_put(w->sim, w->host, e->number, preamble, sizeof preamble);
	return RV_E_BUSY;
}

/* Reads the relay's byte alone: what follows it is the other side's. */
static enum rv_err hear_relay(struct sim_end *e, struct rv_errtext *et) {
	if (e->in_end > e->in_at)
		return e->in[e->in_at++] == RELAY_GO ? RV_OK : rv_fail(et, RV_E_PROTOCOL, "the relay answers something else");
	if (e->finished)
		return rv_fail(et, RV_E_CLOSED, "the relay ended the call");
	return RV_E_BUSY;
}

static enum rv_err op_connected(void *ctx, int pipe, const struct route *to, short *events, struct rv_errtext *et) {
	struct sim_worker *w = ctx;
	struct sim_end *e = tcp_find(&w->ends, (uint32_t)pipe);
	if (e->error == ECONNREFUSED)
		return rv_fail(et, RV_E_NOTFOUND, "connection refused: nobody listens there");
	if (e->error != 0)
		return rv_fail(et, RV_E_IO, "connect: %s", strerror(e->error));
	if (to->kind != ROUTE_RELAY)
		return RV_OK;
	if (*events == POLLIN)
		return hear_relay(e, et);
	*events = POLLIN;
	return show_token(w, e, to);
}

static ssize_t op_read(void *ctx, int pipe, void *out, size_t cap) {
	struct sim_worker *w = ctx;
	struct sim_end *e = tcp_find(&w->ends, (uint32_t)pipe);
	size_t n = e->in_end - e->in_at < cap ? e->in_end - e->in_at : cap;
	w->reads_from = e->who;
	if (n > 0) {
		memcpy(out, e->in + e->in_at, n);
		e->in_at += n;
		return (ssize_t)n;
	}
	if (e->error == 0 && e->finished)
		return 0;
	errno = e->error != 0 ? e->error : EAGAIN;
	return -1;
}

static ssize_t op_write(void *ctx, int pipe, const void *data, size_t n) {
	struct sim_worker *w = ctx;
	struct sim_end *e = tcp_find(&w->ends, (uint32_t)pipe);
	if (e == NULL || e->error != 0) { /* NULL: the process was killed */
		errno = e == NULL ? EPIPE : e->error;
		return -1;
	}
	size_t most = tcp_room(e, w->sim->now_us);
	if (most == 0) {
		e->starved = true;
		errno = EAGAIN;
		return -1;
	}
	n = n < most ? n : most;
	n = n < SIM_SEGMENT_BYTES ? n : SIM_SEGMENT_BYTES;
	faults_aim(w->sim, w->host, 1, 2 * w->sim->opt.delay_us);
	oracle_written(w->sim, w->host, n);
	tcp_put(w->sim, w->host, e, data, n);
	return (ssize_t)n;
}

static void op_info(void *ctx, int pipe, struct pipe_info *out) {
	const struct sim_worker *w = ctx;
	struct sim_end *e = tcp_find(&w->ends, (uint32_t)pipe);
	tcp_take_acks(e, w->sim->now_us);
	*out = (struct pipe_info){
		.waiting = (size_t)(e->written - e->delivered), .delivered = e->delivered, .least_rtt_us = e->least_rtt_us};
}

static void op_tune(void *ctx, int pipe) {
	(void)ctx;
	(void)pipe;
}

static void op_control_congestion(void *ctx, int pipe, const char *congestion, char used[16]) {
	(void)ctx;
	(void)pipe;
	(void)snprintf(used, 16, "%s", congestion);
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
	const struct sim_worker *w = ctx;
	tcp_close(w->sim, w->host, (uint32_t)pipe);
}

struct pipe_ops pipe_of(struct sim_worker *w) {
	return (struct pipe_ops){.ctx = w,
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
