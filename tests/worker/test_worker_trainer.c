/* test_worker_trainer.c: the trainer does what the same calls on a replica and a shared state would do, whatever it is
 * asked in between; and resumes exactly from what it saved. */
#include "base/hex.h"
#include "outer/contribution.h"
#include "train_fixture.h"
#include "worker/copier.h"
#include "worker/train/replica_internal.h"
#include "worker/train/weights.h"
#include "worker/trainer.h"

#include <math.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { H = 4 };

/* Memory is short: for small things on this thread, and for large ones on any. */
static _Thread_local bool no_small_memory;
static atomic_bool no_large_memory;
enum { LARGE_BYTES = 1 << 12 };

void *__real_malloc(size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);

void *__wrap_malloc(size_t n) {
	return no_small_memory ? NULL : __real_malloc(n);
}

void *__wrap_aligned_alloc(size_t align, size_t n) {
	return no_large_memory && n >= LARGE_BYTES ? NULL : __real_aligned_alloc(align, n);
}

/* While it is set a copy begins only when somebody waits for its end: as late as can be. */
static atomic_bool copies_are_slow;
static struct {
	struct copier *c; /* NULL: nothing is put off */
	struct copy_part parts[COPIER_MAX_PARTS];
	int n;
	void (*done)(void *ctx);
	void *ctx;
} put_off; /* the trainer thread's */

void __real_copier_start(struct copier *c, const struct copy_part *parts, int n, void (*done)(void *ctx), void *ctx);
void __real_copier_wait(struct copier *c);
void __wrap_copier_start(struct copier *c, const struct copy_part *parts, int n, void (*done)(void *ctx), void *ctx);
void __wrap_copier_wait(struct copier *c);

void __wrap_copier_start(struct copier *c, const struct copy_part *parts, int n, void (*done)(void *ctx), void *ctx) {
	__wrap_copier_wait(c);
	if (!copies_are_slow) {
		__real_copier_start(c, parts, n, done, ctx);
		return;
	}
	put_off.c = c;
	memcpy(put_off.parts, parts, (size_t)n * sizeof parts[0]);
	put_off.n = n;
	put_off.done = done;
	put_off.ctx = ctx;
}

void __wrap_copier_wait(struct copier *c) {
	if (put_off.c)
		__real_copier_start(put_off.c, put_off.parts, put_off.n, put_off.done, put_off.ctx);
	put_off.c = NULL;
	__real_copier_wait(c);
}

struct scene {
	struct fixture_run run; /* its replica is the oracle */
	char text[320];
	struct trainer *t;
	sem_t finished;
	/* Answers. */
	int trained, encoded, applied, installed, evaluated, saved;
	uint64_t steps_done, tokens;
	enum rv_err err;
	double loss;
	char said[RV_ERRTEXT_BYTES]; /* of the last training, encoding or evaluation */
	struct trainer_snapshot *snapshot;
};

static void wake(void *ctx) {
	sem_post(&((struct scene *)ctx)->finished);
}

static void on_trained(void *ctx, uint64_t round, uint64_t steps_done, uint64_t tokens, enum rv_err e,
					   const char *text) {
	struct scene *s = ctx;
	(void)round;
	snprintf(s->said, sizeof s->said, "%s", text);
	s->trained++;
	s->steps_done = steps_done;
	s->tokens = tokens;
	s->err = e;
}

static void keep_snapshot(struct scene *s, struct trainer_snapshot *snapshot) {
	trainer_snapshot_free(s->snapshot);
	s->snapshot = snapshot;
	if (snapshot && !copies_are_slow)
		trainer_snapshot_wait(snapshot);
}

static void on_encoded(void *ctx, uint64_t round, enum rv_err e, const char *text, struct trainer_snapshot *snapshot) {
	struct scene *s = ctx;
	(void)round;
	snprintf(s->said, sizeof s->said, "%s", text);
	s->encoded++;
	s->err = e;
	if (snapshot)
		keep_snapshot(s, snapshot);
}

static void on_applied(void *ctx, uint64_t round, enum rv_err e, const char *text, struct trainer_snapshot *snapshot) {
	struct scene *s = ctx;
	(void)round, (void)text;
	s->applied++;
	s->err = e;
	keep_snapshot(s, snapshot);
}

static void on_installed(void *ctx, uint64_t round, enum rv_err e, const char *text) {
	struct scene *s = ctx;
	(void)round, (void)text;
	s->installed++;
	s->err = e;
}

static void on_evaluated(void *ctx, uint64_t round, bool whole, double loss, enum rv_err e, const char *text) {
	struct scene *s = ctx;
	(void)round, (void)whole;
	snprintf(s->said, sizeof s->said, "%s", text);
	s->evaluated++;
	s->err = e;
	s->loss = loss;
}

static void on_base(void *ctx, struct trainer_snapshot *snapshot) {
	(void)ctx;
	trainer_snapshot_free(snapshot);
}

static void on_saved(void *ctx, struct trainer_snapshot *snapshot) {
	struct scene *s = ctx;
	s->saved++;
	keep_snapshot(s, snapshot);
}

static void wait_for(struct scene *s, const int *count, int n) {
	while (*count < n) {
		sem_wait(&s->finished);
		trainer_reap(s->t);
	}
}

