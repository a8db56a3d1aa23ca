/* hf_tokenizer.h: tokenizer files of a Hugging Face directory. */
#ifndef RV_TRAIN_FILES_HF_TOKENIZER_H
#define RV_TRAIN_FILES_HF_TOKENIZER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_config;
struct tokenizer; /* train/text/tokenizer/tokenizer.h */

#define HF_TOKENIZER_FILE        "tokenizer.json"
#define HF_RANKS_FILE            "tokenizer.tiktoken" /* tiktoken's ranks; transformers does not read them */
#define HF_TOKENIZER_CONFIG_FILE "tokenizer_config.json"
#define HF_GENERATION_FILE       "generation_config.json"

/* Returns a tokenizer.json whose 256 tokens are the bytes, a byte-level BPE without merges, which
 * the caller frees; NULL without memory. */
char *hf_tokenizer_of_bytes(void);

/* Loads a tokenizer.json (`n` bytes of `text`, named `path` in texts) for a model of `vocab`
 * tokens. Returns RV_E_UNSUPPORTED for another kind, RV_E_RANGE for more tokens than the model's,
 * and what tokenizer_load returns. */
enum rv_err hf_tokenizer_load(const char *path, const uint8_t *text, size_t n, uint32_t vocab, struct tokenizer **out,
							  struct rv_errtext *et);

/* Reports whether the run's tokens are bytes, known without a file. Only with a vocabulary of 256:
 * runs on token files name no tokenizer either. */
bool hf_tokenizer_is_of_bytes(const struct run_config *run);

/* Writes the tokenizer of `run` into `dir`, each file atomically: a copy of `file`, a
 * tokenizer.json, with the settings above, or of tiktoken's ranks as HF_RANKS_FILE; if NULL, that
 * of bytes. Returns RV_E_NOTFOUND if none is known, and what tokenizer_load,
 * run_tokenizer_check_file and base/file.h return. */
enum rv_err hf_tokenizer_write(const char *dir, const char *file, const struct run_config *run, struct rv_errtext *et);

#endif
