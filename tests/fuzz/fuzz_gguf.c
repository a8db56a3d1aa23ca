/* fuzz_gguf.c: the header of a GGUF file from anywhere, as `rivulet inspect` reads it. What is
 * accepted can be shown. */
#include "lab/inspect/inspect.h"

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct rv_errtext et = {0};
	json_t *facts = json_object();
	RV_ASSERT(facts);
	if (inspect_gguf_header(data, size, facts, &et) == RV_OK) {
		char *text = json_dumps(facts, JSON_COMPACT);
		RV_ASSERT(text);
		free(text);
	} else {
		RV_ASSERT(et.text[0]);
	}
	json_decref(facts);
	return 0;
}
