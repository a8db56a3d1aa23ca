/* sim_net.h: the parts of the simulated network that have addresses: homes behind routers,
 * connections, relays, and a worker's station (tests/sim/sim.h has the rest). */
#ifndef RV_TESTS_SIM_SIM_NET_H
#define RV_TESTS_SIM_SIM_NET_H

#include "net/mesh/pipe.h"
#include "net/relay/relay_core.h"
#include "worker/reach/reach_core.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim;
struct sim_worker;
struct packet;

/* ---- sim_homes.c: addresses, and routers that translate them ---- */

/* A place of the simulated internet. An IPv4 address is its 32 bits, an IPv6 one has bits above. */
struct sim_where {
	uint64_t ip; /* 0: none */
	uint16_t port;
};
enum { SIM_PORT = 7000 /* every mesh listens there */ };

/* What a home's router does with what comes from outside: after RFC 4787, sections 4 and 5. */
enum sim_home_kind {
	HOME_OPEN,      /* no router */
	HOME_FULL_CONE, /* one mapping for each port, and everybody may use it */
	HOME_ADDRESS,   /* only addresses that were dialed through it */
	HOME_PORT,      /* only addresses and ports that were dialed through it */
	HOME_SYMMETRIC, /* another mapping for each destination */
	HOME_DOUBLE,    /* as HOME_PORT, behind a provider's router, which is shared, and as HOME_PORT too */
	HOME_V6_ONLY,   /* no IPv4 */
	SIM_HOME_KINDS
};
extern const char *const sim_home_names[SIM_HOME_KINDS];
enum sim_home_trait {
	HOME_RESETS = 1,   /* the router answers what it does not let in; else it is silent */
	HOME_HAIRPINS = 2, /* it leads its own outside address back in */
	HOME_MOVES = 4,    /* a mapping gets another port than the inside one */
	HOME_V6 = 8,       /* IPv6 beside IPv4, behind a firewall that lets in what was dialed */
	HOME_TRAITS = 16
};
enum { SIM_MAX_MAPPINGS = 96, SIM_NO_ROUTER = -1 };

/* A port outside that stands for one inside. */
struct sim_mapping {
	struct sim_where inside, to; /* to: only for that destination; ip 0: for all */
	uint16_t port;
	int64_t until_us; /* a mapping with a connection lives longer */
	int host;         /* that uses it */
};
/* Packets from there are let in to that inside port. */
struct sim_hole {
	struct sim_where inside, from;
	int64_t until_us;
	int host;
};
struct sim_router {
	uint8_t kind, traits;
	uint64_t outside; /* its address there */
	int beyond;       /* router beyond it; SIM_NO_ROUTER: the internet */
	int n_mappings, n_holes;
	struct sim_mapping mappings[SIM_MAX_MAPPINGS];
	struct sim_hole holes[SIM_MAX_MAPPINGS];
};

struct sim_home {
	int router; /* SIM_NO_ROUTER: none */
	uint8_t kind;
	bool has_v4, has_v6;
};

/* Puts the hosts of `set` into one home. */
void homes_add(struct sim *s, uint64_t set, enum sim_home_kind kind, uint32_t traits);
void homes_add_one(struct sim *s, int host, enum sim_home_kind kind);
void homes_release(struct sim *s);
/* Returns the address of a host by which the internet sees it; of a relay; by which its own home
 * sees it. `port` is left to the caller. */
uint64_t homes_outside(const struct sim *s, int host, bool v6);
uint64_t homes_inside(const struct sim *s, int host);
uint64_t homes_relay(int relay, bool v6);
/* Returns true if the address is no member's, no home's, and no relay's; or if it is of a home's
 * inside, and no machine has it there. */
bool homes_is_strange(const struct sim_where *to);
bool homes_is_missing(const struct sim *s, int host, const struct sim_where *to);
/* An address of that kind, for those who lie. */
struct sim_where homes_bystander(void);
void where_text(const struct sim_where *w, char out[NET_ADDR_BYTES]);
void where_address(const struct sim_where *w, struct address *out);
bool where_parse(const struct address *a, struct sim_where *out);

