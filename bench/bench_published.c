/* bench_published.c: bench_published [GIGABYTES...]: what opening a published text costs, and
 * reading from it, against its size. bench_published --make DIR GIGABYTES makes such a text only.
 * The shards are links to one file that is all hole but for its header, so that a terabyte takes a
 * few megabytes of disk; index and manifest are real. One JSON line for each size (1, 100 and 1000
 * GB): time and growth of memory for published_open(), for dataset_open() as a run does it, for a
 * sequence in a shard that was not read before, and for text_cache_open() of a cache with 20 GB of
 * it. */
#include "base/clock.h"
#include "base/file.h"
#include "train/text/data.h"
#include "train/text/published/file_hash.h"
#include "train/text/published/index_pages.h"
#include "train/text/published/published.h"
#include "train/text/tokenizer/shard.h"
#include "worker/text/text_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	VOCAB = 50257,
	LINKS = 60000 /* to one file; ext4 allows 65000 */,
	READS = 200,
	CONTEXT = 1024,
	CACHED = 4768 /* 20 GB */
};

static void must(enum rv_err e, const struct rv_errtext *et) {
	if (e == RV_OK)
		return;
	(void)fprintf(stderr, "bench_published: %s\n", et->text);
	exit(1);
}

static enum rv_err same_hash(void *ctx, uint64_t shard, struct rv_hash *out, struct rv_errtext *et) {
	(void)shard;
	(void)et;
	*out = *(const struct rv_hash *)ctx;
	return RV_OK;
}

/* Writes a shard whose tokens are all 0, as a hole. */
static void write_shard(const char *path, uint64_t bytes) {
	struct rv_errtext et = {0};
	struct shard_writer w;
	const uint32_t zero = 0;
	must(shard_writer_begin(&w, path, VOCAB, &et), &et);
	must(shard_writer_append(&w, &zero, 1, &et), &et);
	const uint32_t n_tokens = MANIFEST_SHARD_TOKENS;
	must(rv_file_writer_patch(&w.file, (const uint32_t[]){SHARD_MAGIC_U16, SHARD_VERSION_U16, n_tokens}, 12, 0, &et),
		 &et);
	must(rv_file_writer_commit(&w.file, &et), &et);
	if (truncate(path, (off_t)bytes) != 0)
		must(rv_fail_errno(&et, errno, "%s", path), &et);
}

static void make_text(const char *dir, uint64_t gigabytes) {
	struct rv_errtext et = {0};
	struct rv_hash hash;
	char path[600], from[600] = "", name[32];
	struct manifest m = {.shard_tokens = MANIFEST_SHARD_TOKENS,
						 .vocab = VOCAB,
						 .separator = -1,
						 .holdout_every = 50,
						 .tokenizer_file = ""};
	m.n_shards = (int64_t)(gigabytes * 1000000000 / (2 * MANIFEST_SHARD_TOKENS) + 1);
	m.n_tokens = m.n_shards * m.shard_tokens;
	must(rv_dir_make(dir, 0755, &et), &et);
	for (uint64_t i = 0; i < (uint64_t)m.n_shards; i++) {
		manifest_shard_name(i, name);
		(void)snprintf(path, sizeof path, "%s/%s", dir, name);
		if (i % LINKS == 0) {
			write_shard(path, manifest_shard_bytes(&m, i));
			memcpy(from, path, sizeof path);
		} else if (link(from, path) != 0 && errno != EEXIST) {
			must(rv_fail_errno(&et, errno, "%s", path), &et);
		}
	}
	must(file_hash(from, &hash, &et), &et);
	must(index_pages_write(dir, &m, same_hash, &hash, &et), &et);
	must(manifest_write(dir, &m, &et), &et);
}

/* Returns this process' memory in KiB: "VmRSS", "VmHWM". */
static long memory_kib(const char *what) {
	char line[256];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "re");
	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, what, strlen(what)) == 0)
			kib = strtol(line + strlen(what) + 1, NULL, 10);
	if (f)
		(void)fclose(f);
	return kib;
}

/* Links a file of the text into its cache. */
static void link_in(const char *dir, const char *cache, const char *name) {
	struct rv_errtext et = {0};
	char from[600], to[600];
	(void)snprintf(from, sizeof from, "%s/%s", dir, name);
	(void)snprintf(to, sizeof to, "%s/%s", cache, name);
	if (link(from, to) != 0 && errno != EEXIST)
		must(rv_fail_errno(&et, errno, "%s", to), &et);
}

