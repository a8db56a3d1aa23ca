/* The chain's hashes, computed independently (Python's hashlib) from its definition. */
#include "base/chain.h"

#include "base/hex.h"
#include "tests/common/check.h"

#include <string.h>

static void links_match_the_definition(void **state) {
	(void)state;
	struct rv_hash run, digest;
	char hex[2 * RV_HASH_BYTES + 1];
	for (int i = 0; i < RV_HASH_BYTES; i++)
		run.b[i] = (uint8_t)i;
	memset(digest.b, 7, sizeof digest.b);
	struct rv_hash start = rv_chain_start(&run);
	rv_hex_encode(start.b, RV_HASH_BYTES, hex);
	assert_string_equal(hex, "8f78c2fc6bfdeb45d61cb2181d0e4650392f24a091cbf657682830220c286698");
	struct rv_hash next = rv_chain_next(&start, &digest);
	rv_hex_encode(next.b, RV_HASH_BYTES, hex);
	assert_string_equal(hex, "00c9d767cda1e42b13525b0432e209918a3d3cb548da3ee3438f9261ea276f37");
}

static void a_run_is_its_id_and_its_configuration(void **state) {
	(void)state;
	uint8_t id[RV_RUN_ID_BYTES] = {0};
	char hex[2 * RV_HASH_BYTES + 1];
	struct rv_hash nameless = rv_run_hash(id, "rounds = 3\n");
	rv_hex_encode(nameless.b, RV_HASH_BYTES, hex);
	assert_string_equal(hex, "a5b3a60c5842004316a99d3230efbc43abe4f25dbd7d82f3fdd34957f87d0cec");
	id[15] = 1;
	struct rv_hash named = rv_run_hash(id, "rounds = 3\n"), other = rv_run_hash(id, "rounds = 4\n");
	assert_false(rv_hash_equal(&nameless, &named));
	assert_false(rv_hash_equal(&named, &other));
}

static void order_matters(void **state) {
	(void)state;
	struct rv_hash a = rv_hash_of("a", 1), b = rv_hash_of("b", 1), run = rv_hash_of("run", 3);
	struct rv_hash s = rv_chain_start(&run);
	struct rv_hash sa = rv_chain_next(&s, &a), sb = rv_chain_next(&s, &b);
	struct rv_hash sab = rv_chain_next(&sa, &b), sba = rv_chain_next(&sb, &a);
	assert_false(rv_hash_equal(&sab, &sba));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_match_the_definition),
		cmocka_unit_test(a_run_is_its_id_and_its_configuration),
		cmocka_unit_test(order_matters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