/* Returns from where `host` is seen that dials `to` from that port: opens its routers' ways for the
 * answer. False: it has no way there (IPv6). */
bool homes_leave(struct sim *s, int host, uint16_t port, const struct sim_where *to, struct sim_where *from);
/* Returns the host at which a packet from `from`, of host `src`, to `to` arrives, and the port
 * there; SIM_OUTSIDE: nobody's, or a router keeps it out. *resets: a router, or a machine without
 * a program there, says so. With `ask_doors` false, whose it would be if routers let it in. */
int homes_find(struct sim *s, int src, const struct sim_where *from, const struct sim_where *to, bool ask_doors,
			   uint16_t *port, bool *resets);
/* Returns true if the two are of one home. */
bool homes_share(const struct sim *s, int a, int b);
/* Returns true if the host has a router that lets in no stranger. */
bool homes_is_closed(const struct sim *s, int host);
/* Returns true if both, when they dial each other's mapping at one moment, must meet: not one home,
 * and no router that answers what comes too early. */
bool homes_open(const struct sim *s, int a, int b, bool v6);
/* Returns true if no connection of the two can come about: each has a router with another mapping
 * for each peer, and there is no relay. */
bool homes_never_meet(const struct sim *s, int a, int b);

/* ---- sim_tcp.c: connections; sim_pipe.c: the mesh's ---- */

struct sim_ends { /* of one host */
	struct sim_end **end;
	int n, cap;
};
enum sim_end_state { END_CONNECTING, END_OPEN, END_OVER };

struct pipe_ops pipe_of(struct sim_worker *w);
/* Returns true if the host has a connection that it dialed from that port, to `to` (NULL: to
 * anybody). */
bool pipe_has_from_port(const struct sim *s, int host, uint16_t port, const struct sim_where *to);
void pipe_receive(struct sim *s, const struct packet *p);
/* Fills in which of the pipes are ready; true if any is. */
bool pipe_poll(struct sim_worker *w, struct pollfd *fds, int n);
/* The connections between the two break; the peer notices later. */
void pipe_break(struct sim *s, int host, int peer, int64_t later_us);
/* The process is gone. `silent`: its host has no power; else the kernel ends its connections. */
void pipe_close_all(struct sim *s, int host, bool silent);
void pipe_release(struct sim_ends *ends);

/* For programs that are no mesh: a station, a reflection, a relay. */

/* Dials; 0: there is no way there, or the port is taken for that destination. local_port 0: any. */
uint32_t pipe_dial(struct sim *s, int host, const struct sim_where *to, uint16_t local_port);
/* END_OVER: broken, or at its end and read to it; *why, unless NULL, says how. */
enum sim_end_state pipe_state(struct sim *s, int host, uint32_t number, const char **why);
/* Returns what has arrived and is not taken; takes n bytes of it, which the sender learns. */
const uint8_t *pipe_peek(struct sim *s, int host, uint32_t number, size_t *n);
void pipe_take(struct sim *s, int host, uint32_t number, size_t n);
/* Returns how many bytes can be put now; puts them. */
size_t pipe_room(struct sim *s, int host, uint32_t number);
void pipe_put(struct sim *s, int host, uint32_t number, const void *data, size_t n);
void pipe_end(struct sim *s, int host, uint32_t number);
/* Returns the address from which a connection came; the other host; the shortest round trip. */
struct sim_where pipe_from(struct sim *s, int host, uint32_t number);
int pipe_peer(struct sim *s, int host, uint32_t number);
int64_t pipe_rtt_us(struct sim *s, int host, uint32_t number);
/* What the other side reads there comes from `who`, beyond this host. */
void pipe_beyond(struct sim *s, int host, uint32_t number, int who);
/* Returns true if no router keeps this SYN out; else it is answered, or not. */
bool pipe_may_enter(struct sim *s, const struct packet *p);

