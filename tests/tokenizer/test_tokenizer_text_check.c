/* What is not text is refused by name: by its ending, by its first bytes when the ending lies, by
 * its control bytes. */
#include "tests/common/scratch.h"
#include "tests/tokenizer/tokenizer_fixture.h"

#include "base/file.h"
#include "train/text/tokenizer/data_files.h"
#include "train/text/tokenizer/text_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BIG = 200000 };

static char dir[64];

static int setup(void **state) {
	(void)state;
	scratch_make(dir, sizeof dir);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	scratch_remove(dir);
	return 0;
}

static void write_file(const char *name, const void *bytes, size_t n, char path[128]) {
	snprintf(path, 128, "%s/%s", dir, name);
	assert_ok(rv_file_write_atomic(path, bytes, n, 0600, &et));
}

/* As every program opens its text: the answer is text_check's, and names the file. */
static enum rv_err open_as_text(const char *name, const void *bytes, size_t n, struct rv_errtext *fault) {
	char path[128];
	struct data_files d;
	bool tokens = true;
	write_file(name, bytes, n, path);
	assert_ok(data_files_init(&d, path, NULL, &et));
	enum rv_err e = data_files_are_tokens(&d, &tokens, fault);
	data_files_release(&d);
	if (e != RV_OK && !strstr(fault->text, name))
		fail_msg("%s is not named in: %s", name, fault->text);
	return e;
}

static void is_refused(const char *name, const void *bytes, size_t n, const char *kind, const char *way) {
	struct rv_errtext et = {0};
	assert_int_equal(open_as_text(name, bytes, n, &et), RV_E_UNSUPPORTED);
	if (!strstr(et.text, kind) || !strstr(et.text, way))
		fail_msg("%s: '%s' and '%s' are expected in: %s", name, kind, way, et.text);
}

static void is_accepted(const char *name, const void *bytes, size_t n) {
	assert_ok(open_as_text(name, bytes, n, &et));
}

static const char prose[] = "It was a bright cold day in April, and the clocks were striking thirteen.\n";

