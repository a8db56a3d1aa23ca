/* duo.c: see duo.h. */
#include "tests/kernels/conformance/duo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t fnv_start = 0xcbf29ce484222325u, fnv_prime = 0x100000001b3u;
static const double bf16_store = 0x1p-8; /* half a unit in the last place is 2^-9 of the value, at most */

void duo_init(struct duo *d, struct backend *ref, struct backend *be) {
	*d = (struct duo){.ref = ref, .be = be, .seed = 1, .digest = fnv_start};
}

void duo_clear(struct duo *d) {
	for (int i = 0; i < d->n_arrays; i++) {
		free(d->arrays[i].host);
		d->be->ops->free(d->be, d->arrays[i].device);
	}
	d->n_arrays = 0;
}

bool duo_is_bf16(const struct duo *d) {
	return d->be->act == DTYPE_BF16;
}

static bool narrow(const struct duo *d, const struct duo_array *a) {
	return a->kind == DUO_ACT && duo_is_bf16(d);
}

static void to_device(struct duo *d, struct duo_array *a) {
	if (!narrow(d, a)) {
		d->be->ops->upload(d->be, a->device, a->host, a->n * sizeof *a->host);
		return;
	}
	uint16_t *words = malloc((a->n ? a->n : 1) * sizeof *words);
	assert_non_null(words);
	for (size_t i = 0; i < a->n; i++) {
		uint32_t bits;
		memcpy(&bits, &a->host[i], sizeof bits);
		words[i] = (uint16_t)(bits >> 16);
	}
	d->be->ops->upload(d->be, a->device, words, a->n * sizeof *words);
	free(words);
}

void duo_digest(struct duo *d, const void *bytes, size_t n) {
	for (size_t i = 0; i < n; i++)
		d->digest = (d->digest ^ ((const uint8_t *)bytes)[i]) * fnv_prime;
}

static float *from_device(struct duo *d, const struct duo_array *a) {
	float *out = zero_floats(a->n);
	if (!narrow(d, a)) {
		d->be->ops->download(d->be, out, a->device, a->n * sizeof *out);
		duo_digest(d, out, a->n * sizeof *out);
		return out;
	}
	uint16_t *words = malloc((a->n ? a->n : 1) * sizeof *words);
	assert_non_null(words);
	d->be->ops->download(d->be, words, a->device, a->n * sizeof *words);
	for (size_t i = 0; i < a->n; i++) {
		uint32_t bits = (uint32_t)words[i] << 16;
		memcpy(&out[i], &bits, sizeof bits);
	}
	duo_digest(d, words, a->n * sizeof *words);
	free(words);
	return out;
}

static int add(struct duo *d, const char *name, enum duo_kind kind, float *host, size_t n) {
	assert_true(d->n_arrays < DUO_ARRAYS_MAX);
	struct duo_array *a = &d->arrays[d->n_arrays];
	*a = (struct duo_array){.name = name, .kind = kind, .n = n, .host = host};
	if (narrow(d, a) || (kind == DUO_WEIGHT && duo_is_bf16(d)))
		round_to_bf16(host, n);
	struct rv_errtext et = {0};
	size_t bytes = n * (narrow(d, a) ? sizeof(uint16_t) : sizeof(float));
	if (d->be->ops->alloc(d->be, bytes, &a->device, &et) != RV_OK)
		fail_msg("%s: %s", name, et.text);
	to_device(d, a);
	return d->n_arrays++;
}

int duo_random(struct duo *d, const char *name, enum duo_kind kind, size_t n, float amplitude) {
	return add(d, name, kind, random_floats(n, d->seed++, amplitude), n);
}

int duo_given(struct duo *d, const char *name, enum duo_kind kind, const float *values, size_t n) {
	return add(d, name, kind, copy_floats(values, n), n);
}

static void *pointer(struct duo_side s, int array, bool activations) {
	if (array < 0)
		return NULL;
	const struct duo_array *a = &s.duo->arrays[array];
	assert_true(array < s.duo->n_arrays && (a->kind == DUO_ACT) == activations);
	return s.be == s.duo->ref ? (void *)a->host : a->device;
}

act_t *duo_act(struct duo_side s, int array) {
	return pointer(s, array, true);
}

float *duo_f32(struct duo_side s, int array) {
	return pointer(s, array, false);
}

void duo_check(struct duo *d, int array, double tolerance) {
	const struct duo_array *a = &d->arrays[array];
	float *got = from_device(d, a);
	check_close(a->name, got, a->host, a->n, tolerance + (narrow(d, a) ? bf16_store : 0));
	free(got);
	d->checked++;
}

float *duo_download(struct duo *d, int array) {
	return from_device(d, &d->arrays[array]);
}

void duo_follow(struct duo *d, int array) {
	struct duo_array *a = &d->arrays[array];
	if (narrow(d, a))
		round_to_bf16(a->host, a->n);
	to_device(d, a);
}

double duo_tolerance(const struct duo *d, double fp32, double bf16) {
	return duo_is_bf16(d) ? bf16 : fp32;
}