/* ---- sim_relay.c: the platform around net/relay/relay_core.h ---- */

enum {
	SIM_RELAY_PORT = RELAY_DEFAULT_PORT,
	SIM_SECOND_PORT,
	SIM_STATION_BYTE = 0x16, /* first byte of a TLS handshake: a station, which states its key */
	SIM_OPENING_BYTES = 1 + NET_KEY_BYTES
};

/* What a relay does that is in the hands of an attacker. */
enum sim_falsehood {
	FALSE_NOT,
	FALSE_DROPS,   /* it forwards nothing */
	FALSE_CUTS,    /* it ends what it forwards after some thousand bytes */
	FALSE_STALLS,  /* it forwards nothing for seconds, again and again */
	FALSE_REPLAYS, /* it sends each frame twice */
	FALSE_FLOODS,  /* it sends frames that nobody asked for */
	FALSE_AIMS,    /* it says that members are seen at an address that is nobody's */
	SIM_FALSEHOODS
};
extern const char *const sim_falsehood_names[SIM_FALSEHOODS];

/* A connection of the core. */
struct sim_relay_end {
	uint32_t number; /* of the pipe; 0: free */
	uint8_t stage;
	int other; /* joined to this connection */
	int host;
	size_t forwarded; /* bytes */
	bool waits;       /* bytes that cannot be forwarded yet */
};
struct sim_relay {
	void *memory;
	struct relay_core *core; /* NULL: not running */
	uint64_t life;
	struct sim_ends ends;
	struct sim_relay_end *of; /* by the core's number */
	int n_of;                 /* numbers in use are below */
	struct relay_totals counted;
	struct sim *sim;
	int64_t tick_us; /* INT64_MAX: none is due */
	double drops;    /* share of the frames that it does not send */
	uint8_t is;      /* enum sim_falsehood */
	uint64_t random;
};
void relay_start(struct sim *s, int relay);
void relay_crash(struct sim *s, int relay, bool silent);
void relay_receive(struct sim *s, const struct packet *p);
/* Does what is due at the relay. */
void relay_turn(struct sim *s, int relay);
void relay_new_end(struct sim *s, int relay, uint32_t number, uint16_t port);
/* The relay ends what it forwards for `host`. */
void relay_breaks(struct sim *s, int relay, int host);
void relay_key(const struct sim *s, int relay, uint8_t key[NET_KEY_BYTES]);
/* Returns the relay that has this key. */
int relay_of_key(const struct sim *s, const uint8_t key[NET_KEY_BYTES]);
/* Fills in the list for documents; returns its length. */
int relay_list(const struct sim *s, struct relay_ref out[NET_MAX_RELAYS]);
void relay_release(struct sim_relay *r);

/* ---- sim_reach.c: the platform around worker/reach/reach_core.h ---- */

struct sim_station {
	uint32_t pipe; /* 0: none */
	struct relay_ref relay;
	bool greeted, secured; /* the key is stated; the relay's has come */
};
struct sim_reflection {
	bool is_asked, is_shown, is_seen;
	uint32_t pipe; /* 0: it could not be dialed */
	struct reach_reflection which;
	uint8_t token[NET_TOKEN_BYTES];
	int64_t until_us; /* not seen: time to give up */
};
struct sim_reach {
	struct reach_core *core; /* NULL: no session */
	void *memory;
	struct sim_station stations[REACH_STATIONS];
	struct sim_reflection reflections[REACH_REFLECTIONS];
	int64_t due_us;
};
void reach_open(struct sim *s, int host);
void reach_close(struct sim_worker *w); /* as a process that exits */
void reach_crash(struct sim_worker *w);
/* Reads, writes and times out. */
void reach_handle(struct sim *s, int host);
void reach_wants(struct sim *s, int host, uint32_t member, bool upgrades);
int64_t reach_due_us(const struct sim_worker *w);

#endif
