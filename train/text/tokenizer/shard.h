/* shard.h: token files: llm.c's layouts, and plain 16-bit numbers.
 *
 * llm.c's begin with 256 little-endian int32: magic, version, number of tokens, and zeros, which
 * are ignored. Magic 20240520 version 1: tokens are uint16; magic 20240801 version 7: uint32. Any
 * other file is uint16 tokens from its first byte. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_SHARD_H
#define RV_TRAIN_TEXT_TOKENIZER_SHARD_H

#include "base/err.h"
#include "base/file.h"
#include "train/text/tokenizer/mapped_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SHARD_HEADER_BYTES = 1024,
	SHARD_MAGIC_U16 = 20240520,
	SHARD_VERSION_U16 = 1,
	SHARD_MAGIC_U32 = 20240801,
	SHARD_VERSION_U32 = 7,
	SHARD_MAX_U16_VOCAB = 1 << 16, /* tokens of a larger vocabulary take 32 bits */
};
#define SHARD_MAX_TOKENS ((uint64_t)INT32_MAX) /* limit of the header's field */
#define SHARD_ANY_TOKEN  ((uint32_t)INT32_MAX) /* a `vocab` that accepts every token of any model */

/* An open token file, read-only: any number of threads may share it. */
struct shard {
	struct mapped_file map; /* shard_open's own, or a copy of the one passed to shard_of */
	size_t tokens_at;       /* position of the first token in bytes */
	uint64_t n_tokens;
	int token_bytes; /* 2 or 4 */
};

/* Reports whether `m` is a token file: one of the magics, or a name that ends in .bin. Returns
 * false for an unreadable file. */
bool shard_recognise(const struct mapped_file *m);

/* Opens the token file `m`, which must outlive `s`. Returns RV_E_INVALID for an odd size, a known
 * magic with another version, or a header whose count contradicts the file's size; RV_E_IO. */
enum rv_err shard_of(struct shard *s, const struct mapped_file *m, struct rv_errtext *et);
/* Opens a path; shard_close() unmaps it. Returns what mapped_file_open and shard_of return. */
enum rv_err shard_open(struct shard *s, const char *path, struct rv_errtext *et);
void shard_close(struct shard *s);
/* Reads tokens [begin, begin + n); asserts that they exist. Returns RV_E_RANGE, naming the first
 * token not below `vocab` and its position, or RV_E_IO (truncated file); `out` is then
 * undefined. */
enum rv_err shard_read(const struct shard *s, uint32_t vocab, uint64_t begin, size_t n, int32_t *out,
					   struct rv_errtext *et);

/* Writes llm.c's layout, with 16 or 32 bits by the size of the vocabulary. Call begin, append (any
 * number of times), then commit or abandon; the file exists, whole, only after commit. */
struct shard_writer {
	struct rv_file_writer file;
	uint32_t vocab;
	int token_bytes;
	uint64_t n_tokens;
};

/* Starts a file. Returns RV_E_FULL or RV_E_IO. */
enum rv_err shard_writer_begin(struct shard_writer *w, const char *path, uint32_t vocab, struct rv_errtext *et);
/* Appends n tokens. Returns RV_E_RANGE for an id outside the vocabulary or more than
 * SHARD_MAX_TOKENS, RV_E_FULL, RV_E_IO. */
enum rv_err shard_writer_append(struct shard_writer *w, const uint32_t *ids, size_t n, struct rv_errtext *et);
/* Writes the header and puts the file into place, or abandons it on RV_E_FULL, RV_E_IO. */
enum rv_err shard_writer_commit(struct shard_writer *w, struct rv_errtext *et);
void shard_writer_abandon(struct shard_writer *w);

#endif
