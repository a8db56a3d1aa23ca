/* How a vector is cut: the parts cover it, offsets agree with sizes, and the default is within its
 * promise. */
#include "outer/global.h"
#include "tests/common/check.h"
#include "tests/outer/vectors.h"

static void check_cover(size_t n, size_t elems) {
	struct chunking c = chunking_of(n, elems);
	for (int k = 0; codec_registry[k]; k++) {
		size_t values = 0, bytes = 0;
		for (uint32_t i = 0; i < c.n_chunks; i++) {
			assert_int_equal(chunking_offset_bytes(&c, codec_registry[k], i), bytes);
			assert_int_equal(values, i * elems);
			size_t len = chunking_len(&c, i);
			assert_true(len > 0 && (len == elems || i == c.n_chunks - 1));
			values += len;
			bytes += codec_registry[k]->encoded_bytes(codec_registry[k], len);
		}
		assert_int_equal(values, n);
		assert_int_equal(chunking_total_bytes(&c, codec_registry[k]), bytes);
	}
}

static void test_cover(void **state) {
	(void)state;
	const size_t elems[] = {256, 512, 4096, 65536};
	for (size_t e = 0; e < COUNT_OF(elems); e++) {
		for (size_t s = 0; s < COUNT_OF(awkward_sizes); s++)
			check_cover(awkward_sizes[s], elems[e]);
		check_cover(elems[e] * 3, elems[e]);
		check_cover(elems[e] * 3 + 1, elems[e]);
		check_cover(1000003, elems[e]);
	}
	check_cover(0, 256);
}

static void test_default(void **state) {
	(void)state;
	for (size_t n = 1; n < (size_t)1 << 34; n += n / 7 + 1) {
		size_t elems = chunking_default_elems(n);
		assert_true(elems % 256 == 0 && elems >= 256 && elems <= 65536);
		uint32_t chunks = chunking_of(n, elems).n_chunks;
		if (n >= 32768 && n <= (size_t)256 * 65536)
			assert_true(chunks >= 64 && chunks <= 256);
		if (n > (size_t)256 * 65536)
			assert_int_equal(elems, 65536);
	}
}

/* At a size and a number of fragments at which chunks are not limited otherwise, each fragment has
 * enough for 64 owners. */
static void test_fragments(void **state) {
	(void)state;
	for (size_t n = 1; n < (size_t)1 << 34; n += n / 7 + 1)
		for (size_t fragments = 1; fragments <= 32; fragments *= 2) {
			size_t elems = chunking_fragment_elems(n, fragments);
			assert_true(elems % 256 == 0 && elems <= chunking_default_elems(n));
			assert_true(elems >= 4096 || elems == chunking_default_elems(n));
			if (fragments == 1 && n >= (size_t)1 << 20)
				assert_int_equal(elems, chunking_default_elems(n));
			if (n / fragments >= (size_t)64 * 4096)
				assert_true(n / fragments / elems >= 63);
		}
	assert_int_equal(chunking_fragment_elems(8400000, 4), 16640); /* 126 chunks; 32 of 65,536 */
}

/* What is given stays, and so does a run of one fragment, whose text is as it was. */
static void test_new_runs_have_chunks_for_their_fragments(void **state) {
	(void)state;
	struct run_config run;
	run_config_defaults(&run);
	run.n_layer = 5;
	run.n_embd = 256;
	global_resolve_chunks(&run);
	assert_int_equal(run.chunk_elems, 0);
	run.fragments = 4;
	global_resolve_chunks(&run);
	assert_true(run.chunk_elems > 0 && run.chunk_elems < 16384);
	run.chunk_elems = 65536;
	global_resolve_chunks(&run);
	assert_int_equal(run.chunk_elems, 65536);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cover),
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_new_runs_have_chunks_for_their_fragments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
