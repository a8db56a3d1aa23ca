/* test_worker_state_packing.c: pieces come back as they were, and nothing else passes. */
#include "tests/common/check.h"
#include "worker/state/state_packing.h"

#include <string.h>

#include <zstd.h>

enum { BYTES = 100000 };

static struct state_packer *packer;
static uint8_t piece[BYTES], stored[BYTES + 1000], back[BYTES];
static struct rv_errtext et;

static int setup(void **state) {
	(void)state;
	packer = state_packer_new();
	assert_non_null(packer);
	et = (struct rv_errtext){0};
	return 0;
}

static int teardown(void **state) {
	(void)state;
	state_packer_free(packer);
	return 0;
}

/* Bits that no compressor can do anything with. */
static void fill_noise(void) {
	uint64_t x = 88172645463325252u;
	for (size_t i = 0; i < BYTES; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		piece[i] = (uint8_t)(x >> 32);
	}
}

static void fill_skewed(void) {
	fill_noise();
	for (size_t i = 0; i < BYTES; i++)
		piece[i] = (uint8_t)(piece[i] & (piece[i] >> 4));
}

static void what_gains_is_packed_and_comes_back(void **state) {
	(void)state;
	fill_skewed();
	struct state_stored what = state_pack(packer, piece, BYTES, stored);
	assert_int_equal(what.encoding, STATE_ZSTD);
	assert_true(what.bytes < BYTES);
	assert_int_equal(state_unpack(packer, &what, stored, back, BYTES, &et), RV_OK);
	assert_memory_equal(back, piece, BYTES);
}

static void noise_stays_as_it_is(void **state) {
	(void)state;
	fill_noise();
	struct state_stored what = state_pack(packer, piece, BYTES, stored);
	assert_int_equal(what.encoding, STATE_RAW);
	assert_int_equal(what.bytes, BYTES);
	assert_int_equal(state_unpack(packer, &what, piece, back, BYTES, &et), RV_OK);
	assert_memory_equal(back, piece, BYTES);
}

static void refused(const struct state_stored *what, size_t bytes, const char *why) {
	assert_int_equal(state_unpack(packer, what, stored, back, bytes, &et), RV_E_CORRUPT);
	if (!strstr(et.text, why))
		fail_msg("%s", et.text);
}

static void a_frame_that_claims_another_size_is_refused(void **state) {
	(void)state;
	fill_skewed();
	struct state_stored what = state_pack(packer, piece, BYTES, stored);
	refused(&what, BYTES - 1, "claims 100000 bytes, must be 99999");
	memset(piece, 0, BYTES); /* a bomb: few bytes that claim many */
	what = state_pack(packer, piece, BYTES, stored);
	assert_true(what.bytes < 100);
	refused(&what, 5000, "claims 100000 bytes, must be 5000");
}

static void a_frame_that_does_not_say_its_size_is_refused(void **state) {
	(void)state;
	ZSTD_CCtx *c = ZSTD_createCCtx();
	fill_skewed();
	ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, 0);
	size_t n = ZSTD_compress2(c, stored, sizeof stored, piece, BYTES);
	ZSTD_freeCCtx(c);
	assert_false(ZSTD_isError(n));
	refused(&(struct state_stored){STATE_ZSTD, (uint32_t)n}, BYTES, "no zstd frame that states its size");
}

static void more_or_less_than_a_frame_is_refused(void **state) {
	(void)state;
	fill_skewed();
	struct state_stored what = state_pack(packer, piece, BYTES, stored);
	stored[what.bytes] = 0;
	refused(&(struct state_stored){STATE_ZSTD, what.bytes + 1}, BYTES, "not one whole zstd frame");
	refused(&(struct state_stored){STATE_ZSTD, what.bytes - 1}, BYTES, "not one whole zstd frame");
	refused(&(struct state_stored){STATE_ZSTD, BYTES}, BYTES, "cannot be stored in 100000");
	refused(&(struct state_stored){STATE_ZSTD, 0}, BYTES, "cannot be stored in 0");
	refused(&(struct state_stored){STATE_RAW, BYTES - 1}, BYTES, "cannot be stored");
	refused(&(struct state_stored){(enum state_encoding)7, 10}, BYTES, "encoding 7");
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(what_gains_is_packed_and_comes_back),         T(noise_stays_as_it_is),
		T(a_frame_that_claims_another_size_is_refused), T(a_frame_that_does_not_say_its_size_is_refused),
		T(more_or_less_than_a_frame_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
