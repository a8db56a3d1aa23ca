/* weights_config.c: what model given weights are of. */
#include "worker/train/hf_config.h"
#include "worker/train/weights.h"
#include "worker/train/weights_save.h"
#include "worker/train/weights_set.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* From the metadata that Rivulet writes; *found says whether there are any. */
static enum rv_err take_metadata(const char *where, struct run_config *c, bool *found, struct rv_errtext *et) {
	struct weights_set set;
	struct safetensors *s;
	char path[PATH_MAX];
	*found = false;
	RV_TRY(weights_set_open(where, &set, et));
	weights_set_path(&set, 0, path);
	enum rv_err e = safetensors_open(path, &s, et);
	if (e == RV_OK) {
		const char *text = safetensors_metadata(s, WEIGHTS_CONFIG_KEY);
		*found = text != NULL;
		if (text)
			e = run_config_parse(c, path, text, et);
		safetensors_close(s);
	}
	weights_set_release(&set);
	return e;
}

/* Where config.json is, when `where` is a directory that has one, or is itself one. */
static bool find_hf_config(const char *where, char out[static PATH_MAX]) {
	const char *slash = strrchr(where, '/');
	if (strcmp(slash ? slash + 1 : where, WEIGHTS_CONFIG_FILE) == 0)
		snprintf(out, PATH_MAX, "%s", where);
	else
		snprintf(out, PATH_MAX, "%s/%s", where, WEIGHTS_CONFIG_FILE);
	return access(out, F_OK) == 0;
}

enum rv_err weights_load_config(const char *where, struct run_config *c, struct rv_errtext *et) {
	char path[PATH_MAX];
	bool found, hf = find_hf_config(where, path);
	if (hf && strcmp(path, where) == 0)
		return hf_config_read(path, c, et);
	enum rv_err e = take_metadata(where, c, &found, et);
	if (hf && (e == RV_OK || e == RV_E_NOTFOUND))
		return hf_config_read(path, c, et); /* the model's fields are its word, the others the metadata's */
	if (e == RV_OK && !found)
		return rv_fail(et, RV_E_CORRUPT,
					   "%s has no '%s' in its metadata, and there is no %s: what model it is of is not known", where,
					   WEIGHTS_CONFIG_KEY, WEIGHTS_CONFIG_FILE);
	return e;
}
