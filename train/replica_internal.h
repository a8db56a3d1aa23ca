/* replica_internal.h: the replica's structs, shared by replica.c (steps), replica_part.c (one device's part of it) and
 * replica_state.c (save and load).
 *
 * A replica on n devices has n parts: each has all weights, computes the gradient of its share of a step's sequences,
 * and owns a slice of the optimizer's state (ZeRO-1, arXiv 1910.02054): gradients are summed to the slice's owner while
 * the backward pass goes on, the owner updates its slice of the weights, and all get all slices. An inner optimizer of
 * whole matrices has all of its state on every device: owners give the sums to all, and each updates everything; that
 * all get all slices then keeps the devices equal where they chose other products. */
#ifndef RV_TRAIN_REPLICA_INTERNAL_H
#define RV_TRAIN_REPLICA_INTERNAL_H

#include "train/comm.h"
#include "train/inner.h"
#include "train/model/model.h"
#include "train/replica.h"
#include "train/schedule.h"
#include "train/team.h"

/* What is in one device's memory, and its share of the step under way. */
struct replica_part {
	struct backend *be; /* borrowed */
	struct model *model;
	float *theta, *grad;       /* (n), backend memory */
	float *m, *v;              /* of what it updates: (updated.end - updated.begin) */
	float *anchor;             /* of its slice; NULL: the run has no prox_mu */
	float *scratch;            /* of the inner optimizer; NULL: it needs none */
	struct comm_slice slice;   /* all of [0, n) when there is one part */
	struct comm_slice updated; /* the slice, or with an optimizer of whole matrices all of [0, n) */
	struct decay_span *spans;  /* of what it updates, from its begin */
	int n_spans;
	int32_t *inputs, *targets;     /* (batch * context), host */
	float *losses;                 /* (batch * context), host */
	struct comm *comm;             /* NULL when there is one part */
	size_t ready_begin, ready_end; /* of grad: final in this step, not sent */
	bool exchange_failed;          /* of the step: gradients were not summed */
	double loss, squares;          /* of the step: sum of losses, squared norm of the gradient; of all parts */
	enum rv_err err;
	struct rv_errtext text;
};

struct replica {
	struct run_config cfg;
	const struct inner_optimizer *inner;
	const struct dataset *data; /* borrowed */
	uint32_t shard, n_shards;
	struct replica_part parts[COMM_MAX_MEMBERS];
	int n_parts;
	struct comm_group *group; /* NULL when there is one part, as the team is */
	struct team *team;
	size_t n;
	float *mirror; /* (n) host copy of theta; NULL when the backend's memory is the host's */
	struct schedule schedule;
	float *kept[REPLICA_MAX_KEPT]; /* (n) each, host, borrowed: saved and loaded with the rest */
	int n_kept;
	const atomic_bool *stop;          /* borrowed; NULL: evaluations are not to be stopped */
	void (*before_update)(void *ctx); /* NULL: nothing */
	void *before_update_ctx;
	uint64_t global_step; /* of the run: the learning rate follows it */
	uint64_t adam_steps;  /* updates that m and v have seen: the bias correction follows it */
	uint64_t cursor;      /* sequences of the shard's stream read so far */
};

/* The sequences of one step, of all shards, at the replica's cursor. */
struct replica_share {
	const uint32_t *shards;
	int n_shards;
	float grad_scale;
};

/* Part `index` of r->n_parts, without its weights. r->group is there. On any thread. */
enum rv_err replica_part_init(struct replica *r, int index, const struct replica_options *o, struct backend *be,
							  struct rv_errtext *et);
void replica_part_release(struct replica_part *p);
/* On the part's thread: its share of the step's gradient, then, with the other parts, the sums over all: p->loss and
 * p->squares. p->err is what made this part fail; then the sums of all parts are unusable. */
void replica_part_gradient(struct replica *r, int index, const struct replica_share *s);
/* On the part's thread: the optimizer's step of its slice; then the weights of all slices. */
void replica_part_update(struct replica *r, int index, const struct inner_params *params);
/* In fp64, one after the other: the order of every sum of losses. */
double replica_sum(const float *x, size_t n);

#endif
