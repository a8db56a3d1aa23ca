/* gguf.h: weights for llama.cpp: one GGUF file (version 3, little-endian) with the model's shape, its tensors and its
 * tokenizer. Written only. (ggml: docs/gguf.md; the keys and names are those that llama.cpp's loader asks for.)
 *
 * Matrices are (out, in), as ours are; vectors, and GPT-2's positions, stay fp32 in every format. Of Llama, rows of the
 * query and key projections are reordered within each head, for llama.cpp rotates neighbours where Hugging Face (and
 * we) rotate the halves of a head.
 */
#ifndef RV_TRAIN_FILES_GGUF_H
#define RV_TRAIN_FILES_GGUF_H

#include "base/err.h"
#include "train/files/weights.h"
#include "train/files/weights_format.h"

/* Atomically. w->dtype and w->max_file_bytes are ignored. RV_E_UNSUPPORTED: a family or a tokenizer that llama.cpp does
 * not know; RV_E_RANGE: a tokenizer that is larger than the model's vocabulary, or a number that the format cannot
 * hold; what tokenizer_load and base/file.h refuse. */
enum rv_err gguf_save(const char *path, const struct weights_source *w, enum weights_format format,
					  struct rv_errtext *et);

#endif
