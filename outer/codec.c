/* codec.c: the registry of codecs. */
#include "outer/codec.h"

#include "outer/registry.h"

#define CODEC(name) &codec_##name,
const struct codec *const codec_registry[] = {
#include "base/codecs.def"
	NULL};
#undef CODEC

static const char *codec_name(int i) {
	return codec_registry[i] ? codec_registry[i]->name : NULL;
}

enum rv_err codec_find(const char *name, const struct codec **out, struct rv_errtext *et) {
	int i;
	RV_TRY(registry_find("codec", codec_name, name, &i, et));
	*out = codec_registry[i];
	return RV_OK;
}
