/* manifest.h: manifest.json, which names a published text: how its tokens were made, how many there
 * are, which are held out, and the root of the hashes of all its shards. It has the same size
 * whatever the text's.
 *
 *     DIR/manifest.json
 *     DIR/tokenizer.json            or tokenizer.tiktoken; none where bytes are the tokens
 *     DIR/index-0-000000.hashes     hashes of up to 1024 shards (index_pages.h)
 *     DIR/shard-000000.bin          llm.c's layout (train/text/tokenizer/shard.h)
 *
 * Token t is number t % shard_tokens of shard t / shard_tokens. Text is read in blocks of
 * DATA_BLOCK tokens (train/text/data.h): block i is held out if i % holdout_every == holdout_every
 * - 1; no block is in two shards. */
#ifndef RV_TRAIN_TEXT_PUBLISHED_MANIFEST_H
#define RV_TRAIN_TEXT_PUBLISHED_MANIFEST_H

#include "base/err.h"
#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MANIFEST_NAME "manifest.json"
enum {
	MANIFEST_VERSION = 1,
	MANIFEST_MAX_BYTES = 64 << 10,
	MANIFEST_BLOCK_TOKENS = 16384,       /* shard_tokens is a multiple of it */
	MANIFEST_MAX_SHARD_TOKENS = 1 << 28, /* a shard is fetched and checked whole */
	MANIFEST_SHARD_TOKENS = 2 << 20,     /* the default: 4 MiB of 16-bit tokens */
	MANIFEST_MAX_SHARDS = 1 << 30,       /* three levels of index pages */
	MANIFEST_MAX_VOCAB = 1 << 24,
	MANIFEST_SOURCES = 64,
	MANIFEST_MIRRORS = 16
};

struct manifest {
	int64_t n_tokens, n_shards, shard_tokens;
	int64_t vocab;     /* all tokens are below */
	int64_t separator; /* before each document; -1: none */
	int64_t holdout_every;
	struct rv_hash root; /* of the topmost index page */
	/* The tokenizer's file in the directory, "tokenizer.json" or "tokenizer.tiktoken", its hash (a
	 * run's tokenizer-hash) and pattern (tokenizer_open); "", zero and "" where bytes are the
	 * tokens. */
	char tokenizer_file[24];
	struct rv_hash tokenizer_hash;
	char tokenizer_pattern[512];
	char license[128], description[2048]; /* as the publisher states them */
	char sources[MANIFEST_SOURCES][128];  /* names of the first files it was made of */
	int64_t n_named, n_sources;           /* of `sources`; of all files */
	char mirrors[MANIFEST_MIRRORS][512];  /* URLs of directories like this one; not part of the hash */
	int64_t n_mirrors;
};

/* A place in the shards. */
struct manifest_place {
	uint64_t shard, token; /* number of the token in it */
};
/* Returns the place of a token, asserted to exist. */
struct manifest_place manifest_place(const struct manifest *m, uint64_t token);
/* Returns how many tokens a shard has: shard_tokens, or fewer in the last. */
uint64_t manifest_shard_tokens(const struct manifest *m, uint64_t shard);
/* Returns the size of a shard's file in bytes. */
uint64_t manifest_shard_bytes(const struct manifest *m, uint64_t shard);
/* Returns the size of the files of all shards in bytes. */
uint64_t manifest_text_bytes(const struct manifest *m);
/* Writes the name of a shard's file. */
void manifest_shard_name(uint64_t shard, char out[static 32]);

/* Checks the fields' bounds and that they agree. RV_E_INVALID, RV_E_RANGE name field and value. */
enum rv_err manifest_check(const struct manifest *m, struct rv_errtext *et);
/* Checks a mirror's URL: http, https or s3, printable. RV_E_INVALID. */
enum rv_err manifest_check_mirror(const char *url, struct rv_errtext *et);

/* Reads the text of a manifest, checked. RV_E_INVALID, RV_E_RANGE, RV_E_UNSUPPORTED (a newer
 * version), RV_E_NOMEM; `where` is its name in error texts. */
enum rv_err manifest_parse(const char *where, const uint8_t *text, size_t n, struct manifest *m, struct rv_errtext *et);
/* Makes the text of manifest.json; the caller frees *out. RV_E_NOMEM. */
enum rv_err manifest_print(const struct manifest *m, char **out, struct rv_errtext *et);
/* Hashes what the mirrors do not change, a run's data-hash: BLAKE2b-256 of the manifest's JSON
 * without `mirrors`, keys sorted, no white space. RV_E_NOMEM. */
enum rv_err manifest_hash(const struct manifest *m, struct rv_hash *out, struct rv_errtext *et);

/* Reads DIR/manifest.json. RV_E_NOTFOUND, RV_E_IO, and what manifest_parse returns. */
enum rv_err manifest_read(const char *dir, struct manifest *m, struct rv_errtext *et);
/* Writes DIR/manifest.json, whole or not at all. RV_E_FULL, RV_E_IO, RV_E_NOMEM. */
enum rv_err manifest_write(const char *dir, const struct manifest *m, struct rv_errtext *et);
/* Reports whether a directory holds a file that says it is such a manifest. */
bool manifest_recognise(const char *dir);

#endif
