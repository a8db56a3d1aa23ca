/* sim_network.c: the network: nodes that take a packet and pass it on, later or not at all.
 *
 *   host -> up (rate) -> gate (who reaches whom) -> faults (HTTP only) -> delay -> route ->
 *   down (rate) -> host
 *
 * HTTP messages are like datagrams here: lost, doubled, overtaken (a lost reply is a broken
 * connection to the client). Link packets (TLS over TCP) arrive in order; where they do not arrive
 * they wait. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

struct packet *packet_new(int src, int dst, enum packet_kind kind, const void *data, size_t n) {
	struct packet *p = malloc(sizeof *p + n + 1);
	RV_ASSERT(p != NULL);
	*p = (struct packet){.src = src, .dst = dst, .kind = (uint8_t)kind, .n = n};
	if (data != NULL)
		memcpy(p->data, data, n);
	p->data[n] = 0; /* http_client.h: the body of a reply is NUL-terminated */
	return p;
}

static bool is_http(const struct packet *p) {
	return p->kind == PACKET_REQUEST || p->kind == PACKET_REPLY;
}

static void pass(struct sim *s, struct net_node *node, struct packet *p) {
	node->next->forward(s, node->next, p);
}

/* ---- rate: one packet after the other, at the line's speed ---- */

static void up_exit(struct sim *s, int host, void *arg) {
	(void)host;
	struct packet *p = arg;
	pass(s, &s->net.up[p->src], p);
}

static int64_t rate_exit_us(struct sim *s, struct net_node *node, const struct packet *p) {
	int64_t start = node->busy_until_us > s->now_us ? node->busy_until_us : s->now_us;
	node->busy_until_us = start + (int64_t)((double)(p->n + 60) / node->bytes_per_s * SIM_S);
	return node->busy_until_us;
}

static void up_forward(struct sim *s, struct net_node *node, struct packet *p) {
	sim_at(s, rate_exit_us(s, node, p), SIM_NOBODY, 0, up_exit, p);
}

/* ---- gate: who reaches whom ---- */

static void hold(struct sim_held *held, struct packet *p) {
	if (held->n == held->cap) {
		held->cap = held->cap == 0 ? 64 : 2 * held->cap;
		held->of = realloc(held->of, held->cap * sizeof(struct packet *));
		RV_ASSERT(held->of != NULL);
	}
	held->of[held->n++] = p;
}

static void gate_forward(struct sim *s, struct net_node *node, struct packet *p) {
	if (s->net.cut[p->src][p->dst] == 0)
		pass(s, node, p);
	else if (is_http(p))
		free(p);
	else
		hold(&s->net.held[p->src], p);
}

static void open_gate(struct sim *s, int from) {
	const struct sim_held held = s->net.held[from];
	s->net.held[from] = (struct sim_held){.of = NULL};
	for (size_t i = 0; i < held.n; i++)
		gate_forward(s, &s->net.gate, held.of[i]);
	free(held.of);
}

void sim_cut(struct sim *s, int from, int to, bool cut) {
	uint16_t *faults = &s->net.cut[from][to];
	*faults = (uint16_t)(cut ? *faults + 1 : *faults - 1);
	if (*faults == 0)
		open_gate(s, from);
}

void sim_cut_nothing(struct sim *s) {
	for (int h = 0; h < SIM_HOSTS; h = sim_next_host(s, h))
		memset(s->net.cut[h], 0, sizeof s->net.cut[h]);
	for (int h = 0; h < SIM_HOSTS; h = sim_next_host(s, h))
		open_gate(s, h);
}

/* ---- faults of single HTTP messages ---- */

static struct packet *copy_of(const struct packet *p) {
	return packet_new(p->src, p->dst, p->kind, p->data, p->n);
}

static void echo(struct sim *s, int host, void *arg) {
	(void)host;
	pass(s, &s->net.faults, arg);
}

