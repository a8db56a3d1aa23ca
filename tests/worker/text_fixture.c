/* text_fixture.c: see text_fixture.h. */
#include "tests/worker/text_fixture.h"

#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "train/text/published/file_hash.h"
#include "train/text/published/index_pages.h"
#include "train/text/tokenizer/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int32_t text_fixture_token(uint64_t t) {
	return (int32_t)((t * 2654435761U >> 7) % TEXT_FIXTURE_VOCAB);
}

static void write_shard(const char *path, uint64_t shard) {
	struct shard_writer w;
	uint32_t *tokens = malloc(TEXT_FIXTURE_SHARD_TOKENS * sizeof *tokens);
	assert_non_null(tokens);
	for (uint64_t i = 0; i < TEXT_FIXTURE_SHARD_TOKENS; i++)
		tokens[i] = (uint32_t)text_fixture_token(shard * TEXT_FIXTURE_SHARD_TOKENS + i);
	const uint32_t head[] = {SHARD_MAGIC_U16, SHARD_VERSION_U16, TEXT_FIXTURE_SHARD_TOKENS};
	assert_ok(shard_writer_begin(&w, path, TEXT_FIXTURE_VOCAB, &et));
	assert_ok(shard_writer_append(&w, tokens, TEXT_FIXTURE_SHARD_TOKENS, &et));
	assert_ok(rv_file_writer_patch(&w.file, head, sizeof head, 0, &et));
	assert_ok(rv_file_writer_commit(&w.file, &et));
	free(tokens);
}

static enum rv_err hash_of(void *ctx, uint64_t shard, struct rv_hash *out, struct rv_errtext *et) {
	char path[600], name[32];
	manifest_shard_name(shard, name);
	(void)snprintf(path, sizeof path, "%s/%s", (const char *)ctx, name);
	return file_hash(path, out, et);
}

void text_fixture_make(const char *dir, int n_shards, struct manifest *m, struct rv_hash *data_hash) {
	static const char tokenizer[] = "{\"a\": \"tokenizer\"}";
	char path[600], name[32];
	*m = (struct manifest){.n_shards = n_shards,
						   .n_tokens = (int64_t)n_shards * TEXT_FIXTURE_SHARD_TOKENS,
						   .shard_tokens = TEXT_FIXTURE_SHARD_TOKENS,
						   .vocab = TEXT_FIXTURE_VOCAB,
						   .separator = -1,
						   .holdout_every = 50,
						   .tokenizer_file = "tokenizer.json",
						   .tokenizer_hash = rv_hash_of(tokenizer, sizeof tokenizer - 1)};
	scratch_write(dir, "tokenizer.json", tokenizer, sizeof tokenizer - 1);
	for (int i = 0; i < n_shards; i++) {
		manifest_shard_name((uint64_t)i, name);
		(void)snprintf(path, sizeof path, "%s/%s", dir, name);
		write_shard(path, (uint64_t)i);
	}
	assert_ok(index_pages_write(dir, m, hash_of, (void *)dir, &et));
	assert_ok(manifest_write(dir, m, &et));
	assert_ok(manifest_hash(m, data_hash, &et));
}

uint8_t *text_fixture_read(const char *dir, const char *name, size_t *n) {
	char path[600];
	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	uint8_t *bytes = (uint8_t *)scratch_read(path, n);
	assert_non_null(bytes);
	return bytes;
}