static void endings_are_refused_whatever_is_inside(void **state) {
	(void)state;
	static const struct {
		const char *name, *kind, *way;
	} cases[] = {{"a.txt.gz", "gzip", "rivulet tokenize"},
				 {"a.zst", "zstd", "rivulet tokenize"},
				 {"a.xz", "xz", "xz -dk"},
				 {"a.bz2", "bzip2", "bzip2 -dk"},
				 {"a.lz4", "lz4", "lz4 -dk"},
				 {"a.zip", "zip", "unzip"},
				 {"a.7z", "7z", "7z x"},
				 {"a.tar", "tar", "tar -xf"},
				 {"a.jsonl", "JSON Lines", "rivulet tokenize"},
				 {"a.json", "not one object a line", "load_dataset"},
				 {"a.csv", "table", "read_csv"},
				 {"a.TSV", "table", "read_csv"},
				 {"a.parquet", "Parquet", "rivulet tokenize"},
				 {"a.arrow", "Arrow", "to_parquet"},
				 {"a.pdf", "PDF", "pdftotext"},
				 {"a.npy", "numpy", "tofile"},
				 {"a.safetensors", "safetensors", "--init"},
				 {"a.gguf", "GGUF", "inspect"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		is_refused(cases[i].name, prose, sizeof prose - 1, cases[i].kind, cases[i].way);
}

static void first_bytes_are_refused_whatever_the_ending(void **state) {
	(void)state;
	static const struct {
		size_t at;
		const char *magic;
		size_t n;
		const char *kind;
	} cases[] = {{0, "\x1f\x8b\x08", 3, "gzip"},
				 {0, "\x28\xb5\x2f\xfd", 4, "zstd"},
				 {0,
				  "\xfd"
				  "7zXZ\0",
				  6, "xz"},
				 {0, "BZh91AY&SY", 10, "bzip2"},
				 {0, "\x04\x22\x4d\x18", 4, "lz4"},
				 {0, "PK\x03\x04", 4, "zip"},
				 {0, "7z\xbc\xaf\x27\x1c", 6, "7z"},
				 {257, "ustar", 5, "tar"},
				 {0, "PAR1", 4, "Parquet"},
				 {0, "ARROW1", 6, "Arrow"},
				 {0, "%PDF-1.7", 8, "PDF"},
				 {0, "\x93NUMPY", 6, "numpy"},
				 {0, "GGUF", 4, "GGUF"},
				 {0, "\x10\0\0\0\0\0\0\0{\"a\":1}", 15, "safetensors"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char bytes[512];
		memset(bytes, 'x', sizeof bytes);
		memcpy(bytes + cases[i].at, cases[i].magic, cases[i].n);
		is_refused("lies.txt", bytes, sizeof bytes, cases[i].kind, "try: ");
	}
}

static void lines_of_json_are_refused_and_code_is_not(void **state) {
	(void)state;
	static const char lines[] = "{\"text\": \"one\"}\r\n{\"text\": \"two\"}\n";
	static const char code[] = "{\"key\": 1,\n \"other\": 2}\n";
	static const char brace[] = "{\"";
	is_refused("lines.txt", lines, sizeof lines - 1, "JSON Lines", "rivulet tokenize");
	is_accepted("code.txt", code, sizeof code - 1);
	is_refused("code.json", code, sizeof code - 1, "not one object a line", "FILE.txt");
	is_accepted("brace.txt", brace, sizeof brace - 1);
}

static void garbage_is_refused_wherever_it_begins(void **state) {
	(void)state;
	static uint8_t bytes[BIG];
	uint32_t x = 1;
	for (size_t i = 0; i < BIG; i++)
		bytes[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
	memcpy(bytes, "\x89PNG", 4);
	is_refused("picture", bytes, BIG, "control characters", "tofile");
	for (size_t i = 0; i < BIG / 3; i++)
		bytes[i] = (uint8_t)prose[i % (sizeof prose - 1)];
	is_refused("half.txt", bytes, BIG, "control characters", "tofile");
	for (size_t i = 0; i < BIG; i++)
		bytes[i] = i % 2 ? 0 : 'a';
	is_refused("wide.txt", bytes, BIG, "NUL", "iconv");
}

/* Any language, Latin-1, old terminals' text, a log with a few NULs; and tokens, which look like
 * garbage. */
static void text_and_tokens_are_accepted(void **state) {
	(void)state;
	static uint8_t bytes[BIG];
	static const char terminal[] = "\033[1mN\bNA\bAM\bME\bE\033[0m\r\n\tls - list\f\n";
	for (size_t i = 0; i < BIG; i++)
		bytes[i] = (uint8_t)(i % 100 == 0 ? '\n' : 0xa0 + i % 96);
	is_accepted("latin1", bytes, BIG);
	is_accepted("man", terminal, sizeof terminal - 1);
	is_accepted("short", "a", 1);
	for (size_t i = 0; i < BIG; i++)
		bytes[i] = i % 100 == 0 ? 0 : (uint8_t)prose[i % (sizeof prose - 1)];
	is_accepted("log", bytes, BIG);
	for (size_t i = 0; i < BIG; i++)
		bytes[i] = i % 2 ? 0 : (uint8_t)i;
	memcpy(bytes, "PK\x03\x04", 4);
	is_accepted("tokens.bin", bytes, BIG);
	memset(bytes, 0, 1024);
	memcpy(bytes, (const uint32_t[]){20240520, 1, (BIG - 1024) / 2}, 12);
	is_accepted("llm_c", bytes, BIG);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(endings_are_refused_whatever_is_inside),
		T(first_bytes_are_refused_whatever_the_ending),
		T(lines_of_json_are_refused_and_code_is_not),
		T(garbage_is_refused_wherever_it_begins),
		T(text_and_tokens_are_accepted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