static struct trainer *new_trainer(struct scene *s) {
	struct trainer_owner owner = {s,        wake,   on_trained, on_encoded, on_applied, on_installed, on_evaluated,
								  on_saved, on_base};
	struct dataset_config data = dataset_config_of(&s->run.cfg, s->text);
	struct trainer_config cfg = {
		.run = &s->run.cfg, .run_hash = rv_hash_of("run", 3), .shard = 0, .device = "cpu", .threads = 1};
	struct trainer *t = NULL;
	struct rv_errtext et = {0};
	if (dataset_open(&data, &cfg.data, &et) != RV_OK)
		fail_msg("%s", et.text);
	if (trainer_new(&cfg, &owner, &t, &et) != RV_OK)
		fail_msg("%s", et.text);
	return t;
}

/* The text that fixture_run_init wrote, whatever its name. */
static void find_text(struct scene *s) {
	snprintf(s->text, sizeof s->text, "%s", s->run.dir);
}

static int setup_run(void **state, const struct run_config *run) {
	struct scene *s = calloc(1, sizeof *s);
	sem_init(&s->finished, 0, 0);
	fixture_run_init(&s->run, run, "cpu");
	assert_int_equal(s->run.cfg.steps_per_round, H);
	find_text(s);
	s->t = new_trainer(s);
	*state = s;
	return 0;
}

static int setup(void **state) {
	return setup_run(state, NULL);
}

static int setup_feedback(void **state) {
	struct run_config run = fixture_config();
	snprintf(run.codec, sizeof run.codec, "int4");
	snprintf(run.rounding, sizeof run.rounding, "stochastic");
	run.error_feedback = 0.9;
	return setup_run(state, &run);
}

static int setup_eager(void **state) {
	struct run_config run = fixture_config();
	snprintf(run.codec, sizeof run.codec, "fp32");
	snprintf(run.updates, sizeof run.updates, "eager");
	run.eager_share = 1;
	return setup_run(state, &run);
}

static int setup_streaming(void **state) {
	struct run_config run = fixture_config();
	run.fragments = 3;
	run.chunk_elems = 256;
	run.mix = 0.25;
	return setup_run(state, &run);
}

static int teardown(void **state) {
	struct scene *s = *state;
	trainer_free(s->t);
	trainer_snapshot_free(s->snapshot);
	fixture_run_release(&s->run);
	sem_destroy(&s->finished);
	free(s);
	return 0;
}

static size_t payload_bytes(struct scene *s) {
	const struct global_state *g = trainer_global(s->t);
	return state_payload_bytes(&g->cfg, STATE_KIND_LOG, g->round);
}

/* The trainer's own gradient as the round's result: a run of one worker. */
static struct trainer_apply own_result(struct scene *s, enum trainer_adopt adopt) {
	const struct global_state *g = trainer_global(s->t);
	struct blob *reduced = blob_new(payload_bytes(s));
	memcpy(reduced->data, trainer_encoded(s->t), payload_bytes(s));
	return (struct trainer_apply){.round = g->round,
								  .reduced = reduced,
								  .digest = global_digest(g, g->round, reduced->data),
								  .adopt = adopt,
								  .want_base = true,
								  .want_replica = true};
}

static void play_round(struct scene *s, uint64_t round) {
	trainer_train(s->t, round, 0, H);
	trainer_encode(s->t, round, false);
	wait_for(s, &s->encoded, s->encoded + 1);
	struct trainer_apply rq = own_result(s, TRAINER_ADOPT);
	trainer_apply(s->t, &rq);
	blob_unref(rq.reduced);
	wait_for(s, &s->applied, s->applied + 1);
	assert_int_equal(s->err, RV_OK);
}

/* What the round exchanged is theta, but for a share of what was there; the rest is as it was. */
static void adopt_by_hand(struct scene *s, const struct global_state *g, uint64_t round) {
	const struct chunking c = global_round_chunks(&g->cfg, round);
	const float mix = (float)s->run.cfg.mix;
	float *local = malloc(g->cfg.n * sizeof *local);
	memcpy(local, replica_theta(s->run.replica), g->cfg.n * sizeof *local);
	for (uint32_t i = 0; i < c.n_chunks; i++) {
		size_t at = global_round_chunk_at(&g->cfg, round, i);
		for (size_t k = at; k < at + chunking_len(&c, i); k++)
			local[k] = mix == 0 ? g->theta[k] : mix * local[k] + (1 - mix) * g->theta[k];
	}
	replica_set_theta(s->run.replica, local);
	free(local);
}

static void steps_by_hand(struct scene *s, int n) {
	struct step_stats stats;
	for (int i = 0; i < n; i++)
		assert_int_equal(replica_step(s->run.replica, &stats, NULL), RV_OK);
}

/* The same by hand; `ahead`: steps of the next round before a round's outer step, but for the last one. */
static struct rv_hash by_hand(struct scene *s, int rounds, int ahead) {
	struct global_state g;
	struct global_config cfg = trainer_global(s->t)->cfg;
	struct contribution c;
	uint8_t *encoded = malloc(global_max_payload_bytes(&cfg));
	assert_int_equal(global_init(&g, &cfg, replica_theta(s->run.replica), NULL), RV_OK);
	assert_int_equal(contribution_init(&c, &s->run.cfg, &cfg, 0, NULL), RV_OK);
	for (int r = 0; r < rounds; r++) {
		steps_by_hand(s, r > 0 ? H - ahead : H);
		assert_int_equal(contribution_encode(&c, &g, g.round, replica_theta(s->run.replica), encoded, NULL), RV_OK);
		contribution_commit(&c, &cfg, g.round);
		struct rv_hash digest = global_digest(&g, g.round, encoded);
		steps_by_hand(s, r + 1 < rounds ? ahead : 0);
		assert_int_equal(global_apply(&g, encoded, &digest, NULL), RV_OK);
		adopt_by_hand(s, &g, (uint64_t)r);
	}
	struct rv_hash full = global_full_hash(&g);
	global_release(&g);
	contribution_release(&c);
	free(encoded);
	return full;
}

