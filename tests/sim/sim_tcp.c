/* sim_tcp.c: connections between programs under virtual time: TCP as a mesh, a worker and a relay
 * see it.
 *
 * Each end of a connection has a number; where one end dialed, both have the same. A connection is
 * asked for with SYN, which routers judge (sim_homes.c), and granted with ACK; what is written
 * goes in segments, arrives in order, and is acknowledged a delay later; where the network loses
 * something, it waits instead. Two SYNs of one port each that meet are one connection (RFC 9293,
 * section 3.5). An end that is closed says so with FIN, and a packet for an end that does not
 * exist is answered with RST. A machine without power answers nothing: such a connection is half
 * open until its other end notices. */
#include "sim_tcp.h"

#include "base/assert.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SEND_BUFFER_BYTES = 1 << 16,
	KEEPALIVE_US = 30 * SIM_S /* an idle connection to a machine that lost power breaks, be it back or not */
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
struct sim_end *tcp_find(const struct sim_ends *of, uint32_t number) {
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

void tcp_remove(struct sim_ends *of, struct sim_end *e) {
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
		worker_turn_soon(s, host);
}

static uint64_t life_of(const struct sim *s, int host) {
	return is_relay(host) ? s->relays[host - SIM_RELAY].life : s->workers[host].life;
}

static void wake(struct sim *s, int host, void *arg) {
	(void)arg;
	turn(s, host);
}

/* ---- acknowledgements ---- */

void tcp_take_acks(struct sim_end *e, int64_t now_us) {
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

size_t tcp_room(struct sim_end *e, int64_t now_us) {
	tcp_take_acks(e, now_us);
	size_t waiting = (size_t)(e->written - e->delivered);
	return waiting < SEND_BUFFER_BYTES ? SEND_BUFFER_BYTES - waiting : 0;
}

struct taken {
	uint64_t upto;
	int64_t sent_us;
};

/* The end at `host` learns at that time that everything up to `upto` was taken. */
static void acknowledge(struct sim *s, int host, uint32_t number, const struct taken *t, int64_t at_us) {
	struct sim_end *e = tcp_find(ends_of(s, host), number);
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
	struct sim_end *e = tcp_find(ends_of(s, p->dst), p->link);
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
	struct sim_end *e = tcp_find(ends_of(s, host), b.number);
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

/* ---- dialing ---- */

/* Returns the end that dials; NULL: the port is taken for that address. */
struct sim_end *tcp_dial(struct sim *s, int host, const struct sim_where *to, uint16_t port) {
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

/* ---- writing, closing ---- */

void tcp_put(struct sim *s, int host, struct sim_end *e, const void *data, size_t n) {
	e->written += n;
	send_packet(s, host, e, PACKET_DATA, data, n);
}

void tcp_close(struct sim *s, int host, uint32_t number) {
	struct sim_ends *of = ends_of(s, host);
	struct sim_end *e = tcp_find(of, number);
	if (e == NULL) /* the listener, or the process was killed */
		return;
	if (e->error == 0 && e->peer != SIM_OUTSIDE)
		send_packet(s, host, e, PACKET_FIN, NULL, 0);
	tcp_remove(of, e);
}

/* ---- for programs that are no mesh ---- */

uint32_t pipe_dial(struct sim *s, int host, const struct sim_where *to, uint16_t local_port) {
	const struct sim_end *e = tcp_dial(s, host, to, local_port);
	return e != NULL ? e->number : 0;
}

enum sim_end_state pipe_state(struct sim *s, int host, uint32_t number, const char **why) {
	const struct sim_end *e = tcp_find(ends_of(s, host), number);
	const char *text = e == NULL ? "it is closed" : e->error != 0 ? strerror(e->error) : "it closed the connection";
	if (why != NULL)
		*why = text;
	if (e == NULL || e->error != 0 || (e->finished && e->in_at == e->in_end))
		return END_OVER;
	return e->connected ? END_OPEN : END_CONNECTING;
}

const uint8_t *pipe_peek(struct sim *s, int host, uint32_t number, size_t *n) {
	const struct sim_end *e = tcp_find(ends_of(s, host), number);
	*n = e->in_end - e->in_at;
	return e->in + e->in_at;
}

void pipe_take(struct sim *s, int host, uint32_t number, size_t n) {
	struct sim_end *e = tcp_find(ends_of(s, host), number);
	RV_ASSERT(n <= e->in_end - e->in_at);
	e->in_at += n;
	if (is_relay(host) && n > 0 && e->error == 0)
		confirm(s, host, e, e->arrived - (e->in_end - e->in_at));
}

/* Its owner has a turn when there is some again. */
size_t pipe_room(struct sim *s, int host, uint32_t number) {
	struct sim_end *e = tcp_find(ends_of(s, host), number);
	size_t most = e->error == 0 ? tcp_room(e, s->now_us) : 0;
	e->starved = e->starved || most == 0;
	return most < SIM_SEGMENT_BYTES ? most : SIM_SEGMENT_BYTES;
}

void pipe_put(struct sim *s, int host, uint32_t number, const void *data, size_t n) {
	struct sim_end *e = tcp_find(ends_of(s, host), number);
	if (e != NULL && e->error == 0)
		tcp_put(s, host, e, data, n);
}

void pipe_end(struct sim *s, int host, uint32_t number) {
	tcp_close(s, host, number);
}

struct sim_where pipe_from(struct sim *s, int host, uint32_t number) {
	return tcp_find(ends_of(s, host), number)->at;
}

int pipe_peer(struct sim *s, int host, uint32_t number) {
	return tcp_find(ends_of(s, host), number)->peer;
}

int64_t pipe_rtt_us(struct sim *s, int host, uint32_t number) {
	struct sim_end *e = tcp_find(ends_of(s, host), number);
	tcp_take_acks(e, s->now_us);
	return e->least_rtt_us;
}

void pipe_beyond(struct sim *s, int host, uint32_t number, int who) {
	const struct sim_end *e = tcp_find(ends_of(s, host), number);
	struct sim_end *other = e != NULL ? tcp_find(ends_of(s, e->peer), e->theirs) : NULL;
	if (other != NULL)
		other->who = who;
}
