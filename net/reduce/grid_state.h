/* grid_state.h: the inside of struct grid, shared by grid*.c. Internal to net/reduce/. */
#ifndef RV_NET_REDUCE_GRID_STATE_H
#define RV_NET_REDUCE_GRID_STATE_H

#include "net/reduce/grid.h"

/* One column of which this participant is the owner in its row. */
struct grid_column {
	struct grid *g;
	struct reduce *core;             /* NULL: not an own column */
	uint32_t first, count;           /* chunks */
	uint8_t n;                       /* participants: one of each row in the mean, in row order */
	uint8_t peer[NET_MAX_ROWS];      /* by index of the core's roster */
	int8_t index_of[GRID_MAX_PEERS]; /* the other way round; -1: not in this column */
};

struct grid_peer {
	uint32_t member;
	uint8_t key[NET_KEY_BYTES];
	uint16_t place;
};

struct grid {
	struct grid_config cfg;
	struct grid_memory mem;
	uint64_t round;
	uint32_t attempt;
	int n_members, n_peers;
	struct grid_peer peers[GRID_MAX_PEERS];
	uint16_t n_roster;
	uint8_t n_rows;                   /* 1: one level */
	uint8_t n_alive;                  /* rows in the mean */
	int8_t alive_index[NET_MAX_ROWS]; /* of a row among those in the mean; -1: it is out */
	struct reduce *row;
	int n_columns; /* of the round; 0 with one level */
	uint32_t ignored_messages;
	uint64_t tx_saved, rx_saved, resent_saved; /* bytes of packed sums less than the columns have counted */
	struct grid_column columns[NET_MAX_ROW];
};

/* ---- grid_column.c ---- */

/* Begins the attempt `d` in its own column `j`, whose section is `s`. */
void grid_column_begin(struct grid *g, int j, const struct document *d, const struct section *s, int64_t now_us);
/* Passes partial sums that the row has made on to the columns, and means that the columns have made
 * to the row. To be called after every event. */
void grid_pump(struct grid *g, int64_t now_us);
/* Passes a message of the peer at `index` to the column's core. */
enum rv_err grid_column_receive(struct grid_column *k, int64_t now_us, int index, const struct reduce_msg *m,
								struct rv_errtext *et);
/* Sets *out to the next message for the peer at `index`, by `send`; returns false if there is
 * none. */
typedef bool grid_send_fn(struct reduce *r, int64_t now_us, int to, struct reduce_msg *out);
bool grid_column_send(struct grid_column *k, int64_t now_us, int index, grid_send_fn *send, struct reduce_msg *out);
/* Return the memory of a column's core, and of its flags. */
void *grid_column_memory(struct grid *g, int j);
uint8_t *grid_column_flags(struct grid *g, int j);

#endif
