/* plan.c: computes a plan from the shapes of the allocations. */
#include "train/memory/plan.h"

#include "base/assert.h"
#include "base/merkle.h"
#include "kernels/host_memory.h"
#include "outer/global.h"
#include "train/comm.h"
#include "train/inner.h"
#include "train/repeat.h"
#include "train/step_bounds.h"
#include "train/windows.h"

#include <string.h>

#define MIB ((size_t)1 << 20)

/* Measured (x86-64 Linux, gcc 12, oneDNN 2.6): peak resident set of a process without its model. */
#define PROGRAM_BYTES      (14 * MIB) /* code, libraries, tables of oneDNN and OpenMP */
#define DATA_BYTES         (8 * MIB)  /* files and records; not in benchmarks */
#define NETWORK_BYTES      (3 * MIB)  /* a worker's TLS, libcurl and threads besides the backend's */
#define THREAD_BYTES       (1 * MIB)  /* stack and buffers of a backend's thread */
#define HUGE_PAGE_BYTES    (2 * MIB)
#define FAULT_AROUND_BYTES (64 * 1024) /* Linux: fault_around_bytes */

enum {
	WORKER_PAYLOADS = 4,  /* own and others' shares of the reduced chunks; the means, and the log's file */
	RESIDUAL_VECTORS = 2, /* outer/contribution.h: the present one, and the one after the commit */
};

struct plan_input {
	const struct memory_request *q;
	const struct model_ops *family;
	struct model_shape shape; /* resolved */
	size_t n, tokens;         /* parameters of the model; tokens in a micro-batch */
	int micro_batch;
	const struct inner_optimizer *inner;
	size_t inner_floats; /* floats of its scratch */
	struct step_bounds step;
	struct fragment_layers layers;
	bool offload; /* weights and moments are in the host's memory */
	enum zero zero;
	size_t windows[WINDOWS]; /* floats */
};

static enum rv_err resolve(const struct memory_request *q, struct plan_input *in, struct rv_errtext *et) {
	const struct model_shape shape = model_shape_of(q->run);
	struct model_layout layout;
	*in = (struct plan_input){.q = q, .micro_batch = savings_micro_batch(&q->savings, q->run)};
	in->tokens = (size_t)in->micro_batch * (size_t)q->run->context;
	in->offload = q->savings.offload && memory_can_offload(q);
	in->zero = memory_can_divide(q) ? q->savings.zero : ZERO_MOMENTS;
	in->family = model_family(q->run);
	in->inner = inner_registry[q->run->inner];
	RV_TRY(model_layout_init(&layout, in->family, &shape, &in->shape, et));
	in->n = layout.n_params;
	in->layers = layout.layers;
	windows_sizes(&layout, in->windows);
	in->inner_floats = inner_scratch_floats(in->inner, &layout);
	in->step = step_bounds_of(&(struct step_source){.run = q->run,
													.family = in->family,
													.shape = &in->shape,
													.layout = &layout,
													.inner = in->inner,
													.devices = q->device->n,
													.shards = q->step_shards ? q->step_shards : 1,
													.micro_batch = in->micro_batch,
													.logits_rows = q->savings.logits_rows,
													.offload = in->offload,
													.forward_only = q->role == MEMORY_FORWARD});
	model_layout_release(&layout);
	return RV_OK;
}

static size_t vectors(const struct plan_input *in, int count) {
	return (size_t)count * in->n * sizeof(float);
}

/* Reports whether the backend computes in host memory, which needs no copy of the weights. */
static bool is_host(const struct device_choice *d) {
	return !device_is_gpu(d);
}

/* Returns the type of activations and, on a GPU, of the products' copies of the weights. */
static enum dtype act_of(const struct memory_request *q) {
	return is_host(q->device) ? DTYPE_F32 : run_config_compute(q->run, q->device, NULL);
}

