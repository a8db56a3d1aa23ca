/* inspect.c: identifies kinds, by their first bytes if these are distinct, else by name and
 * contents. */
#include "lab/inspect/inspect.h"

#include "base/bytes.h"
#include "base/file.h"
#include "base/json_limits.h"
#include "base/options.h"
#include "lab/worker_files/worker_rounds.h"
#include "train/files/weights.h"
#include "train/metrics.h"
#include "train/text/published/manifest.h"
#include "train/text/tokenizer/shard.h"
#include "train/text/tokenizer/tokenizer.h"
#include "worker/session/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES = 16, JSON_CONTAINERS = 3 << 20, JSON_VALUES = 12 << 20 };

struct kind {
	const char *name;
	enum rv_err (*inspect)(const char *path, json_t *facts, struct rv_errtext *et);
	const char *by; /* what identifies it */
};

/* ---- identification ---- */

/* Directories by a file in them; the first that fits. */
static const struct kind directories[] = {{"model directory", inspect_model_directory, WEIGHTS_FILE},
										  {"model directory", inspect_model_directory, WEIGHTS_INDEX_FILE},
										  {"model directory", inspect_model_directory, WEIGHTS_CONFIG_FILE},
										  {"metrics", inspect_metrics, METRICS_FILE},
										  {"coordinator's directory", inspect_coordinator, "store.db"},
										  {"sweep's directory", inspect_sweep, INSPECT_SWEEP_FILE},
										  {"published text", inspect_published, MANIFEST_NAME},
										  {.name = NULL}};
/* Files by their first bytes, or by the end of their names; the first that fits. */
static const struct kind magics[] = {{"gguf", inspect_gguf, "GGUF"},
									 {"coordinator's store", inspect_store, "SQLite format 3"},
									 {"state file", inspect_state_file, "RVSNAP"},
									 {"state file", inspect_state_file, "RVLOG"},
									 {"state file", inspect_state_file, "RVREPL"},
									 {"state file", inspect_state_file, "rivuletL"},
									 {.name = NULL}};
static const struct kind endings[] = {{"token shard", inspect_shard, ".bin"},
									  {"worker's trace", inspect_trace, "/" TRACE_FILE},
									  {"run's configuration", inspect_run_conf, ".conf"},
									  {"metrics", inspect_metrics, ".jsonl"},
									  {"safetensors", inspect_safetensors, ".safetensors"},
									  {.name = NULL}};
/* JSON files by a key. */
static const struct kind json_files[] = {{"index of safetensors files", inspect_index, "weight_map"},
										 {"cell of a sweep", inspect_sweep_cell, "axes"},
										 {"model configuration", inspect_config, "model_type"},
										 {"tokenizer", inspect_tokenizer, "model"},
										 {.name = NULL}};
/* Others: tiktoken's ranks have no magic number, but lines of base64 and a number. */
static const struct kind kind_worker = {"worker's directory", inspect_worker, NULL},
						 kind_shard = {"token shard", inspect_shard, NULL},
						 kind_safetensors = {"safetensors", inspect_safetensors, NULL},
						 kind_ranks = {"tokenizer", inspect_tokenizer, NULL};

/* The beginning of a file. */
struct head {
	uint8_t bytes[HEAD_BYTES];
	size_t n;
};

static bool begins(const void *head, const char *magic) {
	const struct head *h = head;
	return h->n >= strlen(magic) && memcmp(h->bytes, magic, strlen(magic)) == 0;
}

/* Returns true also for a path without directories that is `end` but for its slash. */
static bool ends(const void *path, const char *end) {
	size_t n = strlen(path), k = strlen(end);
	return n >= k ? strcmp((const char *)path + n - k, end) == 0 : *end == '/' && strcmp(path, end + 1) == 0;
}

static bool holds(const void *dir, const char *name) {
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", (const char *)dir, name);
	return access(path, F_OK) == 0;
}

static bool has_key(const void *root, const char *key) {
	return json_object_get(root, key) != NULL;
}

/* Returns the first kind whose `by` fits; NULL: none does. */
static const struct kind *find(const struct kind *kinds, bool (*fits)(const void *of, const char *by), const void *of) {
	while (kinds->name && !fits(of, kinds->by))
		kinds++;
	return kinds->name ? kinds : NULL;
}

static enum rv_err kind_of_directory(const char *path, const struct kind **out, struct rv_errtext *et) {
	*out = worker_rounds_is_worker(path) ? &kind_worker : find(directories, holds, path);
	return *out ? RV_OK
				: rv_fail(et, RV_E_INVALID,
						  "%s: neither a model's directory (%s, %s) nor a run's (%s) nor a worker's (run.conf, "
						  "run.link) nor a coordinator's (store.db) nor a sweep's (%s) nor a published text's (%s); "
						  "name one that is in it",
						  path, WEIGHTS_FILE, WEIGHTS_CONFIG_FILE, METRICS_FILE, INSPECT_SWEEP_FILE, MANIFEST_NAME);
}

