/* model_fixture.h: small models of every family there is, for tests that hold for all of them. */
#ifndef RV_TESTS_TRAIN_MODEL_FIXTURE_H
#define RV_TESTS_TRAIN_MODEL_FIXTURE_H

#include "tests/train/train_fixture.h"
#include "train/model/model.h"

enum {
	CASE_CONTEXT = 7,
	CASE_BATCH = 3,
	CASE_TOKENS = CASE_BATCH * CASE_CONTEXT,
	CASE_VOCAB = 31,
	MODEL_CASES_MAX = 32
};

/* Every registered family in one plain shape, then what some of them can do beside it. */
struct model_case {
	char what[48];
	const char *family;
	struct model_shape shape;
};
int model_cases(struct model_case out[static MODEL_CASES_MAX]);

struct model_batch {
	int32_t tokens[CASE_TOKENS], targets[CASE_TOKENS];
	float losses[CASE_TOKENS];
};
struct model_batch model_batch_random(void);

struct backend *fixture_backend(const char *name);
struct model *fixture_model(struct backend *be, const struct model_case *c, const struct model_options *options);
/* A zeroed block of n values. */
float *fixture_block(struct backend *be, size_t n);
/* Weights large enough that every part of the model matters. The backend's memory is the host's. */
void fixture_randomise(const struct model *m, float *params);

#endif
