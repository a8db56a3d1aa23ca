/* text_blocks.c: looks back from each block's nominal begin for a place where text may be cut. */
#include "worker/tokenizer/text_blocks.h"

#include "base/assert.h"
#include "worker/tokenizer/utf8.h"

#include <stdlib.h>

enum { LOOK_BACK_BYTES = TEXT_BLOCK_BYTES / 2 };

static bool is_letter(uint8_t c) {
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool is_letter_or_digit(uint8_t c) {
	return is_letter(c) || (c >= '0' && c <= '9');
}

/* White_Space, and U+180E, which was. */
static bool is_space(uint32_t c) {
	return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 || c == 0x180e ||
		   (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* A well-formed character that is no white space begins at text[at]. */
static bool starts_visible(const uint8_t *text, size_t n, size_t at, size_t *len) {
	uint32_t c;
	*len = utf8_decode(text + at, n - at, &c);
	return *len > 0 && !is_space(c);
}

/* Such a character ends at text[at). */
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
	return text[at - 1] == '\n' && starts_visible(text, n, at, &len) && ends_visible(text, at - 1);
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

static size_t file_of(const struct text_blocks *b, uint64_t block) {
	size_t lo = 0, hi = b->files->n_files;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;
		if (b->first[mid] <= block)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

struct text_block text_blocks_get(const struct text_blocks *b, uint64_t i) {
	RV_ASSERT(i < b->n);
	size_t f = file_of(b, i);
	const struct data_file *file = &b->files->files[f];
	size_t nominal = (size_t)(i - b->first[f]) * TEXT_BLOCK_BYTES;
	size_t begin = text_blocks_cut(file->at, file->bytes, nominal);
	size_t end = text_blocks_cut(file->at, file->bytes, nominal + TEXT_BLOCK_BYTES);
	return (struct text_block){.at = file->at + begin, .n = end - begin, .begins_file = nominal == 0};
}
