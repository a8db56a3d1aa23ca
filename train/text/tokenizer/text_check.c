/* text_check.c: a table of kinds, each recognised by an ending of the name or its first bytes (from
 * the formats' specifications); other files by the share of control bytes in a sample. */
#include "train/text/tokenizer/text_check.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum {
	ENDINGS = 4,
	FEW = 16, /* control bytes tolerated in a short text */
	SAMPLE_BYTES = 32768,
	TAR_MAGIC_AT = 257,         /* POSIX ustar */
	MOST_CONTROLS_PERCENT = 5,  /* random bytes: 10 %; text: 0 % */
	MOST_NULS_OF_UTF16 = 20,    /* percent; English in UTF-16: 50 % */
	SAFETENSORS_HEAD_BYTES = 9, /* u64 length of the header, which begins with '{' */
	SAFETENSORS_MAX_HEADER = 100000000
};

struct kind {
	const char *name;
	const char *endings[ENDINGS];
	const char *magic; /* NULL: no fixed first bytes */
	size_t magic_at, magic_bytes;
	const char *way; /* command that makes text of FILE */
};

#define MAGIC(at, text) .magic = (text), .magic_at = (at), .magic_bytes = sizeof(text) - 1

static const struct kind kinds[] = {
	{"gzip-compressed", {".gz", ".tgz"}, MAGIC(0, "\x1f\x8b\x08"), .way = "rivulet tokenize --data FILE"},
	{"zstd-compressed", {".zst", ".zstd"}, MAGIC(0, "\x28\xb5\x2f\xfd"), .way = "rivulet tokenize --data FILE"},
	{"xz-compressed",
	 {".xz"},
	 MAGIC(0, "\xfd"
			  "7zXZ\0"),
	 .way = "xz -dk FILE"},
	{"bzip2-compressed", {".bz2"}, MAGIC(4, "1AY&SY"), .way = "bzip2 -dk FILE"},
	{"lz4-compressed", {".lz4"}, MAGIC(0, "\x04\x22\x4d\x18"), .way = "lz4 -dk FILE"},
	{"a zip archive", {".zip", ".npz", ".docx", ".epub"}, MAGIC(0, "PK\x03\x04"), .way = "unzip FILE"},
	{"a 7z archive", {".7z"}, MAGIC(0, "7z\xbc\xaf\x27\x1c"), .way = "7z x FILE"},
	{"a tar archive", {".tar"}, MAGIC(TAR_MAGIC_AT, "ustar"), .way = "tar -xf FILE"},
	{"JSON Lines", {".jsonl", ".ndjson"}, .way = "rivulet tokenize --data FILE --field text"},
	{"JSON that is not one object a line",
	 {".json"},
	 .way = "python3 -c \"import datasets; datasets.load_dataset('json', data_files='FILE')['train']"
			".to_parquet('FILE.parquet')\", or, as plain text: cp FILE FILE.txt"},
	{"a table",
	 {".csv", ".tsv"},
	 .way = "python3 -c \"import pandas; pandas.read_csv('FILE', sep=None, engine='python').to_json('FILE.jsonl', "
			"orient='records', lines=True)\", then --field COLUMN"},
	{"Parquet", {".parquet"}, MAGIC(0, "PAR1"), .way = "rivulet tokenize --data FILE --field text"},
	{"an Arrow file",
	 {".arrow", ".feather"},
	 MAGIC(0, "ARROW1"),
	 .way = "python3 -c \"import datasets; datasets.Dataset.from_file('FILE').to_parquet('FILE.parquet')\""},
	{"a PDF document", {".pdf"}, MAGIC(0, "%PDF-"), .way = "pdftotext FILE FILE.txt"},
	{"an array of numpy",
	 {".npy"},
	 MAGIC(0, "\x93NUMPY"),
	 .way = "python3 -c \"import numpy; numpy.load('FILE').astype('<u2').tofile('FILE.bin')\" where it holds tokens"},
	{"weights of a model (safetensors)", {".safetensors"}, .way = "--init FILE where a run shall start from it"},
	{"weights of a model (GGUF)", {".gguf"}, MAGIC(0, "GGUF"), .way = "rivulet inspect FILE"},
};

static bool ends_with(const char *path, const char *ending) {
	size_t n = strlen(path), k = strlen(ending);
	return n > k && strcasecmp(path + n - k, ending) == 0;
}

static bool has_ending(const struct kind *k, const char *path) {
	for (int i = 0; i < ENDINGS && k->endings[i]; i++)
		if (ends_with(path, k->endings[i]))
			return true;
	return false;
}

