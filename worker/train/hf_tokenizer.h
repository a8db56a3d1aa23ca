/* hf_tokenizer.h: the tokenizer's files of a Hugging Face directory. */
#ifndef RV_WORKER_TRAIN_HF_TOKENIZER_H
#define RV_WORKER_TRAIN_HF_TOKENIZER_H

#include "base/err.h"

#include <stdint.h>

#define HF_TOKENIZER_FILE        "tokenizer.json"
#define HF_TOKENIZER_CONFIG_FILE "tokenizer_config.json"
#define HF_GENERATION_FILE       "generation_config.json"

/* A tokenizer.json, to be free()d, whose 256 tokens are the bytes, by value: a byte-level BPE without merges. NULL: no
 * memory. */
char *hf_tokenizer_of_bytes(void);

/* Writes the three files above into `dir`, each atomically. `tokenizer_file`: a tokenizer.json, copied after it was
 * read by worker/tokenizer; NULL: that of bytes. RV_E_UNSUPPORTED: not a tokenizer.json; RV_E_RANGE: it has more tokens
 * than `vocab`; and what tokenizer_open and rv_file_write_atomic refuse. */
enum rv_err hf_tokenizer_write(const char *dir, const char *tokenizer_file, uint32_t vocab, uint32_t context,
							   struct rv_errtext *et);

#endif
