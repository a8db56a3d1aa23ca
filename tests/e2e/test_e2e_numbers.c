/* test_e2e_numbers.c: members whose numbers are beyond what a set of 64 bits holds: the 72 that
 * joined before them never came back. */
#include <string.h>

#include "tests/common/check.h"
#include "tests/coordinator/coordinator_process.h"
#include "tests/e2e/ends.h"

enum { GONE = 72, AT_ONCE = 12, WORKERS = 4 };
static const char config[] = "n-layer = 2\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\ndata-shards = 4\n"
							 "min-workers = 4\nsteps-per-round = 2\nrounds = 3\nsnapshot-every = 2\n" E2E_PATIENT;

static void join_and_go(struct coordinator *c, uint32_t who) {
	struct client k;
	struct invite in;
	struct rv_errtext et = {0};
	static struct join_reply reply;
	assert_int_equal(invite_parse(c->e.links[who % AT_ONCE], &in, &et), RV_OK);
	client_init(&k, c, who, NULL);
	assert_int_equal(client_join(&k, c, &in, &reply), 200);
	assert_int_equal(reply.member, who);
	client_release(&k);
}

/* The round does not wait for those that joined and never reported, and the four end with the bits
 * that the lab has: their shards are those of the numbers 0 to 3, as 72 is a multiple of 4. */
static void four_of_seventy_six_end_in_the_bits_of_the_lab(void **state) {
	static struct coordinator c;
	char chain[65], full[65];
	*state = &c.e;
	coordinator_make_for(&c, config, WORKERS);
	for (uint32_t who = 0; who < GONE; who++) {
		if (who % AT_ONCE == 0)
			e2e_make_links(&c.e, 0, AT_ONCE);
		join_and_go(&c, who);
	}
	e2e_make_links(&c.e, 0, WORKERS);
	e2e_start_workers(&c.e, WORKERS);
	e2e_assert_labs_end(&c.e, WORKERS, chain, full);
	e2e_assert_replayed(&c.e, WORKERS, chain, full);
	json_t *status = e2e_status(&c.e);
	const json_t *members = json_object_get(status, "members");
	assert_int_equal(e2e_int(json_array_get(members, json_array_size(members) - 1), "member"), GONE + WORKERS - 1);
	json_decref(status);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(four_of_seventy_six_end_in_the_bits_of_the_lab, e2e_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
