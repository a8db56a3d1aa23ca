/* sim_relay.c: a relay as a third place: it rings both members of a call, and forwards between the
 * two connections that show the call's token. It sees nothing of what it forwards. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { TOKEN_US = 10 * SIM_S, SIDES = 2, KEEPALIVE_US = 30 * SIM_S };

/* What a CALL and a RING carry. */
struct call_packet {
	uint64_t token; /* RING */
	int peer;       /* host */
};

static void tell(struct sim *s, int to, enum packet_kind kind, uint32_t number, uint64_t upto, const void *data,
				 size_t n) {
	struct packet *p = packet_new(SIM_RELAY, to, kind, data, n);
	p->link = number;
	p->upto = upto;
	p->sent_us = s->now_us;
	sim_send(s, p);
}

/* ---- calls ---- */

static struct relayed_call *of_token(struct sim_relay *r, uint64_t token) {
	for (int i = 0; i < SIM_MAX_RELAYED; i++)
		if (r->calls[i].token == token && token != 0)
			return &r->calls[i];
	return NULL;
}

static struct relayed_call *of_number(struct sim_relay *r, uint32_t number, int *side) {
	for (int i = 0; i < SIM_MAX_RELAYED; i++)
		for (*side = 0; *side < SIDES; ++*side)
			if (r->calls[i].token != 0 && r->calls[i].number[*side] == number)
				return &r->calls[i];
	return NULL;
}

static void ends(struct sim *s, struct relayed_call *c) {
	for (int side = 0; side < SIDES; side++)
		if (c->number[side] != 0)
			tell(s, c->host[side], PACKET_FIN, c->number[side], 0, NULL, 0);
	*c = (struct relayed_call){.token = 0};
}

static void forget_old(struct sim *s) {
	for (int i = 0; i < SIM_MAX_RELAYED; i++) {
		struct relayed_call *c = &s->relay.calls[i];
		if (c->token != 0 && !c->joined && c->until_us <= s->now_us)
			ends(s, c);
	}
}

static void ring(struct sim *s, int host, int peer, uint64_t token) {
	const struct call_packet about = {.token = token, .peer = peer};
	if (!sim_chance(s, SIM_RELAY, LUCK_LINE, s->relay.drops))
		tell(s, host, PACKET_RING, 0, 0, &about, sizeof about);
}

static void on_call(struct sim *s, const struct packet *p) {
	struct call_packet about;
	memcpy(&about, p->data, sizeof about);
	forget_old(s);
	for (int i = 0; i < SIM_MAX_RELAYED; i++) {
		struct relayed_call *c = &s->relay.calls[i];
		if (c->token != 0)
			continue;
		*c = (struct relayed_call){
			.token = ++s->relay.next_token, .host = {p->src, about.peer}, .until_us = s->now_us + TOKEN_US};
		s->stats.calls++;
		for (int side = 0; side < SIDES; side++)
			ring(s, c->host[side], c->host[1 - side], c->token);
		return;
	}
}

/* ---- data connections ---- */

/* The token comes with the SYN. */
static void on_syn(struct sim *s, const struct packet *p) {
	uint64_t token;
	memcpy(&token, p->data, sizeof token);
	forget_old(s);
	struct relayed_call *c = of_token(&s->relay, token);
	int side = c != NULL && c->host[1] == p->src;
	tell(s, p->src, c != NULL ? PACKET_ACK : PACKET_RST, p->link, 0, NULL, 0);
	if (c == NULL)
		return;
	c->number[side] = p->link;
	c->joined = c->number[0] != 0 && c->number[1] != 0;
	const uint8_t both_are_here = 1;
	for (int i = 0; c->joined && i < SIDES; i++)
		tell(s, c->host[i], PACKET_DATA, c->number[i], 0, &both_are_here, 1);
}

