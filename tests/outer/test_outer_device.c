/* test_outer_device.c: the outer path of the CUDA backend, its kernels run by the emulator, against
 * outer/: every byte of the encoding and every bit of the outer step, at awkward sizes and with
 * awkward values; streams as late as they may run. */

#include "base/rng.h"
#include "kernels/cuda/cuda_backend.h"
#include "outer/codec.h"
#include "outer/global.h"
#include "outer/optimizer.h"
#include "tests/common/check.h"
#include "tests/emu/runtime.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t sizes[] = {1, 31, 255, 256, 257, 511, 512, 513, 1024, 2304, 3333};
static const size_t chunks[] = {256, 512, 1024};
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* The codec under test: every test runs for each. */
struct format {
	const char *name;
	enum outer_code code;
	const struct codec *codec;
	int code_max;
};
static const struct format formats[] = {
	{"int8", OUTER_INT8, &codec_int8, 127},
	{"int16", OUTER_INT16, &codec_int16, 32767},
};
static const struct format *format;

static struct backend *open_backend(void) {
	struct backend *be = NULL;
	const struct backend_options opt = {.threads = 1};
	assert_int_equal(cuda_ops.open(&opt, &be, NULL), RV_OK);
	return be;
}

static float *to_device(struct backend *be, const float *host, size_t n) {
	void *p;
	assert_int_equal(be->ops->alloc(be, n * sizeof *host, &p, NULL), RV_OK);
	be->ops->upload(be, p, host, n * sizeof *host);
	return p;
}

static void *host_bytes(size_t n) {
	void *p = calloc(n ? n : 1, 1);
	assert_non_null(p);
	return p;
}

/* A largest magnitude whose quotient by the largest code lies exactly between two scales. */
static float scale_tie(struct rv_rng *r) {
	for (;;) {
		uint32_t bits = 0x3f800040u | (uint32_t)rv_rng_below(r, 1 << 16) << 7;
		float scale, most;
		memcpy(&scale, &bits, sizeof scale);
		most = (float)format->code_max * scale;
		if (most / (float)format->code_max == scale)
			return most;
	}
}

/* Value i of a kind of block. */
static float awkward(int kind, size_t i, struct rv_rng *r) {
	float u = (float)(2 * rv_rng_double(r) - 1);
	switch (kind) {
	case 0:
		return u;
	case 1:
		return 0;
	case 2:
		return u * 0x1p-140f; /* denormals */
	case 3:
		return u * (float)format->code_max * 0x1p-126f; /* around the least scale */
	case 4:
		return u * 0x1.fffffep126f; /* differences near the largest finite */
	case 5:
		return (i & 1 ? -1.0f : 1.0f) * ((float)format->code_max + 0.5f); /* ties */
	case 6:
		return i % 256 == 17 ? 1e20f * u : u; /* one that outweighs its block */
	case 10:
		return i % 256 == 0 ? FLT_MAX : u; /* the largest scale */
	case 9:
		return i % 256 == 0 ? scale_tie(r) : u;
	default:
		return (float)((int)rv_rng_below(r, 2 * (uint64_t)format->code_max + 1) - format->code_max) * 0x1p-20f;
	}
}

struct vectors {
	size_t n;
	float *theta, *local, *residual;
};

static struct vectors make_vectors(size_t n, int kind) {
	struct vectors v = {n, host_bytes(n * 4), host_bytes(n * 4), host_bytes(n * 4)};
	struct rv_rng r = rv_rng_of(n, (uint64_t)kind);
	for (size_t i = 0; i < n; i++) {
		v.theta[i] = awkward(kind == 8 ? (int)(i / 256 % 8) : kind, i, &r);
		v.local[i] = kind == 5 || kind >= 9 ? 0 : awkward(kind == 8 ? (int)(i / 256 % 8) : kind, i + 1, &r);
		v.residual[i] = v.theta[i] * 0x1p-7f;
	}
	return v;
}

static void free_vectors(struct vectors *v) {
	free(v->theta);
	free(v->local);
	free(v->residual);
}

static void check_bytes(const uint8_t *got, const uint8_t *want, size_t n, size_t elems, int kind) {
	for (size_t i = 0; i < n; i++)
		if (got[i] != want[i])
			fail_msg("%zu values of kind %d: byte %zu of %zu is %02x, must be %02x", elems, kind, i, n, got[i],
					 want[i]);
}

static struct chunking cut(size_t n, size_t chunk_elems) {
	return chunking_of(n, chunk_elems);
}

