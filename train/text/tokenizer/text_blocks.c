/* text_blocks.c: looks back from the nominal beginning of each block for a safe place to cut. */
#include "train/text/tokenizer/text_blocks.h"

#include "base/assert.h"
#include "train/text/tokenizer/ranges.h"
#include "train/text/tokenizer/utf8.h"

#include <stdlib.h>

enum { LOOK_BACK_BYTES = TEXT_BLOCK_BYTES / 2, MARGIN_BYTES = 8 };

_Static_assert(TEXT_BLOCK_BUFFER_BYTES == TEXT_BLOCK_BYTES + LOOK_BACK_BYTES + 2 * MARGIN_BYTES, "a window fits");

static bool is_letter(uint8_t c) {
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool is_letter_or_digit(uint8_t c) {
	return is_letter(c) || (c >= '0' && c <= '9');
}

/* Reports whether `c` has the property White_Space, or is U+180E, which had it. */
static bool is_space(uint32_t c) {
	return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 || c == 0x180e ||
		   (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* Reports whether a well-formed character that is not white space begins at text[at]. */
static bool starts_visible(const uint8_t *text, size_t n, size_t at, size_t *len) {
	uint32_t c;
	*len = utf8_decode(text + at, n - at, &c);
	return *len > 0 && !is_space(c);
}

/* Reports whether such a character ends before text[at]. */
static bool ends_visible(const uint8_t *text, size_t at) {
	for (size_t back = 1; back <= 4 && back <= at; back++) {
		size_t len;
		if ((text[at - back] & 0xc0) != 0x80)
			return starts_visible(text, at, at - back, &len) && len == back;
	}
	return false;
}

static bool may_cut(const uint8_t *text, size_t n, size_t at) {
	size_t len;
	if (at < 2 || at + 1 >= n)
		return false;
	if (text[at] == ' ')
		return is_letter_or_digit(text[at - 1]) && is_letter(text[at + 1]);
	return text[at - 1] == '\n' && text[at] != '/' && starts_visible(text, n, at, &len) && ends_visible(text, at - 1);
}

size_t text_blocks_cut(const uint8_t *text, size_t n, size_t nominal) {
	if (nominal == 0 || nominal >= n)
		return nominal < n ? nominal : n;
	size_t lowest = nominal > LOOK_BACK_BYTES ? nominal - LOOK_BACK_BYTES : 0;
	for (size_t at = nominal; at > lowest; at--)
		if (may_cut(text, n, at))
			return at;
	size_t at = nominal;
	while (at > 0 && nominal - at < 3 && (text[at] & 0xc0) == 0x80)
		at--;
	return (text[at] & 0xc0) == 0x80 ? nominal : at;
}

enum rv_err text_blocks_init(struct text_blocks *b, const struct data_files *files, struct rv_errtext *et) {
	*b = (struct text_blocks){.files = files};
	b->first = malloc((files->n_files + 1) * sizeof *b->first);
	if (!b->first)
		return rv_fail(et, RV_E_NOMEM, "no memory for the blocks of %zu files", files->n_files);
	for (size_t f = 0; f < files->n_files; f++) {
		b->first[f] = b->n;
		b->n += (files->files[f].bytes + TEXT_BLOCK_BYTES - 1) / TEXT_BLOCK_BYTES;
	}
	b->first[files->n_files] = b->n;
	return RV_OK;
}

void text_blocks_release(struct text_blocks *b) {
	free(b->first);
	*b = (struct text_blocks){0};
}

uint64_t text_blocks_bytes_before(const struct text_blocks *b, uint64_t i) {
	RV_ASSERT(i <= b->n);
	if (i == b->n)
		return b->files->bytes;
	size_t f = range_holding(b->first, b->files->n_files, i);
	return b->files->begin[f] + (i - b->first[f]) * TEXT_BLOCK_BYTES;
}

/* Reads a window for both cuts: half a block back, and a character more on either side. */
enum rv_err text_blocks_get(const struct text_blocks *b, uint64_t i, uint8_t buffer[TEXT_BLOCK_BUFFER_BYTES],
							struct text_block *out, struct rv_errtext *et) {
	RV_ASSERT(i < b->n);
	size_t f = range_holding(b->first, b->files->n_files, i);
	const struct mapped_file *file = &b->files->files[f];
	size_t nominal = (size_t)(i - b->first[f]) * TEXT_BLOCK_BYTES, end = nominal + TEXT_BLOCK_BYTES;
	size_t low = nominal > LOOK_BACK_BYTES + MARGIN_BYTES ? nominal - LOOK_BACK_BYTES - MARGIN_BYTES : 0;
	size_t high = file->bytes - nominal > TEXT_BLOCK_BYTES + MARGIN_BYTES ? end + MARGIN_BYTES : file->bytes;
	RV_TRY(mapped_file_read(file, low, high - low, buffer, et));
	size_t from = text_blocks_cut(buffer, high - low, nominal - low);
	size_t to = text_blocks_cut(buffer, high - low, end - low);
	RV_ASSERT(from <= to && to <= high - low);
	static const uint32_t first[1] = {0};
	*out = (struct text_block){.at = buffer + from, .n = to - from, .begins = first, .n_begins = nominal == 0};
	return RV_OK;
}

/* ---- as a source ---- */

static enum rv_err load(void *ctx, uint64_t begin, uint64_t want, uint64_t *n, struct rv_errtext *et) {
	const struct text_blocks *b = ctx;
	(void)et;
	uint64_t left = begin < b->n ? b->n - begin : 0;
	*n = left < want ? left : want;
	return RV_OK;
}

static enum rv_err get(const void *ctx, uint64_t i, uint8_t buffer[TEXT_BLOCK_BUFFER_BYTES], struct text_block *out,
					   struct rv_errtext *et) {
	return text_blocks_get(ctx, i, buffer, out, et);
}

static uint64_t bytes_before(const void *ctx, uint64_t i) {
	const struct text_blocks *b = ctx;
	return text_blocks_bytes_before(b, i < b->n ? i : b->n);
}

static enum rv_err identity(const void *ctx, struct rv_hash *out, struct rv_errtext *et) {
	const struct text_blocks *b = ctx;
	return data_files_identity(b->files, out, et);
}

struct block_source text_blocks_source(const struct text_blocks *b) {
	return (struct block_source){.ctx = (void *)(uintptr_t)b, /* nothing writes to it */
								 .load = load,
								 .get = get,
								 .bytes_before = bytes_before,
								 .identity = identity};
}
