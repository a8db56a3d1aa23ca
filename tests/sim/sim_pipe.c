/* sim_pipe.c: the network between programs as pipes (net/mesh/pipe.h) under virtual time: TCP as a
 * mesh sees it.
 *
 * Each end of a connection has a number; where one end dialed, both have the same. A connection is
 * asked for with SYN, which routers judge (sim_homes.c), and granted with ACK; what is written goes
 * in segments, arrives in order, and is acknowledged a delay later; where the network loses
 * something, it waits instead. Two SYNs of one port each that meet are one connection (RFC 9293,
 * section 3.5). An end that is closed says so with FIN, and a packet for an end that does not exist
 * is answered with RST. A machine without power answers nothing: such a connection is half open
 * until its other end notices. */
#include "sim.h"

#include "base/assert.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LISTENER = 0, /* its number; those of connections begin at 1 */
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
	uint32_t number, theirs;            /* of the other end; two that dialed each other differ */
	int peer;                           /* host; SIM_OUTSIDE: nobody */
	int who;                            /* whose bytes come: peer, or the host beyond a relay */
	struct sim_where at;                /* the other end's address, as it is seen here */
	uint16_t port;                      /* of this end; 0: any */
	bool connected, accepted, finished; /* finished: nothing more will arrive */
	int error;                          /* errno; 0: none */
	uint8_t *in;                        /* [in_at, in_end) arrived, and is not read yet */
	size_t in_at, in_end, in_cap;
	uint64_t arrived; /* bytes; and when the latest were sent */
	int64_t sent_us;
	uint64_t written, delivered;
	bool starved; /* its owner waits for room */
	struct sim_ack *acks;
	int n_acks, cap_acks;
	int64_t least_rtt_us;
};

/* What a SYN carries. */
struct sim_syn {
	struct sim_where from, to;
};

/* ---- ends ---- */

static bool is_relay(int host) {
	return host >= SIM_RELAY && host < SIM_RELAY + SIM_MAX_RELAYS;
}

static struct sim_ends *ends_of(struct sim *s, int host) {
	return is_relay(host) ? &s->relays[host - SIM_RELAY].ends : &s->workers[host].ends;
}

/* One that is found moves forward: the next packet is most likely for it too. */
static struct sim_end *find(const struct sim_ends *of, uint32_t number) {
	for (int i = 0; i < of->n; i++) {
		struct sim_end *e = of->end[i];
		if (e->number != number)
			continue;
		of->end[i] = of->end[i / 2];
		of->end[i / 2] = e;
		return e;
	}
	return NULL;
}

static struct sim_end *add(struct sim_ends *of, uint32_t number, uint32_t theirs, int peer) {
	struct sim_end *e = sim_alloc(sizeof *e);
	if (of->n == of->cap) {
		of->cap = of->cap == 0 ? 16 : 2 * of->cap;
		of->end = realloc(of->end, (size_t)of->cap * sizeof of->end[0]);
		RV_ASSERT(of->end != NULL);
	}
	e->number = number;
	e->theirs = theirs;
	e->peer = e->who = peer;
	of->end[of->n++] = e;
	return e;
}

static void release(struct sim_end *e) {
	free(e->in);
	free(e->acks);
	free(e);
}

static void removes(struct sim_ends *of, struct sim_end *e) {
	int i = 0;
	while (of->end[i] != e)
		i++;
	of->end[i] = of->end[--of->n];
	release(e);
}

static void breaks(struct sim_end *e, int error) {
	if (e->error == 0)
		e->error = error;
}

bool pipe_has_from_port(const struct sim *s, int host, uint16_t port, const struct sim_where *to) {
	const struct sim_ends *of = &s->workers[host].ends;
	for (int i = 0; i < of->n; i++) {
		const struct sim_end *e = of->end[i];
		if (e->port == port && e->error == 0 && (to == NULL || (e->at.ip == to->ip && e->at.port == to->port)))
			return true;
	}
	return false;
}

static void send_packet(struct sim *s, int from, const struct sim_end *e, enum packet_kind kind, const void *data,
						size_t n) {
	struct packet *p = packet_new(from, e->peer, kind, data, n);
	p->link = e->theirs;
	p->from_link = e->number;
	p->upto = e->written;
	p->sent_us = s->now_us;
	sim_send(s, p);
}

static void reply(struct sim *s, const struct packet *to, enum packet_kind kind) {
	struct packet *p = packet_new(to->dst, to->src, kind, NULL, 0);
	p->link = to->from_link;
	p->from_link = to->link;
	p->sent_us = s->now_us;
	sim_send(s, p);
}

static void turn(struct sim *s, int host) {
	if (is_relay(host))
		relay_turn(s, host - SIM_RELAY);
	else
		worker_turn(s, host);
}

