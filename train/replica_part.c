/* replica_part.c: one device's memory, share of the gradient, and slice of the update. */
#include "base/assert.h"
#include "base/clock.h"
#include "kernels/gate.h"
#include "train/replica_internal.h"
#include "train/step_bounds.h"

#include <stdlib.h>
#include <string.h>

/* Final gradients per exchange: enough to make its fixed cost negligible. */
enum { SEND_ELEMS = 1 << 20 };

static enum rv_err alloc_vector(struct backend *be, size_t n, float **out, const char *what, struct rv_errtext *et) {
	void *p = NULL;
	enum rv_err e = be->ops->alloc(be, n * sizeof(float), &p, et);
	*out = p;
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s of %zu parameters", what, n);
}

static enum rv_err alloc_moments(const struct replica *r, struct replica_part *p, void **out, const char *what,
								 struct rv_errtext *et) {
	const size_t n = replica_part_updated(p);
	struct backend *be = replica_part_updater(p);
	const enum rv_err e = be->ops->alloc(be, moments_bytes(r->moments, n), out, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s of %zu parameters", what, n);
}

/* Opens the processors for an optimizer there, and allocates the weights that it moves. */
static enum rv_err offload(struct replica_part *p, size_t n, int threads, struct rv_errtext *et) {
	const struct backend_options options = {.threads = threads, .compute = DTYPE_F32, .isa = "auto"};
	void *theta = NULL;
	RV_TRY(backend_open("cpu", &options, &p->host, et));
	const enum rv_err e = p->be->ops->alloc_on_host(p->be, n * sizeof(float), &theta, et);
	p->theta = theta;
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "weights of %zu parameters", n);
}

/* Allocates weights and gradients, or the part's slices of them and windows for the rest. */
static enum rv_err alloc_weights(const struct replica *r, struct replica_part *p, struct rv_errtext *et) {
	const struct comm_slice held = replica_part_held(r, p);
	const size_t owned = p->slice.end - p->slice.begin;
	RV_TRY(r->offload ? offload(p, r->n, r->host_threads, et)
					  : alloc_vector(p->be, held.end - held.begin, &p->theta, "weights", et));
	RV_TRY(alloc_vector(p->be, r->zero == ZERO_MOMENTS ? r->n : owned, &p->grad, "gradient", et));
	if (r->zero == ZERO_MOMENTS)
		return RV_OK;
	const float *slice = r->zero == ZERO_WEIGHTS ? p->theta : NULL;
	return windows_new(p->model, p->slice, slice, p->grad, &p->windows, et);
}

static enum rv_err alloc_host(const struct replica *r, struct replica_part *p, struct rv_errtext *et) {
	size_t tokens = (size_t)r->micro_batch * (size_t)r->cfg.context;
	p->inputs = calloc(tokens, sizeof *p->inputs);
	p->targets = calloc(tokens, sizeof *p->targets);
	p->losses = calloc(tokens, sizeof *p->losses);
	if (!p->inputs || !p->targets || !p->losses)
		return rv_fail(et, RV_E_NOMEM, "replica: no memory for a batch of %zu tokens", tokens);
	return RV_OK;
}

/* Returns where the piece of an update on the host that begins at `at` ends: with its section, so
 * that a section is complete as soon as possible, to whole blocks of moments. */
static size_t piece_end(const struct replica_part *p, size_t at) {
	_Static_assert(OFFLOAD_FLOATS % MOMENTS_BLOCK == 0, "pieces are whole blocks of moments");
	const struct model_layout *l = &p->model->layout;
	const size_t section = model_section_begin(l, model_section_of(l, at) + 1);
	size_t end = (section + MOMENTS_BLOCK - 1) / MOMENTS_BLOCK * MOMENTS_BLOCK;
	if (end > at + OFFLOAD_FLOATS)
		end = at + OFFLOAD_FLOATS;
	return end < l->n_params ? end : l->n_params;
}

/* Cuts `spans` to [begin, end), relative to `begin`. Returns how many are left. */
static int cut(const struct decay_span *spans, int n_spans, size_t begin, size_t end, struct decay_span *out) {
	int n = 0;
	for (int i = 0; i < n_spans; i++) {
		const size_t b = spans[i].begin > begin ? spans[i].begin : begin, e = spans[i].end < end ? spans[i].end : end;
		if (b < e)
			out[n++] = (struct decay_span){b - begin, e - begin, spans[i].decay};
	}
	return n;
}

