/* fuzz_replica_state.c: a replica's own state file. The hash over it is made right before a second try, since no search
 * finds a BLAKE2b value. What is accepted saves as the same bytes; what is refused leaves the replica as it was. */
#include "worker/train/replica.h"

#include "base/hash.h"
#include "tests/fuzz/fuzz.h"
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
	uint8_t *text = calloc(1, text_bytes);
	RV_ASSERT(text);
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

static void put_hash(uint8_t *state, size_t n) {
	struct rv_hasher h;
	struct rv_hash hash;
	rv_hash_init_domain(&h, "rivulet replica");
	rv_hash_update(&h, state, n - RV_HASH_BYTES);
	rv_hash_final(&h, &hash);
	memcpy(state + n - RV_HASH_BYTES, hash.b, RV_HASH_BYTES);
}

static void check_load(struct replica *r, const uint8_t *data, size_t size) {
	size_t n = replica_state_bytes(r);
	uint8_t *before = malloc(n), *after = malloc(n);
	struct rv_errtext et = {0};
	RV_ASSERT(before && after);
	replica_save(r, before);
	enum rv_err e = replica_load(r, data, size, &et);
	replica_save(r, after);
	RV_ASSERT(e == RV_OK || (e == RV_E_CORRUPT && et.text[0]));
	RV_ASSERT(memcmp(after, e == RV_OK ? data : before, n) == 0);
	free(before);
	free(after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct replica *r; /* made once: the input is a file, not a model */
	if (!r)
		r = make_replica();
	size_t n = replica_state_bytes(r);
	uint8_t *whole = calloc(1, n);
	RV_ASSERT(whole);
	check_load(r, data, size);
	replica_save(r, whole);
	memcpy(whole, data, size < n ? size : n); /* the input over a valid state: headers are reached */
	put_hash(whole, n);
	check_load(r, whole, n);
	free(whole);
	return 0;
}
