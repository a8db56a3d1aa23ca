/* inner_state.h: the state of a replica's inner optimizer as bytes, which a member commits to at
 * the end of a round and an auditor begins from to repeat the next one
 * (docs/decisions/0106-training-is-repeated-from-a-committed-inner-state.md):
 *
 *     u64 updates of m and v so far | m, f32 (n) | v, f32 (n)        little-endian
 *
 * It is cut into pieces of INNER_PIECE_BYTES, the last one shorter. Moments of 8 bits
 * (savings.moments) have no such state. */
#ifndef RV_TRAIN_INNER_STATE_H
#define RV_TRAIN_INNER_STATE_H

#include "train/replica.h"

enum { INNER_PIECE_BYTES = 1 << 18, INNER_HEAD_BYTES = 8 /* the updates */ };

/* Return the bytes of the state of a replica with n parameters, the number of its pieces, and the
 * bytes of piece `i`. */
size_t inner_state_bytes(size_t n);
uint32_t inner_state_pieces(size_t n);
size_t inner_piece_bytes(size_t n, uint32_t i);

/* Returns false if the replica's moments are of 8 bits: it has no such state. */
bool inner_state_is_there(const struct replica *r);
/* Copies bytes [at, at + n) of the state of a replica that has one, and whose last update is over
 * (replica_theta sees to that); both are multiples of 4. */
void inner_state_read(const struct replica *r, size_t at, size_t n, uint8_t *out);

/* Returns true if honest steps of the replica's optimizer may have left these moments
 * (inner_state_bytes): finite, no square below 0, none huge; and under AdamW means of gradients no
 * larger than their squares allow: then no step from them is longer than those of training. */
bool inner_state_is_sane(const struct replica *r, const uint8_t *inner);

/* A state of training in memory that a replica takes the place of for a while. */
struct inner_other {
	float *theta;   /* (n) */
	uint8_t *inner; /* inner_state_bytes(n), aligned as a u64 */
	uint64_t global_step, next;
	bool has_reading;
	struct reading reading; /* `next` is a number of its stream */
	uint8_t *room;          /* INNER_PIECE_BYTES */
};
/* Exchanges what the replica trains (weights, moments, step, cursor, text) with *o. It has fp32
 * moments, and keeps no vectors (replica_keep); both are asserted. Its state is settled first. */
void inner_exchange(struct replica *r, struct inner_other *o);

#endif
