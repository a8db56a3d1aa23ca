/* trainer_scene.h: a trainer on a tiny run, the answers it has given, and the same run by hand:
 * what the trainer does must be what the same calls on a replica and a shared state do. */
#ifndef RV_TESTS_WORKER_TRAINER_SCENE_H
#define RV_TESTS_WORKER_TRAINER_SCENE_H

#include "tests/train/train_fixture.h"
#include "worker/trainer/trainer.h"

#include <semaphore.h>

enum { H = 4 };

struct scene {
	struct fixture_run run; /* its replica is the oracle */
	struct trainer *t;
	sem_t finished;
	const char *device; /* of the next trainer; NULL: cpu */
	enum zero zero;     /* likewise, of several devices */
	bool streams;       /* the next trainer's state is read where it lies (savings.stream) */
	bool leaves_copies; /* a copy is kept without waiting for the end of its copy */
	/* Answers. */
	int trained, encoded, applied, installed, evaluated, saved, copied, repeated;
	int sliced;                           /* slices that are done */
	struct participant_progress progress; /* of the last TRAIN */
	bool time_up;
	enum rv_err err;
	bool lost; /* of the last answer */
	int reads_again;
	int told; /* that a state is read again; by the trainer's thread, before the answer */
	double loss;
	char said[RV_ERRTEXT_BYTES]; /* of the last training, encoding, evaluation or installation */
	struct trainer_copy *copy;
	struct state_copy copy_is; /* what the copy holds */
};

/* Set *state to a scene of a plain run; of int4 with error feedback; of eager updates; of a run
 * that exchanges a third of the parameters a round. */
int scene_setup(void **state);
int scene_setup_feedback(void **state);
int scene_setup_eager(void **state);
int scene_setup_streaming(void **state);
int scene_teardown(void **state);

/* A test in such a scene. */
#define PLAIN(name)     cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)
#define STREAMING(name) cmocka_unit_test_setup_teardown(name, scene_setup_streaming, scene_teardown)
#define EAGER(name)                                                                                                    \
	{ #name " with eager updates", name, scene_setup_eager, scene_teardown, NULL }
#define FEEDBACK(name)                                                                                                 \
	{ #name " with error feedback", name, scene_setup_feedback, scene_teardown, NULL }

/* A trainer of s->run as it is now, in the place of the one before; its state is the run's
 * first. */
void scene_new_trainer(struct scene *s);
/* The same, going on from a replica that was saved: it finds nothing to say about it. */
struct trainer_resumed scene_resume(struct scene *s, const struct state_replica_info *info, const struct blob *bytes);

/* Make requests of the trainer. */
void ask(struct scene *s, enum trainer_work work); /* SAVE, END, COPY_SNAPSHOT */
void ask_train(struct scene *s, uint64_t round, uint64_t from, uint64_t steps);
void ask_encode(struct scene *s, uint64_t round, bool want_replica);
void ask_install(struct scene *s, uint64_t round, struct state_file *snapshot, const struct rv_hash *expect);
/* A snapshot in a directory, open and without a name: ask_install takes it over. */
struct state_file *scene_snapshot(const struct scene *s, const struct global_state *g, struct rv_hash *full);
void ask_evaluate(struct scene *s, uint64_t max_tokens, bool last);
/* Until so many answers of that kind (one of the counts above) have come. */
void wait_for(struct scene *s, const int *count, int n);
/* Encodes, and waits for it; the steps before it are all H. */
void encode(struct scene *s, uint64_t round, bool want_replica);
void train_and_encode(struct scene *s, uint64_t round, bool want_replica);

size_t payload_bytes(struct scene *s);
/* The trainer's own gradient as the round's result: a run of one worker. The caller releases
 * `reduced`. */
struct trainer_request own_result(struct scene *s, enum participant_adopt adopt);
/* Its outer step is done. */
void apply_own_result(struct scene *s, enum participant_adopt adopt);
void play_round(struct scene *s, uint64_t round);

/* What that many rounds are by hand, as the full hash of their end; `ahead`: steps of the next
 * round before a round's outer step, but for the last one. */
struct rv_hash by_hand(struct scene *s, int rounds, int ahead);
void assert_ended_as_by_hand(struct scene *s, const struct rv_hash *want);

#endif
