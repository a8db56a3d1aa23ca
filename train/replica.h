/* replica.h: one copy of the model in training: parameters, inner optimizer state and data cursor; it can do inner
 * steps.
 *
 * The lab's in-process run and the real worker drive this same object. It knows nothing of rounds, peers or averaging:
 * the outer loop reads theta_local after H steps, and puts new weights in.
 * One thread at a time.
 */
#ifndef RV_TRAIN_REPLICA_H
#define RV_TRAIN_REPLICA_H

#include "base/err.h"
#include "base/run_config.h"
#include "kernels/backend.h"
#include "train/device_set.h"
#include "train/model/model.h"
#include "train/text/data.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct replica;

struct step_stats {
	float loss;      /* mean over the step's tokens */
	float grad_norm; /* before clipping */
	float lr;
	uint64_t tokens;
};

/* What is this replica's own choice: none of it changes the bits of what it computes from its data. */
struct replica_options {
	uint32_t shard, n_shards;   /* which share of the data it reads */
	enum recompute recompute;   /* memory against time */
	int step_shards;            /* most that replica_step_shards will be given; 0: its own alone */
	const float *initial_theta; /* (n) weights to start from, copied; NULL: drawn from cfg->seed, the same everywhere */
};

/* Borrows `data` and `be`. All device memory that steps and evaluations take is taken here (backend_ops.reserve).
 * RV_E_NOMEM, of the host or the device; RV_E_RANGE, RV_E_UNSUPPORTED: the backend cannot do
 * the model. One thread at a time, as all of this. */
enum rv_err replica_new(const struct run_config *cfg, const struct dataset *data, const struct replica_options *options,
						struct backend *be, struct replica **out, struct rv_errtext *et);
/* The same on several devices, kept equal: each takes its share of a step's sequences and owns a slice of the
 * optimizer's state. To rounding what one device computes; the same bits on every run. Borrows the backends of
 * `devices`. RV_E_RANGE also: more devices than sequences in a step. */
enum rv_err replica_new_on(const struct run_config *cfg, const struct dataset *data,
						   const struct replica_options *options, const struct device_set *devices,
						   struct replica **out, struct rv_errtext *et);
void replica_free(struct replica *r);

size_t replica_n_params(const struct replica *r);
/* Its layout and shape. Borrowed. */
const struct model *replica_model(const struct replica *r);
/* Host copy of the parameters, (n). Valid until the next call on r. On the CPU backend this is the live block. */
const float *replica_theta(struct replica *r);
void replica_set_theta(struct replica *r, const float *theta);
/* Of a replica whose memory is not the host's: the first device and its weights there, (n); NULL: it is the host's. */
float *replica_device_theta(struct replica *r, struct backend **be);
/* Parameters [at, at + n) alone. */
void replica_set_part(struct replica *r, size_t at, size_t n, const float *values);
void replica_get_part(struct replica *r, size_t at, size_t n, float *values);
/* theta_local becomes the weights drawn from cfg->seed. */
void replica_draw_theta0(struct replica *r);
/* After a fault of the machine: an inner optimizer whose moments are not all finite begins anew, with none. True: it
 * did. */
bool replica_heal(struct replica *r);
/* theta_local += to - from: adopting a committed outer step without losing inner progress. */
void replica_shift_theta(struct replica *r, const float *from, const float *to);

/* theta (n): the shared weights that inner steps are pulled to where the run has a prox_mu (FedProx, arXiv 1812.06127,
 * equation 2: the loss plus prox_mu / 2 |theta_local - theta|^2). The term's gradient, prox_mu (theta_local - theta),
 * is added before clipping; it is no part of the loss that a step reports. Copied; until the first call: the initial
 * weights. Without prox_mu nothing is done. */
void replica_set_anchor(struct replica *r, const float *theta);

/* One inner step (grad_accum micro-batches) of the run's inner optimizer, global inner step += 1. RV_E_RANGE when loss
 * or gradient is not finite: the parameters are then unchanged, and the data cursor has moved on: trying again reads
 * other data. */
enum rv_err replica_step(struct replica *r, struct step_stats *out, struct rv_errtext *et);
/* The same with the mean gradient over grad_accum micro-batches of each of `shards` (n >= 1), all at this replica's
 * cursor: what n data-parallel workers compute together. replica_step(r) is this with the replica's own shard. */
