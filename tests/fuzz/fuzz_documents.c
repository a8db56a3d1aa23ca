/* fuzz_documents.c: files of text from anywhere, as `rivulet tokenize` reads them: the first byte
 * chooses the name. Each part of a document lies within what was read. */
#include "train/text/documents/documents.h"

#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static char *const names[] = {"a.parquet", "a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.txt.gz", "a.txt.zst"};
	struct rv_errtext et = {0};
	struct documents *d = NULL;
	struct document_part part = {0};
	uint64_t sum = 0;
	if (size < 2)
		return 0;
	const struct mapped_file file = {
		.path = names[data[0] % (sizeof names / sizeof names[0])], .at = data + 1, .bytes = size - 1, .fd = -1};
	enum rv_err e = documents_open(&file, "text", &d, &et);
	for (int n = 0; e == RV_OK && n < 10000; n++) {
		e = documents_next(d, &part, &et);
		if (e == RV_OK && part.at == NULL)
			break;
		for (size_t i = 0; e == RV_OK && i < part.n; i += 61)
			sum += part.at[i];
	}
	RV_ASSERT(e == RV_OK || et.text[0]);
	RV_ASSERT(sum < UINT64_MAX);
	documents_close(d);
	return 0;
}
