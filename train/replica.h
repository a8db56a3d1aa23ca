/* replica.h: one copy of the model in training: parameters, inner optimizer state and data cursor;
 * it makes inner steps.
 *
 * The lab's in-process run and the worker drive this same object, which knows nothing of rounds,
 * peers or averaging: the outer loop reads theta_local after H steps and sets new weights. One
 * thread at a time. */
#ifndef RV_TRAIN_REPLICA_H
#define RV_TRAIN_REPLICA_H

#include "base/byte_source.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/run_config.h"
#include "kernels/backend.h"
#include "train/device_set.h"
#include "train/model/model.h"
#include "train/savings.h"
#include "train/text/data.h"
#include "train/text/reading.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct replica;

struct step_stats {
	float loss;      /* mean over the step's tokens, nats */
	float grad_norm; /* before clipping */
	float lr;
	uint64_t tokens;
};

/* Choices of one replica. Some `savings` change the last bits of what it computes. */
struct replica_options {
	uint32_t shard, n_shards;   /* its share of the data */
	struct savings savings;     /* less memory for more time */
	int host_threads;           /* of an optimizer on the host (savings.offload); 0: all processors */
	int step_shards;            /* most shards of a replica_step_shards call; 0: its own alone */
	const float *initial_theta; /* (n) first weights, copied; NULL: drawn from cfg->seed, equal everywhere */
};

/* Makes a replica on one device; `data` and `be` must outlive it. Takes all device memory of steps
 * and evaluations now (backend_ops.reserve). Returns RV_E_NOMEM (host or device), RV_E_RANGE, or
 * RV_E_UNSUPPORTED if the backend lacks the model, or the savings do not fit the run. */
enum rv_err replica_new(const struct run_config *cfg, const struct dataset *data, const struct replica_options *options,
						struct backend *be, struct replica **out, struct rv_errtext *et);
/* Makes a replica on several devices, kept equal: each takes its share of a step's sequences and
 * owns a slice of the optimizer's state, and with savings.zero of gradients and weights. Results
 * equal one device's up to rounding, with the same bits on every run. The devices must outlive it.
 * Returns also RV_E_RANGE for more devices than sequences in a step. */
enum rv_err replica_new_on(const struct run_config *cfg, const struct dataset *data,
						   const struct replica_options *options, const struct device_set *devices,
						   struct replica **out, struct rv_errtext *et);
void replica_free(struct replica *r);
/* Frees its memory on the devices and its vectors in the host's: the replica can only be freed
 * afterwards, and asked what its configuration says. */
void replica_give_back(struct replica *r);

size_t replica_n_params(const struct replica *r);
/* Returns the model with layout and shape; borrowed. */
const struct model *replica_model(const struct replica *r);
/* Returns its savings; micro_batch is never 0, and logits_rows is what there was room for. */
struct savings replica_savings(const struct replica *r);
/* Makes its memory anew with other savings, for repeating what another process computed:
 * replica_load must follow, and with prox_mu replica_set_anchor. Returns what replica_new returns;
 * after a fault it can only be freed. */
enum rv_err replica_remake(struct replica *r, const struct savings *s, struct rv_errtext *et);
/* Returns the parameters (n) in host memory, valid until the next call on r; on a CPU live, unless
 * several devices divide them. */
const float *replica_theta(struct replica *r);
void replica_set_theta(struct replica *r, const float *theta);
/* Returns the weights (n) in the first device's memory, and the device; NULL: they are in the
 * host's, or several devices divide them. */
float *replica_device_theta(struct replica *r, struct backend **be);
/* Set and copy parameters [at, at + n). */
void replica_set_part(struct replica *r, size_t at, size_t n, const float *values);
void replica_get_part(struct replica *r, size_t at, size_t n, float *values);
/* Sets theta_local to the weights drawn from cfg->seed. */
void replica_draw_theta0(struct replica *r);
/* Resets the inner optimizer's moments if one is not finite, after a hardware fault. Returns
 * whether it did. */
bool replica_heal(struct replica *r);
/* Adds to - from (n each, at most REPLICA_SHIFT_MAX) to parameters [at, at + n): adopts a committed
 * outer step and keeps inner progress. */
enum { REPLICA_SHIFT_MAX = 4096 };
void replica_shift_part(struct replica *r, size_t at, size_t n, const float *from, const float *to);
/* Keep a vector of all parameters in the gradient's memory, until the next step or evaluation, and
 * copy n values of it back. */
void replica_lay_by(struct replica *r, const float *values);
void replica_laid_by(struct replica *r, size_t at, size_t n, float *values);

