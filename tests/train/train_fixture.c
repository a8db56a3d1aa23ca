/* train_fixture.c: see train_fixture.h. */
#include "tests/train/train_fixture.h"

#include "base/hash.h"
#include "base/hex.h"
#include "base/rng.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BLOCKS = 12 };

void assert_fault(enum rv_err got, enum rv_err want, const struct rv_errtext *et, const char *needle) {
	assert_string_equal(rv_err_name(got), rv_err_name(want));
	if (!strstr(et->text, needle))
		fail_msg("\"%s\" does not say \"%s\"", et->text, needle);
}

void fixture_write(const char *dir, const char *name, const uint8_t *text, size_t n, char *path, size_t cap) {
	assert_in_range(snprintf(path, cap, "%s/%s", dir, name), 1, cap - 1);
	scratch_write(dir, name, text, n);
}

struct run_config fixture_config(void) {
	struct run_config c;
	run_config_defaults(&c);
	(void)rv_options_set(run_config_options, &c, "dtype", "fp32", NULL); /* the same on every processor */
	c.n_layer = 2;
	c.n_head = 2;
	c.n_embd = 16;
	c.context = 16;
	c.batch = 2;
	c.data_shards = 2;
	c.holdout_every = 4;
	c.steps_per_round = 4;
	c.rounds = 8;
	c.warmup_steps = 2;
	c.lr = 1e-2;
	c.seed = 7;
	return c;
}

/* Words of a small vocabulary: a model that learns lowers its loss on it quickly. */
static void write_text(const char *dir, char *path, size_t cap) {
	static const char *const words[] = {"the ", "river ", "runs ", "into ", "sea ", "and ", "many ", "streams "};
	size_t n = TEXT_BLOCKS * DATA_BLOCK;
	uint8_t *text = malloc(n);
	assert_non_null(text);
	struct rv_rng rng = rv_rng_of(1, 1);
	for (size_t at = 0; at < n;) {
		const char *word = words[rv_rng_below(&rng, sizeof words / sizeof words[0])];
		for (size_t i = 0; word[i] && at < n; i++)
			text[at++] = (uint8_t)word[i];
	}
	fixture_write(dir, "text", text, n, path, cap);
	free(text);
}

void fixture_run_init(struct fixture_run *f, const struct run_config *cfg, const char *backend) {
	*f = (struct fixture_run){.cfg = cfg ? *cfg : fixture_config()};
	scratch_make(f->dir, sizeof f->dir);
	char path[300];
	write_text(f->dir, path, sizeof path);
	const struct dataset_config data = dataset_config_of(&f->cfg, path);
	assert_ok(dataset_open(&data, &f->data, &et));
	struct backend_options opt = {.threads = 1, .compute = DTYPE_F32, .isa = "auto"};
	assert_ok(backend_open(backend, &opt, &f->be, &et));
	f->replica = fixture_replica(f, &f->cfg);
}

void fixture_run_release(struct fixture_run *f) {
	replica_free(f->replica);
	backend_close(f->be);
	dataset_close(f->data);
	scratch_remove(f->dir);
}

struct replica *fixture_replica(struct fixture_run *f, const struct run_config *cfg) {
	struct rv_errtext et = {0};
	struct replica *r = NULL;
	if (replica_new(cfg, f->data, &(struct replica_options){.shard = 0, .n_shards = (uint32_t)cfg->data_shards}, f->be,
					&r, &et) != RV_OK)
		fail_msg("%s", et.text);
	return r;
}

void fixture_steps(struct replica *r, int n) {
	struct step_stats stats;
	for (int i = 0; i < n; i++)
		assert_ok(replica_step(r, &stats, &et));
}

float *fixture_copy_theta(struct replica *r) {
	size_t bytes = replica_n_params(r) * sizeof(float);
	float *copy = malloc(bytes);
	assert_non_null(copy);
	memcpy(copy, replica_theta(r), bytes);
	return copy;
}

void fixture_theta_hash(struct replica *r, char hex[65]) {
	struct rv_hash h = rv_hash_of(replica_theta(r), replica_n_params(r) * sizeof(float));
	rv_hex_encode(h.b, RV_HASH_BYTES, hex);
}
