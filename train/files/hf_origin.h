/* hf_origin.h: the files of a Hugging Face directory beside weights and tokens: config.json with
 * all its keys, begin and end tokens, generation settings, chat template. Continuing or exporting a
 * model keeps those that still apply. */
#ifndef RV_TRAIN_FILES_HF_ORIGIN_H
#define RV_TRAIN_FILES_HF_ORIGIN_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HF_ORIGIN_FILES = 5, HF_ORIGIN_MAX_FILE_BYTES = 4 << 20 };

struct json_t; /* jansson */
struct run_config;

struct hf_origin {
	struct json_t *config; /* NULL: no directory, or a config.json of another model */
	bool same_tokens;      /* whether the tokenizer is the directory's */
	struct {
		uint8_t *bytes; /* NULL: the directory has no such file */
		size_t n;
	} files[HF_ORIGIN_FILES];
};

/* Reads the directory `dir` (NULL or missing: *o is empty) that the model of `run` came from.
 * `tokenizer_file` is the model's present tokenizer; NULL: bytes, or unknown and so taken as the
 * directory's. Ignores unreadable files: hours of training are to be written regardless. */
void hf_origin_open(struct hf_origin *o, const char *dir, const struct run_config *run, const char *tokenizer_file);
void hf_origin_release(struct hf_origin *o);

/* Returns a new config.json: the origin's, with the training context and those keys of `written`
 * (Rivulet's own) that depend on the new files; NULL without memory. The caller releases it. */
struct json_t *hf_origin_config(const struct hf_origin *o, const struct run_config *run, const struct json_t *written);

/* Returns the token under `key` in config.json, the first of several, or `fallback` if it has none
 * or other tokens. */
uint32_t hf_origin_token(const struct hf_origin *o, const char *key, uint32_t fallback);

/* Returns how many positions the model can read: the training context, or more. */
int64_t hf_origin_positions(const struct hf_origin *o, const struct run_config *run);

/* Writes the other files into `dir`, replacing old ones. Removes a generation_config.json that the
 * origin lacks: readers then follow config.json. Returns RV_E_IO, RV_E_FULL or RV_E_RANGE. */
enum rv_err hf_origin_write_files(const struct hf_origin *o, const char *dir, struct rv_errtext *et);

#endif
