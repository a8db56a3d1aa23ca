/* lab_fixture.c: see lab_fixture.h. */
#include "tests/lab/lab_fixture.h"
#include "lab/methods/methods.h"

#include "base/rng.h"
#include "train/files/weights_save.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 8 * DATA_BLOCK };

/* Words of a small vocabulary, so that there is something to learn. */
static void make_text(uint8_t *text, size_t n) {
	static const char *const words[] = {"the ", "stream ", "joins ", "a ", "river ", "and ", "flows ", "on.\n"};
	struct rv_rng r = rv_rng_of(4, 4);
	for (size_t i = 0; i < n;) {
		const char *w = words[rv_rng_below(&r, 8)];
		size_t k = strlen(w) < n - i ? strlen(w) : n - i;
		memcpy(text + i, w, k);
		i += k;
	}
}

void lab_fixture_init(struct lab_fixture *f) {
	*f = (struct lab_fixture){0};
	scratch_make(f->dir, sizeof f->dir);
	uint8_t *text = malloc(TEXT_BYTES);
	assert_non_null(text);
	make_text(text, TEXT_BYTES);
	char path[300];
	fixture_write(f->dir, "text", text, TEXT_BYTES, path, sizeof path);
	free(text);
	struct run_config c;
	run_config_defaults(&c);
	(void)rv_options_set(run_config_options, &c, "dtype", "fp32", NULL); /* the same on every processor */
	c.n_layer = 1;
	c.n_head = 2;
	c.n_embd = 16;
	c.context = 16;
	c.batch = 2;
	c.data_shards = 4;
	c.holdout_every = 4;
	c.steps_per_round = 3;
	c.rounds = 4;
	c.warmup_steps = 2;
	c.lr = 0.01;
	const struct dataset_config data = {.path = path, .n_shards = 4, .holdout_every = 4, .context = 16, .seed = 1};
	assert_int_equal(dataset_open(&data, &f->data, NULL), RV_OK);
	f->cfg = (struct lab_config){.run = c,
								 .method = &lab_method_diloco,
								 .workers = 4,
								 .threads = 1,
								 .parallel = 2,
								 .device = {.backend = "cpu", .n = 1},
								 .isa = "auto"};
}

void lab_fixture_release(struct lab_fixture *f) {
	dataset_close(f->data);
	scratch_remove(f->dir);
}

struct lab_run *lab_fixture_start(struct lab_fixture *f) {
	struct lab_run *r;
	struct rv_errtext et = {0};
	if (lab_run_new(&f->cfg, f->data, &r, &et) != RV_OK)
		fail_msg("%s", et.text);
	return r;
}

struct lab_round lab_fixture_finish(struct lab_run *r) {
	struct lab_round round = {0};
	while (!lab_run_finished(r))
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
	return round;
}

struct loaded_model *lab_fixture_reload(struct lab_fixture *f, struct lab_run *trained, int max_batch) {
	char path[300];
	struct loaded_model *m;
	struct rv_errtext et = {0};
	snprintf(path, sizeof path, "%s/" WEIGHTS_FILE, f->dir);
	const struct weights_source source = {.cfg = &f->cfg.run,
										  .layout = &replica_model(trained->replicas[0])->layout,
										  .params = trained->global.theta,
										  .origin = {.round = trained->rounds_done, .step = lab_run_steps(trained)}};
	assert_int_equal(weights_save_files(f->dir, &source, NULL), RV_OK);
	lab_run_free(trained);
	const struct loaded_model_options o = {
		.where = path, .tokenizer = "", .dtype = RUN_DTYPE_AUTO, .max_batch = max_batch, .threads = 1};
	if (loaded_model_open(&o, &m, &et) != RV_OK)
		fail_msg("%s", et.text);
	return m;
}

struct lab_run *lab_fixture_finished(struct lab_fixture *f) {
	struct lab_run *r = lab_fixture_start(f);
	lab_fixture_finish(r);
	return r;
}

struct rv_hash lab_fixture_result(struct lab_fixture *f) {
	struct lab_run *r = lab_fixture_finished(f);
	struct rv_hash h = r->cfg.method->state_hash(r);
	lab_run_free(r);
	return h;
}

void lab_fixture_outer(struct lab_fixture *f, const char *optimizer, double lr, double momentum) {
	(void)rv_options_set(run_config_options, &f->cfg.run, "outer", optimizer, NULL);
	f->cfg.run.outer_lr = lr;
	f->cfg.run.outer_momentum = momentum;
}

double farthest(const float *a, const float *b, size_t n) {
	double most = 0;
	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs((double)a[i] - (double)b[i]));
	return most;
}