static uint64_t life_of(const struct sim *s, int host) {
	return is_relay(host) ? s->relays[host - SIM_RELAY].life : s->workers[host].life;
}

static void wake(struct sim *s, int host, void *arg) {
	(void)arg;
	turn(s, host);
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

struct taken {
	uint64_t upto;
	int64_t sent_us;
};

/* The end at `host` learns at that time that everything up to `upto` was taken. */
static void acknowledge(struct sim *s, int host, uint32_t number, const struct taken *t, int64_t at_us) {
	struct sim_end *e = find(ends_of(s, host), number);
	if (e == NULL)
		return;
	if (e->n_acks > 0 && e->acks[e->n_acks - 1].at_us > at_us)
		at_us = e->acks[e->n_acks - 1].at_us;
	if (e->n_acks == e->cap_acks) {
		e->cap_acks = e->cap_acks == 0 ? 8 : 2 * e->cap_acks;
		e->acks = realloc(e->acks, (size_t)e->cap_acks * sizeof e->acks[0]);
		RV_ASSERT(e->acks != NULL);
	}
	e->acks[e->n_acks++] = (struct sim_ack){.upto = t->upto, .at_us = at_us, .rtt_us = at_us - t->sent_us};
	if (e->starved)
		sim_at(s, at_us, host, life_of(s, host), wake, NULL);
	e->starved = false;
}

/* What came was taken: the writer hears of it a delay later, or when it can be reached again. */
static void confirm(struct sim *s, int host, const struct sim_end *e, uint64_t upto) {
	const struct taken t = {.upto = upto, .sent_us = e->sent_us};
	if (s->net.cut[host][e->peer] != 0) {
		send_packet(s, host, e, PACKET_TAKEN, &t, sizeof t);
		return;
	}
	int64_t back_us = s->opt.delay_us + sim_between(s, host, LUCK_LINE, 0, s->opt.jitter_us + 1);
	acknowledge(s, e->peer, e->theirs, &t, s->now_us + back_us);
}

/* ---- what arrives ---- */

/* A mesh reads what it is given as soon as it runs; a relay when it may and the other side has
 * room. */
static void on_data(struct sim *s, int host, struct sim_end *e, const struct packet *p) {
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
	e->arrived = p->upto;
	e->sent_us = p->sent_us;
	if (!is_relay(host))
		confirm(s, host, e, p->upto);
}

static void on_taken(struct sim *s, const struct packet *p) {
	struct taken t;
	memcpy(&t, p->data, sizeof t);
	acknowledge(s, p->dst, p->link, &t, s->now_us);
}

/* Another one of these two addresses and ports is there already. */
static struct sim_end *find_between(const struct sim_ends *of, uint16_t port, const struct sim_where *at) {
	for (int i = 0; i < of->n; i++) {
		struct sim_end *e = of->end[i];
		if (e->port == port && e->at.ip == at->ip && e->at.port == at->port)
			return e;
	}
	return NULL;
}

static bool listens(const struct sim *s, int host, uint16_t port) {
	if (is_relay(host))
		return s->relays[host - SIM_RELAY].core != NULL && (port == SIM_RELAY_PORT || port == SIM_SECOND_PORT);
	return s->workers[host].mesh != NULL && port == SIM_PORT;
}

/* Both have dialed from these ports: each takes the other's SYN for the answer to its own. */
static void meet(struct sim *s, const struct packet *p, struct sim_end *e) {
	e->theirs = p->from_link;
	e->peer = e->who = p->src;
	e->connected = true;
	send_packet(s, p->dst, e, PACKET_ACK, NULL, 0);
}

static void on_syn(struct sim *s, const struct packet *p) {
	struct sim_syn syn;
	bool resets;
	uint16_t port;
	memcpy(&syn, p->data, sizeof syn);
	(void)homes_find(s, p->src, &syn.from, &syn.to, false, &port, &resets);
	struct sim_ends *of = ends_of(s, p->dst);
	struct sim_end *same = find_between(of, port, &syn.from);
	if (same != NULL && same->error == 0 && (!same->connected || same->theirs == p->from_link)) {
		meet(s, p, same);
		return;
	}
	if (same != NULL) /* of a machine that has forgotten it */
		breaks(same, ECONNRESET);
	if (!listens(s, p->dst, port)) {
		reply(s, p, PACKET_RST);
		return;
	}
	struct sim_end *e = add(of, p->link, p->from_link, p->src);
	e->at = syn.from;
	e->port = port;
	e->connected = true;
	send_packet(s, p->dst, e, PACKET_ACK, NULL, 0);
	if (is_relay(p->dst))
		relay_new_end(s, p->dst - SIM_RELAY, e->number, port);
}

/* No such end: it was closed, or is of a former process. */
static void on_stray(struct sim *s, const struct packet *p) {
	if (p->kind == PACKET_DATA || p->kind == PACKET_ACK)
		reply(s, p, PACKET_RST);
}

static void on_ack(struct sim_end *e, const struct packet *p) {
	e->connected = true;
	e->theirs = p->from_link;
}

void pipe_receive(struct sim *s, const struct packet *p) {
	struct sim_end *e = find(ends_of(s, p->dst), p->link);
	if (!is_relay(p->dst) && s->workers[p->dst].dark)
		return;
	if (p->kind == PACKET_SYN)
		on_syn(s, p);
	else if (e == NULL)
		on_stray(s, p);
	else if (p->kind == PACKET_DATA)
		on_data(s, p->dst, e, p);
	else if (p->kind == PACKET_TAKEN)
		on_taken(s, p);
	else if (p->kind == PACKET_ACK)
		on_ack(e, p);
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
	struct sim_end *e = find(ends_of(s, host), b.number);
	if (e == NULL)
		return;
	breaks(e, b.error);
	turn(s, host);
}

static void break_at(struct sim *s, int host, uint32_t number, int error, int64_t at_us) {
	struct break_of *b = sim_alloc(sizeof *b);
	if (host == SIM_OUTSIDE) { /* a dial that leads nowhere */
		free(b);
		return;
	}
	*b = (struct break_of){.number = number, .error = error};
	sim_at(s, at_us, host, life_of(s, host), break_now, b);
}

void pipe_break(struct sim *s, int host, int peer, int64_t later_us) {
	const struct sim_ends *of = ends_of(s, host);
	for (int i = 0; i < of->n; i++) {
		if (of->end[i]->peer != peer)
			continue;
		break_at(s, host, of->end[i]->number, ECONNRESET, s->now_us);
		break_at(s, peer, of->end[i]->theirs, ETIMEDOUT, s->now_us + later_us);
	}
}

void pipe_close_all(struct sim *s, int host, bool silent) {
	struct sim_ends *of = ends_of(s, host);
	for (int i = 0; i < of->n; i++) {
		struct sim_end *e = of->end[i];
		if (silent)
			break_at(s, e->peer, e->theirs, ETIMEDOUT, s->now_us + KEEPALIVE_US);
		else if (e->error == 0 && e->peer != SIM_OUTSIDE)
			send_packet(s, host, e, PACKET_FIN, NULL, 0);
		release(e);
	}
	of->n = 0;
}

void pipe_release(struct sim_ends *of) {
	for (int i = 0; i < of->n; i++)
		release(of->end[i]);
	free(of->end);
	*of = (struct sim_ends){0};
}

/* ---- readiness, as poll(2) would tell ---- */

static short readiness(struct sim_worker *w, int number, short events) {
	struct sim_end *e = find(&w->ends, (uint32_t)number);
	if (number == LISTENER) {
		for (int i = 0; i < w->ends.n; i++)
			if (w->ends.end[i]->connected && !w->ends.end[i]->accepted)
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

/* ---- dialing ---- */

/* Returns the end that dials; NULL: the port is taken for that address. */
static struct sim_end *dial(struct sim *s, int host, const struct sim_where *to, uint16_t port) {
	struct sim_ends *of = ends_of(s, host);
	struct sim_syn syn = {.to = *to};
	uint16_t there;
	bool resets;
	if (port != 0 && find_between(of, port, to) != NULL)
		return NULL;
	bool leaves = homes_leave(s, host, port, to, &syn.from);
	int peer = leaves ? homes_find(s, host, &syn.from, to, false, &there, &resets) : SIM_OUTSIDE;
	struct sim_end *e = add(of, s->next_link + 1, s->next_link + 1, peer);
	s->next_link++;
	e->at = *to;
	e->port = port;
	e->accepted = true; /* it is nothing for accept */
	oracle_dial(s, host, peer, to);
	if (!leaves)
		breaks(e, ENETUNREACH);
	else if (peer == host) /* an impostor takes itself for another */
		breaks(e, ECONNREFUSED);
	else
		send_packet(s, host, e, PACKET_SYN, &syn, sizeof syn);
	return e;
}

/* The last router before the host: what it does not let in. True: it may pass. */
bool pipe_may_enter(struct sim *s, const struct packet *p) {
	struct sim_syn syn;
	bool resets;
	uint16_t port;
	memcpy(&syn, p->data, sizeof syn);
	if (homes_find(s, p->src, &syn.from, &syn.to, true, &port, &resets) == p->dst && p->dst != SIM_OUTSIDE)
		return true;
	if (resets)
		reply(s, p, PACKET_RST);
	return false;
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
	struct sim_end *e = dial(w->sim, w->host, &at, to->kind == ROUTE_PUNCH ? to->local_port : 0);
	if (e == NULL)
		return rv_fail(et, RV_E_BUSY, "the other side's packet came first");
	if (e->error == ENETUNREACH) {
		removes(&w->ends, e);
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
	struct sim_end *e = find(&w->ends, (uint32_t)pipe);
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
	struct sim_end *e = find(&w->ends, (uint32_t)pipe);
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

static void put(struct sim *s, int host, struct sim_end *e, const void *data, size_t n) {
	e->written += n;
	send_packet(s, host, e, PACKET_DATA, data, n);
}

static ssize_t op_write(void *ctx, int pipe, const void *data, size_t n) {
	struct sim_worker *w = ctx;
	struct sim_end *e = find(&w->ends, (uint32_t)pipe);
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
	oracle_written(w->sim, w->host, n);
	put(w->sim, w->host, e, data, n);
	return (ssize_t)n;
}

static void op_info(void *ctx, int pipe, struct pipe_info *out) {
	const struct sim_worker *w = ctx;
	struct sim_end *e = find(&w->ends, (uint32_t)pipe);
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

static void closes(struct sim *s, int host, uint32_t number) {
	struct sim_ends *of = ends_of(s, host);
	struct sim_end *e = find(of, number);
	if (e == NULL) /* the listener, or the process was killed */
		return;
	if (e->error == 0 && e->peer != SIM_OUTSIDE)
		send_packet(s, host, e, PACKET_FIN, NULL, 0);
	removes(of, e);
}

static void op_close(void *ctx, int pipe) {
	const struct sim_worker *w = ctx;
	closes(w->sim, w->host, (uint32_t)pipe);
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

/* ---- for programs that are no mesh ---- */

uint32_t pipe_dial(struct sim *s, int host, const struct sim_where *to, uint16_t local_port) {
	const struct sim_end *e = dial(s, host, to, local_port);
	return e != NULL ? e->number : 0;
}

enum sim_end_state pipe_state(struct sim *s, int host, uint32_t number, const char **why) {
	const struct sim_end *e = find(ends_of(s, host), number);
	const char *text = e == NULL ? "it is closed" : e->error != 0 ? strerror(e->error) : "it closed the connection";
	if (why != NULL)
		*why = text;
	if (e == NULL || e->error != 0 || (e->finished && e->in_at == e->in_end))
		return END_OVER;
	return e->connected ? END_OPEN : END_CONNECTING;
}

const uint8_t *pipe_peek(struct sim *s, int host, uint32_t number, size_t *n) {
	const struct sim_end *e = find(ends_of(s, host), number);
	*n = e->in_end - e->in_at;
	return e->in + e->in_at;
}

void pipe_take(struct sim *s, int host, uint32_t number, size_t n) {
	struct sim_end *e = find(ends_of(s, host), number);
	RV_ASSERT(n <= e->in_end - e->in_at);
	e->in_at += n;
	if (is_relay(host) && n > 0 && e->error == 0)
		confirm(s, host, e, e->arrived - (e->in_end - e->in_at));
}

/* Its owner has a turn when there is some again. */
size_t pipe_room(struct sim *s, int host, uint32_t number) {
	struct sim_end *e = find(ends_of(s, host), number);
	size_t most = e->error == 0 ? room(e, s->now_us) : 0;
	e->starved = e->starved || most == 0;
	return most < SEGMENT_BYTES ? most : SEGMENT_BYTES;
}

void pipe_put(struct sim *s, int host, uint32_t number, const void *data, size_t n) {
	struct sim_end *e = find(ends_of(s, host), number);
	if (e != NULL && e->error == 0)
		put(s, host, e, data, n);
}

void pipe_end(struct sim *s, int host, uint32_t number) {
	closes(s, host, number);
}

struct sim_where pipe_from(struct sim *s, int host, uint32_t number) {
	return find(ends_of(s, host), number)->at;
}

int pipe_peer(struct sim *s, int host, uint32_t number) {
	return find(ends_of(s, host), number)->peer;
}

int64_t pipe_rtt_us(struct sim *s, int host, uint32_t number) {
	struct sim_end *e = find(ends_of(s, host), number);
	take_acks(e, s->now_us);
	return e->least_rtt_us;
}

void pipe_beyond(struct sim *s, int host, uint32_t number, int who) {
	const struct sim_end *e = find(ends_of(s, host), number);
	struct sim_end *other = e != NULL ? find(ends_of(s, e->peer), e->theirs) : NULL;
	if (other != NULL)
		other->who = who;
}
