/* lab_fixture.h: a tiny run of the lab on a small text. */
#ifndef RV_TESTS_LAB_LAB_FIXTURE_H
#define RV_TESTS_LAB_LAB_FIXTURE_H

#include "lab/model/loaded_model.h"
#include "lab/run/lab_run.h"
#include "tests/train/train_fixture.h"

struct lab_fixture {
	char dir[256];
	struct dataset *data;
	struct lab_config cfg; /* to be changed before lab_fixture_start */
};

/* One layer of 16 channels, H = 3, 4 rounds, 4 workers on 4 shards, diloco with int8 and nesterov,
 * on the cpu. */
void lab_fixture_init(struct lab_fixture *f);
void lab_fixture_release(struct lab_fixture *f);
struct lab_run *lab_fixture_start(struct lab_fixture *f);
/* All rounds that are left; returns the last one's record. */
struct lab_round lab_fixture_finish(struct lab_run *r);
/* The result of `trained`, which it frees, through a file of weights and back. */
struct loaded_model *lab_fixture_reload(struct lab_fixture *f, struct lab_run *trained, int max_batch);
/* A fresh run with f->cfg to its end; the caller's. */
struct lab_run *lab_fixture_finished(struct lab_fixture *f);
/* The same; the hash of the result. */
struct rv_hash lab_fixture_result(struct lab_fixture *f);

void lab_fixture_outer(struct lab_fixture *f, const char *optimizer, double lr, double momentum);

/* The largest |a - b| of n values. */
double farthest(const float *a, const float *b, size_t n);

#define assert_hashes_equal(x, y)     assert_memory_equal((x).b, (y).b, RV_HASH_BYTES)
#define assert_hashes_not_equal(x, y) assert_memory_not_equal((x).b, (y).b, RV_HASH_BYTES)

#endif
