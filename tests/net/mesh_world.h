/* mesh_world.h: several meshes in one process over loopback or memory, driven by one loop under
 * virtual time.
 *
 * TLS is real, and so are the sockets unless the world is in memory (memory_pipe.h); the clock is
 * not: it moves only when no socket had anything to say, so no test depends on how fast the machine
 * is. Timeouts are tested by moving it by hand. */
#ifndef RV_TESTS_NET_MESH_WORLD_H
#define RV_TESTS_NET_MESH_WORLD_H

#include "memory_pipe.h"
#include "net/mesh/peers.h"

#include <stdbool.h>
#include <stdint.h>

/* For timeouts of the mesh that depend on acknowledgements: virtual time passes faster than the
 * kernel sends them. */
#define WORLD_NEVER_US (INT64_C(3600) * 1000000)

enum { WORLD_MAX_NODES = 9, WORLD_MAX_ACTORS = 64, WORLD_STEP_US = 1000, WORLD_MAX_STEPS = 60000 };

struct world;

struct node {
	struct world *world;
	uint32_t member;
	struct identity id;
	struct peers_config cfg;
	struct peers *peers;
	struct member_ref ref; /* where it listens */
	/* To be sent, per member: pings go before bulk. */
	uint32_t pings[WORLD_MAX_NODES], bulk[WORLD_MAX_NODES];
	bool awaited[WORLD_MAX_NODES];     /* bulk for that member goes first */
	uint32_t of_bulk[WORLD_MAX_NODES]; /* frames that there were for that member; 0: it is never asked */
	uint32_t bulk_bytes, next_chunk[WORLD_MAX_NODES];
	uint8_t *bulk_body;
	/* What happened, per member. */
	int ups[WORLD_MAX_NODES], downs[WORLD_MAX_NODES], fatals[WORLD_MAX_NODES];
	uint32_t got_pings[WORLD_MAX_NODES], got_bulk[WORLD_MAX_NODES];
	uint32_t bulk_at_ping[WORLD_MAX_NODES]; /* got_bulk when the latest ping came */
	int parts[WORLD_MAX_NODES];             /* of bulk */
	bool bad_body;
	enum rv_err down_why[WORLD_MAX_NODES];
	char down_text[WORLD_MAX_NODES][RV_ERRTEXT_BYTES];
	int troubles;
	enum rv_err trouble_why;
	char trouble_text[RV_ERRTEXT_BYTES];
	enum rv_err answer; /* what on_message returns */
	bool ban_on_message;
};

/* Something else on the network: a proxy, an attacker. `step` moves what it can without
 * blocking. */
struct actor {
	void (*step)(void *self);
	void *self;
};

struct world {
	int64_t now_us;
	int n;
	struct node nodes[WORLD_MAX_NODES];
	struct actor actors[WORLD_MAX_ACTORS];
	int n_actors;
	uint8_t run_id[NET_RUN_ID_BYTES];
	struct identity run;
	struct memory_net *memory; /* NULL: sockets */
	struct pipe_ops pipe;
};

/* n nodes that listen on 127.0.0.1, with default timeouts but silent_us, which is WORLD_NEVER_US;
 * `tweak` (may be NULL) changes a node's config before. */
void world_init(struct world *w, int n, void (*tweak)(struct peers_config *cfg, int node));
/* The same without sockets. */
void world_init_in_memory(struct world *w, int n, void (*tweak)(struct peers_config *cfg, int node));
/* world_init without tweaks; every node has all others as its roster, and all are linked. */
void world_link(struct world *w, int n);
void world_link_in_memory(struct world *w, int n);
void world_release(struct world *w);
void world_actor(struct world *w, void (*step)(void *), void *self);
/* Node i stops and frees its mesh; start makes a new one on a new port. */
void world_stop(struct world *w, int i);
void world_start(struct world *w, int i);
/* `at` gets the given nodes (a bit set) as its roster. */
void world_allow(struct world *w, int at, unsigned nodes);
void world_allow_all(struct world *w);
void world_step(struct world *w);
/* Steps until done() or a bound that only a hang reaches; returns done()'s last word. */
bool world_until(struct world *w, bool (*done)(struct world *w, void *ctx), void *ctx);
/* Moves virtual time in small steps, letting everything happen that is due. */
void world_advance(struct world *w, int64_t us);

/* Predicates. */
bool world_all_linked(struct world *w, void *ctx);
bool world_trouble(struct world *w, void *node);   /* ctx: struct node *; it had trouble */
bool world_quiet_bulk(struct world *w, void *ctx); /* everything queued has arrived */

/* Open file descriptors of this process. */
int count_fds(void);

#endif
