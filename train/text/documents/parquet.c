/* parquet.c: see parquet.h. */
#include "train/text/documents/parquet.h"

#include "train/text/documents/parquet_page.h"
#include "train/text/documents/parquet_runs.h"

#include <stdlib.h>
#include <string.h>

/* Encodings, as parquet.thrift numbers them. */
enum {
	ENCODING_PLAIN = 0,
	ENCODING_PLAIN_DICTIONARY = 2,
	ENCODING_DELTA_LENGTH = 6,
	ENCODING_DELTA = 7,
	ENCODING_RLE_DICTIONARY = 8
};

struct text {
	const uint8_t *at;
	uint32_t n;
};

struct parquet {
	const struct mapped_file *file;
	struct parquet_footer footer;
	size_t group;                                   /* the next row group */
	uint8_t codec;                                  /* of the present one */
	uint64_t at, end;                               /* of its pages, in the file */
	uint64_t bytes_done;                            /* of the file, in earlier groups */
	uint64_t values_left;                           /* of the group, behind the present page */
	struct page_buffer dictionary_page, page, word; /* `word`: the last value of ENCODING_DELTA */
	struct text *dictionary;                        /* (n_dictionary) into dictionary_page */
	uint32_t n_dictionary;
	/* the present page */
	uint32_t left; /* values to come, nulls included */
	int64_t encoding;
	struct run_decoder levels, indices;
	struct delta_decoder prefixes, lengths;
	struct rv_reader values;
	size_t word_bytes;
};

static enum rv_err invalid(const struct parquet *p, const char *what, struct rv_errtext *et) {
	return rv_fail(et, RV_E_INVALID, "%.200s: a Parquet page before byte %llu %s", p->file->path,
				   (unsigned long long)p->at, what);
}

static int bits_of(uint32_t most) {
	int bits = 0;
	for (; most >> bits != 0; bits++) {
	}
	return bits;
}

/* ---- the dictionary ---- */

static struct text plain_value(struct rv_reader *r) {
	uint32_t n = rv_read_u32(r);
	return (struct text){.at = rv_read_span(r, n), .n = n};
}

static enum rv_err take_dictionary(struct parquet *p, const struct parquet_page *page, struct rv_errtext *et) {
	struct rv_reader r = page->values;
	if (page->n_values > rv_reader_left(&r) / 4 ||
		(page->encoding != ENCODING_PLAIN && page->encoding != ENCODING_PLAIN_DICTIONARY))
		return invalid(p, "has a malformed dictionary", et);
	free(p->dictionary);
	p->n_dictionary = 0;
	p->dictionary = malloc((page->n_values + (size_t)1) * sizeof *p->dictionary);
	if (p->dictionary == NULL)
		return rv_fail(et, RV_E_NOMEM, "no memory for a Parquet dictionary of %u values", page->n_values);
	for (uint32_t i = 0; i < page->n_values; i++)
		p->dictionary[i] = plain_value(&r);
	p->n_dictionary = page->n_values;
	return rv_reader_ok(&r) ? RV_OK : invalid(p, "has a malformed dictionary", et);
}

/* ---- a page ---- */

/* Levels of the first version come before the values, after their length. */
static void begin_levels(struct parquet *p, const struct parquet_page *page) {
	struct rv_reader levels = page->levels;
	p->values = page->values;
	if (!page->has_levels_apart && p->footer.most_defined > 0) {
		uint32_t n = rv_read_u32(&p->values);
		const uint8_t *at = rv_read_span(&p->values, n);
		levels = rv_reader_of(at, at != NULL ? n : 0);
	}
	p->levels = run_decoder_of(levels, bits_of(p->footer.most_defined));
}

static enum rv_err begin_values(struct parquet *p, struct rv_errtext *et) {
	p->word_bytes = 0;
	if (p->encoding == ENCODING_PLAIN_DICTIONARY || p->encoding == ENCODING_RLE_DICTIONARY) {
		int width = rv_reader_left(&p->values) > 0 ? rv_read_u8(&p->values) : 0; /* none: all values are null */
		p->indices = run_decoder_of(p->values, width);
	} else if (p->encoding == ENCODING_DELTA_LENGTH && rv_reader_left(&p->values) > 0) {
		p->lengths = delta_decoder_of(p->values);
		p->values = delta_decoder_rest(p->lengths);
	} else if (p->encoding == ENCODING_DELTA && rv_reader_left(&p->values) > 0) {
		p->prefixes = delta_decoder_of(p->values);
		p->lengths = delta_decoder_of(delta_decoder_rest(p->prefixes));
		p->values = delta_decoder_rest(p->lengths);
	} else if (p->encoding != ENCODING_PLAIN && p->encoding != ENCODING_DELTA_LENGTH && p->encoding != ENCODING_DELTA) {
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "%.200s: a Parquet page before byte %llu has encoding %lld, which no column "
					   "of strings has",
					   p->file->path, (unsigned long long)p->at, (long long)p->encoding);
	}
	return RV_OK;
}

static enum rv_err begin_page(struct parquet *p, const struct parquet_page *page, struct rv_errtext *et) {
	if (page->n_values > p->values_left)
		return invalid(p, "has more values than its column", et);
	p->values_left -= page->n_values;
	p->left = page->n_values;
	p->encoding = page->encoding;
	begin_levels(p, page);
	return begin_values(p, et);
}