static bool has_magic(const struct kind *k, const uint8_t *begin, size_t n) {
	return k->magic && n >= k->magic_at + k->magic_bytes && memcmp(begin + k->magic_at, k->magic, k->magic_bytes) == 0;
}

static enum rv_err refuse(const char *path, const struct kind *k, const char *by, struct rv_errtext *et) {
	return rv_fail(et, RV_E_UNSUPPORTED,
				   "training data %.160s: %s (by its %s), not text: text files and token shards (.bin) are read here; "
				   "try: %s",
				   path, k->name, by, k->way);
}

static const struct kind *kind_named(const char *ending) {
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (has_ending(&kinds[i], ending))
			return &kinds[i];
	RV_UNREACHABLE("kind of file");
}

static bool is_safetensors(const uint8_t *begin, size_t n) {
	struct rv_reader r = rv_reader_of(begin, n);
	uint64_t header_bytes = rv_read_u64(&r);
	return n >= SAFETENSORS_HEAD_BYTES && header_bytes > 1 && header_bytes < SAFETENSORS_MAX_HEADER && begin[8] == '{';
}

bool text_is_json_lines(const uint8_t *begin, size_t n) {
	const uint8_t *end = memchr(begin, '\n', n);
	size_t first = end ? (size_t)(end - begin) : 0;
	if (!end || first < 3 || memcmp(begin, "{\"", 2) != 0)
		return false;
	while (first > 0 && (begin[first - 1] == '\r' || begin[first - 1] == ' '))
		first--;
	const uint8_t *second = end + 1;
	return begin[first - 1] == '}' && n - (size_t)(second - begin) >= 2 && memcmp(second, "{\"", 2) == 0;
}

/* Reports whether no text has `c`: controls except backspace to carriage return, and escape. */
static bool is_control(uint8_t c) {
	return (c < 0x20 && !(c >= '\b' && c <= '\r') && c != 0x1b) || c == 0x7f;
}

static enum rv_err check_bytes(const char *path, const uint8_t *sample, size_t n, struct rv_errtext *et) {
	size_t controls = 0, nuls = 0;
	for (size_t i = 0; i < n; i++) {
		controls += is_control(sample[i]);
		nuls += sample[i] == 0;
	}
	if (nuls > FEW && nuls * 100 > n * MOST_NULS_OF_UTF16)
		return rv_fail(
			et, RV_E_UNSUPPORTED,
			"training data %.160s: %zu of %zu bytes are NUL: not UTF-8 text. If it is UTF-16: iconv -f UTF-16 "
			"-t UTF-8 FILE > FILE.txt; if these are 16-bit tokens, its name must end in .bin",
			path, nuls, n);
	if (controls > FEW && controls * 100 > n * MOST_CONTROLS_PERCENT)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "training data %.160s: %zu of %zu bytes are control characters: not text. If its bytes shall be "
					   "tokens anyway: python3 -c \"import numpy; numpy.fromfile('FILE', "
					   "'u1').astype('<u2').tofile('FILE.bin')\"",
					   path, controls, n);
	return RV_OK;
}

static enum rv_err check_contents(const char *path, const uint8_t *begin, size_t n, struct rv_errtext *et) {
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (has_magic(&kinds[i], begin, n))
			return refuse(path, &kinds[i], "first bytes", et);
	if (is_safetensors(begin, n))
		return refuse(path, kind_named("x.safetensors"), "first bytes", et);
	if (text_is_json_lines(begin, n))
		return refuse(path, kind_named("x.jsonl"), "first lines", et);
	return check_bytes(path, begin, n, et);
}

static enum rv_err check_name(const char *path, struct rv_errtext *et) {
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (has_ending(&kinds[i], path))
			return refuse(path, &kinds[i], "name", et);
	return RV_OK;
}

enum rv_err text_check_sample(const char *path, const uint8_t *begin, size_t n, struct rv_errtext *et) {
	RV_TRY(check_name(path, et));
	return check_contents(path, begin, n, et);
}

enum rv_err text_check(const struct mapped_file *m, struct rv_errtext *et) {
	uint8_t sample[SAMPLE_BYTES];
	size_t n = m->bytes < sizeof sample ? m->bytes : sizeof sample;
	RV_TRY(check_name(m->path, et));
	RV_TRY(mapped_file_read(m, 0, n, sample, et));
	RV_TRY(check_contents(m->path, sample, n, et));
	RV_TRY(mapped_file_read(m, (m->bytes - n) / 2, n, sample, et));
	return check_bytes(m->path, sample, n, et);
}