static void faults_forward(struct sim *s, struct net_node *node, struct packet *p) {
	enum { ECHO_WITHIN_US = 20 * SIM_S };
	if (is_http(p) && sim_chance(s, p->src, LUCK_HTTP, s->net.http_loss)) {
		s->stats.faults[FAULT_HTTP_LOSS]++;
		free(p);
		return;
	}
	if (is_http(p) && sim_chance(s, p->src, LUCK_HTTP, s->net.http_doubling)) {
		s->stats.faults[FAULT_HTTP_DOUBLING]++;
		pass(s, node, copy_of(p));
	}
	if (is_http(p) && sim_chance(s, p->src, LUCK_HTTP, s->net.http_echo)) {
		s->stats.faults[FAULT_HTTP_ECHO]++;
		sim_at(s, s->now_us + sim_between(s, p->src, LUCK_HTTP, SIM_S, ECHO_WITHIN_US), SIM_NOBODY, 0, echo,
			   copy_of(p));
	}
	pass(s, node, p);
}

/* ---- delay ---- */

static void delay_exit(struct sim *s, int host, void *arg) {
	(void)host;
	pass(s, &s->net.delay, arg);
}

static void delay_forward(struct sim *s, struct net_node *node, struct packet *p) {
	(void)node;
	int64_t at = s->now_us + s->opt.delay_us +
				 sim_between(s, p->src, is_http(p) ? LUCK_HTTP : LUCK_LINE, 0, s->opt.jitter_us + 1);
	if (!is_http(p)) {
		int64_t *last = &s->net.last_exit[p->src][p->dst];
		at = at > *last ? at : *last;
		*last = at;
	}
	sim_at(s, at, SIM_NOBODY, 0, delay_exit, p);
}

static void route_forward(struct sim *s, struct net_node *node, struct packet *p) {
	(void)node;
	s->net.down[p->dst].forward(s, &s->net.down[p->dst], p);
}

/* ---- the last node: down the host's line, and there ---- */

static void arrive(struct sim *s, int host, void *arg) {
	struct packet *p = arg;
	if (host == SIM_COORDINATOR)
		coordinator_receive(s, p);
	else if (host >= SIM_RELAY)
		relay_receive(s, p);
	else
		worker_receive(s, p);
	free(p);
}

static void down_forward(struct sim *s, struct net_node *node, struct packet *p) {
	if (p->kind == PACKET_SYN && !pipe_may_enter(s, p))
		free(p);
	else
		sim_at(s, rate_exit_us(s, node, p), p->dst, 0, arrive, p);
}

void sim_send(struct sim *s, struct packet *p) {
	s->net.up[p->src].forward(s, &s->net.up[p->src], p);
}

void sim_network_slow(struct sim *s, int host, double share) {
	s->net.up[host].bytes_per_s = share * s->net.up[host].at_best;
	s->net.down[host].bytes_per_s = share * s->net.down[host].at_best;
}

void sim_network_init(struct sim *s) {
	struct sim_network *net = &s->net;
	struct rv_rng r = rv_rng_of(s->opt.seed, 4);
	net->gate = (struct net_node){.forward = gate_forward, .next = &net->faults};
	net->faults = (struct net_node){.forward = faults_forward, .next = &net->delay};
	net->delay = (struct net_node){.forward = delay_forward, .next = &net->route};
	net->route = (struct net_node){.forward = route_forward};
	for (int number = 0; number < SIM_HOSTS; number++) {
		const int h = sim_host_of_number(number);
		const double luck = rv_rng_double(&r);
		double rate = s->opt.slowest_bytes_per_s * (1 + 9 * luck);
		if (s->opt.slow_members >= SLOW_COARSER) /* a third are far slower than the others */
			rate = s->opt.slowest_bytes_per_s * (luck < 1.0 / 3 ? 1 + 3 * luck : 6 + 6 * luck);
		if (h >= SIM_COORDINATOR)
			rate = s->opt.n_workers > SIM_ORDINARY ? 1e8 : 1e7;
		net->up[h] = (struct net_node){.forward = up_forward, .next = &net->gate, .at_best = rate};
		net->down[h] = (struct net_node){.forward = down_forward, .at_best = 3 * rate};
		sim_network_slow(s, h, 1);
	}
}

void sim_network_release(struct sim_network *net) {
	for (int h = 0; h < SIM_HOSTS; h++) {
		for (size_t i = 0; i < net->held[h].n; i++)
			free(net->held[h].of[i]);
		free(net->held[h].of);
	}
}
