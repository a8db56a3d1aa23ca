/* copies.c: the state for the storage thread, as of the moment that it is asked for: a copy, or,
 * where memory is short, the state itself, which does not change until it is read. */
#include "worker/trainer/internal.h"

#include "base/assert.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

/* ---- on the trainer thread ---- */

/* Memory of the last copy, touched already, when the storage thread has done with it: fresh pages
 * cost more than the copying. NULL: there is none. */
static struct blob *copy_buffer(struct blob **spare, size_t bytes) {
	if (*spare && (blob_is_shared(*spare) || (*spare)->bytes != bytes)) {
		blob_unref(*spare);
		*spare = NULL;
	}
	if (!*spare)
		*spare = blob_new(bytes);
	return *spare ? blob_ref(*spare) : NULL;
}

static void no_memory(struct state_copy *copy, uint64_t round, size_t bytes) {
	copy->err = rv_fail(&copy->text, RV_E_NOMEM, "no memory to copy the state of round %llu (%zu bytes)",
						(unsigned long long)round, bytes);
}

static void hold(struct trainer *t, struct trainer_copy *s, enum live_part part) {
	live_hold(&t->live, part);
	s->live = &t->live;
	s->holds[part] = true;
}

/* Makes s->snapshot the shared state where it lies, or in `to`. */
static void view_snapshot(const struct global_state *g, struct trainer_copy *s, float *to) {
	s->snapshot =
		(struct global_state){.cfg = g->cfg, .theta = to ? to : g->theta, .round = g->round, .chain = g->chain};
	for (int k = 0; k < global_states(&g->cfg); k++)
		s->snapshot.state[k] = to ? to + (size_t)(k + 1) * g->cfg.n : g->state[k];
}

static void begin_snapshot(struct trainer *t, struct trainer_copy *s, struct state_copy *copy) {
	const struct global_state *g = &t->global;
	const size_t bytes = state_payload_bytes(&g->cfg, STATE_KIND_SNAPSHOT, g->round);
	if (t->streams)
		hold(t, s, LIVE_SHARED);
	else
		s->snapshot_bytes = copy_buffer(&t->spare_snapshot, bytes);
	if (!t->streams && !s->snapshot_bytes) {
		no_memory(copy, g->round, bytes);
		return;
	}
	view_snapshot(g, s, t->streams ? NULL : (float *)(void *)s->snapshot_bytes->data);
	copy->has_snapshot = true;
	copy->snapshot_round = g->round;
}

static enum rv_err stream_replica(struct trainer *t, struct trainer_copy *s) {
	s->room = malloc(REPLICA_PIECE_BYTES);
	if (!s->room)
		return RV_E_NOMEM;
	hold(t, s, LIVE_REPLICA);
	replica_stream_begin(t->replica, &s->stream, s->room);
	return RV_OK;
}

/* RV_E_NOMEM; RV_E_CANCELLED: the worker rests, and the copy from a device takes too long. */
static enum rv_err take_replica(struct trainer *t, struct trainer_copy *s) {
	const int64_t by_us = atomic_load(&t->rests_by_us);
	if (t->streams)
		return stream_replica(t, s);
	s->replica_bytes = copy_buffer(&t->spare_replica, replica_state_bytes(t->replica));
	if (!s->replica_bytes)
		return RV_E_NOMEM;
	replica_copy_head(t->replica, s->replica_bytes->data);
	if (!replica_is_on_device(t->replica) ||
		replica_copy_vectors(t->replica, s->replica_bytes->data, by_us > 0 ? by_us : INT64_MAX))
		return RV_OK;
	blob_unref(s->replica_bytes);
	s->replica_bytes = NULL;
	return RV_E_CANCELLED;
}

static void begin_replica(struct trainer *t, struct trainer_copy *s, struct state_copy *copy) {
	const struct participant *p = &t->participant;
	const enum rv_err e = take_replica(t, s);
	if (e == RV_E_NOMEM)
		no_memory(copy, t->global.round, replica_state_bytes(t->replica));
	if (e != RV_OK)
		return;
	s->replica = (struct state_replica_info){.round = t->global.round,
											 .chain = t->global.chain,
											 .steps_done = p->steps_done,
											 .tokens = p->tokens,
											 .first = p->first,
											 .sequences = p->sequences,
											 .payload_bytes = replica_state_bytes(t->replica)};
	copy->has_replica = true;
}

/* The replica first: an inner step waits for it, and an outer step for the snapshot. */
static int parts_of(struct trainer *t, const struct trainer_copy *s, struct copy_part *parts) {
	const struct global_state *g = &t->global;
	struct replica_vector list[REPLICA_MAX_VECTORS];
	int n = 0, n_list = 0;
	if (s->replica_bytes && !replica_is_on_device(t->replica))
		n_list = replica_vectors(t->replica, list);
	for (int i = 0; i < n_list; i++)
		parts[n++] = (struct copy_part){s->replica_bytes->data + list[i].at, list[i].from, list[i].bytes};
	for (int k = -1; s->snapshot_bytes && k < global_states(&g->cfg); k++)
		parts[n++] = (struct copy_part){k < 0 ? s->snapshot.theta : s->snapshot.state[k],
										k < 0 ? g->theta : g->state[k], g->cfg.n * sizeof(float)};
	return n;
}

