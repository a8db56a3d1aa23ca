/* step_ours.c: see step_ours.h. */
#include "bench/step_ours.h"

#include "base/program.h"
#include "base/rng.h"
#include "train/replica.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT_BYTES = 256 * DATA_BLOCK, FIRST_LETTER = ' ', LETTERS = 95 }; /* ASCII: what is text to a dataset */

static enum rv_err make_dataset(const struct step_shape *s, struct dataset **out, struct rv_errtext *et) {
	char path[] = "/tmp/rv-bench-step-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!f)
		return rv_fail(et, RV_E_IO, "cannot make %s", path);
	struct rv_rng rng = rv_rng_of(1, 1);
	for (int i = 0; i < TEXT_BYTES; i++)
		putc(FIRST_LETTER + (int)rv_rng_below(&rng, LETTERS), f);
	fclose(f);
	const struct dataset_config data = {
		.path = path, .n_shards = 1, .holdout_every = 8, .context = (uint32_t)s->context, .seed = 1};
	enum rv_err e = dataset_open(&data, out, et);
	unlink(path); /* it stays mapped */
	return e;
}

static struct run_config config_of(const struct step_shape *s) {
	struct run_config c;
	run_config_defaults(&c);
	c.n_layer = s->layers;
	c.n_head = s->heads;
	c.n_embd = s->channels;
	c.vocab = s->vocab;
	c.context = s->context;
	c.batch = s->batch;
	c.data_shards = 1;
	c.lr = 1e-4;
	return c;
}

enum rv_err step_ours_open(struct step_ours *o, const struct step_shape *s, const struct savings *savings,
						   struct backend *be, struct rv_errtext *et) {
	*o = (struct step_ours){0};
	const struct run_config cfg = config_of(s);
	const struct replica_options options = {
		.shard = 0, .n_shards = 1, .savings = savings ? *savings : (struct savings){0}};
	enum rv_err e = make_dataset(s, &o->data, et);
	if (e == RV_OK)
		e = replica_new(&cfg, o->data, &options, be, &o->replica, et);
	if (e != RV_OK)
		step_ours_close(o);
	return e;
}

void step_ours_close(struct step_ours *o) {
	replica_free(o->replica);
	dataset_close(o->data);
	*o = (struct step_ours){0};
}

void step_ours_step(void *ctx) {
	struct step_ours *o = ctx;
	struct step_stats stats;
	struct rv_errtext et = {0};
	if (replica_step(o->replica, &stats, &et) != RV_OK) {
		fprintf(stderr, "bench: %s\n", et.text);
		exit(RV_EXIT_FAULT);
	}
}
