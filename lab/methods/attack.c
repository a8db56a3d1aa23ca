/* attack.c: see attack.h. */
#include "lab/methods/attack.h"

#include "base/assert.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum rv_err attack_parse(const char *text, struct lab_attack *out, struct rv_errtext *et) {
	static const struct rv_option values[] = {
		{"scale", RV_OPT_DOUBLE, offsetof(struct lab_attack, value), 0, "1", -1e6, 1e6, NULL, NULL, NULL},
		{"noise", RV_OPT_DOUBLE, offsetof(struct lab_attack, value), 0, "1", 0, 1e6, NULL, NULL, NULL},
		{.name = NULL}};
	const size_t n = strcspn(text, "=");
	char name[16];
	*out = (struct lab_attack){.kind = LAB_ATTACK_NONE, .value = 1};
	if (text[0] == '\0')
		return RV_OK;
	if (text[n] == '\0' || n >= sizeof name)
		return rv_fail(et, RV_E_INVALID, "attack = %.80s: must be scale=NUMBER or noise=NUMBER", text);
	memcpy(name, text, n);
	name[n] = '\0';
	out->kind = strcmp(name, "noise") == 0 ? LAB_ATTACK_NOISE : LAB_ATTACK_SCALE;
	const enum rv_err e = rv_options_set(values, out, name, text + n + 1, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "attack");
}

static void fill_noise(float *x, size_t n, double factor, struct rv_rng *rng) {
	double norm2 = 0, sum = 0;
	for (size_t i = 0; i < n; i++)
		norm2 += (double)x[i] * (double)x[i];
	for (size_t i = 0; i < n; i++) {
		const double z = rv_rng_normal(rng);
		sum += z * z;
		x[i] = (float)z;
	}
	const double scale = factor * sqrt(norm2 / sum);
	for (size_t i = 0; i < n; i++)
		x[i] = (float)((double)x[i] * scale);
}

static void corrupt(const struct lab_attack *a, float *x, size_t n, struct rv_rng *rng) {
	if (a->kind == LAB_ATTACK_NOISE)
		fill_noise(x, n, a->value, rng);
	for (size_t i = 0; a->kind == LAB_ATTACK_SCALE && i < n; i++)
		x[i] = (float)((double)x[i] * a->value);
}

static enum rv_err corrupt_chunks(struct lab_run *r, int i, float *x, struct rv_errtext *et) {
	/* "attacked": no other user of the seed draws from this stream */
	static const uint64_t stream = 0x61747461636b6564;
	const struct global_config *g = &r->global.cfg;
	const struct codec *c = global_sent(g);
	const struct chunking chunks = global_round_chunks(g, r->global.round);
	struct rv_rng rng = rv_rng_of((uint64_t)r->cfg.run.seed, stream + (uint64_t)i);
	rng.counter = r->global.round << 32;
	for (uint32_t k = 0; k < chunks.n_chunks; k++) {
		uint8_t *at = r->participants[i].encoded + chunking_offset_bytes(&chunks, c, k);
		const size_t n = chunking_len(&chunks, k);
		RV_TRY(c->decode(c, at, n, x, et));
		corrupt(&r->cfg.attack, x, n, &rng);
		const enum rv_err e = c->encode(c, x, n, at, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "attack of worker %d", i);
	}
	return RV_OK;
}

enum rv_err attack_contribution(struct lab_run *r, int i, struct rv_errtext *et) {
	const struct lab_attack *a = &r->cfg.attack;
	RV_ASSERT(a->workers >= 0 && a->workers <= r->cfg.workers);
	if (a->kind == LAB_ATTACK_NONE || i < r->cfg.workers - a->workers)
		return RV_OK;
	float *x = malloc(r->global.cfg.chunks.chunk_elems * sizeof *x);
	if (!x)
		return rv_fail(et, RV_E_NOMEM, "no memory for a chunk of an attack");
	const enum rv_err e = corrupt_chunks(r, i, x, et);
	free(x);
	return e;
}
