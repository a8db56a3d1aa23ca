/* token_source.c: finds the file of a token, reads across their boundaries. */
#include "train/text/token_source.h"

#include "base/assert.h"
#include "train/text/documents/document_source.h"
#include "train/text/documents/hub_directory.h"
#include "train/text/tokenizer/ranges.h"
#include "train/text/tokenizer/tokenize_job.h"

#include <inttypes.h>
#include <stdlib.h>

enum { BYTE_VOCAB = 256 };

static enum rv_err open_shards(struct token_source *s, struct rv_errtext *et) {
	size_t n = s->files.n_files;
	s->shards = calloc(n, sizeof *s->shards);
	s->begin = calloc(n, sizeof *s->begin);
	if (!s->shards || !s->begin)
		return rv_fail(et, RV_E_NOMEM, "training data: no memory for %zu token files", n);
	for (size_t i = 0; i < n; i++) {
		RV_TRY(shard_of(&s->shards[i], &s->files.files[i], et));
		s->begin[i] = s->n_tokens;
		s->n_tokens += s->shards[i].n_tokens;
	}
	return RV_OK;
}

/* Takes the files that match `names`, or, NULL, those that are published of `path`. */
static enum rv_err choose_files(struct token_source *s, const char *path, const char *names, struct rv_errtext *et) {
	char license[HUB_LICENSE_BYTES];
	if (names)
		return data_files_init(&s->files, path, names, et);
	RV_TRY(hub_directory_add(&s->files, path, "", license, et));
	return s->files.n_files > 0 ? RV_OK : rv_fail(et, RV_E_NOTFOUND, "training data %s: only empty files", path);
}

static enum rv_err open_files(struct token_source *s, const char *path, const char *names, struct rv_errtext *et) {
	bool tokens, is_plain;
	RV_TRY(choose_files(s, path, names, et));
	RV_TRY(data_files_sort(&s->files, &tokens, et));
	if (tokens)
		return open_shards(s, et);
	RV_TRY(document_source_is_plain(&s->files, &is_plain, et));
	s->is_packed = !is_plain;
	if (s->vocab < BYTE_VOCAB)
		return rv_fail(et, RV_E_RANGE,
					   "training data %s: text as bytes needs a vocabulary of %d tokens, this one has %u", path,
					   BYTE_VOCAB, s->vocab);
	s->n_tokens = is_plain ? s->files.bytes : 0;
	return RV_OK;
}

static enum rv_err open_tokenized(struct token_source *s, const char *dir, const struct tokenize_state *made,
								  struct rv_errtext *et) {
	if (!made->done)
		return rv_fail(et, RV_E_INVALID,
					   "training data %s: its text is only partly tokenized; run the same command again to finish "
					   "it",
					   dir);
	RV_TRY(open_files(s, dir, TOKENIZE_SHARD_NAMES, et));
	if (s->files.n_files != made->shards || s->n_tokens != made->tokens)
		return rv_fail(et, RV_E_CORRUPT,
					   "training data %s: " TOKENIZE_STATE_NAME " says %" PRIu64 " tokens in %" PRIu64
					   " files, but there are %" PRIu64 " in %zu; tokenize the text again, into an empty directory",
					   dir, made->tokens, made->shards, s->n_tokens, s->files.n_files);
	return RV_OK;
}

static enum rv_err open_published(struct token_source *s, const char *dir, struct rv_errtext *et) {
	RV_TRY(published_open(dir, &s->published, et));
	const struct manifest *m = published_manifest(s->published);
	s->n_tokens = (uint64_t)m->n_tokens;
	if (m->vocab <= s->vocab)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE,
				   "training data %s: published with a vocabulary of %" PRId64
				   ", the model has %u; its tokenizer is %s/%s",
				   dir, m->vocab, s->vocab, dir, m->tokenizer_file[0] ? m->tokenizer_file : "manifest.json: bytes");
}

static enum rv_err open_any(struct token_source *s, const char *path, struct rv_errtext *et) {
	struct tokenize_state made;
	if (tokenize_state_read(path, &made, NULL) == RV_OK)
		return open_tokenized(s, path, &made, et);
	return manifest_recognise(path) ? open_published(s, path, et) : open_files(s, path, NULL, et);
}

enum rv_err token_source_open(struct token_source *s, const char *path, uint32_t vocab, struct rv_errtext *et) {
	*s = (struct token_source){.vocab = vocab > 0 ? vocab : SHARD_ANY_TOKEN};
	enum rv_err e = open_any(s, path, et);
	if (e != RV_OK)
		token_source_release(s);
	return e;
}

void token_source_release(struct token_source *s) {
	published_close(s->published);
	free(s->shards);
	free(s->begin);
	data_files_release(&s->files);
	*s = (struct token_source){0};
}

bool token_source_is_text(const struct token_source *s) {
	return !s->shards && !s->published;
}

const struct manifest *token_source_manifest(const struct token_source *s) {
	return s->published ? published_manifest(s->published) : NULL;
}

uint64_t token_source_bytes(const struct token_source *s) {
	const struct manifest *m = token_source_manifest(s);
	return m ? (uint64_t)m->n_tokens * (m->vocab <= SHARD_MAX_U16_VOCAB ? 2 : 4) : s->files.bytes;
}

static enum rv_err read_shards(const struct token_source *s, uint64_t begin, size_t n, int32_t *out,
							   struct rv_errtext *et) {
	for (size_t i = range_holding(s->begin, s->files.n_files, begin); n > 0; i++) {
		uint64_t from = begin - s->begin[i], left = s->shards[i].n_tokens - from;
		size_t take = n < left ? n : (size_t)left;
		RV_TRY(shard_read(&s->shards[i], s->vocab, from, take, out, et));
		begin += take;
		out += take;
		n -= take;
	}
	return RV_OK;
}

static enum rv_err read_bytes(const struct token_source *s, uint64_t begin, size_t n, int32_t *out,
							  struct rv_errtext *et) {
	enum { PART_BYTES = 16384 };
	uint8_t bytes[PART_BYTES];
	while (n > 0) {
		size_t part = n < PART_BYTES ? n : PART_BYTES;
		RV_TRY(data_files_read(&s->files, begin, part, bytes, et));
		for (size_t i = 0; i < part; i++)
			out[i] = bytes[i];
		begin += part;
		out += part;
		n -= part;
	}
	return RV_OK;
}

enum rv_err token_source_read(const struct token_source *s, uint64_t begin, size_t n, int32_t *out,
							  struct rv_errtext *et) {
	RV_ASSERT(begin <= s->n_tokens && n <= s->n_tokens - begin);
	if (s->published)
		return published_read(s->published, begin, n, out, et);
	return s->shards ? read_shards(s, begin, n, out, et) : read_bytes(s, begin, n, out, et);
}

enum rv_err token_source_read_present(const struct token_source *s, uint64_t begin, size_t n, int32_t *out,
									  struct rv_errtext *et) {
	RV_ASSERT(begin <= s->n_tokens && n <= s->n_tokens - begin);
	return s->published ? published_read_present(s->published, begin, n, out, et)
						: token_source_read(s, begin, n, out, et);
}
