/* pair_world.h: two meshes that cannot dial each other, and a relay for them, over loopback and
 * under virtual time. */
#ifndef RV_TESTS_NET_PAIR_WORLD_H
#define RV_TESTS_NET_PAIR_WORLD_H

#include "mesh_world.h"

enum { MS = 1000, S = 1000 * MS, PREAMBLE_BYTES = 25, MAX_LINES = 16, MAX_ASKED = 64 };

/* A relay for one pair: forwards between the two latest connections. */
struct relay {
	int fd;
	uint16_t port;
	uint8_t answer; /* 0: none */
	bool hangs_up;  /* after the preamble */
	bool drops;     /* what it should forward */
	int lines[MAX_LINES], n, go;
	uint8_t shown[MAX_LINES][PREAMBLE_BYTES];
	size_t got[MAX_LINES];
	uint64_t forwarded;
	bool saw_the_text;
};

void relay_open(struct world *w, struct relay *r);
void relay_cut(struct relay *r);
void relay_release(struct relay *r);

/* How often, and when, each node asked for a route: for any, and for one without a relay. */
struct asked {
	int n;
	int64_t at_us[MAX_ASKED];
};
extern struct asked asked[WORLD_MAX_NODES], upgrades[WORLD_MAX_NODES];
/* What became of the routes that a node was offered: how often, and the last time. */
struct ended {
	int n, failed;
	enum route_kind kind;
	uint16_t port;
	int64_t lived_us;
};
extern struct ended ended[WORLD_MAX_NODES];
/* A tweak: counts what the node asks for, and what becomes of routes. */
void ask_owner(struct peers_config *cfg, int node);

void two_behind_routers(struct world *w, struct relay *r, void (*tweak)(struct peers_config *, int));
/* The node with the lower key. */
int lower_of(const struct world *w);
struct route by_relay(const struct relay *r, uint8_t call);
void offer_both(struct world *w, const struct route *route, bool taken);
/* two_behind_routers, linked by the relay. */
void link_by_relay(struct world *w, struct relay *r, void (*tweak)(struct peers_config *, int));
enum path_kind path_at(const struct world *w, uint32_t node);
void pair_end(struct world *w, struct relay *r);

#endif
