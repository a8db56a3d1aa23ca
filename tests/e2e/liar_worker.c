/* liar_worker.c: the real worker, which changes a byte in each piece of text that it gives to other
 * members, by the linker (--wrap). It exists for tests only. */
#include "worker/text/text_donor.h"

#include <string.h>

bool __real_text_donor_send(struct text_donor *d, int64_t now_us, uint32_t member, struct peers_message *out);
bool __wrap_text_donor_send(struct text_donor *d, int64_t now_us, uint32_t member, struct peers_message *out);

bool __wrap_text_donor_send(struct text_donor *d, int64_t now_us, uint32_t member, struct peers_message *out) {
	static uint8_t changed[NET_MAX_SLICE_BYTES];
	if (!__real_text_donor_send(d, now_us, member, out))
		return false;
	if (out->header.type == FRAME_PIECE) {
		memcpy(changed, out->part[1], out->part_bytes[1]);
		changed[0] ^= 1;
		out->part[1] = changed;
	}
	return true;
}
