/* sim_pipe.c: the network between workers as pipes (net/mesh/pipe.h) under virtual time: TCP as a
 * mesh sees it.
 *
 * Both ends of a connection have its number. It is asked for with SYN and granted with ACK; what is
 * written goes in segments, arrives in order, and is acknowledged a delay later; where the network
 * loses something, it waits instead. An end that is closed says so with FIN, and a packet for an
 * end that does not exist is answered with RST. A machine without power answers nothing: such a
 * connection is half open until its other end notices. */
#include "sim.h"

#include "base/assert.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LISTENER = 0, /* its number; those of connections begin at 1 */
	PORT = 7000,
	SEND_BUFFER_BYTES = 1 << 16,
	SEGMENT_BYTES = 1 << 14,
	KEEPALIVE_US = 30 * SIM_S /* an idle connection to a machine that lost power breaks, be it back or not */
};

/* An acknowledgement on its way back to the writer. */
struct sim_ack {
	uint64_t upto;
	int64_t at_us, rtt_us;
};

/* One end of a connection. */
struct sim_end {
	uint32_t number;
	int peer;                           /* host; SIM_RELAY: a relayed one */
	int who;                            /* whose bytes come: peer, or the host beyond the relay */
	bool connected, accepted, finished; /* finished: nothing more will arrive */
	int error;                          /* errno; 0: none */
	uint8_t *in;                        /* [in_at, in_end) arrived, and is not read yet */
	size_t in_at, in_end, in_cap;
	uint64_t written, delivered;
	bool starved; /* its owner waits for room */
	struct sim_ack *acks;
	int n_acks, cap_acks;
	int64_t least_rtt_us;
};

/* ---- ends ---- */

static struct sim_end *find(const struct sim_worker *w, uint32_t number) {
	for (int i = 0; i < w->n_ends; i++)
		if (w->ends[i]->number == number)
			return w->ends[i];
	return NULL;
}

static struct sim_end *add(struct sim_worker *w, uint32_t number, int peer) {
	struct sim_end *e = sim_alloc(sizeof *e);
	RV_ASSERT(w->n_ends < SIM_MAX_ENDS);
	e->number = number;
	e->peer = e->who = peer;
	w->ends[w->n_ends++] = e;
	return e;
}

static void release(struct sim_end *e) {
	free(e->in);
	free(e->acks);
	free(e);
}

static void removes(struct sim_worker *w, struct sim_end *e) {
	int i = 0;
	while (w->ends[i] != e)
		i++;
	w->ends[i] = w->ends[--w->n_ends];
	release(e);
}

static void breaks(struct sim_end *e, int error) {
	if (e->error == 0)
		e->error = error;
}

static void send_packet(struct sim *s, int from, int to, enum packet_kind kind, uint32_t number, const void *data,
						size_t n) {
	struct packet *p = packet_new(from, to, kind, data, n);
	p->link = number;
	p->sent_us = s->now_us;
	sim_send(s, p);
}

static void wake(struct sim *s, int host, void *arg) {
	(void)arg;
	worker_turn(s, host);
}

/* ---- acknowledgements ---- */

static void take_acks(struct sim_end *e, int64_t now_us) {
	int n = 0;
	for (; n < e->n_acks && e->acks[n].at_us <= now_us; n++) {
		e->delivered = e->acks[n].upto;
		if (e->least_rtt_us == 0 || e->acks[n].rtt_us < e->least_rtt_us)
			e->least_rtt_us = e->acks[n].rtt_us;
	}
	e->n_acks -= n;
	if (n > 0 && e->n_acks > 0)
		memmove(e->acks, e->acks + n, (size_t)e->n_acks * sizeof e->acks[0]);
}

static size_t room(struct sim_end *e, int64_t now_us) {
	take_acks(e, now_us);
	size_t waiting = (size_t)(e->written - e->delivered);
	return waiting < SEND_BUFFER_BYTES ? SEND_BUFFER_BYTES - waiting : 0;
}

