/* test_net_signed_roots.c: a member's signatures of the roots that it commits to: what they are
 * good for, and nothing else. */
#include "net/control/signed_roots.h"
#include "tests/common/check.h"

#include <string.h>

static const uint8_t run_id[NET_RUN_ID_BYTES] = {5};
static struct identity member, other;
static struct seal_ops checks;

static int set_up(void **state) {
	const uint8_t seed[IDENTITY_SEED_BYTES] = {1}, other_seed[IDENTITY_SEED_BYTES] = {2};
	(void)state;
	identity_of_seed(seed, &member);
	identity_of_seed(other_seed, &other);
	checks = seal_ed25519(NULL);
	return 0;
}

static struct report signed_by(const struct identity *id) {
	struct report m = {.boot = 1000,
					   .term = 2,
					   .phase = WORKER_READY,
					   .round = 7,
					   .commitment = {.n = 2, .roots = {{0, {{31}}}, {3, {{32}}}}}};
	const struct seal_ops ops = seal_ed25519(id);
	report_sign(&m, run_id, &ops);
	return m;
}

static void refused(const struct report *m, const uint8_t run[NET_RUN_ID_BYTES], const struct identity *by) {
	struct rv_errtext et = {0};
	assert_int_equal(report_check_signed(m, run, by->key, &checks, &et), RV_E_INVALID);
	assert_non_null(strstr(et.text, "is not signed by the sender's key"));
}

static void a_report_is_signed_root_by_root(void **state) {
	(void)state;
	struct report m = signed_by(&member);
	assert_ok(report_check_signed(&m, run_id, member.key, &checks, &et));
	m.signatures[1][5] ^= 1; /* forged */
	refused(&m, run_id, &member);
	memset(m.signatures[1], 0, sizeof m.signatures[1]); /* missing */
	refused(&m, run_id, &member);
	m.commitment.n = 1;
	assert_ok(report_check_signed(&m, run_id, member.key, &checks, &et));
	m.commitment.n = 0; /* it has no contribution, and nothing to sign */
	assert_ok(report_check_signed(&m, run_id, member.key, &checks, &et));
}

static void another_key_is_refused(void **state) {
	(void)state;
	const struct report m = signed_by(&member), of_other = signed_by(&other);
	refused(&m, run_id, &other);
	refused(&of_other, run_id, &member);
}

/* What was signed for one round, process, codec or run is not for another: nothing can be
 * replayed. */
static void a_signature_is_for_one_contribution(void **state) {
	(void)state;
	const uint8_t another_run[NET_RUN_ID_BYTES] = {6};
	for (int what = 0; what < 5; what++) {
		struct report m = signed_by(&member);
		m.round += what == 0;
		m.term += what == 1;
		m.boot += what == 2;
		m.commitment.roots[1].codec = what == 3 ? 4 : 3;
		m.commitment.roots[0].root.b[9] ^= what == 4;
		refused(&m, run_id, &member);
	}
	const struct report m = signed_by(&member);
	refused(&m, another_run, &member);
}

/* A document says the same of a participant as its report did. */
static void a_document_names_the_same(void **state) {
	(void)state;
	static struct document d;
	const struct report m = signed_by(&member);
	const struct member_ref ref = {.boot = m.boot, .codec = 3};
	d.term = m.term;
	d.round = m.round;
	d.attempt = 4; /* in no signature */
	memcpy(d.run_id, run_id, sizeof d.run_id);
	const struct seal_scope scope = document_scope(&d, &ref), said = report_scope(&m, run_id, 1);
	const struct seal seal = report_seal(&m, 1);
	assert_true(seal_scope_equal(&scope, &said));
	assert_true(seal_verify(member.key, &scope, &seal));
}

/* A seal of means over the same words is no signature of a contribution, nor the other way
 * around. */
static void contributions_have_a_domain_of_their_own(void **state) {
	(void)state;
	const struct report m = signed_by(&member);
	struct seal_scope scope = report_scope(&m, run_id, 0);
	struct seal seal = report_seal(&m, 0);
	scope.kind = SEAL_ROW;
	assert_false(seal_verify(member.key, &scope, &seal));
	seal_sign(&member, &scope, &m.commitment.roots[0].root, &seal);
	assert_true(seal_verify(member.key, &scope, &seal));
	scope.kind = SEAL_CONTRIBUTION;
	assert_false(seal_verify(member.key, &scope, &seal));
}

/* What docs/protocol.md says is signed, word by word. */
static void the_signed_text_is_that_of_the_protocol(void **state) {
	(void)state;
	static const char domain[] = "rivulet contribution";
	const struct report m = signed_by(&member);
	struct rv_hasher h = rv_hasher_of("rivulet process");
	rv_hash_u64(&h, m.term);
	rv_hash_u64(&h, m.round);
	rv_hash_u64(&h, m.boot);
	const struct rv_hash process = rv_hash_final(&h);
	uint8_t text[256];
	struct rv_writer w = rv_writer_of(text, sizeof text);
	rv_write_bytes(&w, domain, sizeof domain);
	rv_write_bytes(&w, run_id, sizeof run_id);
	rv_write_bytes(&w, process.b, sizeof process.b);
	rv_write_u64(&w, m.term);
	rv_write_u64(&w, m.round);
	rv_write_u32(&w, 0);
	rv_write_u8(&w, 3);
	rv_write_u32(&w, m.commitment.roots[1].codec);
	rv_write_bytes(&w, m.commitment.roots[1].root.b, RV_HASH_BYTES);
	assert_true(identity_verify(member.key, text, rv_writer_len(&w), m.signatures[1]));
}

static void two_roots_are_proof(void **state) {
	(void)state;
	struct report m = signed_by(&member);
	struct equivocation e = {.member = 3, .scope = report_scope(&m, run_id, 0), .chunk = NET_MAX_CHUNKS}, back;
	uint8_t bytes[EQUIVOCATION_BYTES];
	memcpy(e.key, member.key, sizeof e.key);
	e.seals[0] = e.seals[1] = report_seal(&m, 0);
	assert_false(equivocation_proves(&e, &checks));
	m.commitment.roots[0].root.b[0] ^= 1;
	const struct seal_ops ops = seal_ed25519(&member);
	report_sign(&m, run_id, &ops);
	e.seals[1] = report_seal(&m, 0);
	assert_true(equivocation_proves(&e, &checks));
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	equivocation_write(&e, &w);
	struct rv_reader r = rv_reader_of(bytes, rv_writer_len(&w));
	assert_ok(equivocation_read(&r, run_id, &back, &et));
	assert_true(rv_reader_done(&r) && equivocation_proves(&back, &checks));
	m.boot++; /* a later process may have made another contribution */
	report_sign(&m, run_id, &ops);
	e.seals[1] = report_seal(&m, 0);
	assert_false(equivocation_proves(&e, &checks));
	e.scope.kind = SEAL_CONTRIBUTION + 1;
	w = rv_writer_of(bytes, sizeof bytes);
	equivocation_write(&e, &w);
	r = rv_reader_of(bytes, rv_writer_len(&w));
	assert_int_equal(equivocation_read(&r, run_id, &back, NULL), RV_E_INVALID);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_report_is_signed_root_by_root),
		cmocka_unit_test(another_key_is_refused),
		cmocka_unit_test(a_signature_is_for_one_contribution),
		cmocka_unit_test(a_document_names_the_same),
		cmocka_unit_test(contributions_have_a_domain_of_their_own),
		cmocka_unit_test(the_signed_text_is_that_of_the_protocol),
		cmocka_unit_test(two_roots_are_proof),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
