/* weights_set.c: finds the files, and checks their tensors against the index. */
#include "train/files/weights_set.h"

#include "base/file.h"
#include "base/json_limits.h"
#include "train/files/weights.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	MAX_CONTAINERS = 16,
	MAX_VALUES = 3 * SAFETENSORS_TENSORS_MAX,
	MAX_NAME_BYTES = 255,
};

static bool ends_with(const char *text, const char *end) {
	size_t n = strlen(text), k = strlen(end);
	return n >= k && strcmp(text + n - k, end) == 0;
}

enum rv_err weights_path(const char *dir, const char *name, char out[static PATH_MAX], struct rv_errtext *et) {
	if (snprintf(out, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
		return rv_fail(et, RV_E_RANGE, "%.100s...: path is longer than %d bytes", dir, PATH_MAX - 1);
	return RV_OK;
}

enum rv_err weights_write_text(const char *dir, const char *name, const void *text, size_t n, struct rv_errtext *et) {
	char path[PATH_MAX];
	RV_TRY(weights_path(dir, name, path, et));
	return rv_file_write_atomic(path, text, n, 0644, et);
}

enum rv_err weights_write_json(const char *dir, const char *name, json_t *root, struct rv_errtext *et) {
	char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
	json_decref(root);
	enum rv_err e = text ? weights_write_text(dir, name, text, strlen(text), et)
						 : rv_fail(et, RV_E_NOMEM, "no memory for %s/%s", dir, name);
	free(text);
	return e;
}

void weights_set_path(const struct weights_set *s, int i, char out[static PATH_MAX]) {
	snprintf(out, PATH_MAX, "%s/%s", s->dir, s->files[i]);
}

/* Reports whether `name` is a plain file name: an index must not leave its directory. */
static bool is_plain_name(const char *name) {
	size_t n = strlen(name);
	return n > 0 && n <= MAX_NAME_BYTES && name[0] != '.' && !strchr(name, '/');
}

/* Finds or assigns the number of a file; `numbers` maps names to numbers. */
static enum rv_err number_of_file(struct weights_set *s, json_t *numbers, const char *name, int *out,
								  struct rv_errtext *et) {
	const json_t *known = json_object_get(numbers, name);
	*out = known ? (int)json_integer_value(known) : s->n_files;
	if (known)
		return RV_OK;
	if (s->n_files == WEIGHTS_SET_MAX_FILES)
		return rv_fail(et, RV_E_CORRUPT, "more than %d files", WEIGHTS_SET_MAX_FILES);
	if (!is_plain_name(name))
		return rv_fail(et, RV_E_CORRUPT, "file \"%.80s\": must be a name within the same directory", name);
	s->files[s->n_files++] = name;
	return json_object_set_new(numbers, name, json_integer(*out)) == 0 ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory");
}

static enum rv_err take_map(struct weights_set *s, json_t *numbers, struct rv_errtext *et) {
	json_t *map = json_object_get(s->index, "weight_map"), *file;
	size_t n = json_object_size(map);
	if (!json_is_object(map) || n == 0 || n > SAFETENSORS_TENSORS_MAX)
		return rv_fail(et, RV_E_CORRUPT, "no \"weight_map\" of 1 to %d tensors", SAFETENSORS_TENSORS_MAX);
	const char *tensor;
	json_object_foreach(map, tensor, file) {
		const char *name = json_string_value(file);
		int i = 0;
		enum rv_err e =
			name ? number_of_file(s, numbers, name, &i, et) : rv_fail(et, RV_E_CORRUPT, "its file is not a string");
		if (e != RV_OK)
			return rv_fail_context(et, e, "tensor '%.60s'", tensor);
		s->n_tensors[i]++;
	}
	return RV_OK;
}

static enum rv_err alloc_files(struct weights_set *s, int n, struct rv_errtext *et) {
	s->files = calloc((size_t)n, sizeof *s->files);
	s->n_tensors = calloc((size_t)n, sizeof *s->n_tensors);
	return s->files && s->n_tensors ? RV_OK : rv_fail(et, RV_E_NOMEM, "no memory for the names of %d files", n);
}

static enum rv_err parse_index(struct weights_set *s, const uint8_t *text, size_t n, struct rv_errtext *et) {
	json_error_t why;
	if (rv_json_check_limits(text, n, MAX_CONTAINERS, MAX_VALUES, et) != RV_OK)
		return RV_E_CORRUPT;
	s->index = json_loadb((const char *)text, n, JSON_REJECT_DUPLICATES, &why);
	if (!s->index)
		return rv_fail(et, RV_E_CORRUPT, "%s", why.text);
	RV_TRY(alloc_files(s, WEIGHTS_SET_MAX_FILES, et));
	json_t *numbers = json_object();
	enum rv_err e = take_map(s, numbers, et);
	json_decref(numbers);
	return e;
}

/* Splits `path` into the set's directory and the returned name within it. */
static const char *split(struct weights_set *s, const char *path) {
	const char *slash = strrchr(path, '/');
	if (slash)
		snprintf(s->dir, sizeof s->dir, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	else
		snprintf(s->dir, sizeof s->dir, ".");
	return slash ? slash + 1 : path;
}

static enum rv_err open_index(struct weights_set *s, const char *path, struct rv_errtext *et) {
	uint8_t *text;
	size_t n;
	(void)split(s, path);
	RV_TRY(rv_file_read(path, WEIGHTS_SET_MAX_INDEX_BYTES, &text, &n, et));
	enum rv_err e = parse_index(s, text, n, et);
	free(text);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s", path);
}

static enum rv_err open_single(struct weights_set *s, const char *name, struct rv_errtext *et) {
	RV_TRY(alloc_files(s, 1, et));
	s->files[0] = name;
	s->n_files = 1;
	return RV_OK;
}

/* Finds a file of `dir` that is one of several; "" if there is none. */
static void find_part(const char *dir, char name[static MAX_NAME_BYTES + 1]) {
	DIR *d = opendir(dir);
	name[0] = '\0';
	for (const struct dirent *entry; d && !name[0] && (entry = readdir(d));)
		if (strncmp(entry->d_name, "model-", 6) == 0 && ends_with(entry->d_name, ".safetensors"))
			snprintf(name, MAX_NAME_BYTES + 1, "%s", entry->d_name);
	if (d)
		closedir(d);
}

static bool holds(const char *dir, const char *name) {
	char path[PATH_MAX];
	return weights_path(dir, name, path, NULL) == RV_OK && access(path, F_OK) == 0;
}

/* Returns a fault that names what the directory has instead of weights, and the next step. */
static enum rv_err no_weights(const char *dir, struct rv_errtext *et) {
	char part[MAX_NAME_BYTES + 1];
	find_part(dir, part);
	if (part[0])
		return rv_fail(et, RV_E_NOTFOUND, "%s: holds %.60s, but no %s, the index of its files: fetch it too", dir, part,
					   WEIGHTS_INDEX_FILE);
	if (holds(dir, "pytorch_model.bin") || holds(dir, "pytorch_model.bin.index.json"))
		return rv_fail(
			et, RV_E_NOTFOUND,
			"%s: holds its weights as pytorch_model.bin, which can run code and is not read; convert it with "
			"transformers: AutoModelForCausalLM.from_pretrained(DIR).save_pretrained(NEW)",
			dir);
	return rv_fail(et, RV_E_NOTFOUND, "%s: holds neither %s nor %s", dir, WEIGHTS_FILE, WEIGHTS_INDEX_FILE);
}

static enum rv_err open_directory(struct weights_set *s, const char *where, struct rv_errtext *et) {
	char path[PATH_MAX];
	snprintf(s->dir, sizeof s->dir, "%s", where);
	RV_TRY(weights_path(where, WEIGHTS_FILE, path, et));
	if (access(path, F_OK) == 0)
		return open_single(s, WEIGHTS_FILE, et);
	RV_TRY(weights_path(where, WEIGHTS_INDEX_FILE, path, et));
	if (access(path, F_OK) == 0)
		return open_index(s, path, et);
	return no_weights(where, et);
}

enum rv_err weights_set_open(const char *where, struct weights_set *s, struct rv_errtext *et) {
	*s = (struct weights_set){.n_files = 0};
	struct stat st;
	enum rv_err e;
	if (strlen(where) >= sizeof s->dir - MAX_NAME_BYTES - 1)
		e = rv_fail(et, RV_E_RANGE, "%.100s...: path is too long", where);
	else if (stat(where, &st) == 0 && S_ISDIR(st.st_mode))
		e = open_directory(s, where, et);
	else if (ends_with(where, ".json"))
		e = open_index(s, where, et);
	else
		e = open_single(s, split(s, where), et);
	if (e != RV_OK)
		weights_set_release(s);
	return e;
}

void weights_set_release(struct weights_set *s) {
	json_decref(s->index);
	free(s->files);
	free(s->n_tensors);
	*s = (struct weights_set){.n_files = 0};
}

/* Checks that the file has exactly the tensors that the index lists for it. */
static enum rv_err check_file(const struct weights_set *s, int i, const struct safetensors *f, struct rv_errtext *et) {
	const json_t *map = json_object_get(s->index, "weight_map");
	const char *name = s->files[i], *tensor;
	for (int k = 0; k < safetensors_count(f); k++) {
		tensor = safetensors_at(f, k)->name;
		const char *said = json_string_value(json_object_get(map, tensor));
		if (!said || strcmp(said, name) != 0)
			return rv_fail(et, RV_E_CORRUPT, "%s/%s: tensor '%.60s': the index says it is %s%.80s", s->dir, name,
						   tensor, said ? "in " : "nowhere", said ? said : "");
	}
	if (safetensors_count(f) == s->n_tensors[i])
		return RV_OK;
	json_t *file;
	json_object_foreach((json_t *)(uintptr_t)map, tensor, file) {
		if (strcmp(json_string_value(file), name) == 0 && !safetensors_has(f, tensor))
			return rv_fail(et, RV_E_CORRUPT, "%s/%s: tensor '%.60s' is missing: the index names it", s->dir, name,
						   tensor);
	}
	return RV_OK;
}

enum rv_err weights_set_open_file(const struct weights_set *s, int i, struct safetensors **out, struct rv_errtext *et) {
	char path[PATH_MAX];
	weights_set_path(s, i, path);
	RV_TRY(safetensors_open(path, out, et));
	enum rv_err e = s->index ? check_file(s, i, *out, et) : RV_OK;
	if (e != RV_OK) {
		safetensors_close(*out);
		*out = NULL;
	}
	return e;
}
