/* test_worker_trainer_rest.c: what a pause does to a trainer: memory is given back while the disk
 * still has the copy to write, or has not read the state. */
#include "trainer_scene.h"

#include "base/clock.h"
#include "kernels/gate.h"
#include "tests/common/check.h"
#include "tests/common/deadline.h"
#include "tests/common/scratch.h"
#include "tests/emu/watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LATER_US = 60 * 1000 * 1000, WAIT_S = 300 };
enum { LONG_ACCUM = 64, BATCHES_SEEN = 2 }; /* micro-batches */
static const struct emu_watch *watch;

static uint64_t now_of(const uint64_t *field) {
	return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

static void setup_device(void **state, bool streams) {
	assert_int_equal(scene_setup(state), 0);
	struct scene *s = *state;
	s->device = "cuda";
	s->streams = streams;
	s->leaves_copies = true;
	scene_new_trainer(s);
	trainer_reserve_copies(s->t);
	assert_true(watch->device_bytes > 0);
}

static int setup_copied(void **state) {
	setup_device(state, false);
	return 0;
}

/* Steps of so many micro-batches that none ends while a test looks on. */
static int setup_long(void **state) {
	assert_int_equal(scene_setup(state), 0);
	struct scene *s = *state;
	s->run.cfg.grad_accum = LONG_ACCUM;
	s->device = "cuda";
	s->leaves_copies = true;
	scene_new_trainer(s);
	trainer_reserve_copies(s->t);
	return 0;
}

static int setup_streamed(void **state) {
	setup_device(state, true);
	return 0;
}

static int setup_processor(void **state) {
	if (scene_setup(state) != 0)
		return -1;
	struct scene *s = *state;
	s->streams = s->leaves_copies = true;
	scene_new_trainer(s);
	return 0;
}

static int teardown(void **state) {
	struct scene *s = *state;
	trainer_copy_free(s->copy);
	s->copy = NULL;
	return scene_teardown(state);
}

static void end_by(struct scene *s, int64_t by_us) {
	trainer_abandon(s->t);
	trainer_hurry(s->t, by_us);
	ask(s, TRAINER_END);
	wait_for(s, &s->saved, 1);
}

static void give_back(struct scene *s) {
	trainer_give_back(s->t);
	trainer_give_back(s->t); /* any number of times */
	assert_int_equal(watch->device_bytes + watch->pinned_bytes, 0);
}

/* Returns the bytes that are read of the replica, all that there are. */
static size_t read_on(const struct state_pieces_of *pieces, uint8_t *out, size_t cap) {
	size_t at = 0, n = 0;
	for (const void *piece; (piece = pieces->next(pieces->ctx, &n)) != NULL; at += n) {
		assert_true(n <= cap - at);
		memcpy(out + at, piece, n);
	}
	return at;
}

/* What is to be written outlives the device's memory, and is what the replica was. */
static void a_copy_outlives_the_device(void **state) {
	struct scene *s = *state;
	ask_train(s, 0, 0, 2);
	wait_for(s, &s->trained, 1);
	struct replica *r = trainer_replica(s->t);
	const size_t bytes = replica_state_bytes(r);
	uint8_t *want = malloc(bytes), *got = malloc(bytes);
	assert_true(want && got);
	replica_save(r, want);
	end_by(s, rv_clock_monotonic_us() + LATER_US);
	assert_true(s->copy_is.has_replica);
	give_back(s);
	const struct state_pieces_of pieces = trainer_copy_replica(s->copy);
	assert_int_equal(read_on(&pieces, got, bytes), bytes);
	assert_memory_equal(got, want, bytes);
	assert_int_equal(s->copy->replica.steps_done, 2);
	free(want);
	free(got);
}

/* Gives the trainer's thread time to end a micro-batch and wait behind it: what follows must hold
 * wherever it is, and this is where the next one could begin. */
static void let_it_come_to_the_gate(uint64_t batches) {
	enum { PAUSES = 10 };
	const struct deadline d = deadline_in(WAIT_S, "nothing");
	for (int i = 0; i < PAUSES && now_of(&watch->batches) == batches; i++)
		deadline_pause(&d);
	deadline_pause(&d);
}

/* What a pause waits for on a device: the micro-batch that has begun, and one copy of the state.
 * The calls are those of session/rest.c; nobody reads the copy, as a disk that writes nothing. */
static void a_pause_waits_for_one_batch_and_one_copy(void **state) {
	struct scene *s = *state;
	const size_t vectors = 3 * replica_n_params(trainer_replica(s->t)) * sizeof(float);
	const uint64_t first = now_of(&watch->batches);
	ask_train(s, 0, 0, H);
	for (struct deadline d = deadline_in(WAIT_S, "micro-batches"); now_of(&watch->batches) < first + BATCHES_SEEN;)
		deadline_pause(&d);
	gate_hold(true);
	const uint64_t batches = now_of(&watch->batches);
	let_it_come_to_the_gate(batches);
	trainer_abandon(s->t);
	trainer_hurry(s->t, rv_clock_monotonic_us() + LATER_US);
	gate_hold(false);
	wait_for(s, &s->trained, 1);
	const uint64_t read = now_of(&watch->read_bytes);
	ask(s, TRAINER_END);
	wait_for(s, &s->saved, 1);
	give_back(s);
	assert_true(now_of(&watch->batches) <= batches + 1);
	assert_true(s->copy_is.has_replica);
	assert_int_equal(now_of(&watch->read_bytes) - read, vectors);
}

/* The disk has the copy of a round, whose memory is the only one for copies: that is what is
 * saved. */
static void a_copy_under_way_is_the_last(void **state) {
	struct scene *s = *state;
	train_and_encode(s, 0, true);
	struct trainer_copy *written = s->copy;
	s->copy = NULL;
	assert_non_null(written->replica_bytes);
	end_by(s, rv_clock_monotonic_us() + LATER_US);
	assert_false(s->copy_is.has_replica);
	assert_int_equal(s->copy_is.err, RV_OK);
	give_back(s);
	trainer_copy_free(written);
}

/* A device is given back before its state is copied, if that takes too long. */
static void a_copy_in_vain(void **state) {
	struct scene *s = *state;
	end_by(s, 1);
	assert_false(s->copy_is.has_replica);
	assert_int_equal(s->copy_is.err, RV_OK);
	give_back(s);
}

/* A state that is read where it lies ends early, wherever its reader is; a request that waited for
 * the reader does not any longer. */
static void a_stream_is_cut(void **state) {
	struct scene *s = *state;
	enum { CAP = 1 << 20 };
	uint8_t *got = malloc(CAP);
	size_t n;
	assert_non_null(got);
	train_and_encode(s, 0, true);
	struct trainer_copy *written = s->copy;
	s->copy = NULL;
	const struct state_pieces_of pieces = trainer_copy_replica(written);
	assert_non_null(pieces.next(pieces.ctx, &n)); /* others are on their way */
	ask_evaluate(s, 32, false);
	end_by(s, rv_clock_monotonic_us() + LATER_US);
	assert_false(s->copy_is.has_replica);
	give_back(s);
	assert_int_equal(read_on(&pieces, got, CAP), 0);
	trainer_copy_free(written);
	free(got);
}

/* Nobody waits for a processor's memory so that a round's work may be lost for it. */
static void a_stream_of_a_processor_is_read(void **state) {
	struct scene *s = *state;
	trainer_abandon(s->t);
	ask(s, TRAINER_END);
	wait_for(s, &s->saved, 1);
	assert_true(s->copy_is.has_replica);
	const size_t bytes = s->copy->replica.payload_bytes;
	uint8_t *got = malloc(bytes), *want = malloc(bytes);
	assert_true(got && want);
	replica_save(trainer_replica(s->t), want);
	trainer_give_back(s->t);
	const struct state_pieces_of pieces = trainer_copy_replica(s->copy);
	assert_int_equal(read_on(&pieces, got, bytes), bytes);
	assert_memory_equal(got, want, bytes);
	trainer_give_back(s->t);
	assert_null(replica_model(trainer_replica(s->t)));
	free(got);
	free(want);
}

/* What is asked for afterwards is refused. */
static void later_work_is_refused(void **state) {
	struct scene *s = *state;
	end_by(s, rv_clock_monotonic_us() + LATER_US);
	give_back(s);
	ask_evaluate(s, 32, false);
	wait_for(s, &s->evaluated, 1);
	assert_int_equal(s->err, RV_E_CANCELLED);
	assert_non_null(strstr(trainer_device(s->t), "emulator"));
	assert_string_equal(trainer_device_choice(s->t)->backend, "cuda");
}

/* Maps what the emulator in this process shows. */
static void open_watch(void) {
	char dir[SCRATCH_PATH], path[SCRATCH_PATH + 8];
	scratch_make(dir, sizeof dir);
	snprintf(path, sizeof path, "%s/watch", dir);
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && ftruncate(fd, sizeof *watch) == 0);
	watch = mmap(NULL, sizeof *watch, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(watch != MAP_FAILED);
	(void)close(fd);
	(void)setenv(EMU_WATCH_ENV, path, 1);
	(void)setenv("RIVULET_CUDA_PLUGIN", EMULATED_PLUGIN, 1);
}

#define IN(scene, test)                                                                                                \
	{ #test " " #scene, test, setup_##scene, teardown, NULL }

int main(void) {
	const struct CMUnitTest tests[] = {
		IN(copied, a_copy_outlives_the_device),
		IN(long, a_pause_waits_for_one_batch_and_one_copy),
		IN(copied, a_copy_under_way_is_the_last),
		IN(copied, a_copy_in_vain),
		IN(streamed, a_stream_is_cut),
		IN(copied, later_work_is_refused),
		IN(processor, a_stream_of_a_processor_is_read),
	};
	open_watch();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
