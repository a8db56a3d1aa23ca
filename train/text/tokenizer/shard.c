/* shard.c: token files are read mapped, and written in order with the header last. */
#include "train/text/tokenizer/shard.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tokens are copied as they stand in the file");

struct layout {
	uint32_t magic, version;
	int token_bytes;
};

static const struct layout layouts[] = {
	{SHARD_MAGIC_U16, SHARD_VERSION_U16, 2},
	{SHARD_MAGIC_U32, SHARD_VERSION_U32, 4},
};

/* Reads the header. Sets *layout by the file's magic; NULL if it is unknown. */
static enum rv_err read_header(const struct mapped_file *m, const struct layout **layout, uint32_t *version,
							   uint32_t *n_tokens, struct rv_errtext *et) {
	uint8_t bytes[3 * sizeof(uint32_t)];
	*layout = NULL;
	*version = *n_tokens = 0;
	if (m->bytes < SHARD_HEADER_BYTES)
		return RV_OK;
	RV_TRY(mapped_file_read(m, 0, sizeof bytes, bytes, et));
	struct rv_reader r = rv_reader_of(bytes, sizeof bytes);
	uint32_t magic = rv_read_u32(&r);
	*version = rv_read_u32(&r);
	*n_tokens = rv_read_u32(&r);
	for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
		if (layouts[i].magic == magic)
			*layout = &layouts[i];
	return RV_OK;
}

bool shard_recognise(const struct mapped_file *m) {
	const struct layout *l;
	uint32_t version, n_tokens;
	size_t n = strlen(m->path);
	bool named = n >= 4 && strcmp(m->path + n - 4, ".bin") == 0;
	return named || (read_header(m, &l, &version, &n_tokens, NULL) == RV_OK && l);
}

static enum rv_err with_header(struct shard *s, const struct layout *l, uint32_t version, uint32_t n_tokens,
							   struct rv_errtext *et) {
	size_t body = s->map.bytes - SHARD_HEADER_BYTES;
	if (version != l->version)
		return rv_fail(et, RV_E_INVALID, "token file %s: magic %u with version %u: must be %u", s->map.path, l->magic,
					   version, l->version);
	if ((uint64_t)n_tokens * (unsigned)l->token_bytes != body)
		return rv_fail(
			et, RV_E_INVALID,
			"token file %s: the header says %u tokens of %d bytes, but %zu bytes follow it; was it cut short?",
			s->map.path, n_tokens, l->token_bytes, body);
	s->token_bytes = l->token_bytes;
	s->tokens_at = SHARD_HEADER_BYTES;
	s->n_tokens = n_tokens;
	return RV_OK;
}

enum rv_err shard_of(struct shard *s, const struct mapped_file *m, struct rv_errtext *et) {
	const struct layout *l;
	uint32_t version, n_tokens;
	*s = (struct shard){.map = *m, .token_bytes = 2, .n_tokens = m->bytes / 2};
	RV_TRY(read_header(m, &l, &version, &n_tokens, et));
	if (l)
		return with_header(s, l, version, n_tokens, et);
	if (m->bytes % 2 != 0)
		return rv_fail(et, RV_E_INVALID,
					   "token file %s: no known header, and %zu bytes are no whole number of 16-bit tokens", m->path,
					   m->bytes);
	return RV_OK;
}

enum rv_err shard_open(struct shard *s, const char *path, struct rv_errtext *et) {
	struct mapped_file m;
	*s = (struct shard){0};
	RV_TRY(mapped_file_open(&m, path, et));
	enum rv_err e = shard_of(s, &m, et);
	if (e != RV_OK)
		shard_close(s);
	return e;
}

void shard_close(struct shard *s) {
	mapped_file_close(&s->map);
	*s = (struct shard){0};
}

enum { PART_TOKENS = 4096 };

static enum rv_err read_part(const struct shard *s, uint64_t begin, size_t n, int32_t *out, struct rv_errtext *et) {
	uint16_t narrow[PART_TOKENS];
	size_t from = s->tokens_at + begin * (unsigned)s->token_bytes;
	if (s->token_bytes == 4)
		return mapped_file_read(&s->map, from, n * sizeof *out, out, et);
	RV_TRY(mapped_file_read(&s->map, from, n * sizeof *narrow, narrow, et));
	for (size_t i = 0; i < n; i++)
		out[i] = narrow[i];
	return RV_OK;
}

