/* trainer.c: building the trainer, its requests and their answers. */
#include "worker/trainer/internal.h"

#include "base/assert.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- building ---- */

static enum rv_err open_devices(struct trainer *t, const struct trainer_config *cfg, struct rv_errtext *et) {
	struct device_choice choice;
	RV_TRY(device_choose(cfg->device, &choice, et));
	t->compute = run_config_compute(&t->run, &choice, "auto");
	const struct backend_options opt = {.threads = cfg->threads, .compute = t->compute, .isa = "auto"};
	return device_set_open(&t->devices, &choice, &opt, et);
}

static enum rv_err open_global(struct trainer *t, const struct trainer_config *cfg, struct rv_errtext *et) {
	struct global_config g;
	RV_TRY(global_config_of(&t->run, replica_n_params(t->replica), &replica_model(t->replica)->layout.layers,
							&cfg->run_hash, &g, et));
	RV_TRY(global_init(&t->global, &g, replica_theta(t->replica), et));
	RV_TRY(committer_init(&t->committer, &t->run, &g, et));
	return participant_init(&t->participant, &participant_replica, t->replica, &t->run, &t->global, et);
}

static struct blob *touched(size_t bytes) {
	struct blob *b = blob_new(bytes);
	if (b)
		memset(b->data, 0, bytes);
	return b;
}

static enum rv_err build(struct trainer *t, const struct trainer_config *cfg, struct rv_errtext *et) {
	const struct run_config *run = &t->run;
	RV_TRY(open_devices(t, cfg, et));
	const struct replica_options replica = {.shard = cfg->shard,
											.n_shards = run->data_hash[0] ? 1 : (uint32_t)run->data_shards,
											.savings = cfg->savings,
											.host_threads = cfg->threads,
											.initial_theta = cfg->initial_theta};
	RV_TRY(replica_new_on(run, t->data, &replica, &t->devices, &t->replica, et));
	replica_watch(t->replica, &t->ending);
	replica_abandon_with(t->replica, &t->abandons);
	RV_TRY(open_global(t, cfg, et));
	outer_device_reserve(t->replica, &t->global);
	RV_TRY(copier_new(&t->copier, et));
	replica_before_update(t->replica, trainer_settle, t);
	return jobs_new("trainer", t->owner.wake, t->owner.ctx, &t->jobs, et);
}

enum { READS_AGAIN = 120 };

enum rv_err trainer_new(const struct trainer_config *cfg, const struct trainer_owner *owner, struct trainer **out,
						struct rv_errtext *et) {
	struct trainer *t = calloc(1, sizeof *t);
	if (!t) {
		dataset_close(cfg->data);
		return rv_fail(et, RV_E_NOMEM, "no memory for the trainer");
	}
	t->run = *cfg->run;
	t->data = cfg->data;
	t->streams = cfg->savings.stream;
	t->reads_again = cfg->reads_again > 0 ? cfg->reads_again : READS_AGAIN;
	t->owner = *owner;
	t->progress.loss = t->progress.lr = t->progress.grad_norm = NAN;
	t->progress.last_round_loss = NAN;
	pthread_mutex_init(&t->lock, NULL);
	live_init(&t->live);
	enum rv_err e = build(t, cfg, et);
	if (e != RV_OK) {
		trainer_free(t);
		return e;
	}
	*out = t;
	return RV_OK;
}

void trainer_reserve_copies(struct trainer *t) {
	if (t->streams)
		return;
	t->spare_replica = touched(replica_state_bytes(t->replica));
	t->spare_snapshot = touched(state_payload_bytes(&t->global.cfg, STATE_KIND_SNAPSHOT, 0));
}

