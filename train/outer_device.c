/* outer_device.c: chooses between the plugin and the host. */
#include "train/outer_device.h"

#include "kernels/plugin.h"

#include <stdlib.h>

/* One round's exchange on a device; NULL ops: on the host. */
struct exchange {
	const struct outer_ops *ops;
	struct backend *be;
	float *local;
	struct outer_vector vector;
	size_t *at;
};

static bool step_of(const struct global_config *c, struct outer_step *out) {
	*out = (struct outer_step){OUTER_STEP_SGD, c->params.lr, c->params.momentum};
	if (c->optimizer == &outer_nesterov)
		out->kind = OUTER_STEP_NESTEROV;
	else if (c->optimizer == &outer_average)
		out->lr = 1; /* theta - 1 * d has the bits of theta - d */
	else if (c->optimizer != &outer_sgd)
		return false;
	return true;
}

/* Translates a codec to the devices' code. Returns false if they lack it. */
static bool code_of(const struct codec *codec, enum outer_code *out) {
	*out = codec == &codec_int16 ? OUTER_INT16 : OUTER_INT8;
	return codec == &codec_int8 || codec == &codec_int16;
}

/* Returns the plugin's operations for a replica in its memory, or NULL. */
static const struct outer_ops *ops_for(const struct backend *be) {
	const struct backend_plugin *p;
	return plugin_load(be->ops->name, &p, NULL) == RV_OK ? p->outer : NULL;
}

/* Returns the places of the round's chunks in order of the exchange; NULL: no memory. */
static size_t *places_of(const struct global_state *g, const struct chunking *c) {
	size_t *at = malloc(c->n_chunks * sizeof *at);
	for (uint32_t i = 0; at && i < c->n_chunks; i++)
		at[i] = global_round_chunk_at(&g->cfg, g->round, i);
	return at;
}

static void pin(struct outer_device *d, const struct outer_ops *ops, struct backend *be, const struct global_state *g) {
	if (d->pinned[0] == g->theta && d->be == be)
		return;
	outer_device_unpin(d);
	d->be = be;
	for (int i = 0; i <= g->cfg.optimizer->n_states; i++) { /* the last mean stays on the host */
		float *v = i == 0 ? g->theta : g->state[i - 1];
		if (ops->pin(be, v, g->cfg.n * sizeof *v))
			d->pinned[i] = v;
	}
}

/* Returns the device's operations for `codec`, with *x but for the places, or NULL (host). */
static const struct outer_ops *device_of(struct replica *r, const struct global_state *g, const struct codec *codec,
										 struct exchange *x) {
	const struct chunking c = global_round_chunks(&g->cfg, g->round);
	enum outer_code code;
	*x = (struct exchange){.ops = NULL};
	x->local = replica_device_theta(r, &x->be);
	if (!x->local || !code_of(codec, &code))
		return NULL;
	x->vector = (struct outer_vector){code, c.n, c.chunk_elems, NULL};
	return ops_for(x->be);
}

void outer_device_reserve(struct replica *r, const struct global_state *g) {
	struct exchange x;
	const struct outer_ops *ops = device_of(r, g, global_sent(&g->cfg), &x);
	if (ops)
		(void)ops->prepare(x.be, &x.vector, NULL); /* if the device refuses, the host does it */
}

/* Prepares the device for this round with `codec`. Returns false if the host does it. */
static bool begin(struct outer_device *d, struct replica *r, const struct global_state *g, const struct codec *codec,
				  struct exchange *x) {
	const struct chunking c = global_round_chunks(&g->cfg, g->round);
	const struct outer_ops *ops = device_of(r, g, codec, x);
	if (!ops)
		return false;
	x->vector.at = x->at = places_of(g, &c);
	if (!x->at || ops->prepare(x->be, &x->vector, NULL) != RV_OK) {
		free(x->at);
		return false; /* no memory: the host does it */
	}
	x->ops = ops;
	pin(d, ops, x->be, g);
	return true;
}

enum rv_err outer_device_encode(struct outer_device *d, struct replica *r, const struct global_state *g, uint8_t *out,
								struct rv_errtext *et) {
	struct exchange x;
	size_t bad;
	if (!begin(d, r, g, global_sent(&g->cfg), &x))
		return global_encode_delta(g, replica_theta(r), out, et);
	enum rv_err e = x.ops->encode(x.be, &x.vector, g->theta, x.local, NULL, out, &bad);
	free(x.at);
	/* The host finds what is not finite as well, and names it. */
	return e == RV_OK ? RV_OK : global_encode_delta(g, replica_theta(r), out, et);
}

enum rv_err outer_device_apply(struct outer_device *d, struct replica *r, struct global_state *g,
							   const uint8_t *reduced, const struct rv_hash *digest, struct rv_errtext *et) {
	struct exchange x;
	struct outer_step step;
	if (!step_of(&g->cfg, &step) || !begin(d, r, g, g->cfg.codec, &x))
		return global_apply(g, reduced, digest, et);
	enum rv_err e = global_check(g, reduced, et);
	if (e == RV_OK) {
		float *momentum = step.kind == OUTER_STEP_NESTEROV ? g->state[0] : NULL;
		x.ops->step(x.be, &x.vector, reduced, g->theta, momentum, NULL, &step);
		global_advance(g, reduced, digest);
	}
	free(x.at);
	return e;
}

void outer_device_unpin(struct outer_device *d) {
	for (size_t i = 0; i < sizeof d->pinned / sizeof d->pinned[0]; i++)
		if (d->pinned[i])
			ops_for(d->be)->unpin(d->be, d->pinned[i]);
	*d = (struct outer_device){.be = NULL};
}
