/* fuzz_options.c: config text. What is accepted prints as canonical text that parses back to the
 * same struct. */
#include "base/options.h"

#include "tests/base/demo_options.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char text[4097], canonical[8192];
	struct demo d, back;
	struct rv_errtext et = {0};
	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	memset(&d, 0, sizeof d);
	memset(&back, 0, sizeof back);
	rv_options_defaults(demo_options, &d);
	rv_options_defaults(demo_options, &back);
	if (rv_options_parse_text(demo_options, &d, "fuzz", text, &et) != RV_OK) {
		RV_ASSERT(et.text[0]);
		return 0;
	}
	RV_ASSERT(rv_options_print(demo_options, &d, canonical, sizeof canonical) < sizeof canonical);
	RV_ASSERT(rv_options_parse_text(demo_options, &back, "canonical", canonical, NULL) == RV_OK);
	RV_ASSERT(memcmp(&d, &back, sizeof d) == 0);
	return 0;
}
