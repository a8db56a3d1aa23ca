/* reduce_world.h: a small platform for tests of the all-reduce: participants in one process, links
 * as bounded FIFOs of encoded frames, and a seed that decides every interleaving. No clock but
 * `now_us`. */
#ifndef RV_TESTS_NET_REDUCE_WORLD_H
#define RV_TESTS_NET_REDUCE_WORLD_H

#include "base/rng.h"
#include "net/mesh/frame.h"
#include "net/reduce/reduce.h"

enum {
	WORLD_MAX_NODES = 8,
	WORLD_MAX_CHUNKS = 64,
	WORLD_CHUNK_BYTES = 24, /* the last chunk is shorter */
	WORLD_MEAN_MORE = 11,   /* bytes that a mean has more than a contribution, in some worlds */
	WORLD_WINDOW = 3,       /* frames in flight on one link, one way */
	WORLD_SILENCE_US = 4000000,
	WORLD_STALL_US = 6000000,
	WORLD_PING_US = 1000000,
	WORLD_CORRUPT = 0xee,      /* a contribution with this first byte is not an encoding; a mean, with four of them */
	WORLD_HUGE = 0xef,         /* ... with this one cannot be averaged */
	WORLD_OUT_OF_MEMORY = 0xf0 /* ... with this one makes the owner run out of memory */
};

struct world_frame {
	uint8_t header[FRAME_HEADER_BYTES];
	uint8_t body[256];
};

struct world_link { /* one way */
	struct world_frame frames[WORLD_WINDOW];
	int first, count;
};

struct world_node {
	uint32_t member;
	bool alive;
	bool started; /* has the document: reduce_init was called */
	uint32_t attempt;
	struct reduce *reduce;
	void *memory;
	uint8_t own[WORLD_MAX_CHUNKS * WORLD_CHUNK_BYTES];
	uint8_t reduced[WORLD_MAX_CHUNKS * (WORLD_CHUNK_BYTES + WORLD_MEAN_MORE)];
	uint8_t held[WORLD_MAX_NODES][WORLD_MAX_CHUNKS * WORLD_CHUNK_BYTES];
	_Alignas(8) uint8_t flags[16384];
};

struct world {
	int n_nodes;
	uint32_t n_chunks;
	size_t mean_more; /* 0, or WORLD_MEAN_MORE */
	struct rv_rng rng;
	int64_t now_us;
	uint64_t delivered;   /* frames */
	uint64_t data_frames; /* SCATTER and GATHER among them */
	struct document doc;  /* of the latest attempt */
	struct world_node nodes[WORLD_MAX_NODES];
	struct world_link links[WORLD_MAX_NODES][WORLD_MAX_NODES]; /* [from][to] */
	bool up[WORLD_MAX_NODES][WORLD_MAX_NODES];                 /* symmetric */
};

/* Nodes have member numbers 3 i + 1, own vectors that depend on the member only, weights 1 + i % 3,
 * and random ownership. In worlds of every third seed a mean is encoded differently. Nobody has
 * started, all links are up. */
struct world *world_new(int n_nodes, uint32_t n_chunks, uint64_t seed);
void world_free(struct world *w);

/* Hands the current document to a node: reduce_init or reduce_restart. */
void world_start(struct world *w, int node);
/* Makes the document of the next attempt over the living: the dead ones' ranges are dealt out chunk
 * by chunk. */
void world_next_attempt(struct world *w);
/* The node is gone; with `reset` the others' links break at once, else they just never hear from it
 * again. */
void world_kill(struct world *w, int node, bool reset);
/* Breaks the link between two nodes (what is in flight is lost) and brings it back. */
void world_flap(struct world *w, int a, int b);

/* One random event: a frame is pulled or delivered, or a node that has not started yet starts.
 * False: nothing can happen without time passing. */
bool world_step(struct world *w);
/* Steps until nothing happens; lets time pass to the next deadline up to `ticks` times; stops when
 * all living nodes are done and idle. True when they are. */
bool world_run(struct world *w, int ticks);
/* One tick of everybody at the earliest deadline. */
void world_pass_time(struct world *w);

/* Roster index in the current document -> node. */
int world_node_at(const struct world *w, int index);
int world_index_of(const struct world *w, int node);             /* -1: not in the roster */
size_t world_chunk_bytes(const struct world *w, uint32_t chunk); /* of a contribution */
size_t world_mean_bytes(const struct world *w, uint32_t chunk);
/* Asserts that every living node ended with the reference mean over the current document's
 * roster. */
void world_check_result(const struct world *w);

#endif