/* The end at `host` learns at that time that everything up to `upto` was taken. */
static void acknowledge(struct sim *s, int host, uint32_t number, uint64_t upto, int64_t at_us, int64_t sent_us) {
	struct sim_worker *w = &s->workers[host];
	struct sim_end *e = find(w, number);
	if (e == NULL)
		return;
	if (e->n_acks > 0 && e->acks[e->n_acks - 1].at_us > at_us)
		at_us = e->acks[e->n_acks - 1].at_us;
	if (e->n_acks == e->cap_acks) {
		e->cap_acks = e->cap_acks == 0 ? 8 : 2 * e->cap_acks;
		e->acks = realloc(e->acks, (size_t)e->cap_acks * sizeof e->acks[0]);
		RV_ASSERT(e->acks != NULL);
	}
	e->acks[e->n_acks++] = (struct sim_ack){.upto = upto, .at_us = at_us, .rtt_us = at_us - sent_us};
	if (e->starved)
		sim_at(s, at_us, host, w->life, wake, NULL);
	e->starved = false;
}

struct taken {
	uint64_t upto;
	int64_t sent_us;
};

/* What came was taken: the writer hears of it a delay later, or when it can be reached again. */
static void confirm(struct sim *s, const struct packet *p) {
	int writer = p->src;
	uint32_t number = p->link;
	if (p->src == SIM_RELAY && (p->upto == 0 || !relay_writer_of(s, p->link, &writer, &number)))
		return;
	const struct taken t = {.upto = p->upto, .sent_us = p->sent_us};
	if (p->src != SIM_RELAY && s->net.cut[p->dst][p->src] != 0) {
		send_packet(s, p->dst, p->src, PACKET_TAKEN, p->link, &t, sizeof t);
		return;
	}
	int64_t back_us = s->opt.delay_us + sim_between(s, p->dst, LUCK_LINE, 0, s->opt.jitter_us + 1);
	acknowledge(s, writer, number, t.upto, s->now_us + back_us, t.sent_us);
}

/* ---- what arrives ---- */

static void on_data(struct sim *s, struct sim_end *e, const struct packet *p) {
	if (e->in_end + p->n > e->in_cap) {
		if (e->in_end > e->in_at)
			memmove(e->in, e->in + e->in_at, e->in_end - e->in_at);
		e->in_end -= e->in_at;
		e->in_at = 0;
		while (e->in_cap < e->in_end + p->n)
			e->in_cap = e->in_cap == 0 ? 2048 : 2 * e->in_cap;
		e->in = realloc(e->in, e->in_cap);
		RV_ASSERT(e->in != NULL);
	}
	memcpy(e->in + e->in_end, p->data, p->n);
	e->in_end += p->n;
	confirm(s, p);
}

static void on_taken(struct sim *s, const struct packet *p) {
	struct taken t;
	memcpy(&t, p->data, sizeof t);
	acknowledge(s, p->dst, p->link, t.upto, s->now_us, t.sent_us);
}

static void on_syn(struct sim *s, const struct packet *p) {
	struct sim_worker *w = &s->workers[p->dst];
	if (w->mesh == NULL) {
		send_packet(s, p->dst, p->src, PACKET_RST, p->link, NULL, 0);
		return;
	}
	add(w, p->link, p->src)->connected = true;
	send_packet(s, p->dst, p->src, PACKET_ACK, p->link, NULL, 0);
}

/* No such end: it was closed, or is of a former process. */
static void on_stray(struct sim *s, const struct packet *p) {
	if (p->kind == PACKET_DATA || p->kind == PACKET_ACK)
		send_packet(s, p->dst, p->src, PACKET_RST, p->link, NULL, 0);
}

void pipe_receive(struct sim *s, const struct packet *p) {
	struct sim_worker *w = &s->workers[p->dst];
	struct sim_end *e = find(w, p->link);
	if (w->dark)
		return;
	if (p->kind == PACKET_SYN)
		on_syn(s, p);
	else if (e == NULL)
		on_stray(s, p);
	else if (p->kind == PACKET_DATA)
		on_data(s, e, p);
	else if (p->kind == PACKET_TAKEN)
		on_taken(s, p);
	else if (p->kind == PACKET_ACK)
		e->connected = true;
	else if (p->kind == PACKET_FIN)
		e->finished = true;
	else
		breaks(e, e->connected ? ECONNRESET : ECONNREFUSED);
}