static void on_copied(void *copy) {
	struct trainer_copy *s = copy;
	pthread_mutex_lock(&s->lock);
	s->copied = true;
	pthread_cond_broadcast(&s->is_copied);
	pthread_mutex_unlock(&s->lock); /* it may be freed from here on */
}

static struct trainer_copy *new_copy(struct state_copy *out) {
	struct trainer_copy *s = calloc(1, sizeof *s);
	*out = (struct state_copy){.handle = s};
	if (!s) {
		out->err = rv_fail(&out->text, RV_E_NOMEM, "no memory for a copy of the state");
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->is_copied, NULL);
	return s;
}

/* Vectors in the host's memory are copied while training goes on: until the first change of any of
 * them. */
void trainer_take_copy(struct request *rq, bool snapshot, bool replica) {
	struct trainer *t = rq->t;
	struct state_copy *copy = &rq->answer.copy;
	struct copy_part parts[COPIER_MAX_PARTS];
	const int64_t started_us = rv_clock_monotonic_us();
	struct trainer_copy *s = new_copy(copy);
	rq->answer.has_copy = true;
	if (s && snapshot)
		begin_snapshot(t, s, copy);
	if (s && replica)
		begin_replica(t, s, copy);
	if (s && t->streams)
		s->copied = true;
	else if (s)
		copier_start(t->copier, parts, parts_of(t, s, parts), on_copied, s);
	trainer_count_time(t, &t->progress.copy_us, started_us);
}

void trainer_settle(void *trainer) {
	struct trainer *t = trainer;
	const int64_t started_us = rv_clock_monotonic_us();
	copier_wait(t->copier);
	live_wait(&t->live, LIVE_REPLICA);
	trainer_count_time(t, &t->progress.copy_us, started_us);
}

void trainer_settle_shared(struct trainer *t) {
	const int64_t started_us = rv_clock_monotonic_us();
	copier_wait(t->copier);
	live_wait(&t->live, LIVE_SHARED);
	trainer_count_time(t, &t->progress.copy_us, started_us);
}

/* ---- giving memory back ---- */

bool trainer_may_save_at_rest(const struct trainer *t) {
	const bool has_room = !t->spare_replica || !blob_is_shared(t->spare_replica);
	return has_room && !t->streams;
}

/* Closes the devices, and keeps what is known of them. */
static void close_devices(struct trainer *t) {
	struct device_set open = t->devices;
	device_set_close(&open);
	memset(t->devices.be, 0, sizeof t->devices.be);
}

void trainer_give_back(struct trainer *t) {
	RV_ASSERT(atomic_load(&t->ending) && trainer_idle(t));
	if (t->gave_back || !live_is_free(&t->live))
		return;
	t->gave_back = true;
	copier_wait(t->copier);
	blob_unref(t->spare_replica);
	blob_unref(t->spare_snapshot);
	t->spare_replica = t->spare_snapshot = NULL;
	t->participant.ops->unpin(&t->participant.device);
	replica_give_back(t->replica);
	close_devices(t);
}

/* ---- on the storage thread ---- */

void trainer_copy_wait(struct trainer_copy *s) {
	pthread_mutex_lock(&s->lock);
	while (!s->copied)
		pthread_cond_wait(&s->is_copied, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

static void let_go(struct trainer_copy *s, enum live_part part) {
	if (s->holds[part] && part == LIVE_REPLICA && live_begin_piece(s->live)) {
		replica_stream_drop(&s->stream);
		live_end_piece(s->live);
	}
	if (s->holds[part])
		live_let_go(s->live, part);
	s->holds[part] = false;
}

void trainer_copy_read(struct trainer_copy *s) {
	for (int i = 0; i < LIVE_PARTS; i++)
		let_go(s, (enum live_part)i);
}

static const void *next_of_stream(void *copy, size_t *n) {
	struct trainer_copy *s = copy;
	if (!live_begin_piece(s->live))
		return NULL;
	const void *piece = replica_stream_next(&s->stream, n);
	live_end_piece(s->live);
	if (!piece)
		let_go(s, LIVE_REPLICA); /* training goes on while the disk is waited for */
	return piece;
}

struct state_pieces_of trainer_copy_replica(struct trainer_copy *s) {
	if (s->holds[LIVE_REPLICA])
		return (struct state_pieces_of){s, next_of_stream};
	replica_seal(s->replica_bytes->data, s->replica_bytes->bytes);
	s->whole = (struct state_whole){s->replica_bytes->data, s->replica_bytes->bytes};
	return state_pieces_of_whole(&s->whole);
}

void trainer_copy_free(struct trainer_copy *s) {
	if (!s)
		return;
	trainer_copy_wait(s);
	trainer_copy_read(s);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->is_copied);
	blob_unref(s->snapshot_bytes);
	blob_unref(s->replica_bytes);
	free(s->room);
	free(s);
}