void trainer_free(struct trainer *t) {
	if (!t)
		return;
	atomic_store(&t->stop, true);
	atomic_store(&t->ending, true);
	live_end(&t->live);
	jobs_free(t->jobs);
	copier_free(t->copier);
	live_release(&t->live);
	blob_unref(t->spare_replica);
	blob_unref(t->spare_snapshot);
	participant_release(&t->participant);
	committer_release(&t->committer);
	global_release(&t->global);
	replica_free(t->replica);
	dataset_close(t->data);
	device_set_close(&t->devices);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- resuming ---- */

/* Returns true if the replica is of a later round than the run's begin, where the shared state is:
 * the run was taken back there (or the disk has lost all states before the first snapshot). At its
 * begin a replica has no moments and has read nothing, so it begins again as if the later rounds
 * had never been. A later round's own inner state is kept by nobody: that of a round after it is
 * better than none. */
static bool is_later_than_begin(const struct recovered *found, uint64_t round) {
	return round == 0 && found->replica.round > 0;
}

struct trainer_resumed trainer_resume(struct trainer *t, const struct recovered *found,
									  void (*notice)(void *ctx, enum rv_err why, const char *text), void *ctx) {
	struct rv_errtext et = {0};
	const struct state_replica_info *info = &found->replica;
	const bool wanted = found->has_replica && !is_later_than_begin(found, t->global.round);
	const bool loaded =
		wanted && replica_load_from(t->replica, &found->replica_payload, info->payload_bytes, &et) == RV_OK;
	if (wanted && !loaded)
		notice(ctx, RV_E_CORRUPT, et.text);
	bool exact = loaded && info->round == t->global.round && rv_hash_equal(&info->chain, &t->global.chain) &&
				 info->steps_done <= (uint64_t)t->run.steps_per_round;
	const struct participant_progress progress = {
		.steps_done = info->steps_done, .tokens = info->tokens, .first = info->first, .sequences = info->sequences};
	t->inner = (struct inner_roots){0};
	participant_resume(&t->participant, &t->global, exact, &progress);
	trainer_show_round(t, false);
	return (struct trainer_resumed){.saved = loaded, .exact = exact};
}

/* ---- requests ---- */

static void run_request(struct job *j) {
	trainer_work(JOB_OWNER(j, struct request, job));
}

static void request_done(struct job *j) {
	struct request *rq = JOB_OWNER(j, struct request, job);
	rq->t->owner.answered(rq->t->owner.ctx, &rq->answer);
	blob_unref(rq->asked.reduced);
	state_file_free(rq->asked.snapshot);
	rq->t = NULL;
}

/* Frees what the request and its answer hold: the owner does not get it. */
static void request_dropped(struct job *j) {
	struct request *rq = JOB_OWNER(j, struct request, job);
	trainer_copy_free(rq->answer.copy.handle);
	blob_unref(rq->asked.reduced);
	state_file_free(rq->asked.snapshot);
	rq->t = NULL;
}

static struct request *free_request(struct trainer *t) {
	for (int i = 0; i < TRAINER_MAX_REQUESTS; i++)
		if (!t->requests[i].t)
			return &t->requests[i];
	RV_UNREACHABLE("more requests than may be unanswered");
}

void trainer_request(struct trainer *t, const struct trainer_request *asked) {
	struct request *rq = free_request(t);
	const enum trainer_work work = asked->work;
	bool stops = work == TRAINER_APPLY || work == TRAINER_INSTALL || work == TRAINER_SAVE || work == TRAINER_END;
	RV_ASSERT(work < TRAINER_WORKS && (work == TRAINER_APPLY) == (asked->reduced != NULL));
	RV_ASSERT(!asked->snapshot || work == TRAINER_INSTALL);
	if (stops || work == TRAINER_TRAIN)
		atomic_store(&t->stop, stops);
	if (work == TRAINER_END)
		atomic_store(&t->ending, true);
	*rq = (struct request){
		.job = {.run = run_request, .done = request_done, .dropped = request_dropped}, .t = t, .asked = *asked};
	rq->answer = (struct trainer_answer){.work = work,
										 .round = asked->round,
										 .from = asked->from,
										 .last = asked->last,
										 .has_leases = asked->has_leases,
										 .started_over = asked->starts_over};
	if (asked->reduced)
		blob_ref(asked->reduced);
	atomic_fetch_add(&t->behind, 1);
	jobs_post(t->jobs, &rq->job);
}

/* ---- slices ---- */

static void slice_done(struct job *j) {
	struct trainer *t = JOB_OWNER(j, struct trainer, slice_job);
	t->slice_posted = atomic_load(&t->offered) != NULL; /* another one came meanwhile */
	if (t->slice_posted)
		jobs_post(t->jobs, j);
}

void trainer_offer(struct trainer *t, struct trainer_slice *s) {
	struct trainer_slice *before = atomic_exchange(&t->offered, s);
	RV_ASSERT(before == NULL && atomic_load(&t->sliced) == NULL);
	if (t->slice_posted)
		return;
	t->slice_posted = true;
	t->slice_job = (struct job){.run = trainer_slice_alone, .done = slice_done};
	jobs_post(t->jobs, &t->slice_job);
}

bool trainer_stops(struct trainer *t) {
	return atomic_load(&t->ending) || atomic_load(&t->slicing) ||
		   (atomic_load(&t->training) && atomic_load(&t->stop)) ||
		   (atomic_load(&t->scoring) && atomic_load(&t->behind) > 0);
}

void trainer_abandon(struct trainer *t) {
	atomic_store(&t->abandons, true);
}

void trainer_hurry(struct trainer *t, int64_t by_us) {
	RV_ASSERT(by_us > 0);
	atomic_store(&t->rests_by_us, by_us);
	if (t->streams)
		live_give_up(&t->live);
}

void trainer_reap(struct trainer *t) {
	jobs_reap(t->jobs);
	const struct trainer_slice *s = atomic_exchange(&t->sliced, NULL);
	if (s != NULL)
		t->owner.sliced(t->owner.ctx, s);
}

bool trainer_idle(struct trainer *t) {
	return jobs_idle(t->jobs);
}

struct trainer_progress trainer_progress(struct trainer *t) {
	pthread_mutex_lock(&t->lock);
	struct trainer_progress p = t->progress;
	pthread_mutex_unlock(&t->lock);
	return p;
}

struct global_state *trainer_global(struct trainer *t) {
	return &t->global;
}

const uint8_t *trainer_encoded(const struct trainer *t) {
	return t->participant.encoded;
}

const float *trainer_last_mean(const struct trainer *t) {
	return global_last_mean(&t->global);
}

const struct rv_hash *trainer_tree(const struct trainer *t) {
	return t->committer.nodes;
}

struct replica *trainer_replica(struct trainer *t) {
	return t->replica;
}

bool trainer_inner_is_there(const struct trainer *t) {
	return inner_state_is_there(t->replica);
}

enum dtype trainer_compute(const struct trainer *t) {
	return t->compute;
}

const struct device_choice *trainer_device_choice(const struct trainer *t) {
	return &t->devices.choice;
}

const char *trainer_device(const struct trainer *t) {
	return t->devices.description;
}
