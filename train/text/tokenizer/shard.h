/* shard.h: files of tokens: llm.c's, and plain 16-bit numbers.
 *
 * llm.c's begin with 256 little-endian int32: magic, version, number of tokens, zeros (not looked at). Magic 20240520
 * version 1: tokens are uint16; magic 20240801 version 7: uint32. Any other file is uint16 tokens from its first byte.
 */
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
	SHARD_MAX_U16_VOCAB = 1 << 16, /* a larger vocabulary needs 32 bits */
};
#define SHARD_MAX_TOKENS ((uint64_t)INT32_MAX) /* what the header can say */
#define SHARD_ANY_TOKEN  ((uint32_t)INT32_MAX) /* as a `vocab`: every token that a model could have */

/* Read-only: any number of threads. */
struct shard {
	struct mapped_file map; /* whose it is: shard_open's own, or the one that shard_of was given */
	size_t tokens_at;       /* byte position of the first token */
	uint64_t n_tokens;
	int token_bytes; /* 2 or 4 */
};

/* Is it a token file: one of the magics, or a name that ends in .bin? A file that cannot be read is none. */
bool shard_recognise(const struct mapped_file *m);

/* A shard in a mapped file, which is borrowed. RV_E_INVALID: an odd size, a known magic with another version, or a
 * header whose count is not what the file's size says. */
enum rv_err shard_of(struct shard *s, const struct mapped_file *m, struct rv_errtext *et);
/* The same from a path; shard_close() unmaps. Also RV_E_NOTFOUND, RV_E_IO. */
enum rv_err shard_open(struct shard *s, const char *path, struct rv_errtext *et);
void shard_close(struct shard *s);
/* Tokens [begin, begin + n), which must exist (asserted). RV_E_RANGE names the first that is not below `vocab` and its
 * position; RV_E_IO: the file was cut short. On a fault `out` is not defined. */
enum rv_err shard_read(const struct shard *s, uint32_t vocab, uint64_t begin, size_t n, int32_t *out,
					   struct rv_errtext *et);
/* Reads the whole file: what shard_read refuses. */
enum rv_err shard_check(const struct shard *s, uint32_t vocab, struct rv_errtext *et);

/* Writes llm.c's layout, 16 or 32 bits by the size of the vocabulary. The file is there whole after
 * shard_writer_commit, or not at all. Begin, append (any number), then commit or abandon. */
struct shard_writer {
	struct rv_file_writer file;
	uint32_t vocab;
	int token_bytes;
	uint64_t n_tokens;
};

/* RV_E_FULL, RV_E_IO. */
enum rv_err shard_writer_begin(struct shard_writer *w, const char *path, uint32_t vocab, struct rv_errtext *et);
/* RV_E_RANGE: an id that is not below the vocabulary, or more than SHARD_MAX_TOKENS; RV_E_FULL, RV_E_IO. */
enum rv_err shard_writer_append(struct shard_writer *w, const uint32_t *ids, size_t n, struct rv_errtext *et);
/* The same. */
enum rv_err shard_writer_commit(struct shard_writer *w, struct rv_errtext *et);
void shard_writer_abandon(struct shard_writer *w);

#endif
