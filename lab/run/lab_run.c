/* lab_run.c: shared by all methods: replicas, their backends, inner steps, evaluation. */
#include "lab/run/lab_run.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "base/round_number.h"

#include <stdlib.h>

uint32_t lab_run_member(const struct lab_run *r, int i) {
	return r->cfg.members ? r->cfg.members[i] : (uint32_t)i;
}

static enum rv_err new_replica(struct lab_run *r, int i, struct rv_errtext *et) {
	const struct lab_config *c = &r->cfg;
	const struct device_choice *device = c->devices ? &c->devices[i] : &c->device;
	const struct backend_options backend = {.threads = c->threads,
											.compute = c->compute ? c->compute[i]
																  : run_config_compute(&c->run, device, c->isa),
											.isa = c->isa};
	uint32_t n_shards = c->run.data_hash[0] ? 1 : (uint32_t)c->run.data_shards;
	const struct replica_options options = {.shard = lab_run_member(r, i) % n_shards,
											.n_shards = n_shards,
											.host_threads = c->threads,
											.savings = c->savings_of ? c->savings_of[i] : c->savings,
											.step_shards = c->method->averages ? 1 : c->workers,
											.initial_theta = c->initial_theta};
	RV_TRY(device_set_open(&r->devices[i], device, &backend, et));
	return replica_new_on(&c->run, r->data, &options, &r->devices[i], &r->replicas[i], et);
}

/* Makes the outer state, as a worker of the run makes it from the same configuration. */
static enum rv_err new_global(struct lab_run *r, struct rv_errtext *et) {
	struct global_config g;
	RV_TRY(global_config_of(&r->cfg.run, replica_n_params(r->replicas[0]),
							&replica_model(r->replicas[0])->layout.layers, &r->cfg.run_hash, &g, et));
	RV_TRY(global_init(&r->global, &g, replica_theta(r->replicas[0]), et));
	r->reduced = calloc(1, global_max_payload_bytes(&g));
	if (!r->reduced)
		return rv_fail(et, RV_E_NOMEM, "no memory for a mean of %zu bytes", global_max_payload_bytes(&g));
	RV_TRY(mean_residual_init(&r->mean_residual, &r->cfg.run, &g, et));
	for (int i = 0; !r->cfg.method->codec && i < r->n_replicas; i++)
		RV_TRY(
			participant_init(&r->participants[i], &participant_replica, r->replicas[i], &r->cfg.run, &r->global, et));
	return RV_OK;
}

static enum rv_err new_extra(struct lab_run *r, struct rv_errtext *et) {
	const struct lab_method *m = r->cfg.method;
	size_t n = r->global.cfg.n;
	r->n_extra = m->n_extra ? m->n_extra(r->n_replicas, r->global.cfg.optimizer->n_states) : 0;
	RV_ASSERT(r->n_extra <= LAB_MAX_EXTRA);
	for (int i = 0; i < r->n_extra; i++)
		if (!(r->extra[i] = calloc(n, sizeof(float))))
			return rv_fail(et, RV_E_NOMEM, "no memory for %d vectors of %zu parameters", r->n_extra, n);
	return RV_OK;
}

static enum rv_err build(struct lab_run *r, struct rv_errtext *et) {
	for (int i = 0; i < r->n_replicas; i++) {
		enum rv_err e = new_replica(r, i, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "replica %d of %d", i + 1, r->n_replicas);
	}
	lab_leases_init(r);
	if (!r->cfg.method->averages)
		return RV_OK;
	RV_TRY(new_global(r, et));
	RV_TRY(new_extra(r, et));
	if (r->cfg.method->open)
		RV_TRY(r->cfg.method->open(r, et));
	if (r->cfg.method->start)
		r->cfg.method->start(r);
	return RV_OK;
}

enum rv_err lab_run_new(const struct lab_config *cfg, const struct dataset *data, struct lab_run **out,
						struct rv_errtext *et) {
	RV_ASSERT(cfg->workers >= 1 && cfg->workers <= LAB_MAX_WORKERS);
	*out = NULL;
	struct lab_run *r = calloc(1, sizeof *r);
	if (!r)
		return rv_fail(et, RV_E_NOMEM, "no memory for a run");
	r->cfg = *cfg;
	r->data = data;
	r->n_replicas = cfg->method->n_replicas(cfg->workers);
	enum rv_err e = build(r, et);
	if (e != RV_OK) {
		lab_run_free(r);
		return e;
	}
	*out = r;
	return RV_OK;
}

void lab_run_free(struct lab_run *r) {
	if (!r)
		return;
	for (int i = 0; i < r->n_replicas; i++) {
		participant_release(&r->participants[i]);
		replica_free(r->replicas[i]);
		device_set_close(&r->devices[i]);
	}
	for (int i = 0; i < r->n_extra; i++)
		free(r->extra[i]);
	if (r->cfg.method->close)
		r->cfg.method->close(r);
	free(r->reduced);
	mean_residual_release(&r->mean_residual);
	global_release(&r->global);
	free(r);
}

void lab_run_stop(struct lab_run *r) {
	atomic_store(&r->stop, true);
}

bool lab_run_finished(const struct lab_run *r) {
	return r->rounds_done == (uint64_t)r->cfg.run.rounds;
}

