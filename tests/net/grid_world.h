/* grid_world.h: real grids of many workers in one process, with the run's codecs and merging, on a
 * virtual network: links are FIFOs of encoded frames, a seed decides every interleaving and which
 * links are late, lose what is in flight, or break. No clock but `now_us`. */
#ifndef RV_TESTS_NET_GRID_WORLD_H
#define RV_TESTS_NET_GRID_WORLD_H

#include "base/rng.h"
#include "net/control/rows_view.h"
#include "net/mesh/frame.h"
#include "net/reduce/grid.h"
#include "outer/global.h"

enum {
	GRID_MAX_NODES = 1024,
	GRID_MAX_CHUNKS = 256,
	GRID_CHUNK_ELEMS = 256,
	GRID_WINDOW = 4, /* frames in flight on one link, one way */
	GRID_SILENCE_US = 4000000,
	GRID_STALL_US = 6000000,
	GRID_PING_US = 1000000
};

struct grid_frame {
	uint8_t header[FRAME_HEADER_BYTES];
	uint32_t bytes;
	uint8_t *body;
};

/* A pair of nodes that has something to do with each other. `a` < `b`. */
struct grid_link {
	uint16_t a, b;
	bool up, late;                            /* late: comes up when time passes */
	struct grid_frame frames[2][GRID_WINDOW]; /* [0]: from a to b */
	int first[2], count[2];
};

struct grid_node {
	struct grid_world *w;
	uint32_t member;
	int row;          /* for the whole round */
	bool alive, out;  /* out: its row is out of the mean */
	uint32_t attempt; /* that it has begun; 0: none */
	void *memory;
	struct grid *grid;
	uint8_t *own, *reduced, *held, *sums, *flags;
	struct rv_hash *hashes; /* with seals: the tree of `own`, leaves of contributions, means, sums; a message */
};

struct grid_world {
	int n;
	struct global_config cfg;
	struct chunking chunks;
	struct rv_rng rng;
	int64_t now_us;
	uint64_t delivered, data_frames; /* frames; of contributions, sums and means among them */
	uint64_t encodings;              /* of means, by all owners */
	struct rows_plan plan;
	struct member_ref members[GRID_MAX_NODES];
	int node_at[GRID_MAX_NODES];          /* by place */
	int owner[NET_MAX_ROWS][NET_MAX_ROW]; /* node that owns a column in a row */
	uint64_t round;
	uint32_t attempt;
	bool forget_since;       /* planted: changes of rows are not announced */
	bool sealed;             /* contributions are committed to, sums and means sealed, by cheap signatures */
	int liar;                /* node that sends others sums than it has signed; -1: none */
	bool mute;               /* it signs none instead */
	uint64_t refused;        /* messages */
	struct document view;    /* of the node that is handed one */
	struct grid_node *nodes; /* (n) */
	struct grid_link *links;
	int n_links, room_links;
	int *link_at; /* (n x n) index of the link between two nodes, -1: none */
	float *scratch;
	uint8_t *sums; /* room for a packed and an unpacked one */
};

/* Makes n nodes in rows as rows_choose lays them out. Node i has weight 1 + i % 5, values that
 * depend on i alone, and member number 7 i + 3; in several rows these are swapped in pairs, since
 * the numbers of a row need not ascend. */
struct grid_world *grid_world_new(int n, int row_size, uint32_t n_chunks, const struct merge_ops *rule, uint64_t seed);
/* The same with another codec than int8, for contributions and means. */
struct grid_world *grid_world_of(int n, int row_size, uint32_t n_chunks, const struct merge_ops *rule,
								 const struct codec *codec, uint64_t seed);
void grid_world_free(struct grid_world *w);

/* Has everybody commit to its contribution and seal what it makes. To be called before the first
 * step. */
void grid_world_seal(struct grid_world *w);
/* Hands the node its view of the present attempt, if it lacks it. */
void grid_world_start(struct grid_world *w, int node);
/* Makes the next attempt over the living. Rows without anybody, and those in `out`, leave the mean.
 * The columns of dead owners go to the survivor of their row that owns least. */
void grid_world_next_attempt(struct grid_world *w, uint32_t out);
/* The node is gone; with `reset` the others' links break at once. */
void grid_world_kill(struct grid_world *w, int node, bool reset);
/* Breaks every link with that probability; what is in flight is lost; they come back at once. */
void grid_world_flap(struct grid_world *w, double share);
/* Makes links late with that probability. To be called before the first step. */
void grid_world_delay(struct grid_world *w, double share);

/* Up to `events` random events. False: nothing can happen without time passing. */
bool grid_world_step(struct grid_world *w, uint64_t events);
void grid_world_pass_time(struct grid_world *w);
/* Steps until nothing happens; lets time pass up to `ticks` times. True: all living nodes are
 * done. */
bool grid_world_run(struct grid_world *w, int ticks);
/* Returns true if every living participant has the bytes of merge_roster over the attempt: those of
 * the lab. */
bool grid_world_is_right(struct grid_world *w);
/* Return the sums of grid_info over the living, and the links of the worker that has most. */
struct reduce_info grid_world_info(const struct grid_world *w);
int grid_world_most_links(const struct grid_world *w);

#endif
