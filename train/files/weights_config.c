/* weights_config.c: reads which model given weights belong to. */
#include "base/hex.h"
#include "train/files/hf_config.h"
#include "train/files/weights.h"
#include "train/files/weights_save.h"
#include "train/files/weights_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Opens the first file, which has the metadata. */
static enum rv_err open_first(const char *where, char path[static PATH_MAX], struct safetensors **s,
							  struct rv_errtext *et) {
	struct weights_set set;
	RV_TRY(weights_set_open(where, &set, et));
	weights_set_path(&set, 0, path);
	enum rv_err e = safetensors_open(path, s, et);
	weights_set_release(&set);
	return e;
}

/* Reads the metadata that Rivulet writes; *found: whether there is any. */
static enum rv_err take_metadata(const char *where, struct run_config *c, bool *found, struct rv_errtext *et) {
	struct safetensors *s;
	char path[PATH_MAX];
	*found = false;
	RV_TRY(open_first(where, path, &s, et));
	const char *text = safetensors_metadata(s, WEIGHTS_CONFIG_KEY);
	*found = text != NULL;
	enum rv_err e = text ? run_config_parse(c, path, text, et) : RV_OK;
	safetensors_close(s);
	return e;
}

/* Finds config.json: `where` itself, or a file in the directory `where`. */
static bool find_hf_config(const char *where, char out[static PATH_MAX]) {
	const char *slash = strrchr(where, '/');
	int n;
	if (strcmp(slash ? slash + 1 : where, WEIGHTS_CONFIG_FILE) == 0)
		n = snprintf(out, PATH_MAX, "%s", where);
	else
		n = snprintf(out, PATH_MAX, "%s/%s", where, WEIGHTS_CONFIG_FILE);
	return n < PATH_MAX && access(out, F_OK) == 0;
}

enum rv_err weights_load_config(const char *where, struct run_config *c, struct rv_errtext *et) {
	char path[PATH_MAX];
	bool found, hf = find_hf_config(where, path);
	if (hf && strcmp(path, where) == 0)
		return hf_config_read(path, c, et);
	enum rv_err e = take_metadata(where, c, &found, et);
	if (hf && (e == RV_OK || e == RV_E_NOTFOUND))
		return hf_config_read(path, c, et); /* config.json decides the model's fields, the metadata the others */
	if (e == RV_OK && !found)
		return rv_fail(et, RV_E_CORRUPT, "%s has no '%s' in its metadata, and there is no %s: its model is unknown",
					   where, WEIGHTS_CONFIG_KEY, WEIGHTS_CONFIG_FILE);
	return e;
}

static enum rv_err take_number(const struct safetensors *s, const char *path, const char *key, uint64_t *out,
							   struct rv_errtext *et) {
	const char *text = safetensors_metadata(s, key);
	char *end;
	*out = text ? strtoull(text, &end, 10) : 0;
	if (text && (text[0] < '0' || text[0] > '9' || *end))
		return rv_fail(et, RV_E_CORRUPT, "%s: metadata '%s' is not a number", path, key);
	return RV_OK;
}

static enum rv_err take_origin(const struct safetensors *s, const char *path, struct weights_origin *o,
							   struct rv_errtext *et) {
	const char *state = safetensors_metadata(s, "rivulet.state");
	RV_TRY(take_number(s, path, "rivulet.round", &o->round, et));
	RV_TRY(take_number(s, path, "rivulet.step", &o->step, et));
	RV_TRY(take_number(s, path, "rivulet.tokens", &o->tokens, et));
	if (state && !rv_hex_decode(state, o->state.b, RV_HASH_BYTES))
		return rv_fail(et, RV_E_CORRUPT, "%s: metadata 'rivulet.state' is not a hash", path);
	return RV_OK;
}

enum rv_err weights_load_origin(const char *where, struct weights_origin *o, struct rv_errtext *et) {
	struct safetensors *s;
	char path[PATH_MAX];
	*o = (struct weights_origin){.round = 0};
	RV_TRY(open_first(where, path, &s, et));
	enum rv_err e = take_origin(s, path, o, et);
	safetensors_close(s);
	return e;
}
