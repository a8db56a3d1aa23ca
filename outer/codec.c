/* codec.c: the registry of codecs. */
#include "outer/codec.h"

#define CODEC(name, facts, of_mean) &codec_##name,
const struct codec *const codec_registry[] = {
#include "base/codecs.def"
	NULL};
#undef CODEC
