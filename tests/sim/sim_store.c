/* sim_store.c: the storage thread: jobs of the session core, and files that are fetched, one after
 * the other. The steps of a job are worker/store_job's; a process may die between any two of
 * them. */
#include "sim.h"

#include "worker/state/checkpoint_goes.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* ---- the queue ---- */

static sim_fire begin_first;

static void schedule_first(struct sim *s, int host) {
	sim_at(s, s->now_us, host, s->workers[host].life, begin_first, NULL);
}

static void push(struct sim *s, int host, const struct sim_task *task) {
	struct sim_task **last = &s->workers[host].tasks, *copy = sim_alloc(sizeof *copy);
	bool first = *last == NULL;
	*copy = *task;
	while (*last != NULL)
		last = &(*last)->next;
	*last = copy;
	if (first)
		schedule_first(s, host);
}

void store_next(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	struct sim_task *first = w->tasks;
	RV_ASSERT(first != NULL);
	w->tasks = first->next;
	free((void *)first->step.data);
	free(first);
	if (w->tasks != NULL)
		schedule_first(s, host);
}

static void release_copy(struct sim_copy *copy) {
	if (copy == NULL)
		return;
	free(copy->snapshot);
	free(copy->replica);
	free(copy);
}

static void release(void *ctx, struct store_job *j) {
	(void)ctx;
	release_copy(j->copy.handle);
	blob_unref(j->reduced);
	blob_unref(j->left);
}

void store_end(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	(void)s;
	while (w->tasks != NULL) {
		struct sim_task *first = w->tasks;
		w->tasks = first->next;
		if (first->part == NULL)
			release(w, &first->job);
		free((void *)first->step.data);
		free(first);
	}
}

/* ---- steps of a job ---- */

static void go_on(struct sim *s, int host);

static void did(struct sim *s, int host, enum rv_err e) {
	struct sim_worker *w = &s->workers[host];
	struct rv_errtext et = {0};
	if (e != RV_OK)
		(void)rv_fail(&et, e, "the disk refuses");
	store_job_did(&w->store_thread, &w->tasks->job, e, &et);
}

static void written(struct sim *s, int host, uint64_t tag, bool ok) {
	(void)tag;
	did(s, host, ok ? RV_OK : RV_E_FULL);
	go_on(s, host);
}

static void write_log(struct sim *s, int host, struct store_job *j) {
	size_t n;
	j->log.digest = global_digest(&s->workers[host].global, j->log.round, j->reduced->data);
	uint8_t *bytes = files_log(s, &j->log, j->reduced->data, &n);
	disk_write(s, host, FILE_LOG, j->log.round, bytes, n, written, 0);
	free(bytes);
}

/* true: it goes on when it is written. */
static bool begins_to_write(struct sim *s, int host, struct store_job *j) {
	const struct sim_copy *copy = j->copy.handle;
	switch (j->step) {
	case STORE_STEP_MEANS:
		disk_write(s, host, FILE_MEANS, means_file_of(&s->global_config, j->log.round), j->left->data, j->left->bytes,
				   written, 0);
		return true;
	case STORE_STEP_LOG:
		write_log(s, host, j);
		return true;
	case STORE_STEP_REPLICA:
		disk_write(s, host, FILE_REPLICA, 0, copy->replica, copy->n_replica, written, 0);
		return true;
	case STORE_STEP_SNAPSHOT:
		j->full_hash = copy->full_hash;
		disk_write(s, host, FILE_SNAPSHOT, j->copy.snapshot_round, copy->snapshot, copy->n_snapshot, written, 0);
		return true;
	default:
		return false;
	}
}

/* A disk that is read-only removes nothing either. */
static enum rv_err remove_or_fail(struct sim *s, int host, enum file_kind kind, uint64_t round) {
	struct sim_disk *d = &s->workers[host].disk;
	if (d->read_only)
		return RV_E_IO;
	disk_remove(d, kind, round);
	return RV_OK;
}

static enum rv_err forget(struct sim *s, int host, const struct store_job *j) {
	if (s->workers[host].disk.read_only)
		return RV_E_IO;
	recovery_forget_from(s, host, j);
	return RV_OK;
}

static enum rv_err prune(struct sim *s, int host, const struct store_job *j) {
	if (s->workers[host].disk.read_only)
		return RV_E_IO;
	recovery_prune(s, host, &j->named);
	return RV_OK;
}

static enum rv_err adopt(struct sim_disk *d, uint64_t round) {
	if (d->read_only)
		return RV_E_IO;
	return disk_adopt(d, round) ? RV_OK : RV_E_NOTFOUND;
}

static enum rv_err at_once(struct sim *s, int host, struct store_job *j) {
	struct sim_disk *d = &s->workers[host].disk;
	switch (j->step) {
	case STORE_STEP_REMOVE_LOG:
		return remove_or_fail(s, host, FILE_LOG, s->workers[host].store_thread.stale);
	case STORE_STEP_FORGET:
		return forget(s, host, j);
	case STORE_STEP_ADOPT:
		return adopt(d, j->round);
	case STORE_STEP_REMOVE_PART:
		return remove_or_fail(s, host, FILE_PART, j->round);
	case STORE_STEP_REMOVE_REPLICA:
		return remove_or_fail(s, host, FILE_REPLICA, 0);
	case STORE_STEP_HASH:
		j->full_hash = ((const struct sim_copy *)j->copy.handle)->full_hash;
		return RV_OK;
	case STORE_STEP_PRUNE:
		return prune(s, host, j);
	case STORE_STEP_EXPORT:
		return d->full ? RV_E_FULL : RV_OK;
	case STORE_STEP_PROBE:
		return d->full ? RV_E_FULL : RV_OK;
	default:
		RV_UNREACHABLE("a step that writes");
	}
}

static void go_on(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	struct store_job *j = &w->tasks->job;
	while (j->step != STORE_STEP_END) {
		if (begins_to_write(s, host, j))
			return;
		did(s, host, at_once(s, host, j));
	}
	struct store_job done = *j;
	store_next(s, host);
	session_core_on_stored(w->session, s->now_us, &done);
	worker_turn(s, host);
}

/* ---- files that are fetched ---- */

void store_post_step(struct sim *s, int host, struct sim_part *part, const struct fetcher_job *step) {
	push(s, host, &(struct sim_task){.part = part, .step = *step});
}

static void begin_first(struct sim *s, int host, void *arg) {
	(void)arg;
	struct sim_worker *w = &s->workers[host];
	RV_ASSERT(w->tasks != NULL);
	if (w->tasks->part != NULL) {
		fetch_run_step(s, host);
		return;
	}
	store_job_begin(&w->store_thread, &w->tasks->job);
	go_on(s, host);
}

/* ---- the session core's disk ---- */

static bool post(void *ctx, const struct store_job *j) {
	struct sim_worker *w = ctx;
	if (j->kind == STORE_PERSIST)
		sums_keep(w);
	push(w->sim, w->host, &(struct sim_task){.job = *j});
	return true;
}

static bool idle(void *ctx) {
	return ((struct sim_worker *)ctx)->tasks == NULL;
}

const struct session_disk_ops sim_disk_ops = {.post = post, .release = release, .idle = idle};
