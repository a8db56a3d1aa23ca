/* As many members as the coordinator keeps in memory, all of them strangers' keys: what people and
 * programs ask of it still answers. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/store/sqlite.h"
#include "tests/common/check.h"
#include "tests/coordinator/coordinator_process.h"

enum { OUT_BYTES = 16 << 20 };

/* A key that has only joined, by a name as long as names may be. */
static void give_member(const void *ctx, int i, struct core_record *out) {
	(void)ctx;
	*out = (struct core_record){.id = (uint64_t)i + 1, .type = CORE_MEMBER, .doc_seq = 1, .member = (uint32_t)i};
	memcpy(out->key, &out->id, sizeof out->id);
	memset(out->name, '"', sizeof out->name - 1);
}

static int set_up(void **state) {
	struct coordinator *c = calloc(1, sizeof *c);
	struct store *store;
	char path[E2E_PATH + 16];
	*state = c;
	coordinator_make(c, "rounds = 10\nmin-workers = 2\n");
	assert_int_equal(coordinator_stop(c), 0);
	(void)snprintf(path, sizeof path, "%s/store.db", c->dir);
	assert_ok(sqlite_store_open(path, &store, &et));
	assert_ok(store->ops->append_many(store, NET_MAX_HERE, give_member, NULL, &et));
	store->ops->close(store);
	coordinator_start(c);
	return 0;
}

static int tear_down(void **state) {
	struct coordinator *c = *state;
	coordinator_remove(c);
	free(c);
	return 0;
}

static json_t *status(const struct coordinator *c, char *out) {
	assert_int_equal(
		coordinator_command(out, OUT_BYTES, (const char *const[]){"status", "--dir", c->dir, "--json", NULL}), 0);
	json_t *o = json_loads(out, 0, NULL);
	assert_non_null(o);
	return o;
}

static void the_operator_sees_and_bans_each_of_them(void **state) {
	struct coordinator *c = *state;
	char *out = calloc(1, OUT_BYTES);
	assert_non_null(out);
	json_t *o = status(c, out);
	const json_t *members = json_object_get(o, "members"), *m;
	size_t i;
	assert_int_equal(json_array_size(members), NET_MAX_HERE);
	json_array_foreach(members, i, m) assert_int_equal(json_integer_value(json_object_get(m, "member")), i);
	assert_null(json_object_get(o, "members_next"));
	assert_non_null(json_object_get(o, "history"));
	json_decref(o);
	assert_int_equal(coordinator_command(out, OUT_BYTES, (const char *const[]){"ban", "--dir", c->dir, "4095", NULL}),
					 0);
	assert_string_equal(out, "member 4095 is banned\n");
	o = status(c, out);
	assert_true(json_is_true(json_object_get(json_array_get(json_object_get(o, "members"), 4095), "banned")));
	json_decref(o);
	free(out);
}

/* One page of the operator's status holds what it says, whatever its size. */
static void its_pages_are_bounded(void **state) {
	struct coordinator *c = *state;
	struct client k;
	client_init_operator(&k, c);
	assert_int_equal(client_ask(&k, "/v1/admin/status?from=x", NULL, 0)->status, 400);
	const struct answer *a = client_ask(&k, "/v1/admin/status?from=4000", NULL, 0);
	assert_int_equal(a->status, 200);
	json_t *o = json_loadb((const char *)a->body, a->n, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(o, "members")), NET_MAX_HERE - 4000);
	assert_true(json_is_null(json_object_get(o, "members_next")));
	assert_null(json_object_get(o, "run"));
	json_decref(o);
	client_release(&k);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_operator_sees_and_bans_each_of_them),
		cmocka_unit_test(its_pages_are_bounded),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
