/* fuzz_hf_config.c: a config.json from anywhere. What is accepted is a configuration within its
 * bounds; written, read and written again it is the same. */
#include "train/files/hf_config.h"
#include "train/model/model.h"

#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void check_round_trip(const struct run_config *c) {
	const struct model_ops *family = model_family(c);
	struct run_config again;
	struct rv_errtext et = {0};
	json_t *written = family->config_to_hf(c);
	char *text = written ? json_dumps(written, 0) : NULL;
	RV_ASSERT(text);
	run_config_defaults(&again);
	RV_ASSERT(hf_config_parse("again", text, strlen(text), &again, &et) == RV_OK);
	json_t *written_again = family->config_to_hf(&again);
	RV_ASSERT(json_equal(written, written_again));
	free(text);
	json_decref(written);
	json_decref(written_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct run_config c;
	struct rv_errtext et = {0};
	run_config_defaults(&c);
	if (hf_config_parse("config.json", (const char *)data, size, &c, &et) == RV_OK)
		check_round_trip(&c);
	else
		RV_ASSERT(et.text[0]);
	return 0;
}
