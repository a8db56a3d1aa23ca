/* global.h: the shared state of a run: theta, the outer optimizer's state, the round, and the hash
 * chain that names it.
 *
 * Every worker holds one, bit-identical at every round boundary. It changes only in global_apply()
 * or its parts: once per committed round, completely or not at all.
 *
 * The vector is cut into *fragments* (the part that a round exchanges; classic DiLoCo has one, the
 * whole vector) and a fragment into *chunks* of chunk_elems values, the unit of encoding, of
 * ownership in the all-reduce and of verification. */
#ifndef RV_OUTER_GLOBAL_H
#define RV_OUTER_GLOBAL_H

#include "base/hash.h"
#include "base/run_config.h"
#include "outer/codec.h"
#include "outer/fragments.h"
#include "outer/merge.h"
#include "outer/optimizer.h"

#include <stdbool.h>

enum {
	GLOBAL_MAX_STATES = 4,
	GLOBAL_MAX_CHUNKS = 1 << 20,
	/* Values of theta or a state: the unit of the full hash and of a joiner's requests */
	GLOBAL_PIECE_ELEMS = 1 << 16
};

struct global_config {
	size_t n;
	struct chunking chunks;        /* of the whole vector */
	struct fragments fragments;    /* chunks that each round exchanges */
	const struct codec *codec;     /* codec of means: of reduced bytes, hence of digests and logs */
	const struct codec *sent;      /* codec of contributions; NULL: the same one. global_sent() */
	const struct merge_ops *merge; /* aggregation rule; NULL: merge_mean */
	struct merge_params merge_params;
	const struct outer_optimizer *optimizer;
	struct outer_params params;
	struct rv_hash run_hash; /* name of the run: the chain starts from it */
};

/* Checks that such a run can exist: its configuration, its model (base/model_shape.h), and how that
 * is cut. No model is built: the program that creates a run and the one that trains it make the
 * same check. RV_E_RANGE, RV_E_INVALID, RV_E_NOTFOUND. */
enum rv_err global_check_run(const struct run_config *run, struct rv_errtext *et);
/* Chooses chunk-elems for a new run of several fragments, if it is 0: chunking_fragment_elems. A
 * configuration that is refused stays as it is. */
void global_resolve_chunks(struct run_config *run);
/* Derives how a run averages n parameters: its codec, optimizer, chunks and fragments. One
 * function, so that workers, the lab and a replay of a worker's files cannot differ. RV_E_RANGE:
 * fragments_make refuses, or there are more than GLOBAL_MAX_CHUNKS chunks. */
enum rv_err global_config_of(const struct run_config *run, size_t n, const struct fragment_layers *layers,
							 const struct rv_hash *run_hash, struct global_config *out, struct rv_errtext *et);

/* Does the same with the vector and layers of the configuration's model (base/model_shape.h), which
 * is not built, so that the coordinator cuts the vector as its workers do. The faults of
 * global_config_of and model_extent_of. */
enum rv_err global_config_of_run(const struct run_config *run, const struct rv_hash *run_hash,
								 struct global_config *out, struct rv_errtext *et);

/* Returns the codec of contributions. */
const struct codec *global_sent(const struct global_config *c);
/* Returns the codec with that id, by which a contribution may be sent: 0: global_sent, or a coarser
 * one. NULL: none. */
const struct codec *global_sent_as(const struct global_config *c, uint8_t id);
/* Returns the aggregation rule, with its codecs and parameters. */
struct merge_rule global_merge(const struct global_config *c);
/* Returns how many vectors the shared state has besides theta: those of the outer optimizer, and
 * one more if the rule starts from the last mean (outer/merge.h). */
int global_states(const struct global_config *c);
/* Returns rule->center of chunk i of that round, in `last` (n), the state's last mean; NULL: `last`
 * is NULL. */
const float *global_center(const struct global_config *c, const float *last, uint64_t round, uint32_t i);

/* Returns what `round` exchanges, as a vector of its own: the unit of encoding, of the all-reduce,
 * of digests and log entries. With one fragment: the whole vector. */
struct chunking global_round_chunks(const struct global_config *c, uint64_t round);
/* Return the bytes of a mean of the longest fragment, and of a contribution to it: the memory that
 * one exchange needs. */
size_t global_max_payload_bytes(const struct global_config *c);
size_t global_max_sent_bytes(const struct global_config *c);
/* Returns the index in theta where chunk i of that round's vector begins. */
size_t global_round_chunk_at(const struct global_config *c, uint64_t round, uint32_t i);

struct global_state {
	struct global_config cfg;
	float *theta;                    /* (n) */
	float *state[GLOBAL_MAX_STATES]; /* global_states() vectors of (n): the optimizer's, then the last mean */
	uint64_t round;                  /* next round to be reduced; 0 at the start */
	struct rv_hash chain;            /* state_hash(round) */
	float *scratch;                  /* (chunk_elems), of the functions below */
};

