/* hf_config.c: reads and checks config.json. */
#include "train/files/hf_config.h"

#include "base/file.h"
#include "base/json_limits.h"
#include "train/model/model.h"

#include <jansson.h>
#include <stdlib.h>

enum { MAX_CONTAINERS = 4096, MAX_VALUES = 32768 };

/* Checks values against the bounds of their options by printing and parsing them, with a batch of 1
 * instead of *c's, which the file does not determine. */
static enum rv_err check_ranges(const struct run_config *c, struct rv_errtext *et) {
	struct run_config copy = *c, ignored;
	copy.batch = 1;
	size_t n = rv_options_print(run_config_options, &copy, NULL, 0) + 1;
	char *text = malloc(n);
	if (!text)
		return rv_fail(et, RV_E_NOMEM, "no memory for %zu bytes of configuration", n);
	rv_options_print(run_config_options, &copy, text, n);
	enum rv_err e = run_config_parse(&ignored, "as configuration", text, et);
	free(text);
	return e == RV_OK || e == RV_E_NOMEM ? e : RV_E_RANGE;
}

static enum rv_err take_json(const json_t *root, struct run_config *c, struct rv_errtext *et) {
	const char *type = json_string_value(json_object_get(root, "model_type"));
	const struct model_ops *family;
	if (!type)
		return rv_fail(et, RV_E_CORRUPT, "no \"model_type\": not the config.json of a model");
	if (model_family_find(type, &family, et) != RV_OK)
		return RV_E_UNSUPPORTED;
	if (!family->config_from_hf)
		return rv_fail(et, RV_E_UNSUPPORTED, "model_type \"%.40s\" has no Hugging Face config.json", type);
	RV_TRY(family->config_from_hf(root, c, et));
	return check_ranges(c, et);
}

enum rv_err hf_config_parse(const char *path, const char *text, size_t n, struct run_config *c, struct rv_errtext *et) {
	struct run_config taken = *c;
	enum rv_err e = rv_json_check_limits((const uint8_t *)text, n, MAX_CONTAINERS, MAX_VALUES, et);
	json_error_t why;
	json_t *root = e == RV_OK ? json_loadb(text, n, JSON_REJECT_DUPLICATES, &why) : NULL;
	if (e == RV_OK)
		e = root ? take_json(root, &taken, et) : rv_fail(et, RV_E_CORRUPT, "line %d: %s", why.line, why.text);
	json_decref(root);
	if (e != RV_OK)
		return rv_fail_context(et, e, "%s", path);
	*c = taken;
	return RV_OK;
}

enum rv_err hf_config_read(const char *path, struct run_config *c, struct rv_errtext *et) {
	uint8_t *text;
	size_t n;
	RV_TRY(rv_file_read(path, HF_CONFIG_MAX_BYTES, &text, &n, et));
	enum rv_err e = hf_config_parse(path, (const char *)text, n, c, et);
	free(text);
	return e;
}