static enum rv_err read_page(struct parquet *p, struct rv_errtext *et) {
	struct parquet_page page;
	struct page_buffer *into = p->n_dictionary == 0 && p->dictionary == NULL ? &p->dictionary_page : &p->page;
	RV_TRY(parquet_page_read(p->file, p->codec, &p->at, p->end, into, &page, et));
	if (page.type == PARQUET_PAGE_DICTIONARY)
		return into == &p->dictionary_page ? take_dictionary(p, &page, et) : invalid(p, "is a second dictionary", et);
	if (page.type == PARQUET_PAGE_INDEX)
		return RV_OK;
	if (page.type != PARQUET_PAGE_DATA && page.type != PARQUET_PAGE_DATA_2)
		return invalid(p, "is of an unknown type", et);
	return begin_page(p, &page, et);
}

static void begin_group(struct parquet *p) {
	const struct parquet_chunk *c = &p->footer.chunks[p->group++];
	p->bytes_done = c->at;
	p->codec = c->codec;
	p->at = c->at;
	p->end = c->at + c->bytes;
	p->values_left = c->n_values;
	free(p->dictionary);
	p->dictionary = NULL;
	p->n_dictionary = 0;
}

/* ---- a value ---- */

static struct text dictionary_value(struct parquet *p) {
	uint32_t i = run_decoder_next(&p->indices);
	if (!rv_reader_ok(&p->indices.r) || i >= p->n_dictionary)
		return (struct text){0};
	return p->dictionary[i];
}

static struct text length_value(struct parquet *p) {
	int64_t n = delta_decoder_next(&p->lengths);
	if (!rv_reader_ok(&p->lengths.r) || n < 0 || n > PARQUET_MAX_PAGE_BYTES)
		return (struct text){0};
	return (struct text){.at = rv_read_span(&p->values, (size_t)n), .n = (uint32_t)n};
}

static bool grow_word(struct parquet *p, size_t n) {
	if (p->word.at != NULL && n <= p->word.cap)
		return true;
	uint8_t *at = realloc(p->word.at, 2 * n + 1);
	if (at != NULL)
		p->word = (struct page_buffer){.at = at, .cap = 2 * n + 1};
	return at != NULL;
}

/* A value is so many bytes of the one before, and then its own. */
static struct text delta_value(struct parquet *p) {
	int64_t kept = delta_decoder_next(&p->prefixes);
	struct text rest = length_value(p);
	if (rest.at == NULL || !rv_reader_ok(&p->prefixes.r) || kept < 0 || (uint64_t)kept > p->word_bytes)
		return (struct text){0};
	size_t n = (size_t)kept + rest.n;
	if (n > PARQUET_MAX_PAGE_BYTES || !grow_word(p, n))
		return (struct text){0};
	memcpy(p->word.at + kept, rest.at, rest.n);
	p->word_bytes = n;
	return (struct text){.at = p->word.at, .n = (uint32_t)n};
}

static struct text next_value(struct parquet *p) {
	switch (p->encoding) {
	case ENCODING_PLAIN:
		return plain_value(&p->values);
	case ENCODING_DELTA_LENGTH:
		return length_value(p);
	case ENCODING_DELTA:
		return delta_value(p);
	default:
		return dictionary_value(p);
	}
}

/* Passes over nulls. Returns false at the end of the page. */
static bool find_value(struct parquet *p) {
	while (p->left > 0 && rv_reader_ok(&p->levels.r)) {
		p->left--;
		if (p->footer.most_defined == 0 || run_decoder_next(&p->levels) == p->footer.most_defined)
			return true;
	}
	return false;
}

enum rv_err parquet_next(struct parquet *p, const uint8_t **at, size_t *n, struct rv_errtext *et) {
	while (!find_value(p)) {
		if (!rv_reader_ok(&p->levels.r))
			return invalid(p, "has malformed levels", et);
		if (p->values_left > 0) {
			if (p->at >= p->end)
				return invalid(p, "is the last one, though values are missing", et);
			RV_TRY(read_page(p, et));
		} else if (p->group < p->footer.n_groups) {
			begin_group(p);
		} else {
			*at = NULL;
			return RV_OK;
		}
	}
	struct text t = next_value(p);
	if (t.at == NULL)
		return invalid(p, "has malformed values", et);
	*at = t.at;
	*n = t.n;
	return RV_OK;
}

uint64_t parquet_bytes_done(const struct parquet *p) {
	return p->at > p->bytes_done ? p->at : p->bytes_done;
}

enum rv_err parquet_open(const struct mapped_file *file, const char *column, struct parquet **out,
						 struct rv_errtext *et) {
	struct parquet *p = calloc(1, sizeof *p);
	if (p == NULL)
		return rv_fail(et, RV_E_NOMEM, "%.200s: no memory to read it", file->path);
	p->file = file;
	enum rv_err e = parquet_footer_read(&p->footer, file, column, et);
	if (e != RV_OK) {
		free(p);
		return e;
	}
	*out = p;
	return RV_OK;
}

void parquet_close(struct parquet *p) {
	if (p == NULL)
		return;
	parquet_footer_release(&p->footer);
	page_buffer_release(&p->dictionary_page);
	page_buffer_release(&p->page);
	page_buffer_release(&p->word);
	free(p->dictionary);
	free(p);
}
