/* The bytes of a record: what is written is read; whatever is cut short or too long is refused. */
#include <string.h>

#include "coordinator/store/record.h"
#include "tests/common/check.h"

/* Every byte of every field differs from zero. */
static struct core_record full_record(uint16_t n_members) {
	struct core_record rec;
	memset(&rec, 0, sizeof rec);
	rec.id = 0x0102030405060708;
	rec.type = CORE_ROSTER;
	rec.doc_seq = 0x1112131415161718;
	rec.member = 63;
	memset(rec.key, 0x21, sizeof rec.key);
	memset(rec.name, 'n', sizeof rec.name - 1);
	rec.n_candidates = NET_MAX_CANDIDATES;
	for (uint8_t i = 0; i < NET_MAX_CANDIDATES; i++) {
		rec.candidates[i].kind = (uint8_t)(i + 1);
		memset(rec.candidates[i].addr, 'a' + i, sizeof rec.candidates[i].addr - 1);
	}
	rec.banned = true;
	memset(&rec.token_hash, 0x22, sizeof rec.token_hash);
	rec.term = 0x3132333435363738;
	rec.round = 77;
	rec.attempt = 3;
	memset(&rec.digest, 0x23, sizeof rec.digest);
	memset(&rec.chain, 0x24, sizeof rec.chain);
	rec.n_chunks = 1000;
	rec.overran = 3;
	rec.blame_level = 5;
	rec.blame_until = 0x4142434445464748;
	rec.reputation = (struct core_reputation){.rounds = 7,
											  .audited = 6,
											  .strikes = 2,
											  .reason = 1,
											  .appealed = true,
											  .struck_round = 8,
											  .quarantined_until = 9,
											  .until_before = 10,
											  .evaded = 1,
											  .spent = true};
	rec.n_members = rec.n_blamed = n_members;
	for (int k = 0; k < SET_WORDS(n_members); k++) {
		rec.owners[k] = 0x5152535455565758 + (uint64_t)k;
		rec.relayed[k] = 0x6162636465666768 + (uint64_t)k;
	}
	for (uint32_t i = 0; i < n_members; i++) {
		rec.members[i] = i;
		rec.tokens[i] = 1000 + i;
		rec.boots[i] = 2000 + i;
		rec.rates[i] = 3000 + i;
		rec.lease_first[i] = (1ull << 40) + i;
		rec.lease_count[i] = UINT32_MAX - i;
		rec.downs[i] = 4000 + i;
		rec.roots[i] = (struct seal){{{(uint8_t)i, (uint8_t)(i >> 8), 7}}, {8, (uint8_t)i}};
		rec.blamed[i] = UINT32_MAX - i;
	}
	return rec;
}

static void test_round_trip(void **state) {
	(void)state;
	const uint16_t sizes[] = {0, 1, 3, 65, NET_MAX_ROSTER};
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		struct core_record in = full_record(sizes[s]), out;
		uint8_t bytes[RECORD_MAX_BYTES];
		struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
		struct rv_errtext et = {0};
		record_encode(&in, &w);
		assert_false(w.failed);
		assert_int_equal(record_decode(bytes, rv_writer_len(&w), &out, &et), RV_OK);
		assert_int_equal(in.id, out.id);
		assert_int_equal(in.blame_level, out.blame_level);
		assert_int_equal(in.overran, out.overran);
		assert_int_equal(in.blame_until, out.blame_until);
		assert_int_equal(in.reputation.audited, out.reputation.audited);
		assert_true(in.reputation.rounds == out.reputation.rounds && in.reputation.strikes == out.reputation.strikes &&
					in.reputation.reason == out.reputation.reason);
		assert_true(in.reputation.struck_round == out.reputation.struck_round &&
					in.reputation.quarantined_until == out.reputation.quarantined_until);
		assert_true(in.reputation.appealed == out.reputation.appealed &&
					in.reputation.until_before == out.reputation.until_before &&
					in.reputation.evaded == out.reputation.evaded && in.reputation.spent == out.reputation.spent);
		assert_int_equal(in.n_blamed, out.n_blamed);
		assert_memory_equal(in.blamed, out.blamed, sizeof in.blamed);
		assert_memory_equal(in.lease_first, out.lease_first, sizeof in.lease_first);
		assert_memory_equal(in.lease_count, out.lease_count, sizeof in.lease_count);
		assert_memory_equal(in.roots, out.roots, sizeof in.roots);
		assert_memory_equal(in.owners, out.owners, sizeof in.owners);
		assert_memory_equal(in.relayed, out.relayed, sizeof in.relayed);
		assert_string_equal(in.name, out.name);
		assert_true(candidates_equal(in.candidates, in.n_candidates, out.candidates, out.n_candidates));
		uint8_t again[RECORD_MAX_BYTES];
		struct rv_writer w2 = rv_writer_of(again, sizeof again);
		record_encode(&out, &w2);
		assert_int_equal(rv_writer_len(&w), rv_writer_len(&w2));
		assert_memory_equal(bytes, again, rv_writer_len(&w));
	}
}

static void test_every_wrong_length_is_refused(void **state) {
	(void)state;
	struct core_record in = full_record(3), out;
	uint8_t bytes[RECORD_MAX_BYTES + 1] = {0};
	struct rv_writer w = rv_writer_of(bytes, RECORD_MAX_BYTES);
	struct rv_errtext et = {0};
	record_encode(&in, &w);
	size_t n = rv_writer_len(&w);
	for (size_t k = 0; k < n; k++)
		assert_int_equal(record_decode(bytes, k, &out, &et), RV_E_CORRUPT);
	assert_int_equal(record_decode(bytes, n + 1, &out, &et), RV_E_CORRUPT);
}

/* The last byte of a record without lists is what they do not have. */
static void test_records_of_an_earlier_release_are_read(void **state) {
	(void)state;
	struct core_record in = full_record(0), out;
	uint8_t bytes[RECORD_MAX_BYTES];
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	record_encode(&in, &w);
	bytes[0] = 1;
	assert_int_equal(record_decode(bytes, rv_writer_len(&w) - 1, &out, NULL), RV_OK);
	assert_int_equal(out.attempt, in.attempt);
	assert_int_equal(out.overran, CORE_OVERRAN_UNKNOWN);
}

static void test_other_versions_and_counts_are_refused(void **state) {
	(void)state;
	struct core_record in = full_record(0), out;
	uint8_t bytes[RECORD_MAX_BYTES];
	struct rv_writer w = rv_writer_of(bytes, sizeof bytes);
	struct rv_errtext et = {0};
	record_encode(&in, &w);
	size_t n = rv_writer_len(&w);
	bytes[0] = 3;
	assert_int_equal(record_decode(bytes, n, &out, &et), RV_E_UNSUPPORTED);
	assert_non_null(
		strstr(et.text, "version 3, this program reads versions up to 2: use the release that wrote it, or a later"));
	bytes[0] = 2;
	bytes[n - 4] = (NET_MAX_ROSTER + 1) >> 8; /* n_members, n_blamed: the four bytes before the last one */
	bytes[n - 5] = (NET_MAX_ROSTER + 1) & 0xff;
	assert_int_equal(record_decode(bytes, n, &out, &et), RV_E_CORRUPT);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_every_wrong_length_is_refused),
		cmocka_unit_test(test_records_of_an_earlier_release_are_read),
		cmocka_unit_test(test_other_versions_and_counts_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
