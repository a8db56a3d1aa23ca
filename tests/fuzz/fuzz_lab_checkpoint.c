/* fuzz_lab_checkpoint.c: the checkpoint of a lab run. Its two hashes are made right before a second try, since no
 * search finds a BLAKE2b value. What is accepted saves again as the same bytes; what is refused says why. */
#include "lab/checkpoint_header.h"

#include "base/file.h"
#include "tests/fuzz/fuzz.h"
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
	uint8_t *text = calloc(8, DATA_BLOCK);
	RV_ASSERT(text);
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
	char path[64];
	uint8_t *bytes;
	char dir[] = "/tmp/rv-fuzz-lab-XXXXXX";
	RV_ASSERT(mkdtemp(dir));
	(void)snprintf(path, sizeof path, "%s/checkpoint", dir);
	RV_ASSERT(lab_run_save(r, path, NULL) == RV_OK);
	RV_ASSERT(rv_file_read(path, MAX_BYTES, &bytes, n, NULL) == RV_OK);
	(void)unlink(path);
	(void)rmdir(dir);
	return bytes;
}

static void put_hash(uint8_t *bytes, size_t end) {
	const struct rv_hash h = rv_hash_of(bytes, end - RV_HASH_BYTES);
	memcpy(bytes + end - RV_HASH_BYTES, h.b, RV_HASH_BYTES);
}

static void check_load(struct lab_run *r, const uint8_t *bytes, size_t n) {
	char path[64];
	struct rv_errtext et = {0};
	int fd = memory_file(bytes, n, path);
	enum rv_err e = lab_run_load(r, path, &et);
	(void)close(fd);
	RV_ASSERT(e == RV_OK || et.text[0]);
	if (e != RV_OK)
		return;
	size_t again_bytes;
	uint8_t *again = saved(r, &again_bytes);
	RV_ASSERT(again_bytes == n && memcmp(again, bytes, n) == 0);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct lab_run *r; /* made once: the input is a file, not a run */
	static uint8_t *valid;
	static size_t n;
	if (!r) {
		r = make_run();
		valid = saved(r, &n);
	}
	uint8_t *whole = malloc(n);
	RV_ASSERT(whole);
	check_load(r, data, size);
	for (int from = 0; from <= CHECKPOINT_HEADER_BYTES;
		 from += CHECKPOINT_HEADER_BYTES) { /* the input over the header; behind it */
		memcpy(whole, valid, n);
		memcpy(whole + from, data, size < n - (size_t)from ? size : n - (size_t)from);
		put_hash(whole, CHECKPOINT_HEADER_BYTES);
		put_hash(whole, n);
		check_load(r, whole, n);
	}
	free(whole);
	return 0;
}
