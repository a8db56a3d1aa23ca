/* hf_tokenizer.h: the tokenizer's files of a Hugging Face directory. */
#ifndef RV_TRAIN_FILES_HF_TOKENIZER_H
#define RV_TRAIN_FILES_HF_TOKENIZER_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_config;
struct tokenizer; /* train/text/tokenizer/tokenizer.h */

#define HF_TOKENIZER_FILE        "tokenizer.json"
#define HF_RANKS_FILE            "tokenizer.tiktoken" /* tiktoken's ranks, which transformers does not read */
#define HF_TOKENIZER_CONFIG_FILE "tokenizer_config.json"
#define HF_GENERATION_FILE       "generation_config.json"

/* A tokenizer.json, to be free()d, whose 256 tokens are the bytes, by value: a byte-level BPE without merges. NULL: no
 * memory. */
char *hf_tokenizer_of_bytes(void);

/* Reads a tokenizer.json (`n` bytes of `text`; `path` is its name in texts) for a model of `vocab` tokens.
 * RV_E_UNSUPPORTED: of another kind; RV_E_RANGE: it has more tokens than the model; what tokenizer_load refuses. */
enum rv_err hf_tokenizer_load(const char *path, const uint8_t *text, size_t n, uint32_t vocab, struct tokenizer **out,
							  struct rv_errtext *et);

/* Are the run's tokens bytes, so that no file is needed to know them? Only with a vocabulary of 256: a run on token
 * shards names no tokenizer either. */
bool hf_tokenizer_is_of_bytes(const struct run_config *run);

/* Writes the tokenizer of `run` into `dir`, each file atomically. `file`: a tokenizer.json, copied, with the settings
 * above beside it, or tiktoken's ranks, copied as HF_RANKS_FILE; NULL: that of bytes, if the run's tokens are bytes.
 * RV_E_NOTFOUND: none is known; what tokenizer_load, run_tokenizer_check_file and base/file.h refuse. */
enum rv_err hf_tokenizer_write(const char *dir, const char *file, const struct run_config *run, struct rv_errtext *et);

#endif