static void rounds_are_what_they_are_by_hand(void **state) {
	struct scene *s = *state;
	struct rv_hash want = by_hand(s, 3, 0);
	for (uint64_t r = 0; r < 3; r++)
		play_round(s, r);
	struct rv_hash full = global_full_hash(trainer_global(s->t));
	assert_memory_equal(full.b, want.b, RV_HASH_BYTES);
	assert_non_null(s->snapshot);
	assert_true(s->snapshot->has_base);
	full = global_full_hash(&s->snapshot->base);
	assert_memory_equal(full.b, want.b, RV_HASH_BYTES);
	struct trainer_progress p = trainer_progress(s->t);
	assert_int_equal(p.round, 3);
	assert_int_equal(p.steps_done, 0);
	assert_int_equal(p.global_step, 3 * H);
}

/* Who was left out and discards takes all of theta; who keeps moves with it; who took part keeps what was not
 * exchanged. */
static void fragments_are_adopted_by_who_took_part(void **state) {
	struct scene *s = *state;
	const struct global_state *g = trainer_global(s->t);
	const enum trainer_adopt adopts[] = {TRAINER_ADOPT, TRAINER_KEEP, TRAINER_DISCARD};
	size_t bytes = g->cfg.n * sizeof(float);
	float *trained = malloc(bytes), *before = malloc(bytes);
	for (uint64_t round = 0; round < 3; round++) {
		trainer_train(s->t, round, 0, H);
		trainer_encode(s->t, round, false);
		wait_for(s, &s->encoded, s->encoded + 1);
		memcpy(trained, replica_theta(trainer_replica(s->t)), bytes);
		memcpy(before, g->theta, bytes);
		struct trainer_apply rq = own_result(s, adopts[round]);
		trainer_apply(s->t, &rq);
		blob_unref(rq.reduced);
		wait_for(s, &s->applied, s->applied + 1);
		const float *local = replica_theta(trainer_replica(s->t));
		size_t as_theta = 0, as_trained = 0, moved = 0;
		for (size_t i = 0; i < g->cfg.n; i++) {
			as_theta += local[i] == g->theta[i];
			as_trained += local[i] == trained[i];
			moved += local[i] == trained[i] + (g->theta[i] - before[i]);
		}
		assert_true(adopts[round] != TRAINER_ADOPT || (as_trained > g->cfg.n / 4 && as_trained < g->cfg.n));
		assert_int_equal(adopts[round] == TRAINER_DISCARD, as_theta == g->cfg.n);
		assert_true(adopts[round] != TRAINER_KEEP || moved == g->cfg.n);
	}
	free(trained);
	free(before);
}

static void an_outer_step_stops_training_at_a_step_boundary(void **state) {
	struct scene *s = *state;
	trainer_train(s->t, 0, 0, H);
	trainer_encode(s->t, 0, false);
	wait_for(s, &s->encoded, 1);
	struct trainer_apply rq = own_result(s, TRAINER_ADOPT);
	trainer_train(s->t, 0, 0, 1000000); /* far too many: it must be stopped */
	trainer_apply(s->t, &rq);
	blob_unref(rq.reduced);
	wait_for(s, &s->applied, 1);
	assert_int_equal(s->trained, 2);
	assert_true(s->steps_done < 1000000);
}

static void late_progress_is_kept_or_not(void **state) {
	struct scene *s = *state;
	for (int keep = 0; keep < 2; keep++) {
		uint64_t round = (uint64_t)keep;
		trainer_train(s->t, round, 0, H);
		trainer_encode(s->t, round, false);
		wait_for(s, &s->encoded, keep + 1);
		struct trainer_apply rq = own_result(s, keep ? TRAINER_KEEP : TRAINER_ADOPT);
		trainer_apply(s->t, &rq);
		blob_unref(rq.reduced);
		wait_for(s, &s->applied, keep + 1);
		struct trainer_progress p = trainer_progress(s->t);
		assert_int_equal(p.steps_done, keep ? H : 0);
		assert_int_equal(p.global_step, (round + 1) * H + (keep ? H : 0));
	}
	/* theta_local = theta + what was kept: not theta. */
	const struct global_state *g = trainer_global(s->t);
	assert_memory_not_equal(replica_theta(trainer_replica(s->t)), g->theta, g->cfg.n * sizeof(float));
}

static void damaged_bytes_change_nothing(void **state) {
	struct scene *s = *state;
	trainer_train(s->t, 0, 0, H);
	trainer_encode(s->t, 0, false);
	wait_for(s, &s->encoded, 1);
	struct rv_hash before = global_full_hash(trainer_global(s->t));
	struct trainer_apply rq = own_result(s, TRAINER_ADOPT);
	rq.reduced->data[rq.reduced->bytes - 1] ^= 1;
	trainer_apply(s->t, &rq);
	blob_unref(rq.reduced);
	wait_for(s, &s->applied, 1);
	assert_int_equal(s->err, RV_E_CORRUPT);
	struct rv_hash after = global_full_hash(trainer_global(s->t));
	assert_memory_equal(before.b, after.b, RV_HASH_BYTES);
}

