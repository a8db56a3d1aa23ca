/* gguf_tokenizer.h: a tokenizer as key-value pairs of a GGUF file. Inner part of gguf.h. */
#ifndef RV_TRAIN_FILES_GGUF_TOKENIZER_H
#define RV_TRAIN_FILES_GGUF_TOKENIZER_H

#include "train/files/gguf_writer.h"
#include "train/files/hf_origin.h"

/* `origin`: its begin and end tokens win over those known by name. `tokenizer_file`: a tokenizer.json, or NULL for bytes. Ids up to `vocab` that it does not have are filled with unused
 * tokens. What hf_tokenizer_write refuses, and RV_E_UNSUPPORTED: a pre-tokenizer that llama.cpp has no name for. */
enum rv_err gguf_put_tokenizer(struct gguf_writer *g, const char *tokenizer_file, uint32_t vocab,
							   const struct hf_origin *origin, struct rv_errtext *et);

#endif
