/* inspect.c: identifies kinds, by their first bytes if these are distinct, else by name and
 * contents. */
#include "lab/inspect/inspect.h"

#include "base/bytes.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/json_limits.h"
#include "lab/worker_files/worker_rounds.h"
#include "train/files/weights.h"
#include "train/metrics.h"
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
};

/* ---- identification ---- */

static const struct kind kind_safetensors = {"safetensors", inspect_safetensors}, kind_gguf = {"gguf", inspect_gguf},
						 kind_shard = {"token shard", inspect_shard}, kind_metrics = {"metrics", inspect_metrics},
						 kind_tokenizer = {"tokenizer", inspect_tokenizer},
						 kind_config = {"model configuration", inspect_config},
						 kind_index = {"index of safetensors files", inspect_index},
						 kind_state = {"state file", inspect_state_file},
						 kind_worker = {"worker's directory", inspect_worker},
						 kind_model = {"model directory", inspect_model_directory},
						 kind_run_conf = {"run's configuration", inspect_run_conf},
						 kind_coordinator = {"coordinator's directory", inspect_coordinator},
						 kind_sweep = {"sweep's directory", inspect_sweep},
						 kind_cell = {"cell of a sweep", inspect_sweep_cell},
						 kind_store = {"coordinator's store", inspect_store},
						 kind_trace = {"worker's trace", inspect_trace};

static bool ends_with(const char *text, const char *end) {
	size_t n = strlen(text), k = strlen(end);
	return n >= k && strcmp(text + n - k, end) == 0;
}

static bool is_named(const char *path, const char *name) {
	const char *slash = strrchr(path, '/');
	return strcmp(slash ? slash + 1 : path, name) == 0;
}

/* Returns true for keys and invitations. */
static bool holds_a_secret(const char *path) {
	static const char *const names[] = {"identity.key", "run.key", "run.link", "member.conf"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (is_named(path, names[i]))
			return true;
	return false;
}

static bool begins(const uint8_t *head, size_t n, const char *magic) {
	return n >= strlen(magic) && memcmp(head, magic, strlen(magic)) == 0;
}

static bool exists_in(const char *dir, const char *name) {
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static enum rv_err kind_of_directory(const char *path, const struct kind **out, struct rv_errtext *et) {
	if (worker_rounds_is_worker(path))
		*out = &kind_worker;
	else if (exists_in(path, WEIGHTS_FILE) || exists_in(path, WEIGHTS_INDEX_FILE) ||
			 exists_in(path, WEIGHTS_CONFIG_FILE))
		*out = &kind_model;
	else if (exists_in(path, METRICS_FILE))
		*out = &kind_metrics;
	else if (exists_in(path, "store.db"))
		*out = &kind_coordinator;
	else if (exists_in(path, INSPECT_SWEEP_FILE))
		*out = &kind_sweep;
	else
		return rv_fail(et, RV_E_INVALID,
					   "%s: neither a model's directory (%s, %s) nor a run's (%s) nor a worker's (run.conf, run.link) "
					   "nor a coordinator's (store.db) nor a sweep's (%s); name one that is in it",
					   path, WEIGHTS_FILE, WEIGHTS_CONFIG_FILE, METRICS_FILE, INSPECT_SWEEP_FILE);
	return RV_OK;
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
	*out = json_object_get(root, "weight_map")   ? &kind_index
		   : json_object_get(root, "axes")       ? &kind_cell
		   : json_object_get(root, "model_type") ? &kind_config
		   : json_object_get(root, "model")      ? &kind_tokenizer
												 : NULL;
	json_decref(root);
	return *out ? RV_OK
				: rv_fail(
					  et, RV_E_INVALID,
					  "%s: JSON, but neither a model's config.json nor an index nor a tokenizer.json nor a sweep.json",
					  path);
}

static bool is_llmc_magic(const uint8_t *head, size_t n) {
	struct rv_reader r = rv_reader_of(head, n);
	uint32_t magic = rv_read_u32(&r);
	return magic == SHARD_MAGIC_U16 || magic == SHARD_MAGIC_U32;
}

static enum rv_err kind_of_file(const char *path, const uint8_t *head, size_t n, const struct kind **out,
								struct rv_errtext *et) {
	bool state = begins(head, n, "RVSNAP") || begins(head, n, "RVLOG") || begins(head, n, "RVREPL");
	if (begins(head, n, "GGUF"))
		*out = &kind_gguf;
	else if (begins(head, n, "SQLite format 3"))
		*out = &kind_store;
	else if (state || begins(head, n, "rivuletL"))
		*out = &kind_state;
	else if (is_llmc_magic(head, n) || ends_with(path, ".bin"))
		*out = &kind_shard;
	else if (holds_a_secret(path))
		return rv_fail(et, RV_E_INVALID, "%s: holds a secret, which is not shown", path);
	else if (is_named(path, TRACE_FILE))
		*out = &kind_trace;
	else if (ends_with(path, ".conf"))
		*out = &kind_run_conf;
	else if (ends_with(path, ".jsonl"))
		*out = &kind_metrics;
	else if (ends_with(path, ".safetensors") || (n > 8 && head[8] == '{' && head[7] == 0 && head[6] == 0))
		*out = &kind_safetensors;
	else if (ends_with(path, ".json") || begins(head, n, "{"))
		return kind_of_json(path, out, et);
	else
		*out = &kind_tokenizer; /* tiktoken's ranks have no magic number: lines of base64 and a number */
	return RV_OK;
}

static enum rv_err read_head(const char *path, uint8_t head[HEAD_BYTES], size_t *n, struct rv_errtext *et) {
	memset(head, 0, HEAD_BYTES);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return rv_fail_errno(et, errno, "%s: cannot open for reading", path);
	ssize_t got = pread(fd, head, HEAD_BYTES, 0);
	int errno_read = errno;
	(void)close(fd);
	if (got < 0)
		return rv_fail_errno(et, errno_read, "%s: cannot read", path);
	*n = (size_t)got;
	return RV_OK;
}

static enum rv_err kind_of(const char *path, const struct kind **out, struct rv_errtext *et) {
	struct stat st;
	uint8_t head[HEAD_BYTES];
	size_t n = 0;
	if (stat(path, &st) != 0)
		return rv_fail_errno(et, errno, "%s", path);
	if (S_ISDIR(st.st_mode))
		return kind_of_directory(path, out, et);
	if (!S_ISREG(st.st_mode))
		return rv_fail(et, RV_E_INVALID, "%s: neither a file nor a directory", path);
	RV_TRY(read_head(path, head, &n, et));
	return kind_of_file(path, head, n, out, et);
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
