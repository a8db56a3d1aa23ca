/* duo.c: see duo.h. */
#include "tests/kernels/conformance/duo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const uint64_t fnv_start = 0xcbf29ce484222325u, fnv_prime = 0x100000001b3u;
static const double bf16_store = 0x1p-8; /* half a unit in the last place is 2^-9 of the value, at most */

void duo_init(struct duo *d, struct backend *ref, struct backend *be) {
	*d = (struct duo){.ref = ref, .be = be, .repetitions = 1, .seed = 1, .digest = fnv_start};
}

void duo_begin(struct duo *d, enum duo_mode mode, int repetitions) {
	d->mode = mode;
	d->repetitions = mode == DUO_TIME ? repetitions : 1;
	d->found = (struct duo_findings){.worst = 0};
}

void duo_shape(struct duo *d, const char *format, ...) {
	va_list args;
	va_start(args, format);
	(void)vsnprintf(d->found.shape, sizeof d->found.shape, format, args);
	va_end(args);
}

/* ---- both sides ---- */

static double now_ms(void) {
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void add_time(struct duo_findings *f, const char *part, double ms) {
	int i = 0;
	while (i < f->n_parts && strcmp(f->parts[i].name, part) != 0)
		i++;
	assert_true(i < DUO_PARTS_MAX);
	if (i == f->n_parts)
		f->parts[f->n_parts++] = (struct duo_part){.name = part};
	f->parts[i].calls++;
	f->parts[i].ms += ms;
}

static void enter_backend(struct duo_side *s) {
	s->be = s->duo->be;
	s->left--;
	s->be->ops->sync(s->be);
	s->began_ms = now_ms();
}

struct duo_side duo_first(struct duo *d, const char *part) {
	struct duo_side s = {.duo = d, .be = d->ref, .part = part, .left = d->repetitions};
	if (d->mode == DUO_TIME)
		enter_backend(&s);
	return s;
}

void duo_next(struct duo_side *s) {
	if (s->be == s->duo->ref) {
		enter_backend(s);
		return;
	}
	s->be->ops->sync(s->be);
	add_time(&s->duo->found, s->part, now_ms() - s->began_ms);
	if (s->left > 0)
		enter_backend(s);
	else
		s->be = NULL;
}

/* ---- arrays ---- */

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

/* ---- comparing ---- */

static double rms_of(const float *x, size_t n) {
	double squares = 0;
	size_t finite = 0;
	for (size_t i = 0; i < n; i++)
		if (isfinite(x[i])) {
			squares += (double)x[i] * (double)x[i];
			finite++;
		}
	return finite ? sqrt(squares / (double)finite) : 0;
}

/* Returns error / limit; NaN must meet NaN. */
static double ratio_of(float got, float want, double limit) {
	if (isnan(want) && isnan(got))
		return 0;
	double error = fabs((double)got - (double)want);
	if (error == 0)
		return 0;
	return error / limit < DUO_INFINITE ? error / limit : DUO_INFINITE;
}

static void note(struct duo *d, double ratio, const char *name, size_t at, size_t n, float got, float want) {
	d->found.differences += ratio > 1;
	if (ratio <= d->found.worst)
		return;
	d->found.worst = ratio;
	(void)snprintf(d->found.worst_at, sizeof d->found.worst_at, "%s[%zu of %zu]: got %.9g, want %.9g", name, at, n,
				   (double)got, (double)want);
}

/* The same law as check_close. */
static void compare(struct duo *d, const char *name, const float *got, const float *want, size_t n, double tolerance) {
	if (d->mode == DUO_TEST) {
		check_close(name, got, want, n, tolerance);
		return;
	}
	double rms = rms_of(want, n);
	for (size_t i = 0; i < n; i++)
		note(d, ratio_of(got[i], want[i], tolerance * (fabs((double)want[i]) + rms)), name, i, n, got[i], want[i]);
}

void duo_check(struct duo *d, int array, double tolerance) {
	const struct duo_array *a = &d->arrays[array];
	if (d->mode == DUO_TIME)
		return;
	float *got = from_device(d, a);
	compare(d, a->name, got, a->host, a->n, tolerance + (narrow(d, a) ? bf16_store : 0));
	free(got);
	d->checked++;
}

void duo_check_host(struct duo *d, const char *name, const float *got, const float *want, size_t n, double tolerance) {
	if (d->mode == DUO_TIME)
		return;
	compare(d, name, got, want, n, tolerance);
	duo_digest(d, got, n * sizeof *got);
	d->checked++;
}

void duo_check_same(struct duo *d, const char *name, const float *got, const float *want, size_t n) {
	if (d->mode == DUO_TEST)
		check_same(name, got, want, n);
	for (size_t i = 0; d->mode == DUO_MEASURE && i < n; i++)
		note(d, memcmp(got + i, want + i, sizeof *got) != 0 ? DUO_INFINITE : 0, name, i, n, got[i], want[i]);
}

void duo_expect(struct duo *d, bool met, const char *what) {
	if (met || d->mode == DUO_TIME)
		return;
	if (d->mode == DUO_TEST)
		fail_msg("not so: %s", what);
	d->found.differences++;
	d->found.worst = DUO_INFINITE;
	(void)snprintf(d->found.worst_at, sizeof d->found.worst_at, "not so: %s", what);
}

float *duo_download(struct duo *d, int array) {
	return from_device(d, &d->arrays[array]);
}

void duo_follow(struct duo *d, int array) {
	struct duo_array *a = &d->arrays[array];
	if (d->mode == DUO_TIME)
		return;
	if (narrow(d, a))
		round_to_bf16(a->host, a->n);
	to_device(d, a);
}

double duo_tolerance(const struct duo *d, double fp32, double bf16) {
	return duo_is_bf16(d) ? bf16 : fp32;
}
