/* grid.h: the all-reduce of a round, in one level or in two, as a state machine without I/O: no
 * sockets, no clock, no threads, no allocation.
 *
 * One row (up to row-size participants): one all-reduce (reduce.h) over the roster, and nothing
 * else.
 *
 * More: the roster is cut into rows (base/rows.h) and the chunks into *columns*, ranges that are
 * the same in all rows and attempts of a round; each row has an owner for each column.
 *
 *   in the row     every participant sends its encoded chunks to the owners in its row; an owner
 *                  makes the row's partial sum of each chunk, in fp32 (outer/merge.h);
 *   in the column  the owners of the same chunks in all rows send their partial sums, packed, to
 *                  the final owner of each chunk, one of them, which adds these in row order,
 *                  divides by the sum of all weights, encodes once, and sends the mean to the
 *                  others;
 *   in the row     the owners send the means to their row.
 *
 * All three overlap chunk by chunk. Row and columns are instances of the same core: in the row's,
 * the mean of an own chunk comes later (reduce_finish), in a column's the own contribution does
 * (reduce_offer). A participant deals with its row and with one member of every other row for each
 * column that it owns: about 2 sqrt(N) links; it sends 2 payloads and about 5 / sqrt(N) more.
 *
 * The final owner of chunk c is in row c mod n_rows; if that row is out of the mean, in the row at
 * (c / n_rows) mod the number of rows in it, in their order. So a row that fails moves no chunk but
 * its own.
 *
 * Attempts: contributions outlive them as in reduce.h. A partial sum outlives them while the roster
 * of its row does (document.row_since); a row that fails is out of the mean (its weight is 0), and
 * the others' partial sums stay.
 *
 * Peers are named by an index: first the participants of the row, by their place in
 * document.members, then those of document.column. The platform pulls, as with reduce.h. */
#ifndef RV_NET_REDUCE_GRID_H
#define RV_NET_REDUCE_GRID_H

#include "net/control/evidence.h"
#include "net/reduce/reduce.h"

enum { GRID_MAX_PEERS = NET_MAX_ROW + NET_MAX_COLUMN };

typedef enum rv_err grid_merge_fn(void *ctx, uint32_t chunk, const struct reduce_inputs *in, uint8_t *out, int *bad,
								  struct rv_errtext *et);

/* The encoding; all functions get row.ctx. row.reduce makes means with one row only. */
struct grid_codec {
	struct reduce_codec row;
	/* Return the size of a chunk's partial sum in memory, <= NET_MAX_CHUNK_BYTES, and its offset in
	 * a vector of them. */
	size_t (*sum_bytes)(void *ctx, uint32_t chunk);
	size_t (*sum_offset)(void *ctx, uint32_t chunk);
	/* Makes the partial sum of the row's contributions in grid_memory.sum, at sum_offset; `out` is
	 * NULL. Faults as reduce_codec.reduce. */
	grid_merge_fn *sum;
	/* Makes the encoded mean of the rows' partial sums, with the rows' weights, in `out`. The same
	 * faults. */
	grid_merge_fn *join;
	/* Writes the partial sum of a chunk, as it travels, to `out`; returns its length, 1 to
	 * sum_bytes. NULL: as it is in memory. */
	size_t (*pack)(void *ctx, uint32_t chunk, const uint8_t *sum, uint8_t *out);
	/* Sets `sum` to what `pack` wrote. RV_E_CORRUPT: it cannot have written that. */
	enum rv_err (*unpack)(void *ctx, uint32_t chunk, const uint8_t *in, size_t bytes, uint8_t *sum,
						  struct rv_errtext *et);
};

struct grid_config {
	uint32_t self_member;
	uint32_t n_chunks;
	struct grid_codec codec;
	struct seal_ops seals; /* verify NULL: contributions are not checked and means not sealed */
	int64_t silence_us, stall_us, ping_interval_us; /* as reduce_config */
};

/* Memory of the caller, as reduce_memory. `sum`, row_sums[]: vectors of partial sums, of which only
 * own chunks are touched; NULL with one row. `packed`, `unpacked`: room for one partial sum each;
 * NULL without codec.pack. `flags`: grid_flags_bytes, aligned for uint32_t. */
struct grid_memory {
	const uint8_t *own;
	uint8_t *reduced;
	uint8_t *held[NET_MAX_ROW];
	uint8_t *sum;
	uint8_t *row_sums[NET_MAX_ROWS];
	uint8_t *packed, *unpacked;
	uint8_t *flags;
	/* With cfg.seals, as reduce_memory. */
	const struct rv_hash *own_nodes;
	struct rv_hash *leaves[NET_MAX_ROW];
	uint8_t *proof;
	struct rv_hash *means;
	struct rv_hash *sum_leaves[NET_MAX_ROWS]; /* (n_chunks each) of which those of own columns are touched */
};
size_t grid_flags_bytes(uint32_t n_chunks);

