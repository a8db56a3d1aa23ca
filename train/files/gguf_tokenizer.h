/* gguf_tokenizer.h: a tokenizer as key-value pairs of a GGUF file. Inner part of gguf.h. */
#ifndef RV_TRAIN_FILES_GGUF_TOKENIZER_H
#define RV_TRAIN_FILES_GGUF_TOKENIZER_H

#include "train/files/gguf_writer.h"
#include "train/files/hf_origin.h"

/* Adds `tokenizer_file`, a tokenizer.json, or NULL for bytes. Begin and end tokens of `origin` take
 * precedence over those known by name; missing ids below `vocab` become unused tokens. Returns what
 * hf_tokenizer_write returns, and RV_E_UNSUPPORTED for a pre-tokenizer without a name. */
enum rv_err gguf_put_tokenizer(struct gguf_writer *g, const char *tokenizer_file, uint32_t vocab,
							   const struct hf_origin *origin, struct rv_errtext *et);

#endif
