/* codec.c: the registry of codecs. */
#include "outer/codec.h"

#define CODEC(name, facts, of_mean) &codec_##name,
const struct codec *const codec_registry[] = {
#include "base/codecs.def"
	NULL};
#undef CODEC

const struct codec *codec_by_id(uint8_t id) {
	for (int i = 0; codec_registry[i]; i++)
		if (codec_registry[i]->id == id)
			return codec_registry[i];
	return NULL;
}

bool codec_is_coarser(const struct codec *coarse, const struct codec *fine) {
	enum { LONG = 1 << 16 };
	return coarse->encoded_bytes(coarse, LONG) < fine->encoded_bytes(fine, LONG);
}
