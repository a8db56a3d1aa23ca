/* Fragments cover the vector once, layer by layer, and each is a vector of its own. */
#include "outer/codec.h"
#include "outer/fragments.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 256 };

/* Every chunk belongs to one fragment, chunks of a fragment ascend, and their lengths are those of
 * its own chunking. */
static void check_cover(size_t n, uint32_t count, const struct fragment_layers *layers) {
	struct chunking whole = chunking_of(n, CHUNK);
	struct fragments f;
	assert_int_equal(fragments_make(&whole, count, layers, &f, NULL), RV_OK);
	uint8_t *seen = calloc(whole.n_chunks, 1);
	assert_non_null(seen);
	size_t total = 0;
	for (uint32_t fragment = 0; fragment < count; fragment++) {
		struct chunking c = fragment_chunks(&f, &whole, fragment);
		assert_true(c.n_chunks > 0);
		assert_int_equal(c.n_chunks, chunking_of(c.n, CHUNK).n_chunks);
		total += c.n;
		for (uint32_t i = 0; i < c.n_chunks; i++) {
			uint32_t chunk = fragment_chunk(&f, fragment, i);
			assert_int_equal(seen[chunk]++, 0);
			assert_true(i == 0 || chunk > fragment_chunk(&f, fragment, i - 1));
			assert_int_equal(chunking_len(&c, i), chunking_len(&whole, chunk));
		}
	}
	assert_int_equal(total, n);
	free(seen);
}

static void test_cover(void **state) {
	(void)state;
	const struct fragment_layers layers = {.begin = 1000, .layer_elems = 1024, .n = 6};
	for (size_t n = 7144; n < 9000; n += 129)
		for (uint32_t count = 1; count <= 7; count++)
			check_cover(n, count, &layers);
}

static void test_layers_are_strided(void **state) {
	(void)state;
	const struct fragment_layers layers = {.begin = 512, .layer_elems = 512, .n = 4};
	struct chunking whole = chunking_of(512 + 4 * 512 + 100, CHUNK);
	struct fragments f;
	assert_int_equal(fragments_make(&whole, 3, &layers, &f, NULL), RV_OK);
	const uint32_t even[] = {2, 3, 6, 7}, odd[] = {4, 5, 8, 9}, rest[] = {0, 1, 10};
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(fragment_chunk(&f, 0, i), even[i]);
		assert_int_equal(fragment_chunk(&f, 1, i), odd[i]);
	}
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(fragment_chunk(&f, 2, i), rest[i]);
	for (uint64_t round = 0; round < 9; round++)
		assert_int_equal(fragment_of_round(&f, round), round % 3);
}

static void test_zero_is_the_whole_vector(void **state) {
	(void)state;
	const struct fragments none = {0};
	struct chunking whole = chunking_of(1000, CHUNK), same = fragment_chunks(&none, &whole, 0);
	assert_memory_equal(&whole, &same, sizeof whole);
	assert_int_equal(fragment_chunk(&none, 0, 3), 3);
	assert_int_equal(fragment_of_round(&none, 7), 0);
}

static void test_empty_fragments_are_refused(void **state) {
	(void)state;
	struct rv_errtext et = {0};
	struct fragments f;
	struct chunking whole = chunking_of(4096, CHUNK);
	const struct fragment_layers two = {.begin = 1024, .layer_elems = 1024, .n = 2}, none = {0},
								 tiny = {.begin = 1024, .layer_elems = 64, .n = 8};
	assert_int_equal(fragments_make(&whole, 4, &two, &f, &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "fragment 2 would hold no chunk"));
	assert_int_equal(fragments_make(&whole, 2, &none, &f, &et), RV_E_RANGE);
	assert_int_equal(fragments_make(&whole, 5, &tiny, &f, &et), RV_E_RANGE);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cover),
		cmocka_unit_test(test_layers_are_strided),
		cmocka_unit_test(test_zero_is_the_whole_vector),
		cmocka_unit_test(test_empty_fragments_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
