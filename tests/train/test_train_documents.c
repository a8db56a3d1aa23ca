/* Documents of files that others wrote (documents/make_documents.py), of lines, and of packed text;
 * what is damaged is refused with its place; blocks give the same text whatever the file. */
#include "train/text/documents/document_blocks.h"
#include "train/text/documents/documents.h"
#include "train/text/documents/hub_directory.h"

#include "base/file.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { TEXTS = 8, LONG_BYTES = 300, MANY = 3000 };

static char dir[64], xs[LONG_BYTES + 1];
/* Those of make_documents.py that are not null. */
static const char *const texts[TEXTS] = {
	"one", "", "the \xc3\xa9t\xc3\xa9", "the \xc3\xa9t\xc3\xa9 and the winter", "one", "line\nbreak", xs, "one"};

static int setup(void **state) {
	(void)state;
	memset(xs, 'x', LONG_BYTES);
	scratch_make(dir, sizeof dir);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	scratch_remove(dir);
	return 0;
}

static void open_fixture(const char *name, struct mapped_file *m) {
	char path[512];
	snprintf(path, sizeof path, "%s/%s.parquet", DOCUMENTS_DIR, name);
	assert_ok(mapped_file_open(m, path, &et));
}

static struct mapped_file in_memory(const char *name, const void *bytes, size_t n) {
	return (struct mapped_file){.path = (char *)(uintptr_t)name, .at = bytes, .bytes = n, .fd = -1};
}

static void expect_texts(const struct mapped_file *m, const char *field) {
	struct documents *d;
	struct document_part part;
	assert_ok(documents_open(m, field, &d, &et));
	for (int i = 0; i < TEXTS; i++) {
		assert_ok(documents_next(d, &part, &et));
		assert_non_null(part.at);
		assert_true(part.begins);
		assert_int_equal(part.n, strlen(texts[i]));
		assert_memory_equal(part.at, texts[i], part.n);
	}
	assert_ok(documents_next(d, &part, &et));
	assert_null(part.at);
	documents_close(d);
}

static void parquet_of_others_is_read(void **state) {
	(void)state;
	static const char *const names[] = {
		"arrow_delta_byte_array", "arrow_delta_length_byte_array", "arrow_dictionary", "arrow_lz4", "polars", "duckdb"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct mapped_file m;
		open_fixture(names[i], &m);
		expect_texts(&m, "text");
		mapped_file_close(&m);
	}
}

static void refused(const struct mapped_file *m, const char *field, enum rv_err why, const char *text) {
	struct documents *d = NULL;
	struct rv_errtext said = {0};
	struct document_part part = {.at = (const uint8_t *)""};
	enum rv_err e = documents_open(m, field, &d, &said);
	while (e == RV_OK && part.at != NULL)
		e = documents_next(d, &part, &said);
	documents_close(d);
	assert_int_equal(e, why);
	if (strstr(said.text, text) == NULL || strstr(said.text, m->path) == NULL)
		fail_msg("'%s' and '%s' are expected in: %s", text, m->path, said.text);
}

static void columns_are_found_by_their_path(void **state) {
	(void)state;
	struct mapped_file m;
	open_fixture("arrow_dictionary", &m);
	expect_texts(&m, "meta.text");
	refused(&m, "body", RV_E_NOTFOUND, "columns of strings: text, meta.text");
	refused(&m, "id", RV_E_UNSUPPORTED, "does not hold strings");
	refused(&m, "tags.list.element", RV_E_UNSUPPORTED, "within a list");
	mapped_file_close(&m);
}

/* Each cut and each changed byte is read or refused with a text: nothing else. */
static void damaged_parquet_is_refused(void **state) {
	(void)state;
	struct mapped_file m;
	open_fixture("arrow_delta_byte_array", &m);
	uint8_t *bytes = malloc(m.bytes);
	assert_non_null(bytes);
	int n_refused = 0;
	for (size_t i = 4; i < m.bytes; i++)
		for (int cut = 0; cut < 2; cut++) {
			struct documents *d = NULL;
			struct document_part part = {.at = bytes};
			struct rv_errtext said = {0};
			memcpy(bytes, m.at, m.bytes);
			bytes[i] ^= (uint8_t)(1 + i % 255);
			const struct mapped_file bad = in_memory("bad.parquet", bytes, cut ? i : m.bytes);
			enum rv_err e = documents_open(&bad, "text", &d, &said);
			while (e == RV_OK && part.at != NULL)
				e = documents_next(d, &part, &said);
			documents_close(d);
			assert_true(e == RV_OK || said.text[0] != '\0');
			n_refused += e != RV_OK;
		}
	assert_true(n_refused > (int)m.bytes);
	free(bytes);
	mapped_file_close(&m);
}

