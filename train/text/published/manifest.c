/* manifest.c: the rules of a manifest, and the arithmetic of shards. */
#include "train/text/published/manifest.h"

#include "base/assert.h"
#include "base/shown_text.h"
#include "train/text/tokenizer/shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HOLDOUT_MIN = 2, HOLDOUT_MAX = 1000000 };

struct manifest_place manifest_place(const struct manifest *m, uint64_t token) {
	RV_ASSERT(token < (uint64_t)m->n_tokens);
	return (struct manifest_place){.shard = token / (uint64_t)m->shard_tokens,
								   .token = token % (uint64_t)m->shard_tokens};
}

uint64_t manifest_shard_tokens(const struct manifest *m, uint64_t shard) {
	RV_ASSERT(shard < (uint64_t)m->n_shards);
	uint64_t left = (uint64_t)m->n_tokens - shard * (uint64_t)m->shard_tokens;
	return left < (uint64_t)m->shard_tokens ? left : (uint64_t)m->shard_tokens;
}

uint64_t manifest_shard_bytes(const struct manifest *m, uint64_t shard) {
	const uint64_t token_bytes = m->vocab <= SHARD_MAX_U16_VOCAB ? 2 : 4;
	return SHARD_HEADER_BYTES + manifest_shard_tokens(m, shard) * token_bytes;
}

uint64_t manifest_text_bytes(const struct manifest *m) {
	const uint64_t last = (uint64_t)m->n_shards - 1;
	return last * manifest_shard_bytes(m, 0) + manifest_shard_bytes(m, last);
}

void manifest_shard_name(uint64_t shard, char out[static 32]) {
	(void)snprintf(out, 32, "shard-%06" PRIu64 ".bin", shard);
}

static enum rv_err in_range(const char *name, int64_t v, int64_t least, int64_t most, struct rv_errtext *et) {
	if (v >= least && v <= most)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE, "%s = %" PRId64 ": must be %" PRId64 " to %" PRId64, name, v, least, most);
}

static enum rv_err check_counts(const struct manifest *m, struct rv_errtext *et) {
	RV_TRY(in_range("shard_tokens", m->shard_tokens, MANIFEST_BLOCK_TOKENS, MANIFEST_MAX_SHARD_TOKENS, et));
	if (m->shard_tokens % MANIFEST_BLOCK_TOKENS != 0)
		return rv_fail(et, RV_E_INVALID, "shard_tokens = %" PRId64 ": must be a multiple of %d", m->shard_tokens,
					   MANIFEST_BLOCK_TOKENS);
	RV_TRY(in_range("shards", m->n_shards, 1, MANIFEST_MAX_SHARDS, et));
	RV_TRY(in_range("tokens", m->n_tokens, (m->n_shards - 1) * m->shard_tokens + 1, m->n_shards * m->shard_tokens, et));
	RV_TRY(in_range("vocab", m->vocab, 1, MANIFEST_MAX_VOCAB, et));
	RV_TRY(in_range("separator", m->separator, -1, m->vocab - 1, et));
	RV_TRY(in_range("holdout_every", m->holdout_every, HOLDOUT_MIN, HOLDOUT_MAX, et));
	RV_TRY(in_range("sources_total", m->n_sources, m->n_named, INT32_MAX, et));
	return in_range("sources", m->n_named, 0, MANIFEST_SOURCES, et);
}

/* Refuses what a terminal would act on. */
static enum rv_err check_text(const char *name, const char *text, struct rv_errtext *et) {
	const char *why = rv_shown_invalid(text);
	if (why != NULL)
		return rv_fail(et, RV_E_INVALID, "%s: %s", name, why);
	for (size_t i = 0; text[i] != '\0'; i++) {
		uint8_t c = (uint8_t)text[i];
		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
			return rv_fail(et, RV_E_INVALID, "%s: control character 0x%02x at byte %zu", name, c, i);
	}
	return RV_OK;
}

static enum rv_err check_tokenizer(const struct manifest *m, struct rv_errtext *et) {
	const bool is_json = strcmp(m->tokenizer_file, "tokenizer.json") == 0;
	const bool is_ranks = strcmp(m->tokenizer_file, "tokenizer.tiktoken") == 0;
	if (!is_json && !is_ranks && m->tokenizer_file[0] != '\0')
		return rv_fail(et, RV_E_INVALID,
					   "tokenizer_file = '%s': must be tokenizer.json, tokenizer.tiktoken, or empty for bytes",
					   m->tokenizer_file);
	if (rv_hash_is_zero(&m->tokenizer_hash) != (m->tokenizer_file[0] == '\0'))
		return rv_fail(et, RV_E_INVALID, "tokenizer_file = '%s', but tokenizer_hash is %s zero", m->tokenizer_file,
					   m->tokenizer_file[0] == '\0' ? "not" : "");
	return check_text("tokenizer_pattern", m->tokenizer_pattern, et);
}

enum rv_err manifest_check_mirror(const char *url, struct rv_errtext *et) {
	const size_t n = strlen(url);
	const char *scheme = strstr(url, "://");
	bool ok = strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0 || strncmp(url, "s3://", 5) == 0;
	ok = ok && scheme[strlen("://")] != '\0';
	for (size_t i = 0; i < n; i++)
		ok = ok && url[i] > ' ' && url[i] < 0x7f;
	if (n >= sizeof((struct manifest *)0)->mirrors[0])
		return rv_fail(et, RV_E_RANGE, "mirror %.80s...: longer than %zu bytes", url,
					   sizeof((struct manifest *)0)->mirrors[0] - 1);
	return ok ? RV_OK
			  : rv_fail(et, RV_E_INVALID,
						"mirror '%.200s': must be https://..., http://... or s3://BUCKET/..., without blanks", url);
}

enum rv_err manifest_check(const struct manifest *m, struct rv_errtext *et) {
	RV_TRY(check_counts(m, et));
	RV_TRY(check_tokenizer(m, et));
	RV_TRY(check_text("license", m->license, et));
	RV_TRY(check_text("description", m->description, et));
	for (int64_t i = 0; i < m->n_named; i++)
		RV_TRY(check_text("sources", m->sources[i], et));
	RV_TRY(in_range("mirrors", m->n_mirrors, 0, MANIFEST_MIRRORS, et));
	for (int64_t i = 0; i < m->n_mirrors; i++)
		RV_TRY(manifest_check_mirror(m->mirrors[i], et));
	return RV_OK;
}
