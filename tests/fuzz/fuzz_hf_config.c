/* fuzz_hf_config.c: a config.json from anywhere. What is accepted is a configuration within its bounds, and comes back
 * as it is when it is written and read again. */
#include "worker/train/hf_config.h"
#include "worker/train/model.h"

#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void check_round_trip(const struct run_config *c) {
	static char before[16384], after[16384];
	const struct model_ops *family;
	struct run_config again;
	struct rv_errtext et = {0};
	RV_ASSERT(model_family_find(c->model, &family, NULL) == RV_OK);
	json_t *root = family->config_to_hf(c);
	char *text = root ? json_dumps(root, 0) : NULL;
	RV_ASSERT(text);
	run_config_defaults(&again);
	RV_ASSERT(hf_config_parse("again", text, strlen(text), &again, &et) == RV_OK);
	RV_ASSERT(rv_options_print(run_config_options, c, before, sizeof before) < sizeof before);
	RV_ASSERT(rv_options_print(run_config_options, &again, after, sizeof after) < sizeof after);
	RV_ASSERT(strcmp(before, after) == 0);
	free(text);
	json_decref(root);
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