static const char lines[] =
	"{\"id\": 1, \"text\": \"one\"}\n\n{\"text\": null}\r\n{\"text\": \"\", \"x\": [1]}\n"
	"{\"text\": \"the \\u00e9t\\u00e9\"}\n{\"text\": \"the \xc3\xa9t\xc3\xa9 and the winter\"}\n"
	"{\"text\": \"one\"}\n{\"text\": \"line\\nbreak\"}\n{\"text\": \"%s\"}\n{\"text\": \"one\"}";

static size_t make_lines(char out[1024]) {
	return (size_t)snprintf(out, 1024, lines, xs);
}

static size_t gzip_of(const void *in, size_t n, uint8_t *out, size_t cap) {
	z_stream z = {.next_in = (Bytef *)(uintptr_t)in, .avail_in = (uInt)n, .next_out = out, .avail_out = (uInt)cap};
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(deflateEnd(&z), Z_OK);
	return z.total_out;
}

static void lines_are_read_packed_or_not(void **state) {
	(void)state;
	char text[1024];
	uint8_t packed[2048];
	size_t n = make_lines(text), half = n / 2;
	struct mapped_file m = in_memory("a.jsonl", text, n);
	expect_texts(&m, "text");
	size_t first = gzip_of(text, half, packed, sizeof packed);
	size_t both = first + gzip_of(text + half, n - half, packed + first, sizeof packed - first);
	m = in_memory("a.jsonl.gz", packed, both);
	expect_texts(&m, "text");
	m.bytes -= 9;
	refused(&m, "text", RV_E_CORRUPT, "too early");
	size_t zst = ZSTD_compress(packed, sizeof packed, text, n, 3);
	assert_false(ZSTD_isError(zst));
	m = in_memory("a.jsonl.zst", packed, zst);
	expect_texts(&m, "text");
	m.bytes -= 3;
	refused(&m, "text", RV_E_CORRUPT, "too early");
}

static void a_line_that_cannot_be_read_is_named(void **state) {
	(void)state;
	static const struct {
		const char *text, *why;
	} cases[] = {{"{\"text\": \"a\"}\n{\"text\": \n", "line 2"},
				 {"{\"text\": \"a\"}\n[1]\n", "line 2: not a JSON object"},
				 {"{\"body\": \"a\"}\n", "line 1: it has no field 'text'; its first field is 'body'"},
				 {"{\"text\": [\"a\"]}\n", "field 'text' is not a string"},
				 {"{\"text\": \"\xff\"}\n", "line 1"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct mapped_file m = in_memory("a.jsonl", cases[i].text, strlen(cases[i].text));
		refused(&m, "text", RV_E_INVALID, cases[i].why);
	}
	const struct mapped_file csv = in_memory("a.csv.gz", "\x1f\x8b\x08", 3);
	refused(&csv, "text", RV_E_CORRUPT, "too early");
	const struct mapped_file plain = in_memory("a.txt.gz", "plain text", 10);
	refused(&plain, "text", RV_E_CORRUPT,
			"a.txt.gz: its name says that it is compressed (.gz), its first bytes do not");
	static const uint8_t nothing[1000];
	uint8_t packed[200];
	const size_t n = gzip_of(nothing, sizeof nothing, packed, sizeof packed);
	const struct mapped_file zeros = in_memory("z.gz", packed, n);
	refused(&zeros, "text", RV_E_UNSUPPORTED, "z.gz, unpacked: training data z: 1000 of 1000 bytes are NUL");
}

/* JSON that is one value would be trained on as if it were text. */
static void json_is_read_by_lines_or_refused(void **state) {
	static const char objects[] = "{\"text\": \"a\"}\n{\"text\": \"b\"}\n";
	static const char *const values[] = {"[\"a\", \"b\"]", "{\n  \"text\": \"a\"\n}\n", "\"a\"\n"};
	struct mapped_file m = in_memory("a.json", objects, sizeof objects - 1);
	enum documents_kind kind;
	(void)state;
	assert_ok(documents_recognise(&m, &kind, &et));
	assert_int_equal(kind, DOCUMENTS_LINES);
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		m = in_memory("a.json", values[i], strlen(values[i]));
		refused(&m, "text", RV_E_UNSUPPORTED, "not one object a line");
	}
}

struct seen {
	size_t documents;
	uint64_t bytes; /* of the files, at the end */
};

