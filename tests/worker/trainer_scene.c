/* trainer_scene.c: see trainer_scene.h. */
#include "tests/worker/trainer_scene.h"

#include "outer/contribution.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the trainer's owner ---- */

static void wake(void *ctx) {
	sem_post(&((struct scene *)ctx)->finished);
}

static void keep_copy(struct scene *s, struct trainer_copy *copy) {
	trainer_copy_free(s->copy);
	s->copy = copy;
	if (copy && !s->leaves_copies)
		trainer_copy_wait(copy);
}

static void answered(void *ctx, const struct trainer_answer *a) {
	struct scene *s = ctx;
	int *const counts[] = {
		[TRAINER_TRAIN] = &s->trained,        [TRAINER_ENCODE] = &s->encoded,     [TRAINER_APPLY] = &s->applied,
		[TRAINER_INSTALL] = &s->installed,    [TRAINER_EVALUATE] = &s->evaluated, [TRAINER_SAVE] = &s->saved,
		[TRAINER_COPY_SNAPSHOT] = &s->copied, [TRAINER_END] = &s->saved,          [TRAINER_REPEAT] = &s->repeated};
	*counts[a->work] += 1;
	if (a->work == TRAINER_TRAIN || a->work == TRAINER_ENCODE || a->work == TRAINER_EVALUATE ||
		a->work == TRAINER_INSTALL)
		snprintf(s->said, sizeof s->said, "%s", a->text.text);
	if (a->work == TRAINER_TRAIN) {
		s->progress = a->progress;
		s->time_up = a->time_up;
	}
	if (a->work == TRAINER_EVALUATE)
		s->loss = a->loss;
	if (a->work != TRAINER_SAVE && a->work != TRAINER_END && a->work != TRAINER_COPY_SNAPSHOT)
		s->err = a->err;
	s->lost = a->lost;
	s->reads_again = a->reads_again;
	if (!a->has_copy)
		return;
	keep_copy(s, a->copy.handle);
	s->copy_is = a->copy;
}

static void on_reads_again(void *ctx, uint64_t round, const char *why) {
	struct scene *s = ctx;
	s->told += round == trainer_global(s->t)->round && why[0] != '\0';
}

static void on_slice(void *ctx, const struct trainer_slice *slice) {
	struct scene *s = ctx;
	assert_int_equal(slice->err, RV_OK);
	s->sliced++;
}

void wait_for(struct scene *s, const int *count, int n) {
	while (*count < n) {
		sem_wait(&s->finished);
		trainer_reap(s->t);
	}
}

/* ---- requests ---- */

void ask(struct scene *s, enum trainer_work work) {
	trainer_request(s->t, &(struct trainer_request){.work = work});
}

void ask_train(struct scene *s, uint64_t round, uint64_t from, uint64_t steps) {
	trainer_request(s->t,
					&(struct trainer_request){.work = TRAINER_TRAIN, .round = round, .from = from, .steps = steps});
}

void ask_encode(struct scene *s, uint64_t round, bool want_replica) {
	trainer_request(s->t,
					&(struct trainer_request){.work = TRAINER_ENCODE, .round = round, .want_replica = want_replica});
}

void ask_install(struct scene *s, uint64_t round, struct state_file *snapshot, const struct rv_hash *expect) {
	trainer_request(s->t, &(struct trainer_request){
							  .work = TRAINER_INSTALL, .round = round, .snapshot = snapshot, .expect = *expect});
}

void ask_evaluate(struct scene *s, uint64_t max_tokens, bool last) {
	trainer_request(s->t, &(struct trainer_request){.work = TRAINER_EVALUATE, .max_tokens = max_tokens, .last = last});
}

struct state_file *scene_snapshot(const struct scene *s, const struct global_state *g, struct rv_hash *full) {
	struct statestore store = {.cfg = g->cfg};
	struct state_file *f = NULL;
	char path[STATESTORE_PATH_BYTES];
	snprintf(store.dir, sizeof store.dir, "%s", s->run.dir);
	assert_int_equal(statestore_write_snapshot(&store, g, full, NULL), RV_OK);
	statestore_path(&store, STATE_FILE_SNAPSHOT, g->round, path);
	assert_int_equal(state_file_open(&trainer_global(s->t)->cfg, STATE_KIND_SNAPSHOT, path, &f, NULL), RV_OK);
	assert_int_equal(statestore_remove(&store, STATE_FILE_SNAPSHOT, g->round, NULL), RV_OK);
	return f;
}

/* ---- its life ---- */

void scene_new_trainer(struct scene *s) {
	const struct trainer_owner owner = {
		.ctx = s, .wake = wake, .answered = answered, .sliced = on_slice, .reads_again = on_reads_again};
	struct dataset_config data = dataset_config_of(&s->run.cfg, s->run.dir);
	struct trainer_config cfg = {.run = &s->run.cfg,
								 .run_hash = rv_hash_of("run", 3),
								 .shard = 0,
								 .device = s->device ? s->device : "cpu",
								 .threads = 1,
								 .reads_again = 1,
								 .savings = {.stream = s->streams, .zero = s->zero}};
	struct rv_errtext et = {0};
	trainer_free(s->t);
	s->t = NULL;
	if (dataset_open(&data, &cfg.data, &et) != RV_OK)
		fail_msg("%s", et.text);
	if (trainer_new(&cfg, &owner, &s->t, &et) != RV_OK)
		fail_msg("%s", et.text);
}