static void theta0_is_installed_again(void **state) {
	struct scene *s = *state;
	struct rv_hash theta0 = global_full_hash(trainer_global(s->t));
	play_round(s, 0);
	trainer_install(s->t, 0, NULL, &(struct rv_hash){0});
	wait_for(s, &s->installed, 1);
	assert_int_equal(s->err, RV_OK);
	struct rv_hash now = global_full_hash(trainer_global(s->t));
	assert_memory_equal(now.b, theta0.b, RV_HASH_BYTES);
	assert_memory_equal(replica_theta(trainer_replica(s->t)), trainer_global(s->t)->theta,
						trainer_global(s->t)->cfg.n * sizeof(float));
}

/* A base in a directory, to be opened again and again: trainer_install takes what it is given. */
static struct state_file *base_of(const struct scene *s, const struct global_state *g, struct rv_hash *full) {
	struct statestore store = {.cfg = g->cfg};
	struct state_file *f = NULL;
	char path[STATESTORE_PATH_BYTES];
	snprintf(store.dir, sizeof store.dir, "%s", s->run.dir);
	assert_int_equal(statestore_write_base(&store, g, full, NULL), RV_OK);
	statestore_path(&store, STATE_FILE_BASE, g->round, path);
	assert_int_equal(state_file_open(&trainer_global(s->t)->cfg, STATE_KIND_BASE, path, &f, NULL), RV_OK);
	assert_int_equal(statestore_remove(&store, STATE_FILE_BASE, g->round, NULL), RV_OK);
	return f;
}

static void install(struct scene *s, const struct global_state *g, const struct rv_hash *expect, enum rv_err want) {
	struct rv_hash full;
	struct state_file *base = base_of(s, g, &full);
	trainer_install(s->t, g->round, base, expect);
	wait_for(s, &s->installed, s->installed + 1);
	assert_int_equal(s->err, want);
}

static void a_base_is_installed_only_when_it_is_the_vouched_one(void **state) {
	struct scene *s = *state;
	play_round(s, 0);
	const struct global_state base = s->snapshot->base;
	struct blob *bytes = blob_ref(s->snapshot->base_bytes);
	struct rv_hash full = global_full_hash(&base), wrong = full;
	play_round(s, 1);
	wrong.b[0] ^= 1;
	install(s, &base, &wrong, RV_E_CORRUPT);
	assert_int_equal(trainer_global(s->t)->round, 2);
	install(s, &base, &full, RV_OK);
	assert_int_equal(trainer_global(s->t)->round, 1);
	struct rv_hash now = global_full_hash(trainer_global(s->t));
	assert_memory_equal(now.b, full.b, RV_HASH_BYTES);
	blob_unref(bytes);
}

/* A base of round 0 that nobody vouches for is what the run's init_hash says, or refused. */
static void initial_weights_of_a_peer_are_checked(void **state) {
	struct scene *s = *state;
	const struct rv_hash any = {{0}};
	struct rv_hash weights = weights_hash(trainer_global(s->t)->theta, trainer_global(s->t)->cfg.n);
	install(s, trainer_global(s->t), &any, RV_E_CORRUPT); /* the run has no init_hash */
	trainer_free(s->t);
	rv_hex_encode(weights.b, RV_HASH_BYTES, s->run.cfg.init_hash);
	s->t = new_trainer(s);
	install(s, trainer_global(s->t), &any, RV_OK);
	play_round(s, 0);
	install(s, &s->snapshot->base, &any, RV_E_CORRUPT); /* whole, but no state of round 0 */
}

static void nothing(void *ctx, const char *text) {
	(void)ctx;
	fail_msg("%s", text);
}

/* Two steps, save, a new trainer, two more: the same gradient as four at once. */
static void a_saved_replica_goes_on_exactly(void **state) {
	struct scene *s = *state;
	struct rv_hash want = by_hand(s, 1, 0);
	trainer_train(s->t, 0, 0, H);
	trainer_save(s->t); /* stops it at some step */
	wait_for(s, &s->saved, 1);
	struct state_replica_info info = s->snapshot->replica;
	replica_seal(s->snapshot->replica_bytes->data, info.payload_bytes);
	struct blob *bytes = blob_ref(s->snapshot->replica_bytes);
	struct statestore_found found = {.has_replica = true, .replica = info, .replica_payload = bytes->data};

	trainer_free(s->t);
	s->t = new_trainer(s);
	trainer_resume(s->t, &found, nothing, NULL);
	assert_int_equal(trainer_progress(s->t).steps_done, info.steps_done);
	if (info.steps_done < H)
		trainer_train(s->t, 0, info.steps_done, H - info.steps_done);
	trainer_encode(s->t, 0, false);
	wait_for(s, &s->encoded, 1);
	struct trainer_apply rq = own_result(s, TRAINER_ADOPT);
	trainer_apply(s->t, &rq);
	blob_unref(rq.reduced);
	wait_for(s, &s->applied, 1);
	struct rv_hash full = global_full_hash(trainer_global(s->t));
	assert_memory_equal(full.b, want.b, RV_HASH_BYTES);
	blob_unref(bytes);
}

/* A worker that was left out of a round has said nothing in it; one whose state comes from others knows nothing of what
 * it has said. */