/* Cuts the model's spans to what the part updates, relative to its beginning. */
static enum rv_err cut_spans(struct replica_part *p, struct rv_errtext *et) {
	const struct model *m = p->model;
	p->spans = calloc((size_t)m->n_spans, sizeof *p->spans);
	p->cut = p->host ? calloc((size_t)m->n_spans, sizeof *p->cut) : NULL;
	if (!p->spans || (p->host && !p->cut))
		return rv_fail(et, RV_E_NOMEM, "replica: no memory for %d spans", m->n_spans);
	p->n_spans = cut(m->spans, m->n_spans, p->updated.begin, p->updated.end, p->spans);
	return RV_OK;
}

enum rv_err replica_part_reserve(const struct replica *r, struct replica_part *p, struct rv_errtext *et) {
	struct step_bounds s = step_bounds_of(&(struct step_source){.run = &r->cfg,
																.family = p->model->ops,
																.shape = &p->model->shape,
																.layout = &p->model->layout,
																.inner = r->inner,
																.devices = r->n_parts,
																.shards = r->step_shards,
																.micro_batch = r->micro_batch,
																.logits_rows = r->logits_rows,
																.offload = r->offload});
	s.params[0] = p->theta;
	if (r->zero == ZERO_WEIGHTS)
		windows_weights(p->windows, s.params);
	if (p->be->ops->reserve)
		RV_TRY(p->be->ops->reserve(p->be, &s, et));
	p->logits_rows = s.logits_rows;
	return RV_OK;
}

enum rv_err replica_part_init(struct replica *r, int index, struct rv_errtext *et) {
	struct replica_part *p = &r->parts[index];
	struct backend *be = r->devices.be[index];
	const struct model_shape shape = model_shape_of(&r->cfg);
	const struct model_options options = {.max_batch = r->micro_batch, .recompute = r->recompute};
	p->be = be;
	RV_TRY(model_new(model_family(&r->cfg), &shape, &options, be, &p->model, et));
	r->n = p->model->layout.n_params;
	p->slice = comm_slice_of(r->n, r->n_parts, index);
	if (p->slice.begin == p->slice.end)
		return rv_fail(et, RV_E_RANGE, "%zu parameters cannot be divided among %d devices", r->n, r->n_parts);
	p->updated = r->inner->whole_matrices ? (struct comm_slice){0, r->n} : p->slice;
	RV_TRY(alloc_weights(r, p, et));
	RV_TRY(alloc_moments(r, p, &p->m, "first moment", et));
	RV_TRY(alloc_moments(r, p, &p->v, "second moment", et));
	if (r->cfg.prox_mu > 0)
		RV_TRY(alloc_vector(be, p->slice.end - p->slice.begin, &p->anchor, "shared weights (prox-mu)", et));
	size_t scratch = inner_scratch_floats(r->inner, &p->model->layout);
	if (scratch > 0)
		RV_TRY(alloc_vector(be, scratch, &p->scratch, "scratch of the inner optimizer", et));
	RV_TRY(cut_spans(p, et));
	RV_TRY(alloc_host(r, p, et));
	return replica_part_reserve(r, p, et);
}

/* Ends copies of gradients that no step will take. */
static void drop_fetches(struct replica_part *p) {
	for (size_t at = p->host_step.at; at < p->host_step.fetched; at = piece_end(p, at))
		(void)p->be->ops->end_fetch(p->be);
}

void replica_part_release(struct replica_part *p) {
	void *vectors[] = {p->theta, p->grad, p->anchor, p->scratch}, *moments[] = {p->m, p->v};
	drop_fetches(p); /* of gradients, which are freed next */
	for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
		if (vectors[i])
			p->be->ops->free(p->be, vectors[i]);
	struct backend *updater = replica_part_updater(p);
	for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++)
		if (moments[i])
			updater->ops->free(updater, moments[i]);
	windows_free(p->windows);
	backend_close(p->host);
	model_free(p->model);
	free(p->spans);
	free(p->cut);
	free(p->inputs);
	free(p->targets);
	free(p->losses);
}

/* ---- an update on the host ---- */

