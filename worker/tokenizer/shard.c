/* shard.c: mapped to read, written in order, the header last. */
#include "worker/tokenizer/shard.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tokens are copied as they stand in the file");

struct layout {
	uint32_t magic, version;
	int token_bytes;
};

static const struct layout layouts[] = {
	{SHARD_MAGIC_U16, SHARD_VERSION_U16, 2},
	{SHARD_MAGIC_U32, SHARD_VERSION_U32, 4},
};

static const struct layout *layout_of(const struct shard *s) {
	struct rv_reader r = rv_reader_of(s->map, s->map_bytes < SHARD_HEADER_BYTES ? 0 : SHARD_HEADER_BYTES);
	uint32_t magic = rv_read_u32(&r);
	for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
		if (rv_reader_ok(&r) && layouts[i].magic == magic)
			return &layouts[i];
	return NULL;
}

static enum rv_err read_header(struct shard *s, const struct layout *l, const char *path, struct rv_errtext *et) {
	struct rv_reader r = rv_reader_of(s->map + sizeof l->magic, SHARD_HEADER_BYTES - sizeof l->magic);
	uint32_t version = rv_read_u32(&r), n_tokens = rv_read_u32(&r);
	size_t body = s->map_bytes - SHARD_HEADER_BYTES;
	if (version != l->version)
		return rv_fail(et, RV_E_INVALID, "token file %s: magic %u with version %u: must be %u", path, l->magic, version,
					   l->version);
	if ((uint64_t)n_tokens * (unsigned)l->token_bytes != body)
		return rv_fail(
			et, RV_E_INVALID,
			"token file %s: the header says %u tokens of %d bytes, but %zu bytes follow it; was it cut short?", path,
			n_tokens, l->token_bytes, body);
	s->token_bytes = l->token_bytes;
	s->tokens = s->map + SHARD_HEADER_BYTES;
	s->n_tokens = n_tokens;
	return RV_OK;
}

static enum rv_err read_layout(struct shard *s, const char *path, struct rv_errtext *et) {
	const struct layout *l = layout_of(s);
	if (l)
		return read_header(s, l, path, et);
	if (s->map_bytes % 2 != 0)
		return rv_fail(et, RV_E_INVALID,
					   "token file %s: no known header, and %zu bytes are no whole number of 16-bit tokens", path,
					   s->map_bytes);
	s->token_bytes = 2;
	s->tokens = s->map;
	s->n_tokens = s->map_bytes / 2;
	return RV_OK;
}

static enum rv_err map_file(struct shard *s, int fd, const char *path, struct rv_errtext *et) {
	struct stat st;
	if (fstat(fd, &st) != 0)
		return rv_fail_errno(et, errno, "token file %s: fstat", path);
	if (!S_ISREG(st.st_mode))
		return rv_fail(et, RV_E_INVALID, "token file %s: not a regular file", path);
	if (st.st_size == 0)
		return RV_OK;
	void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return rv_fail_errno(et, errno, "token file %s: mmap of %lld bytes", path, (long long)st.st_size);
	s->map = at;
	s->map_bytes = (size_t)st.st_size;
	return RV_OK;
}

enum rv_err shard_open(struct shard *s, const char *path, struct rv_errtext *et) {
	*s = (struct shard){.token_bytes = 2};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return rv_fail_errno(et, errno, "token file %s: open", path);
	enum rv_err e = map_file(s, fd, path, et);
	close(fd);
	if (e == RV_OK && s->map)
		e = read_layout(s, path, et);
	if (e != RV_OK)
		shard_close(s);
	return e;
}

void shard_close(struct shard *s) {
	if (s->map)
		munmap((void *)(uintptr_t)s->map, s->map_bytes);
	*s = (struct shard){0};
}

void shard_read(const struct shard *s, uint64_t begin, size_t n, uint32_t *out) {
	RV_ASSERT(begin <= s->n_tokens && n <= s->n_tokens - begin);
	if (n == 0)
		return;
	const uint8_t *at = s->tokens + begin * (unsigned)s->token_bytes;
	if (s->token_bytes == 4) {
		memcpy(out, at, n * sizeof *out);
		return;
	}
	for (size_t i = 0; i < n; i++, at += 2)
		out[i] = (uint32_t)(at[0] | at[1] << 8);
}

enum rv_err shard_check(const struct shard *s, const char *path, uint32_t vocab, struct rv_errtext *et) {
	uint32_t ids[4096];
	for (uint64_t at = 0; at < s->n_tokens;) {
		uint64_t left = s->n_tokens - at;
		size_t n = left < sizeof ids / sizeof ids[0] ? (size_t)left : sizeof ids / sizeof ids[0];
		shard_read(s, at, n, ids);
		for (size_t i = 0; i < n; i++)
			if (ids[i] >= vocab)
				return rv_fail(
					et, RV_E_RANGE,
					"token file %s: token %llu is %u, the vocabulary has %u; was it made with another tokenizer?", path,
					(unsigned long long)(at + i), ids[i], vocab);
		at += n;
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
	enum { BLOCK_TOKENS = 4096 };
	if (n > SHARD_MAX_TOKENS - w->n_tokens)
		return rv_fail(et, RV_E_RANGE, "token file %s: more than %llu tokens", w->file.path,
					   (unsigned long long)SHARD_MAX_TOKENS);
	while (n > 0) {
		size_t part = n < BLOCK_TOKENS ? n : BLOCK_TOKENS;
		RV_TRY(append_block(w, ids, part, et));
		ids += part;
		n -= part;
	}
	return RV_OK;
}

static enum rv_err write_header(struct shard_writer *w, struct rv_errtext *et) {
	const struct layout *l = &layouts[w->token_bytes == 4];
	uint8_t bytes[12];
	struct rv_writer out = rv_writer_of(bytes, sizeof bytes);
	rv_write_u32(&out, l->magic);
	rv_write_u32(&out, l->version);
	rv_write_u32(&out, (uint32_t)w->n_tokens);
	if (pwrite(w->file.fd, bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return rv_fail_errno(et, errno, "token file %s: writing its header", w->file.path);
	return RV_OK;
}

enum rv_err shard_writer_commit(struct shard_writer *w, struct rv_errtext *et) {
	enum rv_err e = write_header(w, et);
	if (e == RV_OK)
		return rv_file_writer_commit(&w->file, et);
	rv_file_writer_abandon(&w->file);
	return e;
}

void shard_writer_abandon(struct shard_writer *w) {
	rv_file_writer_abandon(&w->file);
}