struct grid; /* opaque: grid_size() bytes of the caller's memory, of which few are touched */
size_t grid_size(void);

/* Begins the first attempt of `d`, a REDUCE document that names self_member; what document_decode
 * checks is asserted. Every link counts as down: call grid_link_up for those that are
 * established. */
struct grid *grid_init(void *memory, const struct grid_config *cfg, const struct grid_memory *mem,
					   const struct document *d, int64_t now_us);
/* Returns true if `d` is a later attempt of the same round with the same rows and columns. */
bool grid_continues(const struct grid *g, const struct document *d);
/* Begins the later attempt `d`, which continues (asserted). Links keep their state; those to peers
 * that are new must be announced by grid_link_up. */
void grid_restart(struct grid *g, const struct document *d, int64_t now_us);

/* Return the number of peers with oneself among them, the index of a member, -1: none, the member
 * at an index, and its place in the whole roster. */
int grid_peers(const struct grid *g);
int grid_peer_of(const struct grid *g, uint32_t member);
uint32_t grid_member(const struct grid *g, int peer);
uint16_t grid_place(const struct grid *g, int peer);

/* As the functions of reduce.h of those names. A message of another round or attempt that is for no
 * core of this attempt is ignored; one of this attempt is RV_E_PROTOCOL. */
enum rv_err grid_receive(struct grid *g, int64_t now_us, int from, const struct reduce_msg *m, struct rv_errtext *et);
void grid_part(struct grid *g, int64_t now_us, int from, bool bulk);
bool grid_send(struct grid *g, int64_t now_us, int to, struct reduce_msg *out);
bool grid_send_control(struct grid *g, int64_t now_us, int to, struct reduce_msg *out);
/* Whatever goes to a peer in a column is awaited: a whole row waits for what comes of it. */
bool grid_is_awaited(struct grid *g, int to);
/* As reduce_load; the sum over all columns, if the peer is in columns. */
struct reduce_load grid_load(const struct grid *g, int to);
void grid_link_up(struct grid *g, int64_t now_us, int peer);
void grid_link_down(struct grid *g, int64_t now_us, int peer, bool fatal);
void grid_tick(struct grid *g, int64_t now_us);
int64_t grid_deadline_us(const struct grid *g);
bool grid_done(const struct grid *g);
/* Lists those of the row's owners and of the columns' final owners, one's own among them; returns
 * how many. */
enum { GRID_MAX_SEALS = NET_MAX_SEALS };
int grid_seals(const struct grid *g, struct owner_seal out[GRID_MAX_SEALS]);
/* Sets *out to what this participant can show of the attempt: its seals and means if it is done,
 * and two seals of a peer if it has any. It borrows from the grid. Returns false if there is
 * neither. */
bool grid_show(const struct grid *g, struct evidence *out);
/* The sums of which this participant is the final owner in a column of its own: the chunks of the
 * column, and the seal of each row in the mean, in their order. */
struct grid_sums {
	uint32_t first, count;
	int n_rows;
	const struct seal *seals[NET_MAX_ROWS];
};
/* Describes those of column number 0 .. NET_MAX_ROW - 1, of an attempt that is done. Returns false
 * if there are none. */
bool grid_sums(const struct grid *g, int column, struct grid_sums *out);
/* Return of a column with sums: if this participant is the final owner of that chunk of it; the
 * leaf of a row's sum, and the sum, of `bytes`. */
bool grid_is_final(const struct grid *g, int column, uint32_t chunk);
struct rv_hash grid_sum_leaf(const struct grid *g, int column, int row, uint32_t chunk);
const uint8_t *grid_sum_data(const struct grid *g, int column, int row, uint32_t chunk, size_t *bytes);
/* Sums over row and columns; `world` is the number of participants of all rows. */
struct reduce_info grid_info(const struct grid *g);
/* As reduce_receipts, of the row. */
int grid_receipts(const struct grid *g, struct reduce_receipt out[NET_MAX_ROW]);

/* Places in the roster, ascending, of peers that make no progress. */
struct grid_suspects {
	uint16_t n;
	uint16_t places[NET_MAX_ROW];
};
struct grid_suspects grid_suspects(const struct grid *g);
bool grid_suspects_equal(const struct grid_suspects *a, const struct grid_suspects *b);

#endif