enum rv_err replica_step_shards(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
								struct rv_errtext *et);
/* The same again with other data when a step is refused: training's inner step. shards NULL (n is 0 then): the
 * replica's own. RV_E_RANGE after REPLICA_REFUSED_MAX refusals in a row. Other faults at once. */
enum { REPLICA_REFUSED_MAX = 20 };
enum rv_err replica_step_over(struct replica *r, const uint32_t *shards, int n, struct step_stats *out,
							  struct rv_errtext *et);
/* `fn` is called by each step when its gradient is there, before it changes theta, m and v. NULL (the start):
 * nothing. */
void replica_before_update(struct replica *r, void (*fn)(void *ctx), void *ctx);
/* Calls it, for what changes the replica's vectors from outside. */
void replica_settle(struct replica *r);
/* A step's gradient without its update, for optimizers that are not the replica's: gradient (n, host) as replica_step
 * has it before clipping; the data cursor and the global step move on as there, theta and the moments do not. out->lr
 * is the schedule's. RV_E_RANGE as replica_step. */
enum rv_err replica_gradient(struct replica *r, float *gradient, struct step_stats *out, struct rv_errtext *et);
/* The schedule's learning rate at that global step. */
float replica_learning_rate(const struct replica *r, uint64_t step);
/* The learning rate follows this; it never restarts. Set it when entering round r: r * H. */
uint64_t replica_global_step(const struct replica *r);
void replica_set_global_step(struct replica *r, uint64_t step);

/* Returns how many tokens replica_eval(max_tokens) predicts: whole sequences, at least one; all there are for 0. */
uint64_t replica_eval_tokens(const struct replica *r, uint64_t max_tokens);
/* Measures the mean loss (nats per token) of `theta` (NULL: the replica's own) over the held-out split: over at most
 * max_tokens of it, in sequences spread evenly, the same ones every time; 0: all of it. RV_E_RANGE when it is not
 * finite. */
enum rv_err replica_eval(struct replica *r, const float *theta, uint64_t max_tokens, double *loss,
						 struct rv_errtext *et);

/* While *stop is true replica_eval ends before its next batch with RV_E_CANCELLED. Borrowed; NULL (the start): never.
 */
void replica_watch(struct replica *r, const atomic_bool *stop);

/* A vector (n) on the host that is this replica's alone, from now on part of its state below, in the order of these
 * calls: what error feedback keeps (outer/contribution.h), then what eager updates do (outer/eager.h). Borrowed; NULL:
 * none, nothing is done. */
enum { REPLICA_MAX_KEPT = 4 };
void replica_keep(struct replica *r, float *vector);
/* Everything that is this replica's alone (theta_local, m, v, step, cursor, the kept vectors), as bytes in one buffer
 * of replica_state_bytes. Load checks magic, version, sizes and hash: RV_E_CORRUPT names the field, and the replica is
 * unchanged. */
size_t replica_state_bytes(const struct replica *r);
void replica_save(struct replica *r, uint8_t *out);
/* The same in three parts: what changes with every batch that is read; the vectors; and the hash over its n bytes,
 * which needs no replica and may run on any thread. */
void replica_copy_head(const struct replica *r, uint8_t *out);
void replica_copy_vectors(const struct replica *r, uint8_t *out);
void replica_seal(uint8_t *copy, size_t n);
/* Which vectors that copies, where their memory is the host's (replica_device_theta is NULL): anybody may copy them
 * while nothing but gradients and evaluations are computed. Returns how many. */
struct replica_vector {
	uint8_t *to;
	const float *from;
	size_t bytes;
};
enum { REPLICA_MAX_VECTORS = 33 + REPLICA_MAX_KEPT };
int replica_vectors(const struct replica *r, uint8_t *out, struct replica_vector list[REPLICA_MAX_VECTORS]);
/* What needs no replica: the hash. RV_E_CORRUPT. */
enum rv_err replica_check(const uint8_t *in, size_t n, struct rv_errtext *et);
enum rv_err replica_load(struct replica *r, const uint8_t *in, size_t n, struct rv_errtext *et);

#endif