/* Copies theta0 (n), and sets chain = H("rivulet chain" | run_hash). RV_E_RANGE: n is 0 or gives
 * more than GLOBAL_MAX_CHUNKS chunks; RV_E_NOMEM. On a fault *g is zero, and may be released. */
enum rv_err global_init(struct global_state *g, const struct global_config *cfg, const float *theta0,
						struct rv_errtext *et);
void global_release(struct global_state *g);
/* Makes it what global_init makes of theta0 (n). */
void global_start_over(struct global_state *g, const float *theta0);
/* Sets *begins to whether a state of that chain and those piece hashes (global_full_hash_of) is one
 * that global_init makes, of any theta0. RV_E_NOMEM. */
enum rv_err global_begins_with(const struct global_config *c, const struct rv_hash *chain, const struct rv_hash *pieces,
							   bool *begins, struct rv_errtext *et);
/* Returns the mean that was applied last to each value (n), zero before the first: of every
 * fragment the one of its own last round. NULL: the rule does not start from it. Constant from the
 * moment at which a contribution to g->round is encoded to the one at which that round is
 * applied. */
const float *global_last_mean(const struct global_state *g);

/* Encodes Delta = theta - theta_local of the part that round g->round exchanges, chunk by chunk, by
 * global_sent() into `out` (chunking_total_bytes of global_round_chunks). theta_local (n) is the
 * whole vector. RV_E_RANGE: training has diverged (NaN or infinite), and the text names parameter
 * index and value. May run on any thread while global_apply does not run. */
enum rv_err global_encode_delta(const struct global_state *g, const float *theta_local, uint8_t *out,
								struct rv_errtext *et);
/* Returns RV_E_RANGE; the text names which of the n parameters from `at` on cannot be sent. */
enum rv_err global_diverged(const struct global_state *g, const float *theta_local, size_t at, size_t n,
							struct rv_errtext *et);

/* The largest magnitude in a contribution: whatever the weights, the sum stays finite
 * (base/weights.h). Outer gradients of sane models are far smaller. */
#define GLOBAL_SENT_MAX 1e31f
/* Checks `sent`, an encoded contribution to g->round. RV_E_RANGE: a value is larger: its owner
 * could not average it, and would conclude that the sender breaks the protocol. RV_E_NOMEM. */
enum rv_err global_check_sent(const struct global_state *g, const uint8_t *sent, struct rv_errtext *et);

/* Returns the digest that workers vote with (base/chain.h): over the reduced encoded chunks, each a
 * leaf of a tree, so that a chunk can be verified alone. */
struct rv_hash global_digest(const struct global_state *g, uint64_t round, const uint8_t *reduced);

/* Makes the outer step of round g->round: decodes `reduced`, steps the exchanged part of theta and
 * state, sets chain = H("rivulet step" | chain | digest) and round += 1. Checks the whole input
 * first: on RV_E_CORRUPT nothing has changed and the text names the chunk. `digest` is the caller's
 * global_digest() of these bytes, which it has voted with or verified; it is not computed again
 * here. */
enum rv_err global_apply(struct global_state *g, const uint8_t *reduced, const struct rv_hash *digest,
						 struct rv_errtext *et);

/* Split global_apply for callers that do the optimizer's arithmetic elsewhere: global_check checks
 * that all of `reduced` can be decoded (RV_E_CORRUPT); after the arithmetic global_advance keeps
 * the mean if the rule starts from it, and moves the chain and the round. */
enum rv_err global_check(const struct global_state *g, const uint8_t *reduced, struct rv_errtext *et);
void global_advance(struct global_state *g, const uint8_t *reduced, const struct rv_hash *digest);

/* Returns the hash of the whole state, at about 1 GB/s: H("rivulet state" | round | chain | n |
 * H(piece 0) | H(piece 1) ...). Each vector (theta, then the states) is cut into pieces of
 * GLOBAL_PIECE_ELEMS values, the last of each shorter. So a joiner can check the piece hashes
 * against the full hash, and then each piece alone, from any source. */
struct rv_hash global_full_hash(const struct global_state *g);
uint32_t global_pieces_per_vector(const struct global_config *c);
uint32_t global_pieces(const struct global_config *c); /* of theta and all states */
/* Returns the values of piece i, and sets *n to their number. */
const float *global_piece(const struct global_state *g, uint32_t i, size_t *n);
struct rv_hash global_full_hash_of(const struct global_config *c, uint64_t round, const struct rv_hash *chain,
								   const struct rv_hash *piece_hashes);
/* Checks that the outer states of these piece hashes (all of them, theta's first) are those before
 * the first step. RV_E_NOMEM; RV_E_CORRUPT: they are not. */
enum rv_err global_check_initial(const struct global_config *c, const struct rv_hash *piece_hashes,
								 struct rv_errtext *et);
/* Returns a round's digest from the leaves of its chunks (merkle_leaf). */
struct rv_hash global_digest_of(const struct global_config *c, uint64_t round, const struct rv_hash *leaves);

#endif
