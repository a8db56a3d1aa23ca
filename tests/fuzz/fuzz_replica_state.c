/* fuzz_replica_state.c: a replica's own state file. The hash over it is made right before a second
 * try, since no search finds a BLAKE2b value. What is accepted saves as the same bytes; what is
 * refused leaves the replica as it was. */
#include "train/replica.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_replica.h"
#include "tests/fuzz/memory_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct replica *make_replica(void) {
	struct run_config cfg;
	struct backend_options opt = {.threads = 1};
	struct backend *be;
	struct dataset *data;
	struct replica *r;
	char path[64];
	size_t text_bytes = 8 * DATA_BLOCK;
	uint8_t *text = malloc(text_bytes);
	RV_ASSERT(text);
	memset(text, 'a', text_bytes);
	run_config_defaults(&cfg);
	cfg.n_layer = 1;
	cfg.n_head = 1;
	cfg.n_embd = 8;
	cfg.context = 8;
	cfg.batch = 1;
	int fd = memory_file(text, text_bytes, path);
	const struct dataset_config source = {.path = path, .n_shards = 1, .holdout_every = 4, .context = 8, .seed = 1};
	RV_ASSERT(dataset_open(&source, &data, NULL) == RV_OK);
	RV_ASSERT(backend_open("ref", &opt, &be, NULL) == RV_OK);
	RV_ASSERT(replica_new(&cfg, data, &(struct replica_options){.shard = 0, .n_shards = 1}, be, &r, NULL) == RV_OK);
	(void)close(fd);
	free(text);
	return r;
}

/* A replica and its state files: made once, for the input is a file, not a model. Every execution
 * begins and ends with the replica in the state `valid`. */
struct subject {
	struct replica *replica;
	size_t n;
	uint8_t *valid, *whole, *after;
};

static struct subject *make_subject(void) {
	struct subject *s = calloc(1, sizeof *s);
	RV_ASSERT(s);
	s->replica = make_replica();
	s->n = replica_state_bytes(s->replica);
	s->valid = malloc(s->n);
	s->whole = malloc(s->n);
	s->after = malloc(s->n);
	RV_ASSERT(s->valid && s->whole && s->after);
	replica_save(s->replica, s->valid);
	return s;
}

static void check_load(struct subject *s, const uint8_t *data, size_t size) {
	struct rv_errtext et = {0};
	enum rv_err e = replica_load(s->replica, data, size, &et);
	replica_save(s->replica, s->after);
	RV_ASSERT(e == RV_OK || (e == RV_E_CORRUPT && et.text[0]));
	RV_ASSERT(memcmp(s->after, e == RV_OK ? data : s->valid, s->n) == 0);
	if (e == RV_OK)
		RV_ASSERT(replica_load(s->replica, s->valid, s->n, NULL) == RV_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct subject *s;
	if (!s)
		s = make_subject();
	check_load(s, data, size);
	memcpy(s->whole, s->valid, s->n);
	memcpy(s->whole, data, size < s->n ? size : s->n); /* the input over a valid state: headers are reached */
	fuzz_seal_replica(s->whole, s->n);
	check_load(s, s->whole, s->n);
	return 0;
}