/* Returns all that the part updates. */
static struct inner_slice slice_of(const struct replica *r, const struct replica_part *p) {
	return (struct inner_slice){.be = replica_part_updater(p),
								.theta = replica_part_theta(r, p, p->updated.begin),
								.m = p->m,
								.v = p->v,
								.moments = r->moments,
								.n_moments = replica_part_updated(p),
								.grad = replica_part_grad(r, p, p->updated.begin),
								.scratch = p->scratch,
								.first = p->updated.begin,
								.n = replica_part_updated(p),
								.spans = p->spans,
								.n_spans = p->n_spans,
								.layout = &p->model->layout};
}

/* Starts the copy of the next gradients to the host. */
static void fetch_next(struct replica_part *p) {
	struct host_step *u = &p->host_step;
	const size_t end = u->fetched < p->model->layout.n_params ? piece_end(p, u->fetched) : u->fetched;
	if (end > u->fetched)
		p->be->ops->start_fetch(p->be, p->grad + u->fetched, end - u->fetched);
	u->fetched = end;
}

/* Updates the next piece; its gradients, which are no longer needed, make room for its weights on
 * their way. */
static void update_piece(const struct replica *r, struct replica_part *p) {
	struct host_step *u = &p->host_step;
	const size_t end = piece_end(p, u->at);
	struct inner_slice s = slice_of(r, p);
	s.grad = p->be->ops->end_fetch(p->be);
	s.theta += u->at;
	s.at = s.first = u->at;
	s.n = end - u->at;
	s.n_spans = cut(p->spans, p->n_spans, u->at, end, p->cut);
	s.spans = p->cut;
	r->inner->step(&s, &u->params);
	p->be->ops->host_wrote(p->be, s.theta, s.n, p->grad + u->at);
	u->at = end;
	fetch_next(p);
	u->pending = end < r->n;
}

/* Updates, piece by piece, all weights before `end`: gradients of the next pieces are on their way
 * to the host, and weights of the last ones to the device. A step that is abandoned does not
 * abandon the update, which belongs to the step before. */
static void update_until(const struct replica *r, struct replica_part *p, size_t end) {
	const atomic_bool *abandons = gate_abandons();
	gate_abandon_with(NULL);
	while (p->host_step.pending && p->host_step.at < end)
		update_piece(r, p);
	gate_abandon_with(abandons);
}

/* Begins the update: the first gradients are on their way. */
static void begin_update(struct replica_part *p, const struct inner_params *params) {
	RV_ASSERT(!p->host_step.pending);
	p->host_step = (struct host_step){.pending = true, .params = *params};
	p->be->ops->begin_copies(p->be);
	for (int i = 0; i < FETCHES; i++)
		fetch_next(p);
}

void replica_end_update(struct replica *r) {
	for (int i = 0; i < r->n_parts; i++)
		update_until(r, &r->parts[i], r->n);
}

/* ---- the gradient ---- */

static uint64_t sequences_of_shard(const struct replica *r) {
	return savings_step_sequences(&r->cfg);
}

/* Reads sequence i of the step at `cursor`: of its shard, or of the stream. */
static enum rv_err read_sequence(const struct replica *r, const struct replica_share *s, uint64_t cursor, uint64_t i,
								 int32_t *inputs, int32_t *targets, struct rv_errtext *et) {
	const uint64_t place = i / sequences_of_shard(r);
	RV_ASSERT(place < (uint64_t)s->n_shards);
	if (r->has_reading)
		return dataset_sequence_at(r->data, reading_position(&r->reading, cursor + i), inputs, targets, et);
	return dataset_train_sequence(r->data, s->shards[place], cursor + i % sequences_of_shard(r), inputs, targets, et);
}

/* The same, if nobody has to wait for it. */
static enum rv_err read_present(const struct replica *r, const struct replica_share *s, uint64_t cursor, uint64_t i,
								int32_t *inputs, int32_t *targets, struct rv_errtext *et) {
	const uint64_t at = cursor + i % sequences_of_shard(r);
	if (r->has_reading)
		return dataset_present_sequence_at(r->data, reading_position(&r->reading, cursor + i), inputs, targets, et);
	return dataset_present_train_sequence(r->data, s->shards[i / sequences_of_shard(r)], at, inputs, targets, et);
}

typedef enum rv_err (*sequence_reader)(const struct replica *r, const struct replica_share *s, uint64_t cursor,
									   uint64_t i, int32_t *inputs, int32_t *targets, struct rv_errtext *et);

