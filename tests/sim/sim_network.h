/* sim_network.h: rate, delay, loss, who reaches whom: nodes that snap together. */
#ifndef RV_TESTS_SIM_SIM_NETWORK_H
#define RV_TESTS_SIM_SIM_NETWORK_H

#include "tests/sim/sim_limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim;

enum packet_kind {
	PACKET_REQUEST, /* HTTP: may be lost, doubled, overtaken */
	PACKET_REPLY,
	PACKET_SYN, /* of a connection (sim_pipe.c), as the rest: these arrive in order */
	PACKET_ACK,
	PACKET_RST,
	PACKET_FIN,
	PACKET_DATA,
	PACKET_TAKEN /* data were taken: there is room again */
};
struct packet {
	int src, dst;
	uint8_t kind;
	uint32_t link, from_link; /* numbers of the connection's ends there, and here */
	uint64_t upto;            /* DATA: bytes of its writer, with these */
	int64_t sent_us;
	size_t n;
	uint8_t data[];
};
struct packet *packet_new(int src, int dst, enum packet_kind kind, const void *data, size_t n);
/* Takes the packet. */
void sim_send(struct sim *s, struct packet *p);

/* A packet goes from node to node until the last one hands it to its host. */
struct net_node {
	void (*forward)(struct sim *s, struct net_node *node, struct packet *p);
	struct net_node *next;
	int64_t busy_until_us;       /* rate */
	double bytes_per_s, at_best; /* rate, now and without a fault */
};
struct sim_held {
	struct packet **of;
	size_t n, cap;
};
struct sim_network {
	struct net_node up[SIM_HOSTS], down[SIM_HOSTS]; /* rate of a host's line */
	struct net_node gate, faults, delay, route;
	uint16_t cut[SIM_HOSTS][SIM_HOSTS];         /* faults that keep what `a` sends from `b`; 0: it arrives */
	int64_t last_exit[SIM_HOSTS][SIM_HOSTS];    /* delay: links keep their order */
	struct sim_held held[SIM_HOSTS];            /* gate: what links of each have sent where it does not arrive */
	double http_loss, http_doubling, http_echo; /* of each message */
};
void sim_network_init(struct sim *s);
void sim_network_release(struct sim_network *net);
/* Cuts the way from `from` to `to`, or takes one such cut back. Links lose
 * nothing: it waits. */
void sim_cut(struct sim *s, int from, int to, bool cut);
void sim_cut_nothing(struct sim *s);
/* The host's line has this share of its rate. */
void sim_network_slow(struct sim *s, int host, double share);

#endif
