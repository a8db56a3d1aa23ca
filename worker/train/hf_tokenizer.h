/* hf_tokenizer.h: the tokenizer's files of a Hugging Face directory. */
#ifndef RV_WORKER_TRAIN_HF_TOKENIZER_H
#define RV_WORKER_TRAIN_HF_TOKENIZER_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct tokenizer; /* worker/tokenizer/tokenizer.h */

#define HF_TOKENIZER_FILE        "tokenizer.json"
#define HF_TOKENIZER_CONFIG_FILE "tokenizer_config.json"
#define HF_GENERATION_FILE       "generation_config.json"

/* A tokenizer.json, to be free()d, whose 256 tokens are the bytes, by value: a byte-level BPE without merges. NULL: no
 * memory. */
char *hf_tokenizer_of_bytes(void);

/* Reads a tokenizer.json (`n` bytes of `text`; `path` is its name in texts) for a model of `vocab` tokens.
 * RV_E_UNSUPPORTED: of another kind; RV_E_RANGE: it has more tokens than the model; what tokenizer_load refuses. */
enum rv_err hf_tokenizer_load(const char *path, const uint8_t *text, size_t n, uint32_t vocab, struct tokenizer **out,
							  struct rv_errtext *et);

/* Writes the three files above into `dir`, each atomically. `tokenizer_file`: a tokenizer.json, copied after it was
 * read with hf_tokenizer_load; NULL: that of bytes. What that and base/file.h refuse. */
enum rv_err hf_tokenizer_write(const char *dir, const char *tokenizer_file, uint32_t vocab, uint32_t context,
							   struct rv_errtext *et);

#endif
