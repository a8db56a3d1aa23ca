/* document_blocks.c: gathers parts of documents until a block is full, and cuts it off. */
#include "train/text/documents/document_blocks.h"

#include "base/assert.h"
#include "train/text/documents/documents.h"
#include "train/text/tokenizer/text_blocks.h"

#include <stdlib.h>
#include <string.h>

enum { MARGIN_BYTES = 8 /* that a cut looks ahead */, GATHER_BYTES = 2 * TEXT_BLOCK_BYTES, MOST_BEGINS = 1 << 14 };

struct block {
	uint8_t *at;
	uint32_t *begins;
	size_t n;
	uint32_t n_begins;
	uint64_t bytes_before; /* of the files: read before the block was made */
};

struct document_blocks {
	const struct data_files *files;
	const char *field;
	size_t file;            /* of `documents`, or the next one */
	struct documents *open; /* NULL: the next file is not open yet */
	struct document_part part;
	size_t part_at; /* of `part`: what is gathered */
	bool has_part;
	uint64_t next, n_documents; /* number of the next block to be made */
	struct block *ready;        /* (n_ready, room cap) blocks [first, first + n_ready) */
	uint64_t first, n_ready, cap;
	size_t n; /* gathered */
	uint32_t n_begins, begins[MOST_BEGINS];
	uint8_t bytes[GATHER_BYTES];
};

static enum rv_err check_files(const struct data_files *files, struct rv_errtext *et) {
	enum documents_kind kind;
	for (size_t i = 0; i < files->n_files; i++)
		RV_TRY(documents_recognise(&files->files[i], &kind, et));
	return RV_OK;
}