static void encode_one(struct backend *be, size_t n, size_t chunk_elems, int kind) {
	struct vectors v = make_vectors(n, kind);
	const struct chunking c = cut(n, chunk_elems);
	const struct outer_vector shape = {format->code, n, chunk_elems, NULL};
	size_t bytes = chunking_total_bytes(&c, format->codec), bad;
	uint8_t *want = host_bytes(bytes), *got = host_bytes(bytes);
	for (uint32_t i = 0; i < c.n_chunks; i++)
		assert_int_equal(format->codec->encode_delta(format->codec, v.theta + i * chunk_elems,
													 v.local + i * chunk_elems, chunking_len(&c, i),
													 want + chunking_offset_bytes(&c, format->codec, i), NULL),
						 RV_OK);
	float *local = to_device(be, v.local, n);
	assert_int_equal(cuda_outer_ops.prepare(be, &shape, NULL), RV_OK);
	assert_int_equal(cuda_outer_ops.encode(be, &shape, v.theta, local, NULL, got, &bad), RV_OK);
	check_bytes(got, want, bytes, n, kind);
	be->ops->free(be, local);
	free(want);
	free(got);
	free_vectors(&v);
}

static void test_every_byte_of_the_encoding(void **state) {
	(void)state;
	struct backend *be = open_backend();
	for (size_t s = 0; s < COUNT(sizes); s++)
		for (size_t c = 0; c < COUNT(chunks); c++)
			for (int kind = 0; kind <= 10; kind++)
				encode_one(be, sizes[s], chunks[c], kind);
	backend_close(be);
}

/* x = theta - local + residual is encoded; the new residual is what the encoding lost of x. */
static void test_error_feedback(void **state) {
	(void)state;
	struct backend *be = open_backend();
	const size_t n = 1500, chunk_elems = 512;
	const struct outer_vector shape = {format->code, n, chunk_elems, NULL};
	const struct chunking c = cut(n, chunk_elems);
	size_t bytes = chunking_total_bytes(&c, format->codec), bad;
	for (int kind = 0; kind <= 9; kind++) {
		struct vectors v = make_vectors(n, kind);
		float *x = host_bytes(n * 4), *decoded = host_bytes(n * 4), *lost = host_bytes(n * 4);
		uint8_t *want = host_bytes(bytes), *got = host_bytes(bytes);
		for (size_t i = 0; i < n; i++) {
			float d = v.theta[i] - v.local[i];
			x[i] = d + v.residual[i];
		}
		for (uint32_t i = 0; i < c.n_chunks; i++) {
			size_t at = i * chunk_elems, len = chunking_len(&c, i);
			uint8_t *to = want + chunking_offset_bytes(&c, format->codec, i);
			assert_int_equal(format->codec->encode(format->codec, x + at, len, to, NULL), RV_OK);
			assert_int_equal(format->codec->decode(format->codec, to, len, decoded + at, NULL), RV_OK);
		}
		float *local = to_device(be, v.local, n), *residual = to_device(be, v.residual, n);
		assert_int_equal(cuda_outer_ops.prepare(be, &shape, NULL), RV_OK);
		assert_int_equal(cuda_outer_ops.encode(be, &shape, v.theta, local, residual, got, &bad), RV_OK);
		check_bytes(got, want, bytes, n, kind);
		be->ops->download(be, lost, residual, n * 4);
		for (size_t i = 0; i < n; i++)
			assert_memory_equal(&lost[i], &(float){x[i] - decoded[i]}, 4);
		be->ops->free(be, local);
		be->ops->free(be, residual);
		free(x);
		free(decoded);
		free(lost);
		free(want);
		free(got);
		free_vectors(&v);
	}
	backend_close(be);
}

static void test_what_is_not_finite_is_refused(void **state) {
	(void)state;
	struct backend *be = open_backend();
	static const float bads[] = {NAN, INFINITY, -INFINITY};
	const size_t n = 1300;
	const struct outer_vector shape = {format->code, n, 512, NULL};
	const struct chunking c = cut(n, 512);
	uint8_t *out = host_bytes(chunking_total_bytes(&c, format->codec));
	static const size_t places[] = {0, 255, 256, 700, 1299};
	for (size_t p = 0; p < COUNT(places); p++)
		for (size_t b = 0; b < COUNT(bads); b++) {
			struct vectors v = make_vectors(n, 0);
			size_t bad = 0;
			v.local[places[p]] = bads[b];
			v.local[n - 1] = NAN; /* the first one is named */
			float *local = to_device(be, v.local, n);
			assert_int_equal(cuda_outer_ops.prepare(be, &shape, NULL), RV_OK);
			assert_int_equal(cuda_outer_ops.encode(be, &shape, v.theta, local, NULL, out, &bad), RV_E_RANGE);
			assert_int_equal(bad, places[p]);
			be->ops->free(be, local);
			free_vectors(&v);
		}
	free(out);
	backend_close(be);
}