/* Makes a cache that holds the index and the first CACHED shards of a text. */
static void make_cache(const char *dir, const char *cache, const struct manifest *m) {
	const struct index_shape shape = index_shape_of(m);
	struct rv_errtext et = {0};
	char name[32];
	must(rv_dir_make(cache, 0755, &et), &et);
	must(manifest_write(cache, m, &et), &et);
	for (int level = 0; level < shape.levels; level++)
		for (uint64_t i = 0; i < shape.n[level]; i++) {
			index_page_name(level, i, name);
			link_in(dir, cache, name);
		}
	for (uint64_t i = 0; i < CACHED && i < (uint64_t)m->n_shards; i++) {
		manifest_shard_name(i, name);
		link_in(dir, cache, name);
	}
}

static void measure_cache(const char *dir, const struct manifest *m) {
	struct rv_errtext et = {0};
	struct rv_hash hash;
	struct text_cache *c;
	struct text_file next;
	char cache[400];
	(void)snprintf(cache, sizeof cache, "%s-cache", dir);
	make_cache(dir, cache, m);
	must(manifest_hash(m, &hash, &et), &et);
	const long before_kib = memory_kib("VmRSS");
	int64_t t0 = rv_clock_monotonic_us();
	must(text_cache_open(cache, &hash, CACHED * manifest_shard_bytes(m, 0), &c, &et), &et);
	const int64_t open_us = rv_clock_monotonic_us() - t0;
	t0 = rv_clock_monotonic_us();
	(void)text_cache_lacks(c, (uint64_t)m->n_shards - 1, &next);
	printf(",\"cache_open_ms\":%.2f,\"cache_open_kib\":%ld,\"cache_lacks_ms\":%.2f", (double)open_us / 1000.0,
		   memory_kib("VmRSS") - before_kib, (double)(rv_clock_monotonic_us() - t0) / 1000.0);
	text_cache_close(c);
}

static void measure(const char *dir, uint64_t gigabytes) {
	struct rv_errtext et = {0};
	struct published *p;
	struct dataset *data;
	static int32_t inputs[CONTEXT], targets[CONTEXT];
	const long before_kib = memory_kib("VmRSS");
	int64_t t0 = rv_clock_monotonic_us();
	must(published_open(dir, &p, &et), &et);
	const int64_t open_us = rv_clock_monotonic_us() - t0;
	const long open_kib = memory_kib("VmRSS") - before_kib;
	t0 = rv_clock_monotonic_us();
	const struct dataset_config cfg = {
		.path = dir, .vocab = VOCAB, .n_shards = 4, .holdout_every = 50, .context = CONTEXT, .seed = 1};
	must(dataset_open(&cfg, &data, &et), &et);
	const int64_t data_us = rv_clock_monotonic_us() - t0;
	t0 = rv_clock_monotonic_us();
	for (uint64_t i = 0; i < READS; i++)
		must(dataset_train_sequence(data, 0, i, inputs, targets, &et), &et);
	const int64_t read_us = (rv_clock_monotonic_us() - t0) / READS;
	printf("{\"bench\":\"published\",\"gigabytes\":%" PRIu64 ",\"shards\":%" PRId64
		   ",\"open_ms\":%.2f,\"open_kib\":%ld,\"dataset_open_ms\":%.1f,\"sequence_ms\":%.2f",
		   gigabytes, published_manifest(p)->n_shards, (double)open_us / 1000.0, open_kib, (double)data_us / 1000.0,
		   (double)read_us / 1000.0);
	measure_cache(dir, published_manifest(p));
	printf(",\"peak_kib\":%ld}\n", memory_kib("VmHWM"));
	(void)fflush(stdout);
	dataset_close(data);
	published_close(p);
}

int main(int argc, char **argv) {
	static const char *const usual[] = {"1", "100", "1000"};
	const char *tmp = getenv("TMPDIR");
	char top[256], dir[300], command[400];
	(void)snprintf(top, sizeof top, "%s/rv-published-XXXXXX", tmp ? tmp : "/tmp");
	if (argc == 4 && strcmp(argv[1], "--make") == 0) {
		make_text(argv[2], strtoull(argv[3], NULL, 10));
		return 0;
	}
	if (!mkdtemp(top))
		return 1;
	const int n = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof usual[0]);
	int status = 0;
	for (int i = 0; i < n && status == 0; i++) {
		const uint64_t gigabytes = strtoull(argc > 1 ? argv[i + 1] : usual[i], NULL, 10);
		(void)snprintf(dir, sizeof dir, "%s/%" PRIu64, top, gigabytes);
		make_text(dir, gigabytes);
		pid_t child = fork(); /* memory is counted from the start, for each size */
		if (child == 0) {
			measure(dir, gigabytes);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) < 0)
			status = 1;
	}
	(void)snprintf(command, sizeof command, "rm -rf '%s'", top);
	return system(command) != 0 || status != 0;
}
