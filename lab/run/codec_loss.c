/* codec_loss.c: chunk by chunk, sums in double. */
#include "lab/run/codec_loss.h"

#include <math.h>
#include <stdlib.h>

struct sums {
	double delta, decoded, product, difference; /* sums of squares, and of delta times decoded */
};

static void add_chunk(const float *theta, const float *local, const float *decoded, size_t n, struct sums *s) {
	for (size_t i = 0; i < n; i++) {
		double d = (double)theta[i] - (double)local[i], q = (double)decoded[i];
		s->delta += d * d;
		s->decoded += q * q;
		s->product += d * q;
		s->difference += (d - q) * (d - q);
	}
}

static enum rv_err add_all(const struct global_state *g, const float *local, const uint8_t *encoded, float *decoded,
						   struct sums *s, struct rv_errtext *et) {
	const struct chunking c = global_round_chunks(&g->cfg, g->round);
	const struct codec *codec = global_sent(&g->cfg);
	for (uint32_t i = 0; i < c.n_chunks; i++) {
		size_t at = global_round_chunk_at(&g->cfg, g->round, i), n = chunking_len(&c, i);
		RV_TRY(codec->decode(codec, encoded + chunking_offset_bytes(&c, codec, i), n, decoded, et));
		add_chunk(g->theta + at, local + at, decoded, n, s);
	}
	return RV_OK;
}

enum rv_err codec_loss_measure(const struct global_state *g, const float *theta_local, const uint8_t *encoded,
							   struct codec_loss *out, struct rv_errtext *et) {
	struct sums s = {0};
	float *decoded = malloc(g->cfg.chunks.chunk_elems * sizeof *decoded);
	*out = (struct codec_loss){0};
	if (!decoded)
		return rv_fail(et, RV_E_NOMEM, "no memory to decode a chunk of %zu values", g->cfg.chunks.chunk_elems);
	enum rv_err e = add_all(g, theta_local, encoded, decoded, &s, et);
	free(decoded);
	if (e != RV_OK || !(s.delta > 0))
		return e;
	out->error = sqrt(s.difference / s.delta);
	out->cosine = s.decoded > 0 ? s.product / sqrt(s.delta * s.decoded) : 0;
	return RV_OK;
}