static enum rv_err check_part(const struct shard *s, uint32_t vocab, uint64_t begin, size_t n, const int32_t *ids,
							  struct rv_errtext *et) {
	for (size_t i = 0; i < n; i++)
		if ((uint32_t)ids[i] >= vocab)
			return rv_fail(
				et, RV_E_RANGE,
				"token file %s: token %llu is %u, the vocabulary has %u; was it made with another tokenizer?",
				s->map.path, (unsigned long long)(begin + i), (uint32_t)ids[i], vocab);
	return RV_OK;
}

enum rv_err shard_read(const struct shard *s, uint32_t vocab, uint64_t begin, size_t n, int32_t *out,
					   struct rv_errtext *et) {
	RV_ASSERT(begin <= s->n_tokens && n <= s->n_tokens - begin);
	while (n > 0) {
		size_t part = n < PART_TOKENS ? n : PART_TOKENS;
		RV_TRY(read_part(s, begin, part, out, et));
		RV_TRY(check_part(s, vocab, begin, part, out, et));
		begin += part;
		out += part;
		n -= part;
	}
	return RV_OK;
}

enum rv_err shard_writer_begin(struct shard_writer *w, const char *path, uint32_t vocab, struct rv_errtext *et) {
	static const uint8_t header[SHARD_HEADER_BYTES];
	*w = (struct shard_writer){.vocab = vocab, .token_bytes = vocab <= SHARD_MAX_U16_VOCAB ? 2 : 4};
	RV_TRY(rv_file_writer_begin(&w->file, path, 0644, et));
	enum rv_err e = rv_file_writer_write(&w->file, header, sizeof header, et);
	if (e != RV_OK)
		rv_file_writer_abandon(&w->file);
	return e;
}

static enum rv_err append_block(struct shard_writer *w, const uint32_t *ids, size_t n, struct rv_errtext *et) {
	uint8_t bytes[16384];
	struct rv_writer out = rv_writer_of(bytes, sizeof bytes);
	for (size_t i = 0; i < n; i++) {
		if (ids[i] >= w->vocab)
			return rv_fail(et, RV_E_RANGE, "token file %s: token %llu is %u, the vocabulary has %u", w->file.path,
						   (unsigned long long)(w->n_tokens + i), ids[i], w->vocab);
		if (w->token_bytes == 2)
			rv_write_u16(&out, (uint16_t)ids[i]);
		else
			rv_write_u32(&out, ids[i]);
	}
	RV_ASSERT(!out.failed);
	w->n_tokens += n;
	return rv_file_writer_write(&w->file, bytes, rv_writer_len(&out), et);
}

enum rv_err shard_writer_append(struct shard_writer *w, const uint32_t *ids, size_t n, struct rv_errtext *et) {
	if (n > SHARD_MAX_TOKENS - w->n_tokens)
		return rv_fail(et, RV_E_RANGE, "token file %s: more than %llu tokens", w->file.path,
					   (unsigned long long)SHARD_MAX_TOKENS);
	while (n > 0) {
		size_t part = n < PART_TOKENS ? n : PART_TOKENS;
		RV_TRY(append_block(w, ids, part, et));
		ids += part;
		n -= part;
	}
	return RV_OK;
}

static enum rv_err write_header(struct shard_writer *w, struct rv_errtext *et) {
	const struct layout *l = &layouts[w->token_bytes == 4];
	uint8_t bytes[12];
	RV_ASSERT(w->n_tokens <= SHARD_MAX_TOKENS);
	struct rv_writer out = rv_writer_of(bytes, sizeof bytes);
	rv_write_u32(&out, l->magic);
	rv_write_u32(&out, l->version);
	rv_write_u32(&out, (uint32_t)w->n_tokens);
	return rv_file_writer_patch(&w->file, bytes, sizeof bytes, 0, et);
}

enum rv_err shard_writer_commit(struct shard_writer *w, struct rv_errtext *et) {
	return rv_file_writer_end(&w->file, write_header(w, et), et);
}

void shard_writer_abandon(struct shard_writer *w) {
	rv_file_writer_abandon(&w->file);
}
