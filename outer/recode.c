/* recode.c: see recode.h. */
#include "outer/recode.h"

enum rv_err recode_chunk(const struct codec *from, const struct codec *to, const uint8_t *in, size_t n, uint8_t *out,
						 float *values, struct rv_errtext *et) {
	RV_TRY(from->decode(from, in, n, values, et));
	return to->encode(to, values, n, out, et);
}

enum rv_err recode_vector(const struct chunking *c, const struct codec *from, const struct codec *to, const uint8_t *in,
						  uint8_t *out, float *values, struct rv_errtext *et) {
	for (uint32_t i = 0; i < c->n_chunks; i++) {
		const uint8_t *chunk = in + chunking_offset_bytes(c, from, i);
		RV_TRY(recode_chunk(from, to, chunk, chunking_len(c, i), out + chunking_offset_bytes(c, to, i), values, et));
	}
	return RV_OK;
}