static void on_data(struct sim *s, const struct packet *p) {
	int side;
	struct relayed_call *c = of_number(&s->relay, p->link, &side);
	if (c == NULL || !c->joined) {
		tell(s, p->src, PACKET_RST, p->link, 0, NULL, 0);
		return;
	}
	struct packet *on = packet_new(SIM_RELAY, c->host[1 - side], PACKET_DATA, p->data, p->n);
	on->link = c->number[1 - side];
	on->upto = p->upto;
	on->sent_us = p->sent_us;
	s->stats.relayed_bytes += p->n;
	sim_send(s, on);
}

static void on_end(struct sim *s, uint32_t number) {
	int side;
	struct relayed_call *c = of_number(&s->relay, number, &side);
	if (c == NULL)
		return;
	c->number[side] = 0;
	ends(s, c);
}

void relay_receive(struct sim *s, const struct packet *p) {
	if (s->relay.down) {
		if (p->kind == PACKET_SYN || p->kind == PACKET_DATA)
			tell(s, p->src, PACKET_RST, p->link, 0, NULL, 0);
		return;
	}
	if (p->kind == PACKET_CALL)
		on_call(s, p);
	else if (p->kind == PACKET_SYN)
		on_syn(s, p);
	else if (p->kind == PACKET_DATA)
		on_data(s, p);
	else if (p->kind == PACKET_FIN || p->kind == PACKET_RST)
		on_end(s, p->link);
}

/* ---- what the pipes ask ---- */

int relay_other_of(struct sim *s, uint64_t token, int host) {
	const struct relayed_call *c = of_token(&s->relay, token);
	if (c == NULL)
		return SIM_NOBODY;
	return c->host[0] == host ? c->host[1] : c->host[0];
}

bool relay_writer_of(struct sim *s, uint32_t number, int *host, uint32_t *writer) {
	int side;
	const struct relayed_call *c = of_number(&s->relay, number, &side);
	if (c == NULL)
		return false;
	*host = c->host[1 - side];
	*writer = c->number[1 - side];
	return true;
}

static void notices(struct sim *s, int nobody, void *arg) {
	(void)nobody;
	uint32_t number = *(uint32_t *)arg;
	free(arg);
	on_end(s, number);
}

void relay_notices_end(struct sim *s, uint32_t number) {
	uint32_t *arg = sim_alloc(sizeof *arg);
	*arg = number;
	sim_at(s, s->now_us + KEEPALIVE_US, SIM_NOBODY, 0, notices, arg);
}

/* ---- the members' side: a call that the mesh asks for ---- */

void relay_call(struct sim *s, int host, int peer) {
	const struct call_packet about = {.peer = peer};
	sim_send(s, packet_new(host, SIM_RELAY, PACKET_CALL, &about, sizeof about));
}

void relay_rings(struct sim *s, const struct packet *p) {
	struct sim_worker *w = &s->workers[p->dst];
	struct call_packet about;
	memcpy(&about, p->data, sizeof about);
	if (w->mesh == NULL || s->oracle.member_of[about.peer] >= NET_MAX_MEMBERS)
		return;
	struct route route = {.kind = ROUTE_RELAY, .at = {.host = "10.0.1.1", .port = 7435}};
	memcpy(route.token, &about.token, sizeof about.token);
	peers_offer_route(w->mesh, s->now_us, s->oracle.member_of[about.peer], &route);
}

/* ---- faults ---- */

void relay_crash(struct sim *s) {
	for (int i = 0; i < SIM_MAX_RELAYED; i++)
		if (s->relay.calls[i].token != 0)
			ends(s, &s->relay.calls[i]);
	s->relay.down = true;
}

void relay_start(struct sim *s) {
	s->relay.down = false;
}

void relay_breaks(struct sim *s, int host) {
	for (int i = 0; i < SIM_MAX_RELAYED; i++) {
		struct relayed_call *c = &s->relay.calls[i];
		if (c->token != 0 && (c->host[0] == host || c->host[1] == host))
			ends(s, c);
	}
}