/* ---- faults ---- */

struct break_of {
	uint32_t number;
	int error;
};

static void break_now(struct sim *s, int host, void *arg) {
	const struct break_of b = *(struct break_of *)arg;
	free(arg);
	struct sim_end *e = find(&s->workers[host], b.number);
	if (e == NULL)
		return;
	breaks(e, b.error);
	worker_turn(s, host);
}

static void break_at(struct sim *s, int host, uint32_t number, int error, int64_t at_us) {
	struct break_of *b = sim_alloc(sizeof *b);
	*b = (struct break_of){.number = number, .error = error};
	sim_at(s, at_us, host, s->workers[host].life, break_now, b);
}

void pipe_break(struct sim *s, int host, int peer, int64_t later_us) {
	const struct sim_worker *w = &s->workers[host];
	for (int i = 0; i < w->n_ends; i++) {
		if (w->ends[i]->peer != peer)
			continue;
		break_at(s, host, w->ends[i]->number, ECONNRESET, s->now_us);
		break_at(s, peer, w->ends[i]->number, ETIMEDOUT, s->now_us + later_us);
	}
}

void pipe_close_all(struct sim *s, int host, bool silent) {
	struct sim_worker *w = &s->workers[host];
	for (int i = 0; i < w->n_ends; i++) {
		struct sim_end *e = w->ends[i];
		if (silent && e->peer == SIM_RELAY)
			relay_notices_end(s, e->number);
		else if (silent)
			break_at(s, e->peer, e->number, ETIMEDOUT, s->now_us + KEEPALIVE_US);
		else if (e->error == 0)
			send_packet(s, host, e->peer, PACKET_FIN, e->number, NULL, 0);
		release(e);
	}
	w->n_ends = 0;
}

void pipe_release(struct sim_worker *w) {
	for (int i = 0; i < w->n_ends; i++)
		release(w->ends[i]);
	w->n_ends = 0;
}

/* ---- readiness, as poll(2) would tell ---- */

