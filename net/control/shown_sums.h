/* shown_sums.h: what a final owner was given for the mean of a chunk (net/reduce/sums.c): of each
 * row the leaf of its sum, under the seal of the one that made it. The coordinator asks for it to
 * have the sum, or the mean, audited (net/control/audit.h). Part of POST /v1/evidence. */
#ifndef RV_NET_CONTROL_SHOWN_SUMS_H
#define RV_NET_CONTROL_SHOWN_SUMS_H

#include "base/bytes.h"
#include "base/merkle.h"
#include "net/seal.h"

/* A final owner's list of the chunks of a column: `n` chunks, of which this one has place `at`. */
struct sums_place {
	uint32_t first; /* chunk: names the list in its seals */
	uint32_t at, n;
};

enum { SHOWN_PATH_MAX = MERKLE_LEVELS - 1 };
struct shown_sum {
	struct rv_hash leaf;
	struct seal seal;
	struct rv_hash path[SHOWN_PATH_MAX];
};
struct shown_sums {
	uint64_t round;
	uint32_t attempt, chunk;
	uint8_t n_rows, n_path; /* n_rows: in the mean, in their order */
	struct shown_sum rows[NET_MAX_ROWS];
};
enum {
	SHOWN_SUMS_MAX_BYTES =
		8 + 4 + 4 + 1 + 1 + NET_MAX_ROWS * (RV_HASH_BYTES + SEAL_BYTES + SHOWN_PATH_MAX * RV_HASH_BYTES)
};
void shown_sums_write(const struct shown_sums *s, struct rv_writer *w);
/* Reads one. RV_E_INVALID: more rows, or a longer path, than there can be; too few bytes fail
 * `r`. */
enum rv_err shown_sums_read(struct rv_reader *r, struct shown_sums *out, struct rv_errtext *et);

/* Returns true if that row's owner, which has the key, has signed the leaf. `scope` is that of its
 * seals for the list. */
bool shown_sum_holds(const struct shown_sums *s, int row, const struct sums_place *place,
					 const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope, const struct seal_ops *ops);
/* Returns the hash by which an order names the sums of all rows: H("rivulet sums" | their
 * leaves). */
struct rv_hash shown_sums_hash(const struct rv_hash *leaves, int n_rows);

#endif