/* Returns the bytes of the files before the blocks that follow these. */
static uint64_t assert_progress(const struct block_source *s, uint64_t begin, uint64_t n, uint64_t before) {
	for (uint64_t i = begin; i <= begin + n; i++) {
		uint64_t bytes = s->bytes_before(s->ctx, i);
		assert_true(bytes >= before);
		assert_int_equal(bytes > 0, i > 0);
		before = bytes;
	}
	return before;
}

/* Adds up the blocks of a source, from `begin` on. */
static size_t read_blocks(const struct block_source *s, uint64_t begin, uint64_t at_once, char *out, size_t cap,
						  struct seen *seen) {
	size_t n_out = 0;
	uint64_t n = 1;
	uint8_t buffer[TEXT_BLOCK_BUFFER_BYTES];
	*seen = (struct seen){.bytes = s->bytes_before(s->ctx, 0)};
	assert_int_equal(seen->bytes, 0);
	for (; n > 0; begin += n) {
		assert_ok(s->load(s->ctx, begin, at_once, &n, &et));
		seen->bytes = assert_progress(s, begin, n, seen->bytes);
		for (uint64_t i = 0; i < n; i++) {
			struct text_block block;
			assert_ok(s->get(s->ctx, begin + i, buffer, &block, &et));
			assert_in_range(block.n, 0, TEXT_BLOCK_BYTES + 16);
			assert_true(n_out + block.n <= cap);
			memcpy(out + n_out, block.at, block.n);
			n_out += block.n;
			seen->documents += block.n_begins;
		}
	}
	return n_out;
}

static void blocks_hold_the_documents_in_order(void **state) {
	(void)state;
	char path[128], *text = malloc(MANY * 2100), *got = malloc(MANY * 2100);
	size_t n_text = 0;
	struct seen seen;
	assert_true(text != NULL && got != NULL);
	snprintf(path, sizeof path, "%s/many.jsonl", dir);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	for (int i = 0; i < MANY; i++) { /* one is longer than a block */
		size_t from = n_text;
		for (int w = 0; w < (i == 7 ? 60000 : i % 300); w++)
			n_text += (size_t)sprintf(text + n_text, "word%d ", w % 10);
		fprintf(f, "{\"text\": \"%.*s\"}\n", (int)(n_text - from), text + from);
	}
	assert_int_equal(fclose(f), 0);
	struct data_files files;
	struct document_blocks *b;
	assert_ok(data_files_init(&files, path, NULL, &et));
	size_t first = 0;
	for (int pass = 0; pass < 3; pass++) { /* all at once; few at a time; from the second block on */
		assert_ok(document_blocks_open(&files, "text", &b, &et));
		const struct block_source s = document_blocks_source(b);
		size_t n = read_blocks(&s, pass == 2 ? 1 : 0, pass == 1 ? 2 : 1000, got, MANY * 2100, &seen);
		first = pass == 2 ? n_text - n : 0;
		assert_int_equal(n + first, n_text);
		assert_memory_equal(got, text + first, n);
		assert_true(pass == 2 ? seen.documents < MANY : seen.documents == MANY - MANY / 300);
		assert_int_equal(seen.bytes, files.bytes);
		document_blocks_close(b);
	}
	assert_in_range(first, 1, TEXT_BLOCK_BYTES);
	data_files_release(&files);
	free(text);
	free(got);
}

static void a_license_is_found_in_a_readme(void **state) {
	(void)state;
	static const struct {
		const char *text, *license;
	} cases[] = {
		{"---\nlicense: odc-by\n---\n", "odc-by"},
		{"---\r\nlanguage:\r\n- en\r\nlicense: \"cc-by-4.0\"\r\n---\r\n", "cc-by-4.0"},
		{"---\nlicense:\n- mit\n- other\n---\n", "mit"},
		{"---\nlicense:\n  - 'apache-2.0'\ntags: x\n---\n", "apache-2.0"},
		{"---\nlicense:\ntags:\n- mit\n---\n", ""},
		{"---\ntags: x\n---\nlicense: mit\n", ""},
		{"# Title\nlicense: mit\n", ""},
		{"---\nlicense: mit", "mit"},
		{"---", ""},
		{"", ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char license[HUB_LICENSE_BYTES];
		hub_license(cases[i].text, strlen(cases[i].text), license);
		assert_string_equal(license, cases[i].license);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parquet_of_others_is_read),           cmocka_unit_test(columns_are_found_by_their_path),
		cmocka_unit_test(damaged_parquet_is_refused),          cmocka_unit_test(lines_are_read_packed_or_not),
		cmocka_unit_test(a_line_that_cannot_be_read_is_named), cmocka_unit_test(json_is_read_by_lines_or_refused),
		cmocka_unit_test(blocks_hold_the_documents_in_order),  cmocka_unit_test(a_license_is_found_in_a_readme),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