static void only_what_is_committed_leaves_a_residual(void **state) {
	struct scene *s = *state;
	play_round(s, 0);
	trainer_train(s->t, 1, 0, H);
	trainer_encode(s->t, 1, false);
	wait_for(s, &s->encoded, s->encoded + 1);
	struct rv_hash said = rv_hash_of(trainer_encoded(s->t), payload_bytes(s));
	trainer_encode(s->t, 1, false);
	wait_for(s, &s->encoded, s->encoded + 1);
	struct rv_hash again = rv_hash_of(trainer_encoded(s->t), payload_bytes(s));
	assert_memory_equal(said.b, again.b, RV_HASH_BYTES);
	const uint8_t *old = s->snapshot->replica_bytes->data + s->snapshot->replica.payload_bytes - RV_HASH_BYTES;
	const size_t bytes = trainer_global(s->t)->cfg.n * sizeof(float);
	float *before = malloc(bytes);
	memcpy(before, old - bytes, bytes);
	struct trainer_apply rq = own_result(s, TRAINER_DISCARD);
	trainer_apply(s->t, &rq);
	blob_unref(rq.reduced);
	wait_for(s, &s->applied, s->applied + 1);
	const uint8_t *now = s->snapshot->replica_bytes->data + s->snapshot->replica.payload_bytes - RV_HASH_BYTES;
	assert_memory_equal(now - bytes, before, bytes);
	play_round(s, 2);
	now = s->snapshot->replica_bytes->data + s->snapshot->replica.payload_bytes - RV_HASH_BYTES;
	assert_memory_not_equal(now - bytes, before, bytes);
	free(before);
}

/* ---- steps ahead of the outer step ----------------------------------------------------------------------------------
 */

enum { AHEAD = 3, OVERLAPPED_ROUNDS = 3 };

static void apply_own_result(struct scene *s, enum trainer_adopt adopt) {
	struct trainer_apply rq = own_result(s, adopt);
	trainer_apply(s->t, &rq);
	blob_unref(rq.reduced);
	wait_for(s, &s->applied, s->applied + 1);
	assert_int_equal(s->err, RV_OK);
}

/* From its step `from` on to the steps ahead; what was encoded stays as it was. */
static void train_ahead(struct scene *s, uint64_t round, uint64_t from) {
	if (from < H)
		trainer_train(s->t, round, from, H - from);
	trainer_encode(s->t, round, true);
	wait_for(s, &s->encoded, s->encoded + 1);
	struct rv_hash encoded = rv_hash_of(trainer_encoded(s->t), payload_bytes(s));
	if (round + 1 < OVERLAPPED_ROUNDS) {
		trainer_train(s->t, round + 1, 0, AHEAD);
		wait_for(s, &s->trained, s->trained + 1);
		assert_int_equal(s->steps_done, AHEAD);
		assert_int_equal(trainer_progress(s->t).steps_done, H);
		assert_int_equal(trainer_progress(s->t).global_step, (round + 1) * H + AHEAD);
	}
	struct rv_hash after = rv_hash_of(trainer_encoded(s->t), payload_bytes(s));
	assert_memory_equal(after.b, encoded.b, RV_HASH_BYTES);
}

static void assert_ended_as_by_hand(struct scene *s, const struct rv_hash *want) {
	struct rv_hash full = global_full_hash(trainer_global(s->t));
	assert_memory_equal(full.b, want->b, RV_HASH_BYTES);
}

/* Of one worker, whose share is all: its steps ahead begin where the next round will, so that they are not ahead at
 * all. */
static bool is_eager(const struct scene *s) {
	return strcmp(s->run.cfg.updates, "eager") == 0;
}

static void steps_ahead_are_what_they_are_by_hand(void **state) {
	struct scene *s = *state;
	struct rv_hash want = by_hand(s, OVERLAPPED_ROUNDS, is_eager(s) ? 0 : AHEAD);
	for (uint64_t r = 0; r < OVERLAPPED_ROUNDS; r++) {
		train_ahead(s, r, r > 0 ? AHEAD : 0);
		apply_own_result(s, TRAINER_ADOPT);
		assert_int_equal(trainer_progress(s->t).steps_done, r + 1 < OVERLAPPED_ROUNDS ? AHEAD : 0);
	}
	assert_ended_as_by_hand(s, &want);
}

/* A process dies with steps ahead: the next one goes on from the copy of the encoding, and does them again. */
static void steps_ahead_are_not_saved_but_done_again(void **state) {
	struct scene *s = *state;
	struct rv_hash want = by_hand(s, OVERLAPPED_ROUNDS, is_eager(s) ? 0 : AHEAD);
	train_ahead(s, 0, 0);
	struct state_replica_info info = s->snapshot->replica;
	struct blob *bytes = blob_ref(s->snapshot->replica_bytes);
	replica_seal(bytes->data, info.payload_bytes);
	trainer_save(s->t);
	wait_for(s, &s->saved, 1);
	assert_null(s->snapshot->replica_bytes);
	assert_int_equal(s->snapshot->err, RV_OK);

	trainer_free(s->t);
	s->t = new_trainer(s);
	struct statestore_found found = {.has_replica = true, .replica = info, .replica_payload = bytes->data};
	assert_true(trainer_resume(s->t, &found, nothing, NULL).exact);
	assert_int_equal(trainer_progress(s->t).steps_done, H);
	for (uint64_t r = 0; r < OVERLAPPED_ROUNDS; r++) {
		train_ahead(s, r, r > 0 ? AHEAD : H);
		apply_own_result(s, TRAINER_ADOPT);
	}
	assert_ended_as_by_hand(s, &want);
	blob_unref(bytes);
}

