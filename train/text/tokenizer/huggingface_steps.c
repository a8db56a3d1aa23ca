/* huggingface_steps.c: a table of pre-tokenizer types, and the only normalizer. */
#include "train/text/tokenizer/huggingface_steps.h"

#include "train/text/tokenizer/patterns.h"

#include <string.h>

struct steps {
	struct pretokenizer *p;
	bool byte_level; /* ByteLevel was added, which must be the last step */
};

struct step_type {
	const char *name;
	enum rv_err (*add)(struct steps *s, const json_t *step, struct rv_errtext *et);
};

/* Returns a setting, or the library's default if it is absent. */
static bool setting(const json_t *step, const char *name, bool fallback) {
	const json_t *v = json_object_get(step, name);
	return json_is_boolean(v) ? json_is_true(v) : fallback;
}

static enum rv_err add_byte_level(struct steps *s, const json_t *step, struct rv_errtext *et) {
	if (setting(step, "add_prefix_space", true))
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "pre-tokenizer ByteLevel with add_prefix_space: decoding would add a space");
	s->byte_level = true;
	return setting(step, "use_regex", true) ? pretokenizer_add(s->p, pattern_gpt2, strlen(pattern_gpt2), false, et)
											: RV_OK;
}

static enum rv_err add_split(struct steps *s, const json_t *step, struct rv_errtext *et) {
	const json_t *pattern = json_object_get(step, "pattern");
	const json_t *regex = json_object_get(pattern, "Regex"), *text = json_object_get(pattern, "String");
	const char *behavior = json_string_value(json_object_get(step, "behavior"));
	if (!json_is_string(regex) && !json_is_string(text))
		return rv_fail(et, RV_E_INVALID, "pre-tokenizer Split without a pattern (a Regex or a String)");
	bool isolated = behavior && strcmp(behavior, "Isolated") == 0;
	bool matches_kept = behavior && strcmp(behavior, "Removed") == 0 && setting(step, "invert", false);
	if (!isolated && !matches_kept)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "pre-tokenizer Split with behavior %.40s: only Isolated, or Removed with invert",
					   behavior ? behavior : "missing");
	const json_t *v = json_is_string(regex) ? regex : text;
	return pretokenizer_add(s->p, json_string_value(v), json_string_length(v), v == text, et);
}

static enum rv_err add_digits(struct steps *s, const json_t *step, struct rv_errtext *et) {
	const char *pattern = setting(step, "individual_digits", false) ? "\\p{N}" : "\\p{N}+";
	return pretokenizer_add(s->p, pattern, strlen(pattern), false, et);
}

static const struct step_type types[] = {
	{"ByteLevel", add_byte_level},
	{"Split", add_split},
	{"Digits", add_digits},
	{NULL, NULL},
};

static enum rv_err add_step(struct steps *s, const json_t *step, struct rv_errtext *et) {
	const char *type = json_string_value(json_object_get(step, "type"));
	if (s->byte_level)
		return rv_fail(et, RV_E_UNSUPPORTED, "pre-tokenizer %.40s after ByteLevel", type ? type : "without a type");
	for (const struct step_type *t = types; type && t->name; t++)
		if (strcmp(t->name, type) == 0)
			return t->add(s, step, et);
	return rv_fail(et, RV_E_UNSUPPORTED, "pre-tokenizer %.40s: only ByteLevel, Split, Digits and a Sequence of these",
				   type ? type : "without a type");
}

enum rv_err huggingface_add_steps(struct pretokenizer *p, const json_t *pre_tokenizer, struct rv_errtext *et) {
	struct steps s = {.p = p};
	const char *type = json_string_value(json_object_get(pre_tokenizer, "type"));
	if (type && strcmp(type, "Sequence") == 0) {
		const json_t *list = json_object_get(pre_tokenizer, "pretokenizers");
		for (size_t i = 0; i < json_array_size(list); i++)
			RV_TRY(add_step(&s, json_array_get(list, i), et));
	} else {
		RV_TRY(add_step(&s, pre_tokenizer, et));
	}
	if (!s.byte_level)
		return rv_fail(et, RV_E_UNSUPPORTED, "no ByteLevel pre-tokenizer: not a byte-level BPE");
	return RV_OK;
}

static enum rv_err read_one_normalizer(const json_t *normalizer, bool *nfc, struct rv_errtext *et) {
	const char *type = json_string_value(json_object_get(normalizer, "type"));
	if (!type || strcmp(type, "NFC") != 0)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "there is a normalizer %.40s: only NFC is supported (others would change text)",
					   type ? type : "without a type");
	*nfc = true;
	return RV_OK;
}

enum rv_err huggingface_read_normalizer(const json_t *normalizer, bool *nfc, struct rv_errtext *et) {
	*nfc = false;
	if (!normalizer || json_is_null(normalizer))
		return RV_OK;
	const char *type = json_string_value(json_object_get(normalizer, "type"));
	if (!type || strcmp(type, "Sequence") != 0)
		return read_one_normalizer(normalizer, nfc, et);
	const json_t *list = json_object_get(normalizer, "normalizers");
	for (size_t i = 0; i < json_array_size(list); i++)
		RV_TRY(read_one_normalizer(json_array_get(list, i), nfc, et));
	return RV_OK;
}
