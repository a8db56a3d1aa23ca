/* replica_internal.h: the replica's structs, shared by replica.c (steps), replica_part.c (one
 * device's part), replica_state.c (save and load) and replica_stream.c (the state's pieces).
 *
 * A replica on n devices has n parts: each has all weights, computes the gradient of its share of a
 * step's sequences, and owns a slice of the optimizer's state (ZeRO-1, arXiv 1910.02054): gradients
 * are summed to the slice's owner during the backward pass, the owner updates its slice of the
 * weights, and all receive all slices. With an optimizer of whole matrices every device has all of
 * its state: owners send the sums to all, each updates everything, and exchanging the slices keeps
 * devices equal that compute products differently. With savings.zero a part has only its slice of
 * the gradients (ZeRO-2), or of the weights as well (ZeRO-3), and windows for the rest. */
#ifndef RV_TRAIN_REPLICA_INTERNAL_H
#define RV_TRAIN_REPLICA_INTERNAL_H

#include "train/comm.h"
#include "train/inner.h"
#include "train/model/model.h"
#include "train/replica.h"
#include "train/schedule.h"
#include "train/team.h"
#include "train/windows.h"

/* An optimizer's step on the host that goes on while the next forward pass runs (decision 0117):
 * weights [0, at) are updated, gradients [at, fetched) on their way to the host. */
struct host_step {
	bool pending;
	size_t at, fetched;
	struct inner_params params;
};

/* One device's memory, and its share of the present step. */
struct replica_part {
	struct backend *be;   /* borrowed */
	struct backend *host; /* the processors, where weights and moments are offloaded to; NULL: they are not */
	struct model *model;
	float *theta, *grad;       /* (n) or the slice's, backend memory; theta with `host`: that of alloc_on_host */
	void *m, *v;               /* moments of `updated`, of the replica's kind (kernels/moments.h) */
	float *anchor;             /* (slice) shared weights; NULL without prox_mu */
	float *scratch;            /* memory of the inner optimizer; NULL: none */
	struct comm_slice slice;   /* all of [0, n) for one part */
	struct comm_slice updated; /* the slice, or for whole matrices all of [0, n) */
	struct decay_span *spans;  /* spans of the updated part, from its beginning */
	struct decay_span *cut;    /* (n_spans) of a piece of it; NULL without `host` */
	int n_spans;
	struct host_step host_step;    /* with `host` */
	int32_t *inputs, *targets;     /* (micro_batch * context), host */
	float *losses;                 /* (micro_batch * context), host */
	struct comm *comm;             /* NULL for one part */
	struct windows *windows;       /* of what is not in theta and grad; NULL: both are whole */
	int logits_rows;               /* of what reserve took; 0: all */
	uint64_t passes;               /* micro-batches of this step so far; counted with windows */
	uint64_t batches;              /* the same, of this part's own */
	size_t ready_begin, ready_end; /* part of grad that is final in this step, not sent */
	bool exchange_failed;          /* whether this step's gradients were not summed */
	double loss, squares;          /* the step's sum of losses and squared gradient norm, of all parts */
	enum rv_err err;
	struct rv_errtext text;
};

