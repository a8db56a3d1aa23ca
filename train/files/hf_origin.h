/* hf_origin.h: what a Hugging Face directory says of its model beside weights and tokens: config.json with all of its
 * keys, begin and end tokens, how text is generated, the chat template. A model that is continued or exported keeps what
 * is still true of it. */
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
	struct json_t *config; /* NULL: there is no directory, or its config.json is of another model */
	bool same_tokens;      /* the tokenizer is the one that the directory has */
	struct {
		uint8_t *bytes; /* NULL: the directory has no such file */
		size_t n;
	} files[HF_ORIGIN_FILES];
};

/* Reads the directory `dir` (NULL, or none: *o is empty) that the model of `run` came from. `tokenizer_file`: of that
 * model now; NULL: bytes, or unknown, and so that of the directory. A file that cannot be read is as one that is not
 * there, for what took hours of training is to be written all the same. */
void hf_origin_open(struct hf_origin *o, const char *dir, const struct run_config *run, const char *tokenizer_file);
void hf_origin_release(struct hf_origin *o);

/* A new config.json: the origin's, with the context of training and the keys of `written` (what Rivulet would write)
 * that the origin's cannot know. NULL: no memory. */
struct json_t *hf_origin_config(const struct hf_origin *o, const struct run_config *run, const struct json_t *written);

/* The token that config.json has under `key`, the first of several; `fallback`: it has none, or of other tokens. */
uint32_t hf_origin_token(const struct hf_origin *o, const char *key, uint32_t fallback);

/* How many positions the model can read: the context of training, or more. */
int64_t hf_origin_positions(const struct hf_origin *o, const struct run_config *run);

/* Writes the files beside it into `dir`, over what is there. A generation_config.json that the origin does not have is
 * removed: readers then follow config.json, as before. RV_E_IO, RV_E_FULL, RV_E_RANGE. */
enum rv_err hf_origin_write_files(const struct hf_origin *o, const char *dir, struct rv_errtext *et);

#endif
