/* The status of many members is made once a second for all who ask; that of few for each. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/web/status_cache.h"
#include "tests/common/check.h"
#include "tests/common/memory_store.h"

enum { NOW_US = 5000000 };

static struct service *new_service(uint32_t members) {
	static struct identity run;
	static struct memory_store store;
	const uint8_t seed[IDENTITY_SEED_BYTES] = {3};
	struct service *s = NULL;
	identity_of_seed(seed, &run);
	memory_store_init(&store);
	const struct service_config cfg = {
		.serving = &run, .root = run.key, .config = "rounds = 100\n", .store = &store.store};
	assert_ok(service_new(&cfg, 1000000, &s, &et));
	for (uint32_t m = 0; m < members; m++) {
		struct core_record rec = {
			.id = m + 1, .type = CORE_MEMBER, .doc_seq = 1, .member = m, .key = {(uint8_t)(m + 1), (uint8_t)(m >> 7)}};
		assert_ok(service_replay(s, &rec, &et));
	}
	assert_ok(service_load(s, &et));
	memory_store_release(&store);
	return s;
}

static double up_s(const char *text) {
	json_t *o = json_loads(text, 0, NULL);
	const double up = json_real_value(json_object_get(o, "up_s"));
	json_decref(o);
	return up;
}

static void test_of_few_it_is_always_new(void **state) {
	(void)state;
	struct service *s = new_service(SERVICE_MEMBERS_FEW);
	struct status_cache c = {0};
	assert_true(up_s(status_cache_text(&c, s, NOW_US, false)) == 4);
	assert_true(up_s(status_cache_text(&c, s, NOW_US + 1000, false)) > 4);
	status_cache_release(&c);
	service_free(s);
}

static void test_of_many_it_is_made_once_a_second(void **state) {
	(void)state;
	struct service *s = new_service(SERVICE_MEMBERS_FEW + 1);
	struct status_cache c = {0};
	assert_true(up_s(status_cache_text(&c, s, NOW_US, false)) == 4);
	assert_true(up_s(status_cache_text(&c, s, NOW_US + STATUS_CACHE_US - 1, false)) == 4);
	assert_true(up_s(status_cache_text(&c, s, NOW_US + STATUS_CACHE_US - 1, true)) > 4); /* the operator's */
	assert_true(up_s(status_cache_text(&c, s, NOW_US + STATUS_CACHE_US, false)) == 5);
	json_t *o = json_loads(status_cache_text(&c, s, NOW_US, false), 0, NULL);
	json_t *m = json_array_get(json_object_get(o, "members"), 0);
	assert_null(json_object_get(m, "paths"));
	assert_true(json_is_integer(json_object_get(json_object_get(m, "meets"), "relayed")));
	json_decref(o);
	o = json_loads(status_cache_text(&c, s, NOW_US, true), 0, NULL);
	assert_non_null(json_object_get(json_array_get(json_object_get(o, "members"), 0), "paths"));
	json_decref(o);
	status_cache_release(&c);
	service_free(s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_few_it_is_always_new),
		cmocka_unit_test(test_of_many_it_is_made_once_a_second),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