static short readiness(struct sim_worker *w, int number, short events) {
	struct sim_end *e = find(w, (uint32_t)number);
	if (number == LISTENER) {
		for (int i = 0; i < w->n_ends; i++)
			if (w->ends[i]->connected && !w->ends[i]->accepted)
				return POLLIN;
		return 0;
	}
	RV_ASSERT(e != NULL);
	bool in = e->in_end > e->in_at || e->finished || e->error != 0;
	bool out = e->error != 0 || (e->connected && (events & POLLOUT) != 0 && room(e, w->sim->now_us) > 0);
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

/* ---- addresses: 10.0.0.1 is the first host's ---- */

void pipe_address(int host, char out[NET_ADDR_BYTES]) {
	(void)snprintf(out, NET_ADDR_BYTES, "10.0.0.%d:%d", host + 1, PORT);
}

static int host_at(const struct sim *s, const struct address *a) {
	int place = 0;
	bool known = sscanf(a->host, "10.0.0.%d", &place) == 1 && place >= 1 && place <= s->opt.n_workers;
	return known ? place - 1 : SIM_NOBODY;
}

/* ---- the operations; ctx: struct sim_worker ---- */

static enum rv_err op_listen(void *ctx, const char *listen_on, int receive_bytes, int *listener, uint16_t *port,
							 struct rv_errtext *et) {
	(void)ctx;
	(void)listen_on;
	(void)receive_bytes;
	(void)et;
	*listener = LISTENER;
	*port = PORT;
	return RV_OK;
}

static int op_accept(void *ctx, int listener, struct address *from) {
	struct sim_worker *w = ctx;
	(void)listener;
	for (int i = 0; i < w->n_ends; i++) {
		struct sim_end *e = w->ends[i];
		if (!e->connected || e->accepted)
			continue;
		e->accepted = true;
		*from = (struct address){.port = (uint16_t)(PORT + e->number % PORT)};
		(void)snprintf(from->host, sizeof from->host, "10.0.0.%d", e->peer + 1);
		return (int)e->number;
	}
	errno = EAGAIN;
	return -1;
}

static void connect_to_relay(struct sim_worker *w, const struct route *to, int *pipe) {
	uint64_t token;
	memcpy(&token, to->token, sizeof token);
	struct sim_end *e = add(w, ++w->sim->next_link, SIM_RELAY);
	e->accepted = true; /* it is nothing for accept */
	e->who = relay_other_of(w->sim, token, w->host);
	send_packet(w->sim, w->host, SIM_RELAY, PACKET_SYN, e->number, &token, sizeof token);
	*pipe = (int)e->number;
}

static enum rv_err op_connect(void *ctx, const struct route *to, int receive_bytes, int *pipe, struct rv_errtext *et) {
	struct sim_worker *w = ctx;
	if (to->kind == ROUTE_RELAY) {
		connect_to_relay(w, to, pipe);
		return RV_OK;
	}
	int peer = host_at(w->sim, &to->at);
	(void)receive_bytes;
	(void)et;
	uint32_t number = ++w->sim->next_link;
	struct sim_end *e = add(w, number, peer);
	if (peer != SIM_NOBODY && peer != w->host)
		oracle_dial(w->sim, w->host, peer);
	e->accepted = true;  /* it is nothing for accept */
	if (peer == w->host) /* an impostor takes itself for another */
		breaks(e, ECONNREFUSED);
	else if (peer != SIM_NOBODY)
		send_packet(w->sim, w->host, peer, PACKET_SYN, number, NULL, 0);
	*pipe = (int)number;
	return RV_OK;
}

/* What the relay answers when the other side is there too. */
static enum rv_err hear_relay(struct sim_end *e, struct rv_errtext *et) {
	if (e->in_end > e->in_at)
		e->in_at++;
	else if (e->finished)
		return rv_fail(et, RV_E_CLOSED, "the relay ended the call");
	else
		return RV_E_BUSY;
	return RV_OK;
}

static enum rv_err op_connected(void *ctx, int pipe, const struct route *to, short *events, struct rv_errtext *et) {
	struct sim_end *e = find(ctx, (uint32_t)pipe);
	if (e->error == 0 && to->kind == ROUTE_RELAY) {
		*events = POLLIN;
		return hear_relay(e, et);
	}
	if (e->error == ECONNREFUSED)
		return rv_fail(et, RV_E_NOTFOUND, "connection refused: nobody listens there");
	return e->error == 0 ? RV_OK : rv_fail(et, RV_E_IO, "connect: %s", strerror(e->error));
}

static ssize_t op_read(void *ctx, int pipe, void *out, size_t cap) {
	struct sim_worker *w = ctx;
	struct sim_end *e = find(w, (uint32_t)pipe);
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
	struct sim_end *e = find(w, (uint32_t)pipe);
	if (e == NULL || e->error != 0) { /* NULL: the process was killed */
		errno = e == NULL ? EPIPE : e->error;
		return -1;
	}
	size_t most = room(e, w->sim->now_us);
	if (most == 0) {
		e->starved = true;
		errno = EAGAIN;
		return -1;
	}
	n = n < most ? n : most;
	n = n < SEGMENT_BYTES ? n : SEGMENT_BYTES;
	faults_aim(w->sim, w->host, 1, 2 * w->sim->opt.delay_us);
	struct packet *p = packet_new(w->host, e->peer, PACKET_DATA, data, n);
	e->written += n;
	oracle_written(w->sim, w->host, n);
	p->link = e->number;
	p->upto = e->written;
	p->sent_us = w->sim->now_us;
	sim_send(w->sim, p);
	return (ssize_t)n;
}

static void op_info(void *ctx, int pipe, struct pipe_info *out) {
	const struct sim_worker *w = ctx;
	struct sim_end *e = find(w, (uint32_t)pipe);
	take_acks(e, w->sim->now_us);
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
	struct sim_worker *w = ctx;
	struct sim_end *e = find(w, (uint32_t)pipe);
	if (e == NULL) /* the listener, or the process was killed */
		return;
	if (e->error == 0 && e->peer != SIM_NOBODY)
		send_packet(w->sim, w->host, e->peer, PACKET_FIN, e->number, NULL, 0);
	removes(w, e);
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
