/* test_worker_trainer_streams.c: the state on its way to the disk without a copy: the same bytes as
 * a copy has, of the moment it was asked for, and training waits before it changes them. */
#include "trainer_scene.h"

#include "worker/trainer/live.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Posted when the trainer begins to wait for readers of a part. */
static sem_t waits[LIVE_PARTS];

void __real_live_wait(struct live_state *l, enum live_part part);
void __wrap_live_wait(struct live_state *l, enum live_part part);

void __wrap_live_wait(struct live_state *l, enum live_part part) {
	pthread_mutex_lock(&l->lock);
	const bool must = l->readers[part] > 0;
	pthread_mutex_unlock(&l->lock);
	if (must)
		sem_post(&waits[part]);
	__real_live_wait(l, part);
}

/* Reads of files from this one on fail, as many as bad_reads, or have a wrong byte; -1: none. */
static atomic_int good_reads = -1, bad_reads = INT_MAX;
static atomic_bool rots;

ssize_t __real_rv_read_at(int fd, void *out, size_t n, uint64_t at);
ssize_t __wrap_rv_read_at(int fd, void *out, size_t n, uint64_t at);

ssize_t __wrap_rv_read_at(int fd, void *out, size_t n, uint64_t at) {
	if (good_reads != 0 || bad_reads == 0) {
		if (good_reads > 0)
			good_reads--;
		return __real_rv_read_at(fd, out, n, at);
	}
	bad_reads--;
	if (rots) {
		const ssize_t got = __real_rv_read_at(fd, out, n, at);
		((uint8_t *)out)[0] ^= 1;
		return got;
	}
	errno = EIO;
	return -1;
}

static void await(sem_t *s) {
	while (sem_wait(s) != 0)
		assert_int_equal(errno, EINTR);
}

static int setup_streams(void **state, int (*setup)(void **state)) {
	for (int i = 0; i < LIVE_PARTS; i++)
		sem_init(&waits[i], 0, 0);
	good_reads = -1;
	if (setup(state) != 0)
		return -1;
	struct scene *s = *state;
	s->streams = s->leaves_copies = true;
	scene_new_trainer(s);
	return 0;
}

static int setup_plain(void **state) {
	return setup_streams(state, scene_setup);
}

static int setup_on(void **state, const char *device, enum zero zero) {
	if (setup_streams(state, scene_setup) != 0)
		return -1;
	struct scene *s = *state;
	s->device = device;
	s->zero = zero;
	scene_new_trainer(s);
	return 0;
}

static int setup_zero2(void **state) {
	return setup_on(state, "cpu:2", ZERO_GRADIENTS);
}

static int setup_zero3(void **state) {
	return setup_on(state, "cpu:2", ZERO_WEIGHTS);
}

#ifdef EMULATED_PLUGIN
static int setup_device(void **state) {
	return setup_on(state, "cuda", ZERO_MOMENTS);
}

static int setup_devices(void **state) {
	return setup_on(state, "cuda:0,1", ZERO_WEIGHTS);
}
#endif

static int setup_feedback(void **state) {
	return setup_streams(state, scene_setup_feedback);
}

static int setup_eager(void **state) {
	return setup_streams(state, scene_setup_eager);
}

/* Copies are the trainer's state: they go first. */
static int teardown(void **state) {
	struct scene *s = *state;
	trainer_copy_free(s->copy);
	s->copy = NULL;
	return scene_teardown(state);
}

/* Returns all bytes of the replica that is streamed. */
static uint8_t *read_all(struct trainer_copy *copy) {
	const struct state_pieces_of pieces = trainer_copy_replica(copy);
	uint8_t *all = malloc(copy->replica.payload_bytes);
	size_t at = 0, n = 0;
	for (const void *piece; (piece = pieces.next(pieces.ctx, &n)) != NULL; at += n) {
		assert_true(n > 0 && n <= copy->replica.payload_bytes - at);
		memcpy(all + at, piece, n);
	}
	assert_int_equal(at, copy->replica.payload_bytes);
	return all;
}

/* What a copy made now would have. */
static uint8_t *copy_of(struct scene *s) {
	struct replica *r = trainer_replica(s->t);
	uint8_t *all = malloc(replica_state_bytes(r));
	replica_save(r, all);
	return all;
}

static void expect_read(struct scene *s, const uint8_t *want) {
	uint8_t *got = read_all(s->copy);
	assert_null(s->copy->replica_bytes);
	assert_memory_equal(got, want, s->copy->replica.payload_bytes);
	free(got);
}