/* Reads sequences [at, at + b) of the step at `cursor`, shard after shard. */
static enum rv_err read_batch(const struct replica *r, struct replica_part *p, sequence_reader read,
							  const struct replica_share *s, uint64_t cursor, uint64_t at, uint64_t b,
							  struct rv_errtext *et) {
	size_t context = (size_t)r->cfg.context;
	for (uint64_t i = 0; i < b; i++)
		RV_TRY(read(r, s, cursor, at + i, p->inputs + i * context, p->targets + i * context, et));
	return RV_OK;
}

double replica_sum(const float *x, size_t n) {
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return sum;
}

struct ready_ctx {
	struct replica *r;
	struct replica_part *p;
};

/* Updates, on the host, the weights of the next section before operations read them. */
static void update_before_section(void *ctx, int section) {
	const struct ready_ctx *c = ctx;
	update_until(c->r, c->p, model_section_begin(&c->p->model->layout, section + 1));
}

static void send_ready(const struct replica *r, struct replica_part *p) {
	if (p->ready_begin == p->ready_end)
		return;
	comm_start_reduce_scatter(p->comm, p->grad, r->n, p->ready_begin, p->ready_end);
	p->ready_begin = p->ready_end = 0;
}

/* Notes final gradients [begin, end), and sends those that wait if apart or enough. */
static void on_gradients(void *ctx, size_t begin, size_t end) {
	const struct ready_ctx *c = ctx;
	struct replica_part *p = c->p;
	if (end != p->ready_begin)
		send_ready(c->r, p);
	if (p->ready_begin == p->ready_end)
		p->ready_end = end;
	p->ready_begin = begin;
	if (p->ready_end - p->ready_begin >= SEND_ELEMS)
		send_ready(c->r, p);
}

/* What to wait for after a micro-batch. */
enum pace {
	PACE_NOTHING,    /* before the step's losses */
	PACE_ONE_BEFORE, /* the one before it: the device computes while the next is read and launched */
	PACE_ALL
};

/* Returns what to wait for, so that no more are queued than a pause may wait for: a step, or two
 * micro-batches, or one. Nothing is known in a process's first step. */
static enum pace pace_of(const struct replica *r) {
	enum { STEP_MAX_US = RV_US_PER_S / 2, BATCH_MAX_US = RV_US_PER_S / 2 };
	if (gate_limits_device() || r->gradient_us == 0 || r->batch_us > BATCH_MAX_US)
		return PACE_ALL;
	return r->gradient_us > STEP_MAX_US ? PACE_ONE_BEFORE : PACE_NOTHING;
}

/* Ends a micro-batch: while the time of GPUs is limited it is waited for, and rested after. The
 * time of processors is limited within their kernels. */
static void end_batch(const struct replica *r, const struct replica_part *p, int64_t began_us) {
	const enum pace pace = pace_of(r);
	if (!p->be->ops->micro_losses)
		return;
	if (pace == PACE_ALL)
		p->be->ops->sync(p->be);
	else if (pace == PACE_ONE_BEFORE)
		p->be->ops->micro_pace(p->be);
	if (gate_limits_device())
		gate_device_end(rv_clock_monotonic_us() - began_us, r->stop);
}

/* Begin and end a pass of a part with windows. In a process's first step operations wait for the
 * device, to compare and to time. */
static void begin_pass(const struct replica *r, struct replica_part *p) {
	windows_begin(p->windows, r->gradient_us == 0);
	p->passes++;
}

static void end_pass(struct replica_part *p) {
	p->exchange_failed = !windows_end(p->windows) || p->exchange_failed;
}

/* Computes forward and backward of b sequences. Returns true if p->losses has their losses, false
 * if all losses of the step come later. In the last batch of one of several parts, and with windows
 * in each, gradients are sent as they become final. */
static bool run_batch(struct replica *r, struct replica_part *p, float grad_scale, uint64_t b, enum gradient_mode mode,
					  bool last) {
	struct ready_ctx ready = {r, p};
	if (gate_limits_device()) /* its time is taken, and the host's would count as the device's */
		replica_end_update(r);
	const int64_t began_us = rv_clock_monotonic_us();
	p->batches++;
	if (p->host && mode == GRADIENT_WRITE) {
		p->model->before_section = update_before_section;
		p->model->before_section_ctx = &ready;
	}
	if (p->windows) {
		begin_pass(r, p);
	} else if (last && p->comm) {
		p->model->on_gradients = on_gradients;
		p->model->on_gradients_ctx = &ready;
	}
	gate_abandon_with(r->abandons);
	bool has_losses = model_micro_step(p->model, p->theta, p->grad, p->inputs, p->targets, (int)b, (int)r->cfg.context,
									   grad_scale, p->losses, mode);
	gate_abandon_with(NULL);
	p->model->on_gradients = NULL;
	p->model->before_section = NULL;
	RV_ASSERT(!p->host_step.pending);
	if (p->windows)
		end_pass(p);
	end_batch(r, p, began_us);
	return has_losses;
}