/* Plans the backend's workspace, by its own count, and the buffers of a group of devices. */
static enum rv_err plan_workspace(const struct plan_input *in, enum dtype act, size_t replicas, struct memory_plan *p,
								  struct rv_errtext *et) {
	const struct memory_request *q = in->q;
	RV_TRY(backend_step_memory(q->device->backend, act, &in->step, &p->step, et));
	if (p->on_device)
		step_memory_add(&p->step, "exchange of devices", in->step.exchange, in->step.exchange);
	RV_ASSERT(step_memory_least(&p->step) <= step_memory_bytes(&p->step));
	p->workspace = replicas * step_memory_bytes(&p->step);
	p->spare = replicas * (step_memory_bytes(&p->step) - step_memory_least(&p->step));
	p->host += p->on_device ? replicas * (p->step.pinned_bytes + comm_staged_bytes(q->device->n)) : 0;
	return RV_OK;
}

/* Returns the bytes of a host backend's block: whole huge pages from that size on
 * (host_memory.c). */
static size_t block(size_t bytes) {
	return bytes < HUGE_PAGE_BYTES ? bytes : (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
}

/* Returns the bytes of both moments of all replicas: each device has those of its slice, or with an
 * optimizer of whole matrices all. */
static size_t moments_of(const struct plan_input *in, int replicas) {
	size_t bytes = 0;
	for (int i = 0; i < in->q->device->n; i++) {
		const struct comm_slice s = comm_slice_of(in->n, in->q->device->n, i);
		const size_t n = in->inner->whole_matrices ? in->n : s.end - s.begin;
		bytes += 2 * block(moments_bytes(in->q->savings.moments, n));
	}
	return (size_t)replicas * bytes;
}

/* Returns the bytes of a replica's saved vectors: weights and both moments. */
static size_t saved_bytes(const struct plan_input *in) {
	return vectors(in, 1) + 2 * moments_bytes(in->q->savings.moments, in->n);
}

bool memory_can_offload(const struct memory_request *q) {
	return !is_host(q->device) && q->device->n == 1 && act_of(q) != DTYPE_F32 && q->role != MEMORY_FORWARD &&
		   !inner_registry[q->run->inner]->whole_matrices;
}

bool memory_can_chunk(const struct memory_request *q) {
	return !is_host(q->device) && q->role != MEMORY_FORWARD;
}

bool memory_can_stream(const struct memory_request *q) {
	return q->role == MEMORY_WORKER;
}

bool memory_can_divide(const struct memory_request *q) {
	return q->device->n > 1 && q->role != MEMORY_FORWARD && !inner_registry[q->run->inner]->whole_matrices;
}

/* Returns the bytes of all devices' slices of a vector, and those of a device's windows. */
static size_t slices_of(const struct plan_input *in) {
	size_t bytes = 0;
	for (int i = 0; i < in->q->device->n; i++) {
		const struct comm_slice s = comm_slice_of(in->n, in->q->device->n, i);
		bytes += block((s.end - s.begin) * sizeof(float));
	}
	return bytes;
}

static size_t windows_of(const struct plan_input *in, size_t element_bytes) {
	size_t bytes = 0;
	for (int i = 0; i < WINDOWS; i++)
		bytes += block(in->windows[i] * element_bytes);
	return bytes;
}

/* Plans weights, gradients and moments of k parts, which are in `replicas`. */
static void plan_vectors(const struct plan_input *in, enum dtype act, int replicas, int k, struct memory_plan *p) {
	const bool forward = in->q->role == MEMORY_FORWARD, converts = act != DTYPE_F32;
	const size_t parts = (size_t)k, whole = parts * block(vectors(in, 1)), slices = (size_t)replicas * slices_of(in);
	const size_t divided = slices + parts * windows_of(in, sizeof(float));
	const size_t copy = in->zero == ZERO_WEIGHTS ? windows_of(in, dtype_bytes(act)) : block(in->n * dtype_bytes(act));
	const size_t weights = in->zero == ZERO_WEIGHTS ? divided : whole, moments = forward ? 0 : moments_of(in, replicas);
	const size_t scratch = parts * block(in->inner_floats * sizeof(float));
	p->parameters = (converts ? parts * copy : 0) + (in->offload ? 0 : weights);
	p->gradients = forward ? 0 : in->zero == ZERO_MOMENTS ? whole : divided;
	p->moments = (in->offload ? 0 : moments) + (forward ? 0 : (in->q->run->prox_mu > 0 ? slices : 0) + scratch);
	p->offloaded = in->offload ? weights + moments : 0;
}

static enum rv_err plan_model(const struct plan_input *in, struct memory_plan *p, struct rv_errtext *et) {
	const struct memory_request *q = in->q;
	const bool forward = q->role == MEMORY_FORWARD;
	const int replicas = q->role == MEMORY_LAB ? q->replicas : 1, k = replicas * q->device->n;
	const enum dtype act = act_of(q);
	const struct model_options options = {
		.max_batch = forward ? 1 : in->micro_batch, .recompute = q->savings.recompute, .forward_only = forward};
	size_t activations;
	RV_TRY(model_activation_bytes(in->family, &in->shape, &options, act, &activations, et));
	p->n_params = in->n;
	plan_vectors(in, act, replicas, k, p);
	p->devices = q->device->n;
	p->on_device = !is_host(q->device);
	p->activations = (size_t)k * block(activations);
	p->cache = forward ? model_cache_elems(&in->shape) * dtype_bytes(act) : 0;
	const bool has_mirror = (p->on_device && !in->offload) || in->zero == ZERO_WEIGHTS;
	p->host = (size_t)k * 3 * in->tokens * sizeof(float) + (has_mirror ? vectors(in, replicas) : 0);
	return plan_workspace(in, act, (size_t)k, p, et);
}

/* Returns how many vectors of outer/eager.h a worker keeps. */
static int own_vectors(const struct run_config *run, const struct global_config *g) {
	const bool own_chain = run->updates == UPDATES_EAGER;
	return run_config_is_late(run) ? 1 + (own_chain ? g->optimizer->n_states : 0) : 0;
}

/* Returns what a worker has for an audit of training: another one's contribution and its own, and
 * weights that one of them has moved; or, to repeat steps, another one's inner state, and its
 * weights before and after them. */
static size_t audit_bytes(const struct plan_input *in, const struct global_config *g) {
	const struct run_config *run = in->q->run;
	const size_t contributions = 2 * global_max_sent_bytes(g);
	if (!run_config_is_scored(run))
		return 0;
	if (run_config_is_repeated(run) && in->q->savings.moments == MOMENTS_FP32)
		return contributions + vectors(in, 4) + (REPEAT_PIECES + 1) * (size_t)INNER_PIECE_BYTES;
	return contributions + vectors(in, 1);
}

/* Plans the outer state and what roles that have one exchange and write. */
static enum rv_err plan_outer(const struct plan_input *in, struct memory_plan *p, struct rv_errtext *et) {
	const struct memory_request *q = in->q;
	const struct rv_hash nameless = {{0}};
	struct global_config g;
	RV_TRY(global_config_of(q->run, in->n, &in->layers, &nameless, &g, et));
	const size_t payload = global_max_payload_bytes(&g), state = vectors(in, 1 + global_states(&g));
	p->outer = state;
	const int own = own_vectors(q->run, &g);
	const size_t saved = saved_bytes(in) + vectors(in, (q->run->error_feedback > 0) + own);
	p->outer += vectors(in, own * (q->role == MEMORY_LAB ? q->replicas : 1));
	if (q->run->error_feedback > 0)
		p->outer += vectors(in, RESIDUAL_VECTORS * (q->role == MEMORY_LAB ? q->replicas : 1));
	if (q->run->mean_feedback > 0) /* of one's own chunks; ownership may be with any member in time */
		p->outer += vectors(in, RESIDUAL_VECTORS);
	if (q->role == MEMORY_LAB) {
		p->exchange = (size_t)q->replicas * global_max_sent_bytes(&g) + payload;
		p->copies = state + saved * (size_t)q->replicas;
	} else {
		/* Hashes: the tree of the own contribution, the leaves of contributions to own chunks, the
		 * means. */
		p->exchange = WORKER_PAYLOADS / 2 * (payload + global_max_sent_bytes(&g)) +
					  (merkle_nodes(g.chunks.n_chunks) + 2 * (size_t)g.chunks.n_chunks) * sizeof(struct rv_hash);
		bool encodings = run_config_overlap(q->run) > 0 || q->run->error_feedback > 0;
		const size_t replicas = encodings ? 2 : 1; /* copies for a snapshot and the next encoding */
		p->copies = q->savings.stream && memory_can_stream(q) ? 0 : state + saved * replicas;
		p->audit = audit_bytes(in, &g);
	}
	return RV_OK;
}

/* Returns the mapped bytes that a run touches, including pages that the kernel maps around a
 * sequence. The kernel reclaims them when memory is short. */
static size_t touched_bytes(const struct memory_request *q) {
	const struct run_config *c = q->run;
	double sequences =
		(double)c->rounds * (double)c->steps_per_round * (double)(c->batch * c->grad_accum) * q->replicas;
	double most = sequences * (double)FAULT_AROUND_BYTES;
	return most < (double)q->mapped_bytes ? (size_t)most : (size_t)q->mapped_bytes;
}

enum rv_err memory_plan_make(const struct memory_request *q, struct memory_plan *out, struct rv_errtext *et) {
	RV_ASSERT(q->replicas >= 1 && q->threads >= 0);
	struct plan_input in;
	*out = (struct memory_plan){.n_params = 0};
	RV_TRY(resolve(q, &in, et));
	RV_TRY(plan_model(&in, out, et));
	if (q->role == MEMORY_LAB || q->role == MEMORY_WORKER)
		RV_TRY(plan_outer(&in, out, et));
	if (q->role == MEMORY_DDP)
		out->copies = saved_bytes(&in);
	out->outer += vectors(&in, q->extra_vectors);
	out->data = touched_bytes(q);
	const int backends = q->role == MEMORY_LAB ? q->parallel : 1;
	const bool alone = q->role == MEMORY_REPLICA;
	out->program = PROGRAM_BYTES + (alone ? 0 : DATA_BYTES) + (q->role == MEMORY_WORKER ? NETWORK_BYTES : 0) +
				   (size_t)backends * (size_t)(q->threads ? q->threads : 1) * THREAD_BYTES;
	return RV_OK;
}

/* The printed entries, in order. */
static const struct entry {
	const char *name;
	size_t offset;
} entries[] = {
	{"parameters", offsetof(struct memory_plan, parameters)},
	{"gradients", offsetof(struct memory_plan, gradients)},
	{"moments", offsetof(struct memory_plan, moments)},
	{"activations", offsetof(struct memory_plan, activations)},
	{"outer state", offsetof(struct memory_plan, outer)},
	{"exchange", offsetof(struct memory_plan, exchange)},
	{"copies", offsetof(struct memory_plan, copies)},
	{"audits", offsetof(struct memory_plan, audit)},
	{"cache", offsetof(struct memory_plan, cache)},
	{"workspace", offsetof(struct memory_plan, workspace)},
	{"offloaded", offsetof(struct memory_plan, offloaded)},
	{"host", offsetof(struct memory_plan, host)},
	{"data", offsetof(struct memory_plan, data)},
	{"program", offsetof(struct memory_plan, program)},
};
enum { ENTRIES = sizeof entries / sizeof entries[0] };

static size_t bytes_at(const struct memory_plan *p, int i) {
	size_t bytes;
	memcpy(&bytes, (const char *)p + entries[i].offset, sizeof bytes);
	return bytes;
}

static size_t mib(size_t bytes) {
	return (bytes + MIB / 2) / MIB;
}

size_t memory_plan_total(const struct memory_plan *p) {
	size_t sum = 0;
	for (int i = 0; i < ENTRIES; i++)
		sum += bytes_at(p, i);
	return sum;
}

size_t memory_plan_device(const struct memory_plan *p) {
	if (!p->on_device)
		return memory_plan_total(p);
	size_t all = p->parameters + p->gradients + p->moments + p->activations + p->cache + p->workspace;
	return all / (size_t)p->devices;
}

size_t memory_plan_least_device(const struct memory_plan *p) {
	return memory_plan_device(p) - p->spare / (p->on_device ? (size_t)p->devices : 1);
}

size_t memory_plan_host(const struct memory_plan *p) {
	return memory_plan_total(p) - (p->on_device ? memory_plan_device(p) * (size_t)p->devices : 0);
}

void memory_plan_line(const struct memory_plan *p, char *out, size_t cap) {
	size_t used = (size_t)snprintf(out, cap, "memory: %zu MiB", mib(memory_plan_total(p)));
	const char *separator = ": ";
	for (int i = 0; i < ENTRIES && used < cap; i++)
		if (mib(bytes_at(p, i)) > 0) {
			used +=
				(size_t)snprintf(out + used, cap - used, "%s%s %zu", separator, entries[i].name, mib(bytes_at(p, i)));
			separator = ", ";
		}
}