static void steps_ahead_of_a_late_worker_are_kept_or_not(void **state) {
	struct scene *s = *state;
	train_ahead(s, 0, 0);
	uint64_t tokens = trainer_progress(s->t).tokens, per_step = tokens / H;
	apply_own_result(s, TRAINER_KEEP);
	assert_int_equal(trainer_progress(s->t).steps_done, H);
	assert_int_equal(trainer_progress(s->t).tokens, tokens + AHEAD * per_step);
	train_ahead(s, 1, H);
	apply_own_result(s, TRAINER_DISCARD);
	assert_int_equal(trainer_progress(s->t).steps_done, 0);
	assert_int_equal(trainer_progress(s->t).tokens, 0);
	const struct global_state *g = trainer_global(s->t);
	assert_memory_equal(replica_theta(trainer_replica(s->t)), g->theta, g->cfg.n * sizeof(float));
}

/* Before the first of them everything moves with theta; from then on they are the next round's. */
static void steps_ahead_of_who_gave_its_steps_away(void **state) {
	struct scene *s = *state;
	const struct global_state *g = trainer_global(s->t);
	size_t bytes = g->cfg.n * sizeof(float);
	float *local = malloc(bytes), *before = malloc(bytes);
	train_ahead(s, 0, 0);
	uint64_t per_step = trainer_progress(s->t).tokens / H;
	memcpy(local, replica_theta(trainer_replica(s->t)), bytes);
	apply_own_result(s, TRAINER_KEEP);
	assert_int_equal(trainer_progress(s->t).steps_done, AHEAD);
	assert_int_equal(trainer_progress(s->t).tokens, AHEAD * per_step);
	assert_memory_equal(replica_theta(trainer_replica(s->t)), local, bytes);
	trainer_train(s->t, 1, AHEAD, H - AHEAD);
	trainer_encode(s->t, 1, false);
	wait_for(s, &s->encoded, s->encoded + 1);
	memcpy(local, replica_theta(trainer_replica(s->t)), bytes);
	memcpy(before, g->theta, bytes);
	apply_own_result(s, TRAINER_KEEP);
	assert_int_equal(trainer_progress(s->t).steps_done, H);
	for (size_t i = 0; i < g->cfg.n; i++)
		assert_true(replica_theta(trainer_replica(s->t))[i] == local[i] + (g->theta[i] - before[i]));
	train_ahead(s, 2, H);
	apply_own_result(s, TRAINER_DISCARD);
	assert_int_equal(trainer_progress(s->t).steps_done, 0);
	assert_memory_equal(replica_theta(trainer_replica(s->t)), g->theta, bytes);
	free(local);
	free(before);
}

static void held_out_loss_is_the_replicas(void **state) {
	struct scene *s = *state;
	double want;
	assert_int_equal(replica_eval(s->run.replica, NULL, 2, &want, NULL), RV_OK);
	trainer_evaluate(s->t, 2);
	wait_for(s, &s->evaluated, 1);
	assert_int_equal(s->err, RV_OK);
	assert_true(s->loss == want);
}

/* Training goes on while the storage thread still has the last copy, and uses its memory again when it has not. */
static void copies_of_the_replica_do_not_touch_each_other(void **state) {
	struct scene *s = *state;
	play_round(s, 0);
	struct blob *held = blob_ref(s->snapshot->replica_bytes);
	uint8_t *before = malloc(held->bytes);
	memcpy(before, held->data, held->bytes);
	play_round(s, 1);
	assert_ptr_not_equal(s->snapshot->replica_bytes, held);
	assert_memory_equal(held->data, before, held->bytes);
	free(before);
	blob_unref(held);
	const struct blob *second = s->snapshot->replica_bytes;
	trainer_snapshot_free(s->snapshot);
	s->snapshot = NULL;
	play_round(s, 2);
	assert_ptr_equal(s->snapshot->replica_bytes, second);
	assert_true(trainer_progress(s->t).snapshot_us <= trainer_progress(s->t).compute_us);
}

/* Training goes on while it is being copied, and what is copied is the state of the round's beginning all the same. */
static void a_copy_is_of_the_moment_it_was_asked_for(void **state) {
	struct scene *s = *state;
	copies_are_slow = true;
	play_round(s, 0);
	trainer_train(s->t, 1, 0, H);
	wait_for(s, &s->trained, 2);
	copies_are_slow = false;
	assert_int_equal(s->steps_done, H);
	trainer_snapshot_wait(s->snapshot);
	size_t n = trainer_global(s->t)->cfg.n;
	uint8_t *bytes = s->snapshot->replica_bytes->data;
	const uint8_t *theta = bytes + s->snapshot->replica.payload_bytes - RV_HASH_BYTES - 3 * n * sizeof(float);
	assert_memory_equal(theta, s->snapshot->base.theta, n * sizeof(float));
	assert_memory_not_equal(theta, replica_theta(trainer_replica(s->t)), n * sizeof(float));
	replica_seal(bytes, s->snapshot->replica.payload_bytes);
	assert_int_equal(replica_load(s->run.replica, bytes, s->snapshot->replica.payload_bytes, NULL), RV_OK);
	assert_int_equal(replica_global_step(s->run.replica), H);
	struct step_stats stats;
	for (int i = 0; i < H; i++) /* its moments and its cursor, too: the same steps again */
		assert_int_equal(replica_step(s->run.replica, &stats, NULL), RV_OK);
	assert_memory_equal(replica_theta(s->run.replica), replica_theta(trainer_replica(s->t)), n * sizeof(float));
}