static void step_one(struct backend *be, size_t n, size_t chunk_elems, int kind, const struct outer_optimizer *o) {
	struct vectors v = make_vectors(n, kind);
	const struct outer_params params = {.lr = 0.7f, .momentum = 0.9f};
	const struct chunking c = cut(n, chunk_elems);
	const struct outer_vector shape = {format->code, n, chunk_elems, NULL};
	float *delta = host_bytes(n * 4), *theta = host_bytes(n * 4), *momentum = host_bytes(n * 4),
		  *other = host_bytes(n * 4);
	uint8_t *reduced = host_bytes(chunking_total_bytes(&c, format->codec));
	memcpy(theta, v.theta, n * 4);
	memcpy(momentum, v.residual, n * 4);
	memcpy(other, v.residual, n * 4);
	for (uint32_t i = 0; i < c.n_chunks; i++) {
		size_t at = i * chunk_elems, len = chunking_len(&c, i);
		uint8_t *bytes = reduced + chunking_offset_bytes(&c, format->codec, i);
		assert_int_equal(format->codec->encode(format->codec, v.residual + at, len, bytes, NULL), RV_OK);
		assert_int_equal(format->codec->decode(format->codec, bytes, len, delta + at, NULL), RV_OK);
	}
	o->step(v.theta, &momentum, delta, n, &params);
	const bool nesterov = o == &outer_nesterov;
	const struct outer_step step = {nesterov ? OUTER_STEP_NESTEROV : OUTER_STEP_SGD,
									o == &outer_average ? 1 : params.lr, params.momentum};
	float *local = to_device(be, v.local, n);
	assert_int_equal(cuda_outer_ops.prepare(be, &shape, NULL), RV_OK);
	cuda_outer_ops.step(be, &shape, reduced, theta, nesterov ? other : NULL, local, &step);
	check_bytes((uint8_t *)theta, (uint8_t *)v.theta, n * 4, n, kind);
	check_bytes((uint8_t *)other, (uint8_t *)momentum, n * 4, n, kind);
	be->ops->download(be, delta, local, n * 4);
	check_bytes((uint8_t *)delta, (uint8_t *)v.theta, n * 4, n, kind);
	be->ops->free(be, local);
	free(delta);
	free(theta);
	free(momentum);
	free(other);
	free(reduced);
	free_vectors(&v);
}

static void test_every_bit_of_the_outer_step(void **state) {
	(void)state;
	const struct outer_optimizer *const optimizers[] = {&outer_nesterov, &outer_sgd, &outer_average};
	struct backend *be = open_backend();
	for (size_t o = 0; o < COUNT(optimizers); o++)
		for (size_t s = 0; s < COUNT(sizes); s++)
			for (int kind = 0; kind <= 8; kind += 2)
				if (kind != 4) /* there theta overflows, on both sides alike */
					step_one(be, sizes[s], 512, kind, optimizers[o]);
	backend_close(be);
}

static int choose(void **state) {
	format = *state;
	return 0;
}

static int lazy_streams(void **state) {
	(void)state;
	emu_configure(&(struct emu_options){EMU_RANDOM, EMU_LAZY, 3});
	return 0;
}

static int run(const char *streams, CMFixtureFunction prepare) {
	int failed = 0;
	for (size_t i = 0; i < COUNT(formats); i++) {
		char name[32];
		void *state = (void *)(uintptr_t)&formats[i];
#define TEST(test) cmocka_unit_test_prestate_setup_teardown(test, choose, NULL, state)
		const struct CMUnitTest tests[] = {
			TEST(test_every_byte_of_the_encoding),
			TEST(test_error_feedback),
			TEST(test_what_is_not_finite_is_refused),
			TEST(test_every_bit_of_the_outer_step),
		};
		(void)snprintf(name, sizeof name, "%s, %s", formats[i].name, streams);
		failed += cmocka_run_group_tests_name(name, tests, prepare, NULL);
	}
	return failed;
}

int main(void) {
	return run("eager", NULL) + run("lazy", lazy_streams);
}