uint64_t lab_run_steps(const struct lab_run *r) {
	return r->rounds_done * (uint64_t)r->cfg.run.steps_per_round;
}

/* Returns true if replica i computes in this thread alone: its time is then this thread's processor
 * time, which other replicas and processes on the same cores do not lengthen. */
static bool computes_alone(const struct lab_run *r, int i) {
	const struct device_choice *device = &r->devices[i].choice;
	return r->cfg.threads == 1 && device->n == 1 && !device_is_gpu(device);
}

void lab_run_inner_steps(struct lab_run *r, int i, uint64_t goal, lab_step_fn *step) {
	const bool alone = computes_alone(r, i);
	const int64_t started_us = alone ? rv_clock_thread_us() : rv_clock_monotonic_us();
	r->faults[i] = RV_OK;
	lab_leases_read(r, i);
	while (replica_global_step(r->replicas[i]) < goal && r->faults[i] == RV_OK) {
		if (atomic_load(&r->stop)) {
			r->faults[i] = rv_fail(&r->fault_texts[i], RV_E_CANCELLED, "stopped");
			break;
		}
		r->faults[i] = step(r, i, &r->last[i], &r->fault_texts[i]);
		if (r->faults[i] == RV_E_BUSY) { /* its leases end here */
			r->faults[i] = RV_OK;
			break;
		}
		if (r->faults[i] != RV_OK)
			break;
		r->sums[i].loss += (double)r->last[i].loss;
		r->sums[i].steps++;
		r->sums[i].tokens += r->last[i].tokens;
		atomic_fetch_add(&r->steps_done, 1);
	}
	r->sums[i].compute_us += (alone ? rv_clock_thread_us() : rv_clock_monotonic_us()) - started_us;
}

uint64_t lab_run_kept_steps(const struct lab_run *r, int i) {
	bool overlaps = run_config_overlap(&r->cfg.run) > 0; /* then no worker misses a round */
	return overlaps ? 0 : r->participants[i].steps_done - r->sums[i].steps;
}

/* Returns true if one replica stands for all workers. */
static bool stands_for_all(const struct lab_run *r) {
	return r->n_replicas < r->cfg.workers;
}

enum rv_err lab_run_first_fault(const struct lab_run *r, struct rv_errtext *et) {
	for (int i = 0; i < r->n_replicas; i++)
		if (r->faults[i] != RV_OK && r->faults[i] != RV_E_CANCELLED)
			return stands_for_all(r) ? rv_fail(et, r->faults[i], "%s", r->fault_texts[i].text)
									 : rv_fail(et, r->faults[i], "worker %d: %s", i, r->fault_texts[i].text);
	for (int i = 0; i < r->n_replicas; i++)
		if (r->faults[i] == RV_E_CANCELLED)
			return rv_fail(et, RV_E_CANCELLED, "stopped in round %llu",
						   (unsigned long long)round_number(r->rounds_done));
	return RV_OK;
}

static void tick(void *ctx) {
	struct lab_run *r = ctx;
	if (r->tick)
		r->tick(r->tick_ctx);
}

enum rv_err lab_run_for_all(struct lab_run *r, void (*fn)(void *ctx, int i), struct rv_errtext *et) {
	const struct parallel_loop loop = {
		.n = r->n_replicas, .threads = r->cfg.parallel, .fn = fn, .tick = tick, .ctx = r};
	RV_TRY(parallel_run(&loop, et));
	return lab_run_first_fault(r, et);
}

int lab_run_diverged_worker(const struct lab_run *r) {
	for (int i = 0; i < r->n_replicas && !stands_for_all(r); i++)
		if (r->faults[i] == RV_E_RANGE)
			return i;
	return -1;
}

/* Moves the sums of the replicas' rounds into one record, and zeroes them. */
static void collect(struct lab_run *r, struct lab_round *out) {
	uint64_t steps = 0;
	for (int i = 0; i < r->n_replicas; i++) {
		out->train_loss += r->sums[i].loss;
		out->tokens += r->sums[i].tokens;
		out->compute_us += r->sums[i].compute_us / r->cfg.workers;
		steps += r->sums[i].steps;
		r->sums[i] = (struct lab_worker_sums){0};
	}
	out->train_loss /= (double)steps;
	out->lr = r->last[0].lr;
	out->grad_norm = r->last[0].grad_norm;
}

enum rv_err lab_run_round(struct lab_run *r, struct lab_round *out, struct rv_errtext *et) {
	RV_ASSERT(!lab_run_finished(r));
	*out = (struct lab_round){.participants = r->cfg.workers};
	RV_TRY(r->cfg.method->round(r, out, et));
	if (!r->participants[0].ops)
		lab_leases_commit_read(r);
	collect(r, out);
	r->rounds_done++;
	/* Counts progress in rounds: workers of other speeds take other numbers of steps. */
	atomic_store(&r->steps_done, lab_run_steps(r) * (uint64_t)r->n_replicas);
	r->tokens_done += out->tokens;
	r->bytes_sent += out->bytes;
	return RV_OK;
}

enum rv_err lab_run_eval(struct lab_run *r, double *loss, struct rv_errtext *et) {
	return replica_eval(r->replicas[0], r->cfg.method->theta(r), r->cfg.eval_tokens, loss, et);
}
