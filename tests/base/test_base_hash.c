/* BLAKE2b-256 against RFC 7693 (Python's hashlib), incremental against one-shot, domains. */
#include "base/hash.h"

#include "base/hex.h"
#include "tests/common/check.h"

#include <string.h>

static void check(const struct rv_hash *h, const char *want) {
	char hex[2 * RV_HASH_BYTES + 1];
	rv_hex_encode(h->b, RV_HASH_BYTES, hex);
	assert_string_equal(hex, want);
}

static void known_answers(void **state) {
	(void)state;
	struct rv_hash h = rv_hash_of(NULL, 0);
	check(&h, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
	h = rv_hash_of("abc", 3);
	check(&h, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

static void domain_and_numbers_are_bytes(void **state) {
	(void)state;
	uint8_t x[1000];
	memset(x, 'x', sizeof x);
	struct rv_hash h;
	struct rv_hasher s = rv_hasher_of("rivulet");
	rv_hash_u64(&s, 0x0102030405060708);
	rv_hash_update(&s, x, sizeof x);
	h = rv_hash_final(&s);
	check(&h, "b92d8bfe549b31a096ed0cb1ce2c9cb00592081e5b9caf1afa4813c4a2afa5f7");
}

static void pieces_give_the_same_as_the_whole(void **state) {
	(void)state;
	uint8_t data[1023];
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7);
	static const size_t pieces[] = {1, 3, 7, 17, 33, 127, 128, 129, 1023};
	struct rv_hash whole = rv_hash_of(data, sizeof data);
	for (size_t k = 0; k < sizeof pieces / sizeof pieces[0]; k++) {
		struct rv_hasher s;
		struct rv_hash h;
		rv_hash_init(&s);
		for (size_t at = 0; at < sizeof data; at += pieces[k])
			rv_hash_update(&s, data + at, pieces[k] < sizeof data - at ? pieces[k] : sizeof data - at);
		h = rv_hash_final(&s);
		assert_true(rv_hash_equal(&h, &whole));
	}
}

static void equality_looks_at_every_byte(void **state) {
	(void)state;
	struct rv_hash a = {{0}};
	assert_true(rv_hash_is_zero(&a));
	for (int i = 0; i < RV_HASH_BYTES; i++) {
		struct rv_hash b = {{0}};
		b.b[i] = 1;
		assert_false(rv_hash_equal(&a, &b));
		assert_false(rv_hash_is_zero(&b));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(domain_and_numbers_are_bytes),
		cmocka_unit_test(pieces_give_the_same_as_the_whole),
		cmocka_unit_test(equality_looks_at_every_byte),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