/* Returns the size of the micro-batch that begins at sequence `at` of [.., end). */
static uint64_t batch_at(const struct replica *r, uint64_t at, uint64_t end) {
	return end - at < (uint64_t)r->micro_batch ? end - at : (uint64_t)r->micro_batch;
}

/* Adds n losses of the micro-batch that ends before sequence `next` of [.., end): first within a
 * shard, then over shards, whenever they arrive. */
static void add_losses(const struct replica *r, struct replica_part *p, double *of_shard, const float *losses, size_t n,
					   uint64_t next, uint64_t end) {
	*of_shard += replica_sum(losses, n);
	if (next == end || next % sequences_of_shard(r) == 0) {
		p->loss += *of_shard;
		*of_shard = 0;
	}
}

/* Adds the losses of a backend that did not wait, of all micro-batches of the step: as many as
 * requested unless a fault ended it early. Unless `squares` is NULL it becomes the gradient's sum
 * of squares, in the same wait. */
static void collect_losses(const struct replica *r, struct replica_part *p, uint64_t begin, uint64_t end,
						   double *squares) {
	size_t n, context = (size_t)r->cfg.context;
	double of_shard = 0;
	if (!p->be->ops->micro_losses) {
		if (squares)
			*squares = p->be->ops->sum_squares(p->be, p->grad, r->n);
		return;
	}
	const float *losses = p->be->ops->micro_losses(p->be, &n, p->grad, r->n, squares);
	if (p->err != RV_OK)
		return;
	RV_ASSERT(n == (size_t)(end - begin) * context);
	for (uint64_t at = begin, b; at < end; at += b) {
		b = batch_at(r, at, end);
		add_losses(r, p, &of_shard, losses + (size_t)(at - begin) * context, (size_t)b * context, at + b, end);
	}
}

static enum rv_err check_wanted(const struct replica *r, struct rv_errtext *et) {
	if (r->abandons && atomic_load(r->abandons))
		return rv_fail(et, RV_E_CANCELLED, "the step was abandoned");
	return RV_OK;
}

/* Accumulates the gradient of sequences [begin, end) of the step. */
static enum rv_err accumulate(struct replica *r, struct replica_part *p, const struct replica_share *s, uint64_t begin,
							  uint64_t end, struct rv_errtext *et) {
	double of_shard = 0;
	for (uint64_t at = begin, b; at < end; at += b) {
		b = batch_at(r, at, end);
		RV_TRY(read_batch(r, p, read_sequence, s, r->cursor, at, b, et));
		gate_pass(r->stop);
		RV_TRY(check_wanted(r, et)); /* a device cannot end a micro-batch that has begun */
		const bool writes = at == begin || p->windows;
		if (run_batch(r, p, s->grad_scale, b, writes ? GRADIENT_WRITE : GRADIENT_ADD, at + b == end))
			add_losses(r, p, &of_shard, p->losses, (size_t)b * (size_t)r->cfg.context, at + b, end);
	}
	return check_wanted(r, et);
}

/* Reads and prepares the first micro-batch of the next step, at sequence `begin` of [.., end),
 * while the device computes: if there is one, and it is here: the losses of this step, which may be
 * the round's last, do not wait for text. The next step reads it again. */
static void prepare_next(const struct replica *r, struct replica_part *p, const struct replica_share *s, uint64_t begin,
						 uint64_t end) {
	const uint64_t sequences = sequences_of_shard(r),
				   read = r->has_reading ? sequences * (uint64_t)s->n_shards : sequences;
	const uint64_t cursor = r->cursor + read, b = batch_at(r, begin, end);
	if (!p->be->ops->micro_prepare || (r->has_reading && !reading_has(&r->reading, cursor, read)))
		return;
	if (read_batch(r, p, read_present, s, cursor, begin, b, NULL) == RV_OK)
		model_micro_prepare(p->model, p->inputs, p->targets, (int)b, (int)r->cfg.context, s->grad_scale);
}