enum rv_err document_blocks_open(const struct data_files *files, const char *field, struct document_blocks **out,
								 struct rv_errtext *et) {
	RV_TRY(check_files(files, et));
	struct document_blocks *b = calloc(1, sizeof *b);
	if (b == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for the documents of %zu files", files->n_files);
	b->files = files;
	b->field = field;
	*out = b;
	return RV_OK;
}

static void drop(struct document_blocks *b) {
	for (uint64_t i = 0; i < b->n_ready; i++) {
		free(b->ready[i].at);
		free(b->ready[i].begins);
	}
	b->n_ready = 0;
}

void document_blocks_close(struct document_blocks *b) {
	if (b == NULL)
		return;
	drop(b);
	free(b->ready);
	documents_close(b->open);
	free(b);
}

uint64_t document_blocks_documents(const struct document_blocks *b) {
	return b->n_documents;
}

/* ---- making a block ---- */

static uint64_t bytes_done(const struct document_blocks *b) {
	if (b->file == b->files->n_files)
		return b->files->bytes;
	return b->files->begin[b->file] + (b->open != NULL ? documents_bytes_done(b->open) : 0);
}

/* Gathers what there is room for of the part. A document without text is none, as an empty file. */
static void gather(struct document_blocks *b) {
	if (b->part.n == 0)
		return;
	size_t left = b->part.n - b->part_at, room = GATHER_BYTES - b->n, n = left < room ? left : room;
	if (b->part_at == 0 && b->part.begins) {
		b->begins[b->n_begins++] = (uint32_t)b->n;
		b->n_documents++;
	}
	memcpy(b->bytes + b->n, b->part.at + b->part_at, n);
	b->n += n;
	b->part_at += n;
	b->has_part = b->part_at < b->part.n;
}

static enum rv_err open_file(struct document_blocks *b, struct rv_errtext *et) {
	return b->open != NULL ? RV_OK : documents_open(&b->files->files[b->file], b->field, &b->open, et);
}

/* Gathers until a block is full or the file ends. */
static enum rv_err fill(struct document_blocks *b, bool *file_ends, struct rv_errtext *et) {
	RV_TRY(open_file(b, et));
	*file_ends = false;
	while (b->n < TEXT_BLOCK_BYTES + MARGIN_BYTES && b->n_begins < MOST_BEGINS && !*file_ends) {
		if (!b->has_part) {
			RV_TRY(documents_next(b->open, &b->part, et));
			b->part_at = 0;
			*file_ends = b->part.at == NULL;
		}
		if (!*file_ends)
			gather(b);
	}
	return RV_OK;
}

/* Moves the first `n` bytes gathered, with the documents that begin there, into a block. */
static enum rv_err cut_off(struct document_blocks *b, size_t n, bool keeps, struct block *out, struct rv_errtext *et) {
	uint32_t n_begins = 0;
	while (n_begins < b->n_begins && (b->begins[n_begins] < n || b->n == n))
		n_begins++;
	*out = (struct block){.n = n, .n_begins = n_begins};
	if (keeps) {
		out->at = malloc(n + 1);
		out->begins = malloc((n_begins + (size_t)1) * sizeof *out->begins);
		if (out->at == NULL || out->begins == NULL) {
			free(out->at);
			free(out->begins);
			return rv_fail(et, RV_E_NOMEM, "no memory for a block of text");
		}
		memcpy(out->at, b->bytes, n);
		memcpy(out->begins, b->begins, n_begins * sizeof *out->begins);
	}
	memmove(b->bytes, b->bytes + n, b->n - n);
	b->n -= n;
	b->n_begins -= n_begins;
	for (uint32_t i = 0; i < b->n_begins; i++)
		b->begins[i] = b->begins[i + n_begins] - (uint32_t)n;
	return RV_OK;
}

static void end_file(struct document_blocks *b) {
	documents_close(b->open);
	b->open = NULL;
	b->file++;
}

/* Makes the next block. Sets *made to false behind the last. */
static enum rv_err make(struct document_blocks *b, bool keeps, struct block *out, bool *made, struct rv_errtext *et) {
	bool file_ends = false;
	const uint64_t bytes_before = bytes_done(b);
	*made = false;
	while (!*made && b->file < b->files->n_files) {
		RV_TRY(fill(b, &file_ends, et));
		bool is_full = b->n >= TEXT_BLOCK_BYTES + MARGIN_BYTES;
		*made = b->n > 0 || b->n_begins > 0;
		if (*made)
			RV_TRY(cut_off(b, is_full ? text_blocks_cut(b->bytes, b->n, TEXT_BLOCK_BYTES) : b->n, keeps, out, et));
		if (*made)
			out->bytes_before = bytes_before;
		if (file_ends && b->n == 0)
			end_file(b);
	}
	return RV_OK;
}

/* ---- as a source ---- */

static enum rv_err reserve(struct document_blocks *b, uint64_t want, struct rv_errtext *et) {
	if (want <= b->cap)
		return RV_OK;
	struct block *ready = realloc(b->ready, want * sizeof *ready);
	if (ready == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for %llu blocks of text", (unsigned long long)want);
	b->ready = ready;
	b->cap = want;
	return RV_OK;
}

/* Blocks before `begin`, after a restart, are made and left: documents have no index. */
static enum rv_err load(void *ctx, uint64_t begin, uint64_t want, uint64_t *n, struct rv_errtext *et) {
	struct document_blocks *b = ctx;
	struct block block;
	bool made = true;
	RV_ASSERT(begin >= b->next);
	drop(b);
	RV_TRY(reserve(b, want, et));
	for (; made && b->next < begin; b->next += made)
		RV_TRY(make(b, false, &block, &made, et));
	for (b->first = begin; made && b->n_ready < want; b->n_ready += made, b->next += made)
		RV_TRY(make(b, true, &b->ready[b->n_ready], &made, et));
	*n = b->n_ready;
	return RV_OK;
}

static const struct block *block_at(const struct document_blocks *b, uint64_t i) {
	RV_ASSERT(i >= b->first && i - b->first < b->n_ready);
	return &b->ready[i - b->first];
}

static enum rv_err get(const void *ctx, uint64_t i, uint8_t buffer[TEXT_BLOCK_BUFFER_BYTES], struct text_block *out,
					   struct rv_errtext *et) {
	const struct block *block = block_at(ctx, i);
	(void)buffer;
	(void)et;
	*out = (struct text_block){.at = block->at, .n = block->n, .begins = block->begins, .n_begins = block->n_begins};
	return RV_OK;
}

static uint64_t bytes_before(const void *ctx, uint64_t i) {
	const struct document_blocks *b = ctx;
	return i >= b->first && i - b->first < b->n_ready ? b->ready[i - b->first].bytes_before : bytes_done(b);
}

static enum rv_err identity(const void *ctx, struct rv_hash *out, struct rv_errtext *et) {
	const struct document_blocks *b = ctx;
	struct rv_hash files;
	RV_TRY(data_files_identity(b->files, &files, et));
	struct rv_hasher h = rv_hasher_of("rivulet documents");
	rv_hash_update(&h, files.b, sizeof files.b);
	rv_hash_update(&h, b->field, strlen(b->field));
	*out = rv_hash_final(&h);
	return RV_OK;
}

struct block_source document_blocks_source(struct document_blocks *b) {
	return (struct block_source){
		.ctx = b, .load = load, .get = get, .bytes_before = bytes_before, .identity = identity};
}