struct replica {
	struct run_config cfg;
	const struct inner_optimizer *inner;
	const struct dataset *data; /* borrowed */
	uint32_t shard, n_shards;
	struct device_set devices;     /* backends borrowed */
	int host_threads, step_shards; /* of struct replica_options; step_shards >= 1 */
	int micro_batch;               /* most sequences of a micro-batch */
	int logits_rows;               /* the fewest that all parts have room for; 0: all */
	enum recompute recompute;
	enum moments moments;
	enum zero zero; /* ZERO_MOMENTS for one part */
	bool on_device; /* weights are in devices' own memory */
	bool streams;   /* savings.stream */
	bool offload;   /* to the host, from devices with memory of their own */
	struct replica_part parts[COMM_MAX_MEMBERS];
	int n_parts;
	struct comm_group *group; /* NULL for one part, like the team */
	struct team *team;
	size_t n;
	float *mirror; /* (n) host copy of theta; NULL if it is whole in the host's memory */
	struct schedule schedule;
	float *kept[REPLICA_MAX_KEPT]; /* (n) each, host, borrowed: part of the saved state */
	int n_kept;
	const atomic_bool *stop;          /* borrowed; NULL: evaluations always finish */
	const atomic_bool *abandons;      /* borrowed; NULL: steps always finish */
	int64_t gradient_us;              /* time that the last step's gradient took; 0: none yet */
	int64_t batch_us;                 /* the same of one of its micro-batches, on average */
	void (*before_update)(void *ctx); /* NULL: nothing */
	void *before_update_ctx;
	uint64_t global_step; /* the run's step, for the learning rate */
	uint64_t adam_steps;  /* updates of m and v, for the bias correction */
	uint64_t cursor;      /* sequences read of the shard's stream; with a reading, of the member's */
	bool has_reading;
	struct reading reading;
};

/* The sequences of one step, of all shards, at the replica's cursor. */
struct replica_share {
	const uint32_t *shards;
	int n_shards;
	float grad_scale;
};

/* Builds part `index` of r->n_parts, without its weights; r->group exists. Any thread. */
enum rv_err replica_part_init(struct replica *r, int index, struct rv_errtext *et);
/* Reserves device memory for steps beside the vectors, once these are there, and sets
 * p->logits_rows: at most r->logits_rows. */
enum rv_err replica_part_reserve(const struct replica *r, struct replica_part *p, struct rv_errtext *et);
void replica_part_release(struct replica_part *p);
/* Computes, on the part's thread, its share of the step's gradient, then with the other parts the
 * sums p->loss and p->squares. p->err is this part's fault; then all parts' sums are unusable. */
void replica_part_gradient(struct replica *r, int index, const struct replica_share *s);
/* Makes, on the part's thread, its slice's optimizer step, then collects all slices' weights. On
 * the host it only begins: replica_end_update. */
void replica_part_update(struct replica *r, int index, const struct inner_params *params);
/* Ends an update on the host that the next forward pass would end: before anything else reads or
 * changes weights, moments or the gradient. */
void replica_end_update(struct replica *r);
/* Returns the backend that has a part's moments, and updates. */
static inline struct backend *replica_part_updater(const struct replica_part *p) {
	return p->host ? p->host : p->be;
}
/* Returns how many parameters a part updates. */
static inline size_t replica_part_updated(const struct replica_part *p) {
	return p->updated.end - p->updated.begin;
}
/* Returns the weights that a part has: all, or its slice. */
static inline struct comm_slice replica_part_held(const struct replica *r, const struct replica_part *p) {
	return r->zero == ZERO_WEIGHTS ? p->slice : (struct comm_slice){0, r->n};
}
/* Return weight or gradient `at` of a part, which has it. */
static inline float *replica_part_theta(const struct replica *r, const struct replica_part *p, size_t at) {
	return p->theta + (at - replica_part_held(r, p).begin);
}
static inline float *replica_part_grad(const struct replica *r, const struct replica_part *p, size_t at) {
	return p->grad + (at - (r->zero == ZERO_MOMENTS ? 0 : p->slice.begin));
}
/* Hashed before a state (replica_state.c). */
#define REPLICA_STATE_DOMAIN "rivulet replica"
/* Lists theta, then each part's slices of m and v on its backend (`on`), or in host memory (NULL)
 * as the kept vectors, which come last. Returns how many. */
int replica_list_vectors(const struct replica *r, struct replica_vector *list, struct backend *on[REPLICA_MAX_VECTORS]);
/* Returns a number as text, in words if not finite: printf may write -nan. */
struct replica_number {
	char text[32];
};
struct replica_number replica_number(double v);
/* Returns the sum in fp64, in order: the way all losses are summed. */
double replica_sum(const float *x, size_t n);

#endif
