/* train_fixture.h: what the tests of train share: cmocka, a small text on disk, a small run. */
#ifndef RV_TESTS_TRAIN_TRAIN_FIXTURE_H
#define RV_TESTS_TRAIN_TRAIN_FIXTURE_H

#include "base/run_config.h"
#include "kernels/backend.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "train/replica.h"
#include "train/text/data.h"

/* The text of a fault is part of the interface: it must name what is in `needle`. */
void assert_fault(enum rv_err got, enum rv_err want, const struct rv_errtext *et, const char *needle);

/* dir/name with n bytes: byte i is text[i]. */
void fixture_write(const char *dir, const char *name, const uint8_t *text, size_t n, char *path, size_t cap);

/* A tiny run: 2 layers x 16, 2 heads, context 16, batch 2, H = 4, 8 rounds. */
struct run_config fixture_config(void);

/* A replica on learnable text: everything from the temporary directory to the backend. */
struct fixture_run {
	struct run_config cfg;
	char dir[256];
	struct dataset *data;
	struct backend *be;
	struct replica *replica;
};
/* Fields of cfg are fixture_config()'s unless `cfg` is given. */
void fixture_run_init(struct fixture_run *f, const struct run_config *cfg, const char *backend);
void fixture_run_release(struct fixture_run *f);
/* Another replica over the same data and backend. */
struct replica *fixture_replica(struct fixture_run *f, const struct run_config *cfg);

/* n inner steps, none of which is refused. */
void fixture_steps(struct replica *r, int n);
/* A copy of its parameters; free() it. */
float *fixture_copy_theta(struct replica *r);
/* BLAKE2b-256 of a replica's parameters, in hex. */
void fixture_theta_hash(struct replica *r, char hex[65]);

#endif