/* Sets theta (n, copied), the shared weights that inner steps are pulled to if the run has a
 * prox_mu (FedProx, arXiv 1812.06127, equation 2: the loss plus prox_mu / 2 |theta_local -
 * theta|^2); at first the initial weights. The term's gradient, prox_mu (theta_local - theta), is
 * added before clipping; reported losses exclude the term. Without prox_mu a no-op. */
void replica_set_anchor(struct replica *r, const float *theta);

/* Sets what the replica reads: sequence `next` of a stream (train/text/reading.h; `reading` is
 * copied) is the first of the next step. Its data was opened with `order`. Without a call it reads
 * the sequences of its shard. A step over n shards reads n times as many of the stream. */
void replica_read(struct replica *r, const struct reading *reading, uint64_t next);
/* Returns the number of the next sequence that it reads: of its stream, or of its shard's. */
uint64_t replica_next(const struct replica *r);

/* Makes one inner step (grad_accum micro-batches); global inner step += 1. Returns RV_E_RANGE if
 * loss or gradient is not finite: parameters are then unchanged, but the data cursor has advanced,
 * so that a retry reads other data. Returns RV_E_BUSY, with nothing changed, if the reading has
 * fewer sequences left than a step takes.
 *
 * With savings.offload the update of the weights goes on in the next step's forward pass; all
 * else that reads or changes weights, moments or the gradient ends it first. */
enum rv_err replica_step(struct replica *r, struct step_stats *out, struct rv_errtext *et);
/* Makes a step with the mean gradient over grad_accum micro-batches of each of n >= 1 `shards`, all
 * at this replica's cursor: what n data-parallel workers compute together. replica_step uses the
 * replica's own shard. */
enum rv_err replica_step_shards(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
								struct rv_errtext *et);
/* Makes a step, retried with other data after RV_E_RANGE: training's inner step. shards NULL (n 0):
 * the replica's own. Returns RV_E_RANGE after REPLICA_REFUSED_MAX refusals in a row. */
enum { REPLICA_REFUSED_MAX = 20 };
enum rv_err replica_step_over(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
							  struct rv_errtext *et);
/* Sets a function that each step calls once its gradient is ready, before it changes theta, m and
 * v. NULL (the default): none. */
void replica_before_update(struct replica *r, void (*fn)(void *ctx), void *ctx);
/* Calls that function, before other changes of the replica's vectors. */
void replica_settle(struct replica *r);
/* Computes a step's gradient (n, host), before clipping, without the update, for other optimizers;
 * data cursor and global step advance, theta and the moments do not. out->lr is the schedule's.
 * Returns RV_E_RANGE like replica_step. */
enum rv_err replica_gradient(struct replica *r, float *gradient, struct step_stats *out, struct rv_errtext *et);
/* Returns the schedule's learning rate at that global step. */
float replica_learning_rate(const struct replica *r, uint64_t step);
/* Return and set the step that the learning rate follows: r * H when round r begins. */
uint64_t replica_global_step(const struct replica *r);
void replica_set_global_step(struct replica *r, uint64_t step);

/* Returns how many tokens replica_eval(max_tokens) predicts: of whole sequences; all for 0. */
uint64_t replica_eval_tokens(const struct replica *r, uint64_t max_tokens);
/* Measures the mean loss (nats per token) of `theta` (NULL: the replica's own) on at most
 * max_tokens of the held-out split, in sequences spread evenly, the same every time; 0: all.
 * Returns RV_E_RANGE if it is not finite, RV_E_CANCELLED (replica_watch), and what
 * dataset_heldout_sequence returns. */
enum rv_err replica_eval(struct replica *r, const float *theta, uint64_t max_tokens, double *loss,
						 struct rv_errtext *et);

/* Sets losses[i] to the mean loss of `theta` on number next + i, i below n, of the sequences of
 * replica_eval(max_tokens): an evaluation in parts. The replica's weights, step and cursor stay.
 * Faults as replica_eval. */
enum rv_err replica_heldout_losses(struct replica *r, const float *theta, uint64_t max_tokens, uint64_t next,
								   uint64_t n, double *losses, struct rv_errtext *et);

/* Sets losses[i] to the mean loss of `theta` (NULL: the replica's own) on the sequence of stream
 * number next + i, i below n, of which `reading` holds all; of text that was opened with `order`.
 * Forward passes only. The replica's weights, step and cursor stay. Faults as replica_eval. */
enum rv_err replica_loss_on(struct replica *r, const float *theta, const struct reading *reading, uint64_t next,
							uint64_t n, double *losses, struct rv_errtext *et);

/* Makes a step end soon with RV_E_CANCELLED, as if it had not begun, once *stop (borrowed) is true
 * before its gradient is complete. NULL (the default): never. */
