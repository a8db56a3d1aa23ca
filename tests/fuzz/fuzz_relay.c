/* fuzz_relay.c: frames of a relay's station, and preambles. Encodings are canonical: what is
 * accepted encodes back to the same bytes. */
#include "net/relay/wire.h"

#include "base/assert.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void try_preamble(const uint8_t *data, size_t size) {
	uint8_t again[RELAY_PREAMBLE_BYTES];
	struct relay_preamble m;
	if (size < RELAY_PREAMBLE_BYTES || relay_preamble_decode(data, &m, NULL) != RV_OK)
		return;
	relay_preamble_encode(&m, again);
	RV_ASSERT(memcmp(again, data, sizeof again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	uint8_t again[NET_MAX_RELAY_FRAME_BYTES];
	struct relay_frame m;
	struct rv_errtext et = {0};
	size_t used = 0;
	try_preamble(data, size);
	while (relay_frame_decode(data, size, &m, &used, &et) == RV_OK && used > 0) {
		RV_ASSERT(used <= size && used <= sizeof again);
		RV_ASSERT(relay_frame_encode(&m, again) == used && memcmp(again, data, used) == 0);
		RV_ASSERT(relay_refusal_name(m.type)[0] != 0 && relay_refusal_text(m.type)[0] != 0);
		data += used;
		size -= used;
	}
	return 0;
}