/* The round's outer step waits for nobody here; the first inner step of the next one does. */
static void training_waits_until_the_replica_is_read(void **state) {
	struct scene *s = *state;
	play_round(s, 0);
	uint8_t *want = copy_of(s);
	ask_train(s, 1, 0, H);
	await(&waits[LIVE_REPLICA]);
	expect_read(s, want);
	wait_for(s, &s->trained, 2);
	assert_int_equal(s->progress.steps_done, H);
	assert_memory_not_equal(replica_theta(trainer_replica(s->t)), want + REPLICA_HEAD_BYTES,
							trainer_global(s->t)->cfg.n * sizeof(float));
	free(want);
	struct trainer_progress p = trainer_progress(s->t);
	assert_true(p.copy_us > 0 && p.copy_us <= p.compute_us);
}

#ifdef EMULATED_PLUGIN
/* Only one thread uses a device: until the replica is read from it, nothing else begins there. */
static void a_device_is_left_to_who_reads(void **state) {
	struct scene *s = *state;
	assert_true(replica_is_on_device(trainer_replica(s->t)));
	train_and_encode(s, 0, true);
	uint8_t *want = copy_of(s);
	ask_evaluate(s, 32, false);
	await(&waits[LIVE_REPLICA]);
	assert_int_equal(s->evaluated, 0);
	expect_read(s, want);
	wait_for(s, &s->evaluated, 1);
	free(want);
}
#endif

/* Inner steps do not wait for the shared state, whose turn comes after the replica's; the next
 * outer step does. */
static void an_outer_step_waits_until_the_shared_state_is_read(void **state) {
	struct scene *s = *state;
	play_round(s, 0);
	struct trainer_copy *copy = s->copy;
	s->copy = NULL; /* kept beside the next one */
	const struct rv_hash want = global_full_hash(trainer_global(s->t));
	free(read_all(copy));
	train_and_encode(s, 1, false);
	struct trainer_request rq = own_result(s, PARTICIPANT_ADOPT);
	trainer_request(s->t, &rq);
	blob_unref(rq.reduced);
	await(&waits[LIVE_SHARED]);
	const struct rv_hash got = global_full_hash(&copy->snapshot);
	assert_memory_equal(got.b, want.b, RV_HASH_BYTES);
	trainer_copy_free(copy);
	wait_for(s, &s->applied, 2);
	assert_int_equal(trainer_global(s->t)->round, 2);
}

/* A copy that nobody reads after all, and two at once. */
static void a_copy_that_is_freed_is_not_waited_for(void **state) {
	struct scene *s = *state;
	play_round(s, 0);
	struct trainer_copy *first = s->copy;
	s->copy = NULL;
	ask(s, TRAINER_SAVE);
	wait_for(s, &s->saved, 1);
	uint8_t *want = copy_of(s);
	ask_train(s, 1, 0, H);
	await(&waits[LIVE_REPLICA]);
	trainer_copy_free(first);
	expect_read(s, want);
	wait_for(s, &s->trained, 2);
	free(want);
}

/* The owner ends while training waits, and copies are in answers that it did not take. */
static void an_end_does_not_wait(void **state) {
	struct scene *s = *state;
	train_and_encode(s, 0, true);
	trainer_copy_free(s->copy);
	s->copy = NULL;
	struct trainer_request rq = own_result(s, PARTICIPANT_ADOPT);
	trainer_request(s->t, &rq);
	blob_unref(rq.reduced);
	ask_train(s, 1, 0, H);
	await(&waits[LIVE_REPLICA]);
	trainer_free(s->t);
	s->t = NULL;
	assert_int_equal(s->applied, 0);
}

/* A round is the same with streams as by hand, and what was streamed goes on exactly. */
static void rounds_are_the_same(void **state) {
	struct scene *s = *state;
	struct rv_hash want = by_hand(s, 2, 0);
	play_round(s, 0);
	uint8_t *saved = read_all(s->copy);
	const struct state_replica_info info = s->copy->replica;
	trainer_copy_read(s->copy);
	play_round(s, 1);
	assert_ended_as_by_hand(s, &want);
	trainer_copy_free(s->copy);
	s->copy = NULL;
	assert_int_equal(replica_load(trainer_replica(s->t), saved, info.payload_bytes, NULL), RV_OK);
	uint8_t *again = copy_of(s);
	assert_memory_equal(again, saved, info.payload_bytes);
	free(again);
	free(saved);
}

/* The disk fails when the fetched state was found whole: it is neither the old state nor the new
 * one, and the answer says so. One that is not whole changes nothing. */
static void a_disk_that_fails_in_the_middle_of_an_install_is_told(void **state) {
	struct scene *s = *state;
	struct rv_hash full;
	play_round(s, 0);
	const struct global_state *g = trainer_global(s->t);
	const int pieces = (int)global_pieces(&g->cfg);
	for (int whole = 0; whole <= 1; whole++) {
		struct state_file *snapshot = scene_snapshot(s, g, &full);
		good_reads = (whole ? pieces : 0) + 1;
		trainer_copy_read(s->copy);
		ask_install(s, 1, snapshot, &full);
		wait_for(s, &s->installed, whole + 1);
		good_reads = -1;
		assert_int_equal(s->err, RV_E_IO);
		assert_int_equal(s->lost, whole);
		assert_int_equal(trainer_global(s->t)->round, 1);
	}
	assert_non_null(strstr(s->said, "(tries: 2). Start again"));
	assert_int_equal(s->told, 1); /* at once, not only at the end */
}

