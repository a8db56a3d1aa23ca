/* fuzz_run_config.c: a run's configuration, as a coordinator hands it to a worker. What is accepted
 * prints as text that parses back to the same bytes, and no field can make a size overflow. */
#include "base/run_config.h"

#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char text[4097], canonical[16384];
	struct run_config c, back;
	struct rv_errtext et = {0};
	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	memset(&c, 0, sizeof c);
	memset(&back, 0, sizeof back);
	if (run_config_parse(&c, "fuzz", text, &et) != RV_OK) {
		RV_ASSERT(et.text[0]);
		return 0;
	}
	RV_ASSERT(c.n_embd % c.n_head == 0);
	RV_ASSERT(rv_options_print(run_config_options, &c, canonical, sizeof canonical) < sizeof canonical);
	RV_ASSERT(run_config_parse(&back, "canonical", canonical, NULL) == RV_OK);
	RV_ASSERT(memcmp(&c, &back, sizeof c) == 0);
	return 0;
}