static enum rv_err kind_of_json(const char *path, const struct kind **out, struct rv_errtext *et) {
	uint8_t *text;
	size_t n = 0;
	RV_TRY(rv_file_read(path, TOKENIZER_MAX_FILE_BYTES, &text, &n, et));
	json_error_t why = {.line = 0};
	enum rv_err e = rv_json_check_limits(text, n, JSON_CONTAINERS, JSON_VALUES, et);
	json_t *root = e == RV_OK ? json_loadb((char *)text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why) : NULL;
	free(text);
	if (!root)
		return e != RV_OK ? rv_fail_context(et, e, "%s", path)
						  : rv_fail(et, RV_E_CORRUPT, "%s: line %d: %s", path, why.line, why.text);
	*out = find(json_files, has_key, root);
	json_decref(root);
	return *out ? RV_OK
				: rv_fail(
					  et, RV_E_INVALID,
					  "%s: JSON, but neither a model's config.json nor an index nor a tokenizer.json nor a sweep.json",
					  path);
}

static bool is_llmc_magic(const struct head *h) {
	struct rv_reader r = rv_reader_of(h->bytes, h->n);
	uint32_t magic = rv_read_u32(&r);
	return magic == SHARD_MAGIC_U16 || magic == SHARD_MAGIC_U32;
}

/* A safetensors file begins with the length of its JSON. */
static bool is_safetensors(const struct head *h) {
	return h->n > 8 && h->bytes[8] == '{' && h->bytes[7] == 0 && h->bytes[6] == 0;
}

static enum rv_err kind_of_file(const char *path, const struct head *h, const struct kind **out,
								struct rv_errtext *et) {
	static const char *const secrets[] = {"identity.key", "run.key", "root.key", "run.link", "member.conf", NULL};
	static const char *const settings[] = {"worker.conf", "terms.conf", NULL};
	const char *slash = strrchr(path, '/');
	*out = is_llmc_magic(h) ? &kind_shard : find(magics, begins, h);
	if (*out)
		return RV_OK;
	if (rv_name_is_one_of(slash ? slash + 1 : path, secrets))
		return rv_fail(et, RV_E_INVALID, "%s: holds a secret, which is not shown", path);
	if (rv_name_is_one_of(slash ? slash + 1 : path, settings))
		return rv_fail(
			et, RV_E_INVALID,
			"%s: belongs to a worker, and is text: read it as it is; `rivulet inspect` on its directory shows "
			"the worker",
			path);
	*out = find(endings, ends, path);
	if (!*out && is_safetensors(h))
		*out = &kind_safetensors;
	if (!*out && (ends(path, ".json") || begins(h, "{")))
		return kind_of_json(path, out, et);
	*out = *out ? *out : &kind_ranks;
	return RV_OK;
}

static enum rv_err read_head(const char *path, struct head *h, struct rv_errtext *et) {
	*h = (struct head){.n = 0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s: cannot open for reading", path);
	ssize_t got = pread(fd, h->bytes, HEAD_BYTES, 0);
	int errno_read = errno;
	(void)close(fd);
	if (got < 0)
		return rv_fail_errno(et, errno_read, "%s: cannot read", path);
	h->n = (size_t)got;
	return RV_OK;
}

static enum rv_err kind_of(const char *path, const struct kind **out, struct rv_errtext *et) {
	struct stat st;
	struct head h;
	if (stat(path, &st) != 0)
		return rv_fail_errno(et, errno, "%s", path);
	if (S_ISDIR(st.st_mode))
		return kind_of_directory(path, out, et);
	if (!S_ISREG(st.st_mode))
		return rv_fail(et, RV_E_INVALID, "%s: neither a file nor a directory", path);
	RV_TRY(read_head(path, &h, et));
	return kind_of_file(path, &h, out, et);
}

/* Moves the long list to the end of the object. */
static void move_to_end(json_t *facts, const char *key) {
	json_t *value = json_incref(json_object_get(facts, key));
	if (!value)
		return;
	json_object_del(facts, key);
	json_object_set_new(facts, key, value);
}

enum rv_err inspect_path(const char *path, json_t **out, struct rv_errtext *et) {
	const struct kind *kind = NULL;
	*out = NULL;
	RV_TRY(kind_of(path, &kind, et));
	json_t *facts = json_pack("{ss so}", "kind", kind->name, "path", json_string(path));
	if (!facts)
		return rv_fail(et, RV_E_INVALID, "%s: its name is not UTF-8", path);
	enum rv_err e = kind->inspect(path, facts, et);
	if (e != RV_OK && kind == &kind_ranks)
		(void)rv_fail_context(et, e,
							  "%s: no kind of file that is known here; text is read by `rivulet train --data`, "
							  "`rivulet tokenize` and `rivulet data publish`",
							  path);
	move_to_end(facts, "tensors");
	if (e == RV_OK)
		*out = facts;
	else
		json_decref(facts);
	return e;
}

/* ---- shared by several ---- */

void inspect_put_model(json_t *facts, const struct run_config *c) {
	json_t *m = json_pack("{ss sI sI sI sI sI}", "family", model_facts[c->model].name, "n_layer", c->n_layer, "n_head",
						  c->n_head, "n_embd", c->n_embd, "vocab", c->vocab, "context", c->context);
	if (c->n_kv_head > 0)
		json_object_set_new(m, "n_kv_head", json_integer(c->n_kv_head));
	if (c->n_inner > 0)
		json_object_set_new(m, "n_inner", json_integer(c->n_inner));
	json_object_set_new(m, "tied", json_boolean(c->tied));
	json_object_set_new(facts, "model", m);
}

json_t *inspect_shape(const uint64_t *dims, int n) {
	json_t *shape = json_array();
	for (int i = 0; i < n; i++)
		json_array_append_new(shape, json_integer((json_int_t)dims[i]));
	return shape;
}