/* Makes the exchanges that the others wait for in a failed part; its terms are not used. */
static void go_through_motions(struct replica *r, struct replica_part *p) {
	size_t bytes = (size_t)r->cfg.context * sizeof(int32_t);
	memset(p->inputs, 0, bytes);
	memset(p->targets, 0, bytes);
	gate_pass(r->stop);
	(void)run_batch(r, p, 0, 1, GRADIENT_WRITE, true);
	size_t n;
	if (p->be->ops->micro_losses)
		(void)p->be->ops->micro_losses(p->be, &n, NULL, 0, NULL);
}

/* Adds FedProx's term to the part's slice. */
static void add_proximal(const struct replica *r, struct replica_part *p) {
	size_t at = p->slice.begin, n = p->slice.end - at;
	if (p->anchor)
		p->be->ops->add_scaled(p->be, replica_part_grad(r, p, at), 1, (float)r->cfg.prox_mu,
							   replica_part_theta(r, p, at), p->anchor, n);
}

/* Returns the most micro-batches that a part makes of a step of `all` sequences: each makes as many
 * passes. */
static uint64_t passes_of(const struct replica *r, uint64_t all) {
	const uint64_t k = (uint64_t)r->n_parts, most = (all + k - 1) / k, micro = (uint64_t)r->micro_batch;
	return (most + micro - 1) / micro;
}

/* Makes the passes that others make and this part does not, also behind its fault. */
static void make_idle_passes(const struct replica *r, struct replica_part *p, uint64_t all) {
	while (p->passes < passes_of(r, all)) {
		begin_pass(r, p);
		windows_idle(p->windows, true);
		end_pass(p);
	}
}

/* Sums gradients to their owners, unless windows did. */
static void sum_gradients(struct replica *r, struct replica_part *p, uint64_t all) {
	if (p->windows) {
		make_idle_passes(r, p, all);
		return;
	}
	if (p->err != RV_OK)
		go_through_motions(r, p);
	send_ready(r, p);
	p->exchange_failed = !comm_wait(p->comm);
}

/* Makes what the parts computed of a step of `all` sequences one gradient, loss and norm. */
static void exchange(struct replica *r, struct replica_part *p, uint64_t all) {
	sum_gradients(r, p, all);
	add_proximal(r, p);
	size_t owned = p->slice.end - p->slice.begin;
	double values[] = {p->loss, p->be->ops->sum_squares(p->be, replica_part_grad(r, p, p->slice.begin), owned)};
	comm_sum(p->comm, values, 2);
	p->loss = values[0];
	p->squares = values[1];
}

void replica_part_gradient(struct replica *r, int index, const struct replica_share *s) {
	struct replica_part *p = &r->parts[index];
	uint64_t all = (uint64_t)s->n_shards * sequences_of_shard(r), k = (uint64_t)r->n_parts, i = (uint64_t)index;
	p->loss = 0;
	p->passes = 0;
	p->batches = 0;
	p->exchange_failed = false;
	if (p->windows)
		windows_begin_step(p->windows);
	p->err = accumulate(r, p, s, all * i / k, all * (i + 1) / k, &p->text);
	p->squares = 0;
	if (!p->comm)
		add_proximal(r, p);
	if (p->err == RV_OK)
		prepare_next(r, p, s, all * i / k, all * (i + 1) / k);
	collect_losses(r, p, all * i / k, all * (i + 1) / k, p->comm || p->err != RV_OK ? NULL : &p->squares);
	if (p->comm)
		exchange(r, p, all);
}

/* ---- the update ---- */

void replica_part_update(struct replica *r, int index, const struct inner_params *params) {
	struct replica_part *p = &r->parts[index];
	if (p->host) {
		begin_update(p, params);
		return;
	}
	if (p->comm && r->inner->whole_matrices) {
		comm_start_all_gather(p->comm, p->grad, r->n);
		(void)comm_wait(p->comm); /* broadcasts always complete */
	}
	const struct inner_slice slice = slice_of(r, p);
	r->inner->step(&slice, params);
	if (!p->comm || r->zero == ZERO_WEIGHTS)
		return;
	comm_start_all_gather(p->comm, p->theta, r->n);
	(void)comm_wait(p->comm);
}
