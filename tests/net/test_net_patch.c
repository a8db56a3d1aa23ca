/* Documents as patches of those before: both ends keep the same base, little is sent, and nothing
 * that arrives is trusted. */
#include "base/rng.h"
#include "net/control/control.h"
#include "net/control/patch.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 48, CHUNKS = 480 };

struct scene {
	struct document doc;
	struct patch_base coordinator, worker;
	struct patch_tools tools;
	uint8_t bytes[NET_MAX_DOCUMENT_BYTES], patch[NET_MAX_DOCUMENT_BYTES], got[NET_MAX_DOCUMENT_BYTES];
	size_t n;
};

static void put_members(struct document *d, int n) {
	struct rv_rng rng = rv_rng_of(7, 7); /* of the members: the same in all documents */
	d->n_members = (uint16_t)n;
	for (int i = 0; i < n; i++) {
		struct member_ref *m = &d->members[i];
		m->member = (uint32_t)i;
		for (size_t k = 0; k < sizeof m->key; k++)
			m->key[k] = (uint8_t)rv_rng_below(&rng, 256);
		m->n_candidates = 1;
		m->candidates[0].kind = CANDIDATE_SEEN;
		(void)snprintf(m->candidates[0].addr, sizeof m->candidates[0].addr, "198.51.%d.%d:7434", i, 255 - i);
		m->weight = d->phase == RUN_REDUCE;
		m->boot = d->phase == RUN_REDUCE ? 1764000000000000u + (uint64_t)i * 977 : 0;
	}
}

/* Encodes the document of a round: OPEN with a few donors, or REDUCE with a roster. */
static void encode(struct scene *s, uint64_t round, bool roster) {
	struct document *d = &s->doc;
	d->seq++;
	d->round = round;
	d->final_round = 1000;
	d->phase = roster ? RUN_REDUCE : RUN_OPEN;
	d->attempt = roster;
	d->n_chunks = roster ? CHUNKS : 0;
	d->n_ranges = roster ? MEMBERS : 0;
	for (uint32_t i = 0; i < d->n_ranges; i++)
		d->ranges[i] =
			(struct owner_range){.first = i * CHUNKS / MEMBERS, .count = CHUNKS / MEMBERS, .owner = (uint16_t)i};
	d->snapshot_round = d->round;
	d->chain.b[0] = (uint8_t)round;
	put_members(d, roster ? MEMBERS : 4);
	struct rv_writer w = rv_writer_of(s->bytes, sizeof s->bytes);
	document_encode(d, CONTROL_VERSION, &w);
	assert_false(w.failed);
	s->n = rv_writer_len(&w);
}

/* Sends the document as a patch, which must arrive; both ends keep it. Returns the patch's
 * bytes. */
static size_t send_patch(struct scene *s) {
	size_t n = 0, n_got = 0;
	assert_int_equal(patch_make(&s->tools, &s->coordinator, s->bytes, s->n, s->patch, sizeof s->patch, &n, NULL),
					 RV_OK);
	assert_int_equal(patch_apply(&s->tools, &s->worker, s->patch, n, s->got, sizeof s->got, &n_got, NULL), RV_OK);
	assert_int_equal(n_got, s->n);
	assert_memory_equal(s->got, s->bytes, s->n);
	assert_int_equal(patch_base_follow(&s->coordinator, s->bytes, s->n, NULL), RV_OK);
	assert_int_equal(patch_base_follow(&s->worker, s->got, n_got, NULL), RV_OK);
	return n;
}

static void send_whole(struct scene *s) {
	assert_int_equal(patch_base_begin(&s->coordinator, s->bytes, s->n, NULL), RV_OK);
	assert_int_equal(patch_base_begin(&s->worker, s->bytes, s->n, NULL), RV_OK);
}

static int set_up(void **state) {
	*state = calloc(1, sizeof(struct scene));
	return *state == NULL;
}

static int tear_down(void **state) {
	struct scene *s = *state;
	patch_base_release(&s->coordinator);
	patch_base_release(&s->worker);
	patch_tools_release(&s->tools);
	free(s);
	return 0;
}

static void test_rounds_travel_as_patches(void **state) {
	struct scene *s = *state;
	size_t n = 0;
	encode(s, 1, false);
	assert_int_equal(patch_make(&s->tools, &s->coordinator, s->bytes, s->n, s->patch, sizeof s->patch, &n, NULL),
					 RV_E_RANGE); /* nobody has anything yet */
	send_whole(s);
	encode(s, 1, true);
	size_t whole = s->n, first = send_patch(s);
	assert_in_range(first, MEMBERS * NET_KEY_BYTES, whole); /* keys that the worker has not seen cannot be left out */
	for (uint64_t round = 2; round < 6; round++) {
		encode(s, round, false);
		assert_in_range(send_patch(s), 1, 120);
		encode(s, round, false); /* another one of the same round: the roster is kept */
		assert_in_range(send_patch(s), 1, 120);
		encode(s, round, true);
		assert_in_range(send_patch(s), 1, whole / 20); /* a roster like the one before */
	}
}

/* The reader refuses it, or makes other bytes, which no signature is of. */
static void test_a_patch_of_another_base_is_found_out(void **state) {
	struct scene *s = *state;
	size_t n = 0, n_got = 0;
	encode(s, 1, true);
	send_whole(s);
	encode(s, 2, true);
	assert_int_equal(patch_make(&s->tools, &s->coordinator, s->bytes, s->n, s->patch, sizeof s->patch, &n, NULL),
					 RV_OK);
	s->worker.bytes[s->worker.last / 2] ^= 1;
	enum rv_err e = patch_apply(&s->tools, &s->worker, s->patch, n, s->got, sizeof s->got, &n_got, NULL);
	assert_true(e == RV_E_INVALID || n_got != s->n || memcmp(s->got, s->bytes, s->n) != 0);
	struct patch_base none = {0};
	assert_int_equal(patch_apply(&s->tools, &none, s->patch, n, s->got, sizeof s->got, &n_got, NULL), RV_E_INVALID);
}

static void test_garbage_is_refused(void **state) {
	struct scene *s = *state;
	struct rv_rng rng = rv_rng_of(3, 3);
	size_t n = 0, n_got = 0;
	encode(s, 1, true);
	send_whole(s);
	encode(s, 2, true);
	assert_int_equal(patch_make(&s->tools, &s->coordinator, s->bytes, s->n, s->patch, sizeof s->patch, &n, NULL),
					 RV_OK);
	for (size_t part = 0; part < n; part++)
		assert_int_equal(patch_apply(&s->tools, &s->worker, s->patch, part, s->got, sizeof s->got, &n_got, NULL),
						 RV_E_INVALID);
	assert_int_equal(patch_apply(&s->tools, &s->worker, s->patch, n, s->got, s->n - 1, &n_got, NULL), RV_E_INVALID);
	for (int turn = 0; turn < 2000; turn++) { /* whatever it makes stays within `got` */
		uint8_t bad[NET_MAX_DOCUMENT_BYTES];
		memcpy(bad, s->patch, n);
		bad[rv_rng_below(&rng, n)] ^= (uint8_t)(1 + rv_rng_below(&rng, 255));
		if (patch_apply(&s->tools, &s->worker, bad, n, s->got, sizeof s->got, &n_got, NULL) == RV_OK)
			assert_in_range(n_got, 0, sizeof s->got);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rounds_travel_as_patches, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_patch_of_another_base_is_found_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_garbage_is_refused, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