/* What is damaged is so at each try. */
static void a_state_that_is_damaged_is_not_read_again(void **state) {
	struct scene *s = *state;
	struct rv_hash full;
	play_round(s, 0);
	const struct global_state *g = trainer_global(s->t);
	struct state_file *snapshot = scene_snapshot(s, g, &full);
	good_reads = (int)global_pieces(&g->cfg) + 1;
	rots = true;
	trainer_copy_read(s->copy);
	ask_install(s, 1, snapshot, &full);
	wait_for(s, &s->installed, 1);
	good_reads = -1;
	rots = false;
	assert_int_equal(s->err, RV_E_CORRUPT);
	assert_true(s->lost);
	assert_int_equal(s->reads_again, 0);
	assert_int_equal(s->told, 0);
	assert_non_null(strstr(s->said, "(tries: 1). Start again"));
}

/* A disk that works again in time costs a second: the state is read anew, all of it. */
static void a_state_is_read_again_until_the_disk_works(void **state) {
	struct scene *s = *state;
	struct rv_hash full;
	play_round(s, 0);
	const struct global_state *g = trainer_global(s->t);
	struct state_file *snapshot = scene_snapshot(s, g, &full);
	good_reads = (int)global_pieces(&g->cfg) + 1;
	bad_reads = 1;
	trainer_copy_read(s->copy);
	ask_install(s, 1, snapshot, &full);
	wait_for(s, &s->installed, 1);
	good_reads = -1;
	assert_int_equal(bad_reads, 0);
	bad_reads = INT_MAX;
	assert_int_equal(s->err, RV_OK);
	assert_false(s->lost);
	assert_int_equal(s->reads_again, 1);
	assert_int_equal(s->told, 1);
	const struct rv_hash now = global_full_hash(g);
	assert_memory_equal(&now, &full, sizeof now);
}

/* The same of a replica: its moments are those of a new one. */
static enum rv_err read_some(void *ctx, uint64_t at, void *out, size_t n, struct rv_errtext *et) {
	struct byte_source *of = ctx;
	static int left = 4; /* the header, all of it for its hash, the hash, theta */
	if (left-- == 0)
		return rv_fail(et, RV_E_IO, "the disk fails");
	return of->read(of->ctx, at, out, n, et);
}

static void a_disk_that_fails_in_the_middle_of_a_replica_leaves_no_moments(void **state) {
	struct scene *s = *state;
	play_round(s, 0);
	uint8_t *saved = read_all(s->copy);
	const size_t bytes = s->copy->replica.payload_bytes, n = trainer_global(s->t)->cfg.n;
	struct byte_source whole = byte_source_of(saved);
	const struct byte_source source = {&whole, read_some};
	assert_int_equal(replica_load_from(s->run.replica, &source, bytes, NULL), RV_E_IO);
	uint8_t *now = malloc(bytes), *zeros = calloc(2, n * sizeof(float));
	replica_save(s->run.replica, now);
	assert_memory_equal(now + REPLICA_HEAD_BYTES + n * sizeof(float), zeros, 2 * n * sizeof(float));
	free(now);
	free(zeros);
	free(saved);
}

#define IN(setup, name)                                                                                                \
	{ #name " with " #setup, name, setup_##setup, teardown, NULL }

int main(void) {
	const struct CMUnitTest tests[] = {
		IN(plain, training_waits_until_the_replica_is_read),
		IN(feedback, training_waits_until_the_replica_is_read),
		IN(eager, training_waits_until_the_replica_is_read),
		IN(zero2, training_waits_until_the_replica_is_read),
		IN(zero3, training_waits_until_the_replica_is_read),
		IN(plain, an_outer_step_waits_until_the_shared_state_is_read),
		IN(plain, a_copy_that_is_freed_is_not_waited_for),
		IN(plain, an_end_does_not_wait),
		IN(plain, rounds_are_the_same),
		IN(plain, a_state_is_read_again_until_the_disk_works),
		IN(plain, a_state_that_is_damaged_is_not_read_again),
		IN(plain, a_disk_that_fails_in_the_middle_of_an_install_is_told),
		IN(plain, a_disk_that_fails_in_the_middle_of_a_replica_leaves_no_moments),
#ifdef EMULATED_PLUGIN
		IN(device, training_waits_until_the_replica_is_read),
		IN(devices, training_waits_until_the_replica_is_read),
		IN(device, a_device_is_left_to_who_reads),
		IN(device, an_end_does_not_wait),
#endif
	};
#ifdef EMULATED_PLUGIN
	(void)setenv("RIVULET_CUDA_PLUGIN", EMULATED_PLUGIN, 1);
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
