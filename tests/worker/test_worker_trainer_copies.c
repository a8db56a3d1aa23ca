/* test_worker_trainer_copies.c: copies of the replica beside its training, and what is left of them
 * when memory is short. */
#include "trainer_scene.h"

#include "worker/trainer/copier.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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

/* Training goes on while the storage thread still has the last copy, and uses its memory again when
 * it has not. */
static void copies_of_the_replica_do_not_touch_each_other(void **state) {
	struct scene *s = *state;
	play_round(s, 0);
	struct blob *held = blob_ref(s->copy->replica_bytes);
	uint8_t *before = malloc(held->bytes);
	memcpy(before, held->data, held->bytes);
	play_round(s, 1);
	assert_ptr_not_equal(s->copy->replica_bytes, held);
	assert_memory_equal(held->data, before, held->bytes);
	free(before);
	blob_unref(held);
	const struct blob *second = s->copy->replica_bytes;
	trainer_copy_free(s->copy);
	s->copy = NULL;
	play_round(s, 2);
	assert_ptr_equal(s->copy->replica_bytes, second);
	assert_true(trainer_progress(s->t).copy_us <= trainer_progress(s->t).compute_us);
}

/* Training goes on while it is being copied, and what is copied is the state of the round's
 * beginning all the same. */
static void a_copy_is_of_the_moment_it_was_asked_for(void **state) {
	struct scene *s = *state;
	copies_are_slow = true;
	s->leaves_copies = true;
	play_round(s, 0);
	ask_train(s, 1, 0, H);
	wait_for(s, &s->trained, 2);
	copies_are_slow = false;
	s->leaves_copies = false;
	assert_int_equal(s->progress.steps_done, H);
	trainer_copy_wait(s->copy);
	size_t n = trainer_global(s->t)->cfg.n;
	uint8_t *bytes = s->copy->replica_bytes->data;
	const uint8_t *theta = bytes + s->copy->replica.payload_bytes - RV_HASH_BYTES - 3 * n * sizeof(float);
	assert_memory_equal(theta, s->copy->snapshot.theta, n * sizeof(float));
	assert_memory_not_equal(theta, replica_theta(trainer_replica(s->t)), n * sizeof(float));
	replica_seal(bytes, s->copy->replica.payload_bytes);
	assert_int_equal(replica_load(s->run.replica, bytes, s->copy->replica.payload_bytes, NULL), RV_OK);
	assert_int_equal(replica_global_step(s->run.replica), H);
	fixture_steps(s->run.replica, H); /* its moments and its cursor, too: the same steps again */
	assert_memory_equal(replica_theta(s->run.replica), replica_theta(trainer_replica(s->t)), n * sizeof(float));
}

/* Every kind of request is worked on all the same, twice: what was spared is used again. */
static void requests_need_no_memory(void **state) {
	struct scene *s = *state;
	for (int i = 1; i <= 2; i++) {
		no_small_memory = true;
		ask_train(s, 0, trainer_progress(s->t).done.steps_done, 1);
		ask_encode(s, 0, false);
		ask_evaluate(s, 1, false);
		ask_evaluate(s, 1, false);
		ask(s, TRAINER_SAVE);
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
	assert_int_equal(s->copy_is.err, RV_OK);
	struct blob *snapshot = blob_ref(s->copy->snapshot_bytes), *replica = blob_ref(s->copy->replica_bytes);
	no_large_memory = true;
	ask(s, TRAINER_SAVE);
	wait_for(s, &s->saved, 1);
	no_large_memory = false;
	assert_null(s->copy->replica_bytes);
	assert_int_equal(s->copy_is.err, RV_E_NOMEM);
	assert_non_null(strstr(s->copy_is.text.text, "round 1"));
	blob_unref(snapshot);
	blob_unref(replica);
}

/* The owner ends before it took the answers: an outer step's reduced bytes, and copies. */
static void what_nobody_took_is_freed(void **state) {
	struct scene *s = *state;
	train_and_encode(s, 0, false);
	struct trainer_request rq = own_result(s, PARTICIPANT_ADOPT);
	trainer_request(s->t, &rq);
	ask(s, TRAINER_SAVE);
	trainer_free(s->t);
	s->t = NULL;
	assert_int_equal(s->applied + s->saved, 0);
	assert_false(blob_is_shared(rq.reduced));
	blob_unref(rq.reduced);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		PLAIN(copies_of_the_replica_do_not_touch_each_other),
		PLAIN(a_copy_is_of_the_moment_it_was_asked_for),
		PLAIN(requests_need_no_memory),
		PLAIN(a_copy_without_memory_is_told),
		PLAIN(what_nobody_took_is_freed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
