/* The status of many members is made once a second for all who ask; that of few at a pace. */
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

static const char *json_at(struct status_cache *c, const struct service *s, int64_t now_us) {
	return status_cache_text(c, s, now_us, STATUS_PAGE_JSON);
}

/* Who looks now and then sees what is now; who asks without pause, what is a moment old. */
static void test_of_few_it_is_new_at_a_pace(void **state) {
	(void)state;
	struct service *s = new_service(SERVICE_MEMBERS_FEW);
	struct status_cache c = {0};
	assert_true(up_s(json_at(&c, s, NOW_US)) == 4);
	for (int i = 1; i < STATUS_CACHE_BURST; i++)
		assert_true(up_s(json_at(&c, s, NOW_US + i * 1000)) > 4 + (i - 0.5) / 1000);
	const double last = up_s(json_at(&c, s, NOW_US + 100000));
	assert_true(last < 4.1 && up_s(json_at(&c, s, NOW_US + 200000)) == last);
	assert_true(up_s(json_at(&c, s, NOW_US + STATUS_CACHE_FEW_US)) == 4 + STATUS_CACHE_FEW_US / 1e6);
	status_cache_release(&c);
	service_free(s);
}

static void test_of_many_it_is_made_once_a_second(void **state) {
	(void)state;
	struct service *s = new_service(SERVICE_MEMBERS_FEW + 1);
	struct status_cache c = {0};
	assert_true(up_s(json_at(&c, s, NOW_US)) == 4);
	assert_true(up_s(json_at(&c, s, NOW_US + STATUS_CACHE_US - 1)) == 4);
	assert_non_null(strstr(status_cache_text(&c, s, NOW_US + STATUS_CACHE_US - 1, STATUS_PAGE_METRICS), "# HELP"));
	assert_true(up_s(json_at(&c, s, NOW_US + STATUS_CACHE_US)) == 5);
	json_t *o = json_loads(json_at(&c, s, NOW_US), 0, NULL);
	json_t *m = json_array_get(json_object_get(o, "members"), 0);
	assert_null(json_object_get(m, "paths"));
	assert_true(json_is_integer(json_object_get(json_object_get(m, "meets"), "relayed")));
	json_decref(o);
	o = service_status_page(s, NOW_US, 0);
	assert_non_null(json_object_get(json_array_get(json_object_get(o, "members"), 0), "paths"));
	json_decref(o);
	status_cache_release(&c);
	service_free(s);
}

/* Of all that may be in memory: `rivulet-worker update --check` takes 16 MiB. */
static void test_of_as_many_as_there_can_be(void **state) {
	(void)state;
	struct service *s = new_service(NET_MAX_HERE);
	struct status_cache c = {0};
	const size_t json = strlen(json_at(&c, s, NOW_US));
	const size_t metrics = strlen(status_cache_text(&c, s, NOW_US, STATUS_PAGE_METRICS));
	print_message("%d members: status %zu bytes, metrics %zu\n", NET_MAX_HERE, json, metrics);
	assert_true(json < 8 << 20 && metrics < 8 << 20);
	uint32_t next = 0;
	size_t seen = 0;
	for (bool more = true; more;) {
		json_t *o = service_status_page(s, NOW_US, next);
		const json_t *members = json_object_get(o, "members"), *last = json_object_get(o, "members_next");
		assert_true(json_array_size(members) <= SERVICE_PAGE_MEMBERS);
		assert_int_equal(json_object_get(o, "run") != NULL, next == 0);
		assert_int_equal(json_integer_value(json_object_get(json_array_get(members, 0), "member")), next);
		seen += json_array_size(members);
		more = json_is_integer(last);
		next = (uint32_t)json_integer_value(last);
		json_decref(o);
	}
	assert_int_equal(seen, NET_MAX_HERE);
	status_cache_release(&c);
	service_free(s);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_few_it_is_new_at_a_pace),
		cmocka_unit_test(test_of_many_it_is_made_once_a_second),
		cmocka_unit_test(test_of_as_many_as_there_can_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
