/* hf_tokenizer.c: tokenizer.json, and the settings that transformers reads beside it. */
#include "train/files/hf_tokenizer.h"

#include "base/file.h"
#include "base/run_config.h"
#include "train/files/weights_set.h"
#include "train/text/run_tokenizer.h"
#include "train/text/tokenizer/byte_level.h"
#include "train/text/tokenizer/huggingface_json.h"
#include "train/text/tokenizer/tokenizer.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { BYTE_VALUES = 256 };

/* ---- the bytes as tokens ---- */

static json_t *bytes_vocab(void) {
	json_t *o = json_object();
	int failed = 0;
	for (int byte = 0; byte < BYTE_VALUES; byte++) {
		char text[4];
		size_t n = byte_level_encode(&(uint8_t){(uint8_t)byte}, 1, text);
		failed |= json_object_setn_new(o, text, n, json_integer(byte));
	}
	if (!failed)
		return o;
	json_decref(o);
	return NULL;
}

char *hf_tokenizer_of_bytes(void) {
	return huggingface_json(bytes_vocab(), json_array(), json_array(), json_null());
}

/* ---- special tokens ---- */

/* The tokens that begin and end a text, by name; NULL: none. */
struct special_names {
	const char *begin, *end;
	uint32_t begin_id, end_id;
};

static const char *first_special(const struct tokenizer *t, const char *const *names, uint32_t *id) {
	for (; *names; names++)
		if ((*id = tokenizer_special(t, *names)) != TOKENIZER_NO_TOKEN)
			return *names;
	return NULL;
}

static struct special_names special_names_of(const struct tokenizer *t) {
	static const char *const begins[] = {"<|begin_of_text|>", "<|endoftext|>", NULL};
	static const char *const ends[] = {"<|endoftext|>", "<|end_of_text|>", NULL};
	struct special_names s = {.begin = NULL};
	s.begin = first_special(t, begins, &s.begin_id);
	s.end = first_special(t, ends, &s.end_id);
	return s;
}

static json_t *name_or_null(const char *name) {
	return name ? json_string(name) : json_null();
}

static json_t *id_or_null(const char *name, uint32_t id) {
	return name ? json_integer(id) : json_null();
}

/* ---- the files ---- */

static enum rv_err write_settings(const char *dir, const struct special_names *s, const struct run_config *run,
								  struct rv_errtext *et) {
	return weights_write_json(dir, HF_TOKENIZER_CONFIG_FILE,
							  json_pack("{ss so so sb sb sI}", "tokenizer_class", "PreTrainedTokenizerFast",
										"bos_token", name_or_null(s->begin), "eos_token", name_or_null(s->end),
										"add_prefix_space", 0, "clean_up_tokenization_spaces", 0, "model_max_length",
										(json_int_t)run->context),
							  et);
}

static enum rv_err write_generation(const char *dir, const struct special_names *s, struct rv_errtext *et) {
	return weights_write_json(dir, HF_GENERATION_FILE,
							  json_pack("{sb so so}", "_from_model_config", 1, "bos_token_id",
										id_or_null(s->begin, s->begin_id), "eos_token_id",
										id_or_null(s->end, s->end_id)),
							  et);
}

static enum rv_err check_tokenizer(const char *path, const struct tokenizer *t, uint32_t vocab, struct rv_errtext *et) {
	if (strcmp(tokenizer_kind(t), "huggingface") != 0)
		return rv_fail(et, RV_E_UNSUPPORTED, "%s: a tokenizer of kind %s; only a tokenizer.json can go with the model",
					   path, tokenizer_kind(t));
	if (tokenizer_vocab(t) > vocab)
		return rv_fail(et, RV_E_RANGE, "%s: %u tokens, but the model has %u: it was trained with another tokenizer",
					   path, tokenizer_vocab(t), vocab);
	return RV_OK;
}

enum rv_err hf_tokenizer_load(const char *path, const uint8_t *text, size_t n, uint32_t vocab, struct tokenizer **out,
							  struct rv_errtext *et) {
	RV_TRY(tokenizer_load(path, text, n, "auto", out, et));
	enum rv_err e = check_tokenizer(path, *out, vocab, et);
	if (e != RV_OK) {
		tokenizer_free(*out);
		*out = NULL;
	}
	return e;
}

/* Writes the unchanged file under the name of its kind, and its settings. */
static enum rv_err write_file(const char *dir, const uint8_t *text, size_t n, const struct tokenizer *t,
							  const struct run_config *run, struct rv_errtext *et) {
	bool huggingface = strcmp(tokenizer_kind(t), "huggingface") == 0;
	const struct special_names s = special_names_of(t);
	RV_TRY(weights_write_text(dir, huggingface ? HF_TOKENIZER_FILE : HF_RANKS_FILE, text, n, et));
	if (huggingface)
		RV_TRY(write_settings(dir, &s, run, et));
	return write_generation(dir, &s, et);
}

static enum rv_err write_copy(const char *dir, const char *file, const struct run_config *run, struct rv_errtext *et) {
	uint8_t *text;
	size_t n;
	struct tokenizer *t = NULL;
	RV_TRY(rv_file_read(file, TOKENIZER_MAX_FILE_BYTES, &text, &n, et));
	enum rv_err e = tokenizer_load(file, text, n, "auto", &t, et);
	if (e == RV_OK)
		e = run_tokenizer_check_file(run, file, t, et);
	if (e == RV_OK)
		e = write_file(dir, text, n, t, run, et);
	tokenizer_free(t);
	free(text);
	return e;
}

static enum rv_err write_bytes(const char *dir, const struct run_config *run, struct rv_errtext *et) {
	const struct special_names none = {.begin = NULL};
	char *text = hf_tokenizer_of_bytes();
	enum rv_err e = text ? weights_write_text(dir, HF_TOKENIZER_FILE, text, strlen(text), et)
						 : rv_fail(et, RV_E_NOMEM, "no memory for %s/%s", dir, HF_TOKENIZER_FILE);
	free(text);
	RV_TRY(e);
	RV_TRY(write_settings(dir, &none, run, et));
	return write_generation(dir, &none, et);
}

bool hf_tokenizer_is_of_bytes(const struct run_config *run) {
	return run->vocab == BYTE_VALUES && run->tokenizer_hash[0] == '\0';
}

enum rv_err hf_tokenizer_write(const char *dir, const char *file, const struct run_config *run, struct rv_errtext *et) {
	if (file)
		return write_copy(dir, file, run, et);
	if (hf_tokenizer_is_of_bytes(run))
		return write_bytes(dir, run, et);
	return rv_fail(et, RV_E_NOTFOUND,
				   "the tokenizer of its %" PRId64
				   " tokens was not given: copy its tokenizer.json into %s, or name it with "
				   "--tokenizer FILE where text is needed",
				   run->vocab, dir);
}
