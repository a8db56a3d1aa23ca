/* gguf.h: weights for llama.cpp: one GGUF file (version 3, little-endian) with the model's shape,
 * its tensors and its tokenizer. Written only. (ggml: docs/gguf.md; keys and names are those that
 * llama.cpp's loader asks for.)
 *
 * Matrices are (out, in), as in memory; vectors and GPT-2's positions stay fp32 in every format.
 * Rows of Llama's query and key projections are reordered within each head: llama.cpp rotates
 * neighbours, Hugging Face (and Rivulet) the halves of a head. */
#ifndef RV_TRAIN_FILES_GGUF_H
#define RV_TRAIN_FILES_GGUF_H

#include "base/err.h"
#include "train/files/weights.h"
#include "train/files/weights_format.h"

/* Writes the file atomically, ignoring w->dtype and w->max_file_bytes. Returns RV_E_UNSUPPORTED for
 * a family or tokenizer that llama.cpp does not know, RV_E_RANGE for a tokenizer beyond the model's
 * vocabulary or a number outside the format, and what tokenizer_load or base/file.h return. */
enum rv_err gguf_save(const char *path, const struct weights_source *w, enum weights_format format,
					  struct rv_errtext *et);

#endif