/* Every kind of request is worked on all the same, twice: what was spared is used again. */
static void requests_need_no_memory(void **state) {
	struct scene *s = *state;
	for (int i = 1; i <= 2; i++) {
		no_small_memory = true;
		trainer_train(s->t, 0, 0, 1);
		trainer_encode(s->t, 0, false);
		trainer_evaluate(s->t, 1);
		trainer_evaluate(s->t, 1);
		trainer_save(s->t);
		no_small_memory = false;
		wait_for(s, &s->saved, i);
		assert_int_equal(s->trained, i);
		assert_int_equal(s->encoded, i);
		assert_int_equal(s->evaluated, 2 * i);
		assert_int_equal(s->err, RV_OK);
	}
}

/* The copies before are still with the storage thread, and there is no memory for others. */
static void a_copy_without_memory_is_told(void **state) {
	struct scene *s = *state;
	play_round(s, 0);
	assert_int_equal(s->snapshot->err, RV_OK);
	struct blob *base = blob_ref(s->snapshot->base_bytes), *replica = blob_ref(s->snapshot->replica_bytes);
	no_large_memory = true;
	trainer_save(s->t);
	wait_for(s, &s->saved, 1);
	no_large_memory = false;
	assert_null(s->snapshot->replica_bytes);
	assert_int_equal(s->snapshot->err, RV_E_NOMEM);
	assert_non_null(strstr(s->snapshot->text.text, "round 1"));
	blob_unref(base);
	blob_unref(replica);
}

static void a_stop_ends_an_evaluation(void **state) {
	struct scene *s = *state;
	trainer_evaluate(s->t, 0);
	trainer_end(s->t);
	trainer_evaluate(s->t, 0);
	wait_for(s, &s->evaluated, 2);
	assert_int_equal(s->err, RV_E_CANCELLED);
	assert_int_equal(s->saved, 1);
}

/* A worker saves when it starts, after a rollback: it goes on, and measures. */
static void evaluations_go_on_after_a_save(void **state) {
	struct scene *s = *state;
	double want;
	assert_int_equal(replica_eval(s->run.replica, NULL, 2, &want, NULL), RV_OK);
	trainer_save(s->t);
	trainer_evaluate(s->t, 2);
	wait_for(s, &s->evaluated, 1);
	assert_int_equal(s->saved, 1);
	assert_int_equal(s->err, RV_OK);
	assert_true(s->loss == want);
}

static void an_evaluation_that_fails_says_why(void **state) {
	struct scene *s = *state;
	trainer_global(s->t)->theta[3] = NAN;
	trainer_evaluate(s->t, 1);
	wait_for(s, &s->evaluated, 1);
	assert_int_equal(s->err, RV_E_RANGE);
	assert_non_null(strstr(s->said, "held-out loss"));
}

static void a_round_without_steps_has_no_loss(void **state) {
	struct scene *s = *state;
	assert_true(isnan(trainer_progress(s->t).loss));
	play_round(s, 0);
	assert_true(isfinite(trainer_progress(s->t).last_round_loss));
	trainer_encode(s->t, 1, false);
	wait_for(s, &s->encoded, s->encoded + 1);
	struct trainer_apply rq = own_result(s, TRAINER_ADOPT);
	trainer_apply(s->t, &rq);
	blob_unref(rq.reduced);
	wait_for(s, &s->applied, s->applied + 1);
	assert_true(isnan(trainer_progress(s->t).last_round_loss));
	assert_true(isfinite(trainer_progress(s->t).loss));
}

/* A millisecond is too little for a million steps, and enough for one: H by the worker's own speed. */
static void steps_end_when_their_time_is_up(void **state) {
	struct scene *s = *state;
	enum { MANY = 1000000 };
	trainer_free(s->t);
	s->run.cfg.round_ms = 1;
	s->run.cfg.steps_per_round = MANY;
	s->t = new_trainer(s);
	trainer_train(s->t, 0, 0, MANY);
	wait_for(s, &s->trained, 1);
	uint64_t steps = s->steps_done;
	assert_in_range(steps, 1, MANY - 1);
	assert_true(trainer_progress(s->t).time_up);
	assert_int_equal(s->tokens, steps * (uint64_t)(s->run.cfg.batch * s->run.cfg.context));
	trainer_train(s->t, 0, steps, MANY - steps); /* as after a round that it missed: no more of them */
	wait_for(s, &s->trained, 2);
	assert_int_equal(s->steps_done, steps);
	trainer_encode(s->t, 0, false);
	wait_for(s, &s->encoded, 1);
	struct trainer_apply rq = own_result(s, TRAINER_ADOPT);
	trainer_apply(s->t, &rq);
	blob_unref(rq.reduced);
	wait_for(s, &s->applied, 1);
	struct trainer_progress p = trainer_progress(s->t);
	assert_false(p.time_up);
	assert_int_equal(p.global_step, MANY);
	trainer_train(s->t, 1, 0, MANY);
	wait_for(s, &s->trained, 3);
	assert_in_range(s->steps_done, 1, MANY - 1);
}

static void spoil(struct scene *s, size_t at, float value) {
	replica_set_part(trainer_replica(s->t), at, 1, &value);
}

