/* fuzz_lab_checkpoint.c: the checkpoint of a lab run. The first byte of the input says what the
 * rest is: a whole file, or what is laid over a part of a valid one, whose hashes are then made
 * right, since no search finds a BLAKE2b value. What is accepted saves again as the same bytes;
 * what is refused says why. */
#include "lab/methods/methods.h"
#include "lab/run/checkpoint_header.h"

#include "base/file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_replica.h"
#include "tests/fuzz/memory_dir.h"
#include "tests/fuzz/memory_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_BYTES = 1 << 20 };

static struct lab_run *make_run(void) {
	struct lab_config cfg = {.method = &lab_method_diloco, .workers = 2, .threads = 1, .parallel = 1, .isa = "auto"};
	struct dataset *data;
	struct lab_run *r;
	char path[64];
	uint8_t *text = malloc(8 * (size_t)DATA_BLOCK);
	RV_ASSERT(text);
	memset(text, 'a', 8 * (size_t)DATA_BLOCK);
	cfg.device = (struct device_choice){.backend = "ref", .n = 1};
	run_config_defaults(&cfg.run);
	cfg.run.n_layer = 1;
	cfg.run.n_head = 1;
	cfg.run.n_embd = 8;
	cfg.run.context = 8;
	cfg.run.batch = 1;
	cfg.run.data_shards = 2;
	int fd = memory_file(text, (size_t)8 * DATA_BLOCK, path);
	const struct dataset_config source = {.path = path, .n_shards = 2, .holdout_every = 4, .context = 8, .seed = 1};
	RV_ASSERT(dataset_open(&source, &data, NULL) == RV_OK);
	RV_ASSERT(lab_run_new(&cfg, data, &r, NULL) == RV_OK);
	(void)close(fd);
	free(text);
	return r;
}

/* The run's own checkpoint, in memory of its own. */
static uint8_t *saved(struct lab_run *r, size_t *n) {
	const char *path = memory_dir_path("checkpoint");
	uint8_t *bytes;
	RV_ASSERT(lab_run_save(r, path, NULL) == RV_OK);
	RV_ASSERT(rv_file_read(path, MAX_BYTES, &bytes, n, NULL) == RV_OK);
	return bytes;
}

static void put_hash(uint8_t *bytes, size_t end) {
	const struct rv_hash h = rv_hash_of(bytes, end - RV_HASH_BYTES);
	memcpy(bytes + end - RV_HASH_BYTES, h.b, RV_HASH_BYTES);
}

static void check_load(struct lab_run *r, const uint8_t *bytes, size_t n) {
	struct rv_errtext et = {0};
	enum rv_err e = lab_run_load(r, memory_dir_put("given", bytes, n), &et);
	RV_ASSERT(e == RV_OK || et.text[0]);
	if (e != RV_OK)
		return;
	size_t again_bytes;
	uint8_t *again = saved(r, &again_bytes);
	RV_ASSERT(again_bytes == n && memcmp(again, bytes, n) == 0);
	free(again);
}

/* A run and its checkpoint: made once, for the input is a file, not a run. A load that is accepted
 * sets all that a save writes, so no execution sees what an earlier one has loaded. */
struct subject {
	struct lab_run *run;
	size_t n, replica_bytes;
	uint8_t *valid, *file;
};

enum part { WHOLE, HEADER, GLOBAL, WORKER_0, WORKER_1, PARTS };

/* Of part `p`; that of PARTS is where the last one ends. */
static size_t part_offset(const struct subject *s, enum part p) {
	enum { SUMS_BYTES = 7 * 8 }; /* before the replica's state */
	if (p < WORKER_0)
		return p == GLOBAL ? CHECKPOINT_HEADER_BYTES : 0;
	return s->n - RV_HASH_BYTES - (size_t)(PARTS - p) * (SUMS_BYTES + s->replica_bytes);
}

static struct subject *make_subject(void) {
	struct subject *s = calloc(1, sizeof *s);
	RV_ASSERT(s);
	s->run = make_run();
	s->valid = saved(s->run, &s->n);
	s->file = malloc(s->n);
	s->replica_bytes = replica_state_bytes(s->run->replicas[0]);
	RV_ASSERT(s->file);
	return s;
}

static void lay_over(struct subject *s, enum part p, const uint8_t *data, size_t size) {
	size_t from = part_offset(s, p), end = part_offset(s, PARTS);
	memcpy(s->file, s->valid, s->n);
	memcpy(s->file + from, data, size < end - from ? size : end - from);
	put_hash(s->file, CHECKPOINT_HEADER_BYTES);
	for (enum part w = WORKER_0; w < PARTS; w++)
		fuzz_seal_replica(s->file + part_offset(s, w + 1) - s->replica_bytes, s->replica_bytes);
	put_hash(s->file, s->n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct subject *s;
	if (!s)
		s = make_subject();
	if (size == 0)
		return 0;
	enum part p = (enum part)(data[0] % PARTS);
	if (p == WHOLE) {
		check_load(s->run, data + 1, size - 1);
		return 0;
	}
	lay_over(s, p, data + 1, size - 1);
	check_load(s->run, s->file, s->n);
	return 0;
}