void replica_abandon_with(struct replica *r, const atomic_bool *stop);
/* Makes replica_eval, replica_heldout_losses and replica_loss_on end before their next batch with
 * RV_E_CANCELLED while *stop (borrowed) is true. NULL (the default): never. */
void replica_watch(struct replica *r, const atomic_bool *stop);

/* Adds a vector (n, host, borrowed) to the replica's state below, in the order of the calls: that
 * of error feedback (outer/contribution.h), then those of eager updates (outer/eager.h). NULL:
 * no-op. */
enum { REPLICA_MAX_KEPT = 4 };
void replica_keep(struct replica *r, float *vector);
/* Saves and loads the replica's own state (theta_local, m, v, step, cursor, the kept vectors) as
 * one buffer of replica_state_bytes. Load takes moments of either kind (savings.moments) and
 * returns RV_E_CORRUPT, naming the field, for a wrong magic, version, size or hash, or RV_E_NOMEM,
 * with the replica unchanged. */
size_t replica_state_bytes(const struct replica *r);
void replica_save(struct replica *r, uint8_t *out);
/* Save in three parts: what changes with every batch read; the vectors; and the hash over its n
 * bytes, which needs no replica: any thread. Vectors of a device come through its pinned memory.
 * Returns false, with `out` unspecified, if they are not copied at until_us (rv_clock_monotonic_us;
 * INT64_MAX: no limit). */
void replica_copy_head(const struct replica *r, uint8_t *out);
bool replica_copy_vectors(struct replica *r, uint8_t *out, int64_t until_us);
void replica_seal(uint8_t *copy, size_t n);
/* Returns true if its vectors are in devices' own memory, not the host's. */
bool replica_is_on_device(const struct replica *r);
/* Lists the vectors that replica_copy_vectors copies, if they are in host memory, and where they
 * lie in the state: any thread may read them until the replica changes (replica_before_update).
 * Returns how many. */
struct replica_vector {
	size_t at; /* in the state */
	const void *from;
	size_t bytes;
};
enum { REPLICA_MAX_VECTORS = 80 + REPLICA_MAX_KEPT };
int replica_vectors(struct replica *r, struct replica_vector list[REPLICA_MAX_VECTORS]);

/* The pieces of a state, in their order, without its hash: where the replica has them, or, of a
 * device's memory, copied into its pinned memory while the caller works on the piece before. */
enum { REPLICA_PIECE_BYTES = 1 << 20, REPLICA_HEAD_BYTES = 64 };
struct replica_pieces {
	uint8_t head[REPLICA_HEAD_BYTES];
	struct replica_vector parts[1 + REPLICA_MAX_VECTORS]; /* in their order in the state */
	struct backend *on[1 + REPLICA_MAX_VECTORS];          /* whose memory has part i; NULL: the host's */
	int n;
	struct replica_place {
		int part;
		size_t done; /* bytes of it */
	} next, ahead;   /* of the piece to return; of the one to begin to copy */
	int under_way;   /* pieces between them */
};

/* The same state, byte for byte, in pieces (savings.stream). Begin notes what changes with every
 * batch read. Any one thread may take the pieces, until the replica changes; of a device's memory
 * while no other thread uses the device. `room` (REPLICA_PIECE_BYTES, borrowed) gets each piece, so
 * that it lasts without the replica; NULL: pieces are returned where they are. */
struct replica_stream {
	struct replica_pieces pieces;
	uint8_t *room;
	struct rv_hasher hasher;
	struct rv_hash hash;
	bool ended;
};
void replica_stream_begin(struct replica *r, struct replica_stream *s, uint8_t *room);
/* Returns the next piece, which lasts until the next call, and its bytes, at most
 * REPLICA_PIECE_BYTES; NULL: there is none. */
const void *replica_stream_next(struct replica_stream *s, size_t *n);
/* Ends the copies under way of pieces that nobody will take. */
void replica_stream_drop(struct replica_stream *s);

/* Checks the hash of n bytes, without a replica. Returns RV_E_CORRUPT, RV_E_NOMEM, and the source's
 * faults. */
enum rv_err replica_check(const struct byte_source *from, size_t n, struct rv_errtext *et);
enum rv_err replica_load(struct replica *r, const uint8_t *in, size_t n, struct rv_errtext *et);
/* Loads from a source, in pieces. Returns also what the source returns: if that is after the check,
 * theta and the kept vectors are unspecified, and the moments zero. */
enum rv_err replica_load_from(struct replica *r, const struct byte_source *from, size_t n, struct rv_errtext *et);

#endif
