/* test_worker_round_signed.c: a worker takes a roster only if each participant has signed the root
 * that it names; it checks each signature once, and keeps two that differ. */
#include "round_script.h"
#include "tests/common/check.h"

#include <string.h>

enum { BOOT = 77 }; /* of round_driver_start */

static int checked;

static void sign(void *ctx, const struct seal_scope *scope, const struct rv_hash *root, struct seal *out) {
	(void)ctx;
	struct rv_hasher h = rv_hasher_of("test");
	rv_hash_update(&h, scope->roster.b, RV_HASH_BYTES);
	rv_hash_u64(&h, scope->round | (uint64_t)scope->first << 32);
	rv_hash_update(&h, root->b, RV_HASH_BYTES);
	const struct rv_hash sum = rv_hash_final(&h);
	*out = (struct seal){.root = *root};
	memcpy(out->signature, sum.b, RV_HASH_BYTES);
}

static bool verify(void *ctx, const uint8_t key[NET_KEY_BYTES], const struct seal_scope *scope,
				   const struct seal *seal) {
	struct seal want;
	(void)key;
	checked++;
	sign(ctx, scope, &seal->root, &want);
	return memcmp(want.signature, seal->signature, sizeof want.signature) == 0;
}

static int setup(void **state) {
	round_driver_setup(state);
	const struct round_config cfg = {.n_chunks = {FIXTURE_CHUNKS}, .seals = {.verify = verify}};
	round_driver_start(*state, cfg, 0, 0);
	make_ready(*state, 0);
	checked = 0;
	return 0;
}

static void name_root(struct document *d, int i, int flavour) {
	struct member_ref *m = &d->members[i];
	const struct contribution_of of = {.term = d->term, .round = d->round, .boot = m->boot, .codec = m->codec};
	const struct seal_scope scope = seal_scope_of_contribution(d->run_id, &of);
	const struct rv_hash root = merkle_leaf((uint32_t)(100 * flavour + i), NULL, 0);
	sign(NULL, &scope, &root, &m->contribution);
}

/* A document of all four in an attempt. */
static struct document *roster(struct round_driver *f, uint32_t attempt) {
	document_make(&f->doc, ++f->seq, RUN_REDUCE, 0, 0);
	f->doc.attempt = attempt;
	document_members(&f->doc, EVERYBODY);
	for (int i = 0; i < f->doc.n_members; i++) {
		f->doc.members[i].boot = i == FIXTURE_SELF ? BOOT : 1000;
		name_root(&f->doc, i, 0);
	}
	return &f->doc;
}

static void a_roster_that_is_signed_is_taken(void **state) {
	struct round_driver *f = *state;
	assert_ok(round_on_document(f->c, roster(f, 1), &et));
	assert_int_equal(checked, 4);
	expect_action(f, ROUND_REDUCE_START, 0);
	assert_ok(round_on_document(f->c, roster(f, 1), &et)); /* the same attempt, as documents repeat it */
	assert_ok(round_on_document(f->c, roster(f, 2), &et));
	assert_int_equal(checked, 4);
	expect_action(f, ROUND_REDUCE_RESTART, 0);
}

static void refused(struct round_driver *f, const char *what) {
	struct rv_errtext et = {0};
	assert_int_equal(round_on_document(f->c, &f->doc, &et), RV_E_CORRUPT);
	if (strstr(et.text, what) == NULL)
		fail_msg("%s", et.text);
	expect_nothing(f);
}

static void a_root_that_is_not_signed_is_refused(void **state) {
	struct round_driver *f = *state;
	roster(f, 1)->members[1].contribution.root.b[0] ^= 1;
	refused(f, "member 1 has not signed the root");
	memset(roster(f, 1)->members[3].contribution.signature, 0, NET_SIG_BYTES);
	refused(f, "member 3 has not signed the root");
	roster(f, 1)->members[0].boot++; /* what another process of it has signed */
	refused(f, "member 0 has not signed the root");
	roster(f, 1)->members[0].codec = 3; /* what it has signed for another codec */
	refused(f, "member 0 has not signed the root");
	assert_ok(round_on_document(f->c, roster(f, 1), &et));
	expect_action(f, ROUND_REDUCE_START, 0);
	roster(f, 2)->members[1].contribution.signature[0] ^= 1; /* that was checked once, and is another now */
	refused(f, "member 1 has not signed the root");
}

static void two_roots_are_kept(void **state) {
	struct round_driver *f = *state;
	struct equivocation e;
	assert_ok(round_on_document(f->c, roster(f, 1), &et));
	assert_false(round_two_roots(f->c, &e));
	roster(f, 2)->members[0].boot++; /* it was started again */
	name_root(&f->doc, 0, 1);
	assert_ok(round_on_document(f->c, &f->doc, &et));
	assert_false(round_two_roots(f->c, &e));
	name_root(roster(f, 3), 1, 1);
	assert_ok(round_on_document(f->c, &f->doc, &et));
	assert_true(round_two_roots(f->c, &e));
	assert_int_equal(e.member, 1);
	const struct seal_ops ops = {.verify = verify};
	assert_true(equivocation_proves(&e, &ops));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_roster_that_is_signed_is_taken, setup, round_driver_teardown),
		cmocka_unit_test_setup_teardown(a_root_that_is_not_signed_is_refused, setup, round_driver_teardown),
		cmocka_unit_test_setup_teardown(two_roots_are_kept, setup, round_driver_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