/* It gives nothing, says which tensor is to blame, and goes on from the run's state. */
static void expect_a_fresh_round(struct scene *s, const char *text) {
	const struct global_state *g = trainer_global(s->t);
	assert_int_equal(s->err, RV_E_RANGE);
	if (!strstr(s->said, text))
		fail_msg("'%s' does not name %s", s->said, text);
	assert_memory_equal(replica_theta(trainer_replica(s->t)), g->theta, g->cfg.n * sizeof *g->theta);
	struct trainer_progress p = trainer_progress(s->t);
	assert_int_equal(p.steps_done, 0);
	assert_int_equal(p.global_step, g->round * H);
}

static void a_gradient_of_no_use_is_not_given(void **state) {
	const float values[] = {NAN, INFINITY, -2e31f, 3e38f};
	struct scene *s = *state;
	const struct model_layout *l = &replica_model(trainer_replica(s->t))->layout;
	const struct model_tensor *victim = &l->tensors[l->n_tensors / 2];
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		trainer_train(s->t, 0, 0, H);
		wait_for(s, &s->trained, s->trained + 1);
		spoil(s, victim->offset + 3, values[i]);
		trainer_encode(s->t, 0, true);
		wait_for(s, &s->encoded, s->encoded + 1);
		assert_null(s->snapshot);
		expect_a_fresh_round(s, victim->name);
	}
	trainer_train(s->t, 0, 0, H);
	wait_for(s, &s->trained, s->trained + 1);
	spoil(s, 0, 9e30f); /* not so large that a mean could overflow */
	trainer_encode(s->t, 0, false);
	wait_for(s, &s->encoded, s->encoded + 1);
	assert_int_equal(s->err, RV_OK);
}

/* While it trains: every batch is refused from there on. */
static void a_parameter_of_no_use_begins_the_round_anew(void **state) {
	struct scene *s = *state;
	const struct model_layout *l = &replica_model(trainer_replica(s->t))->layout;
	struct replica_part *p = &trainer_replica(s->t)->parts[0];
	trainer_train(s->t, 0, 0, 1);
	wait_for(s, &s->trained, 1);
	spoil(s, l->tensors[0].offset, NAN);
	p->v[5] = INFINITY;
	trainer_train(s->t, 0, 1, H - 1);
	wait_for(s, &s->trained, 2);
	assert_int_equal(s->steps_done, 0);
	expect_a_fresh_round(s, l->tensors[0].name);
	assert_true(p->v[5] == 0);
	assert_true(trainer_replica(s->t)->adam_steps == 0);
	play_round(s, 0);
	float moment = p->v[5];
	spoil(s, l->tensors[0].offset, NAN); /* moments that are well stay */
	trainer_encode(s->t, 1, false);
	wait_for(s, &s->encoded, s->encoded + 1);
	expect_a_fresh_round(s, l->tensors[0].name);
	assert_true(p->v[5] == moment);
	assert_int_equal(trainer_replica(s->t)->adam_steps, H);
}

int main(void) {
#define T(name)         cmocka_unit_test_setup_teardown(name, setup, teardown)
#define STREAMING(name) cmocka_unit_test_setup_teardown(name, setup_streaming, teardown)
#define EAGER(name)                                                                                                    \
	{ #name " with eager updates", name, setup_eager, teardown, NULL }
#define FEEDBACK(name)                                                                                                 \
	{ #name " with error feedback", name, setup_feedback, teardown, NULL }
	const struct CMUnitTest tests[] = {
		T(rounds_are_what_they_are_by_hand),
		STREAMING(rounds_are_what_they_are_by_hand),
		EAGER(steps_ahead_are_what_they_are_by_hand),
		EAGER(steps_ahead_are_not_saved_but_done_again),
		EAGER(steps_ahead_of_who_gave_its_steps_away),
		EAGER(a_saved_replica_goes_on_exactly),
		STREAMING(fragments_are_adopted_by_who_took_part),
		STREAMING(a_saved_replica_goes_on_exactly),
		STREAMING(a_base_is_installed_only_when_it_is_the_vouched_one),
		T(an_outer_step_stops_training_at_a_step_boundary),
		T(late_progress_is_kept_or_not),
		T(damaged_bytes_change_nothing),
		T(theta0_is_installed_again),
		T(a_base_is_installed_only_when_it_is_the_vouched_one),
		T(a_saved_replica_goes_on_exactly),
		T(steps_ahead_are_what_they_are_by_hand),
		T(steps_ahead_are_not_saved_but_done_again),
		T(steps_ahead_of_a_late_worker_are_kept_or_not),
		T(held_out_loss_is_the_replicas),
		T(initial_weights_of_a_peer_are_checked),
		T(copies_of_the_replica_do_not_touch_each_other),
		T(a_copy_is_of_the_moment_it_was_asked_for),
		T(requests_need_no_memory),
		T(a_copy_without_memory_is_told),
		T(a_stop_ends_an_evaluation),
		T(evaluations_go_on_after_a_save),
		T(an_evaluation_that_fails_says_why),
		T(a_round_without_steps_has_no_loss),
		T(steps_end_when_their_time_is_up),
		T(a_gradient_of_no_use_is_not_given),
		FEEDBACK(a_gradient_of_no_use_is_not_given),
		T(a_parameter_of_no_use_begins_the_round_anew),
		FEEDBACK(rounds_are_what_they_are_by_hand),
		FEEDBACK(a_saved_replica_goes_on_exactly),
		FEEDBACK(only_what_is_committed_leaves_a_residual),
		FEEDBACK(steps_ahead_are_what_they_are_by_hand),
		FEEDBACK(steps_ahead_are_not_saved_but_done_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