static void nothing(void *ctx, enum rv_err why, const char *text) {
	(void)ctx, (void)why;
	fail_msg("%s", text);
}

struct trainer_resumed scene_resume(struct scene *s, const struct state_replica_info *info, const struct blob *bytes) {
	const struct recovered found = {
		.has_replica = true, .replica = *info, .replica_payload = byte_source_of(bytes->data)};
	scene_new_trainer(s);
	return trainer_resume(s->t, &found, nothing, NULL);
}

static int setup_run(void **state, const struct run_config *run) {
	struct scene *s = calloc(1, sizeof *s);
	sem_init(&s->finished, 0, 0);
	fixture_run_init(&s->run, run, "cpu");
	assert_int_equal(s->run.cfg.steps_per_round, H);
	scene_new_trainer(s);
	*state = s;
	return 0;
}

int scene_setup(void **state) {
	return setup_run(state, NULL);
}

int scene_setup_feedback(void **state) {
	struct run_config run = fixture_config();
	run.codec = CODEC_int4;
	run.error_feedback = 0.9;
	return setup_run(state, &run);
}

int scene_setup_eager(void **state) {
	struct run_config run = fixture_config();
	run.codec = CODEC_fp32;
	run.updates = UPDATES_EAGER;
	run.eager_share = 1;
	return setup_run(state, &run);
}

int scene_setup_streaming(void **state) {
	struct run_config run = fixture_config();
	run.fragments = 3;
	run.chunk_elems = 256;
	run.mix = 0.25;
	return setup_run(state, &run);
}

int scene_teardown(void **state) {
	struct scene *s = *state;
	trainer_free(s->t);
	trainer_copy_free(s->copy);
	fixture_run_release(&s->run);
	sem_destroy(&s->finished);
	free(s);
	return 0;
}

/* ---- rounds of one worker ---- */

void encode(struct scene *s, uint64_t round, bool want_replica) {
	ask_encode(s, round, want_replica);
	wait_for(s, &s->encoded, s->encoded + 1);
}

void train_and_encode(struct scene *s, uint64_t round, bool want_replica) {
	uint64_t from = trainer_progress(s->t).done.steps_done; /* H where they are kept: H more */
	ask_train(s, round, from, H);
	encode(s, round, want_replica);
}

size_t payload_bytes(struct scene *s) {
	const struct global_state *g = trainer_global(s->t);
	return state_payload_bytes(&g->cfg, STATE_KIND_LOG, g->round);
}

struct trainer_request own_result(struct scene *s, enum participant_adopt adopt) {
	const struct global_state *g = trainer_global(s->t);
	struct blob *reduced = blob_new(payload_bytes(s));
	memcpy(reduced->data, trainer_encoded(s->t), payload_bytes(s));
	return (struct trainer_request){.work = TRAINER_APPLY,
									.round = g->round,
									.reduced = reduced,
									.expect = global_digest(g, g->round, reduced->data),
									.adopt = adopt,
									.want_snapshot = true,
									.want_replica = true};
}

void apply_own_result(struct scene *s, enum participant_adopt adopt) {
	struct trainer_request rq = own_result(s, adopt);
	trainer_request(s->t, &rq);
	blob_unref(rq.reduced);
	wait_for(s, &s->applied, s->applied + 1);
	assert_int_equal(s->err, RV_OK);
}

void play_round(struct scene *s, uint64_t round) {
	train_and_encode(s, round, false);
	apply_own_result(s, PARTICIPANT_ADOPT);
}

/* ---- the same by hand ---- */

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

struct rv_hash by_hand(struct scene *s, int rounds, int ahead) {
	struct global_state g;
	struct global_config cfg = trainer_global(s->t)->cfg;
	struct contribution c;
	uint8_t *encoded = malloc(global_max_payload_bytes(&cfg));
	assert_int_equal(global_init(&g, &cfg, replica_theta(s->run.replica), NULL), RV_OK);
	assert_int_equal(contribution_init(&c, &s->run.cfg, &cfg, NULL), RV_OK);
	for (int r = 0; r < rounds; r++) {
		fixture_steps(s->run.replica, r > 0 ? H - ahead : H);
		assert_int_equal(contribution_encode(&c, &g, g.round, replica_theta(s->run.replica), encoded, NULL), RV_OK);
		contribution_commit(&c, &cfg, g.round, encoded, &(struct contribution_form){.codec = 0});
		struct rv_hash digest = global_digest(&g, g.round, encoded);
		fixture_steps(s->run.replica, r + 1 < rounds ? ahead : 0);
		assert_int_equal(global_apply(&g, encoded, &digest, NULL), RV_OK);
		adopt_by_hand(s, &g, (uint64_t)r);
	}
	struct rv_hash full = global_full_hash(&g);
	global_release(&g);
	contribution_release(&c);
	free(encoded);
	return full;
}

void assert_ended_as_by_hand(struct scene *s, const struct rv_hash *want) {
	struct rv_hash full = global_full_hash(trainer_global(s->t));
	assert_memory_equal(full.b, want->b, RV_HASH_BYTES);
}
