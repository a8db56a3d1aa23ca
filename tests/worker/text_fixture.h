/* text_fixture.h: a small published text in a directory, for tests of fetching. Shards of two MiB
 * and 1 KiB: three ranges each. */
#ifndef RV_TESTS_WORKER_TEXT_FIXTURE_H
#define RV_TESTS_WORKER_TEXT_FIXTURE_H

#include "train/text/published/manifest.h"

enum { TEXT_FIXTURE_VOCAB = 1000, TEXT_FIXTURE_SHARD_TOKENS = 1 << 20, TEXT_FIXTURE_SHARD_BYTES = (2 << 20) + 1024 };

/* Writes `n_shards` shards, index pages, tokenizer.json (any bytes) and manifest.json. */
void text_fixture_make(const char *dir, int n_shards, struct manifest *m, struct rv_hash *data_hash);
/* Returns token t of it. */
int32_t text_fixture_token(uint64_t t);
/* Reads a file of the directory; the caller frees it. */
uint8_t *text_fixture_read(const char *dir, const char *name, size_t *n);

#endif
