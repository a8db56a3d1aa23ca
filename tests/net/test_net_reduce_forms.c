/* test_net_reduce_forms.c: participants that contribute by a coarser codec, or to every k-th chunk
 * only: results, bytes, attempts, and what is refused. */
#include "reduce_pair.h"
#include "tests/common/check.h"

#include "base/slow_lines.h"

#include <string.h>

enum { SEEDS = 60, CODECS = 4, PARTS = 6 };

/* Gives all participants but one a random form. */
static void draw_forms(struct world *w) {
	const uint64_t whole = rv_rng_below(&w->rng, w->doc.n_members);
	for (int i = 0; i < w->doc.n_members; i++) {
		struct member_ref *m = &w->doc.members[i];
		m->codec = (uint8_t)rv_rng_below(&w->rng, CODECS);
		m->part = (uint8_t)rv_rng_below(&w->rng, PARTS);
		m->part = m->part == 1 || (uint64_t)i == whole ? 0 : m->part;
	}
}

/* What a node sends when nothing goes wrong. */
static uint64_t expected_tx(const struct world *w, int node) {
	const struct member_ref *self = &w->doc.members[world_index_of(w, node)];
	uint64_t bytes = 0;
	for (int g = 0; g < w->doc.n_ranges; g++)
		for (uint32_t c = w->doc.ranges[g].first; c < w->doc.ranges[g].first + w->doc.ranges[g].count; c++) {
			if (w->doc.ranges[g].owner == world_index_of(w, node))
				bytes += ((uint64_t)w->n_nodes - 1) * (FRAME_HEADER_BYTES + world_mean_bytes(w, c));
			else if (slow_contributes(self->part, self->member, w->doc.round, c))
				bytes += FRAME_HEADER_BYTES + world_chunk_bytes(w, c) - self->codec;
		}
	return bytes;
}

static void test_each_chunk_is_the_mean_of_those_that_contribute(void **state) {
	(void)state;
	for (int n = 1; n <= WORLD_MAX_NODES; n++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			struct world *w = world_new(n, 1 + (uint32_t)(seed * 7) % WORLD_MAX_CHUNKS, seed);
			draw_forms(w);
			assert_true(world_run(w, 0));
			world_check_result(w);
			for (int i = 0; i < n; i++) {
				assert_int_equal(reduce_info(w->nodes[i].reduce).tx_bytes, expected_tx(w, i));
				assert_int_equal(reduce_suspects(w->nodes[i].reduce), 0);
			}
			world_free(w);
		}
}

static void test_in_k_rounds_to_each_chunk(void **state) {
	(void)state;
	for (uint8_t part = 2; part <= NET_MAX_PART; part++)
		for (uint32_t chunk = 0; chunk < 40; chunk++)
			for (uint64_t first = 0; first < 3; first++) {
				int times = 0;
				for (uint64_t round = first; round < first + part; round++)
					times += slow_contributes(part, 5, round, chunk);
				assert_int_equal(times, 1);
			}
	/* Members differ, so that one chunk is not left to the fast ones alone. */
	assert_true(slow_contributes(2, 4, 0, 0) && !slow_contributes(2, 5, 0, 0));
	assert_true(slow_contributes(0, 5, 3, 7));
}

/* After deaths and lost links, with forms that change between attempts: what was held of another
 * codec is void, what was held of another part is not. */
static void test_attempts_with_other_forms(void **state) {
	(void)state;
	for (uint64_t seed = 0; seed < 4 * SEEDS; seed++) {
		int n = 3 + (int)(seed % 5);
		struct world *w = world_new(n, 30, 7000 + seed);
		draw_forms(w);
		uint64_t when = rv_rng_below(&w->rng, 300);
		while (w->delivered < when && world_step(w))
			;
		for (int i = 0; i < n; i++)
			world_start(w, i);
		world_kill(w, (int)rv_rng_below(&w->rng, (uint64_t)n), seed % 2 == 0);
		world_next_attempt(w);
		if (seed % 3 > 0)
			draw_forms(w);
		else
			w->doc.members[0].part = 0; /* the whole one may be the dead one */
		assert_true(world_run(w, 8));
		world_check_result(w);
		world_free(w);
	}
}

/* A SCATTER of chunk 0, which node 0 owns, from node 1 in that form. */
static void refused(uint8_t codec, uint8_t part, size_t bytes, enum rv_err want, const char *text) {
	struct pair p = pair_new(9);
	struct rv_errtext et = {0};
	struct member_ref *from = &p.w->doc.members[1];
	from->codec = codec;
	from->part = part;
	p.w->doc.attempt++;
	world_start(p.w, 0);
	struct reduce_msg m = chunk_msg(&p, REDUCE_SCATTER, 1, 0);
	m.attempt = 2;
	m.data_bytes = (uint32_t)bytes;
	assert_int_equal(give(&p, 1, &m, &et), want);
	if (want != RV_OK && strstr(et.text, text) == NULL)
		fail_msg("'%s' is not in '%s'", text, et.text);
	world_free(p.w);
}

static void test_what_breaks_a_form_is_refused(void **state) {
	(void)state;
	refused(0, 0, WORLD_CHUNK_BYTES, RV_OK, "");
	refused(3, 0, WORLD_CHUNK_BYTES - 3, RV_OK, "");
	refused(3, 0, WORLD_CHUNK_BYTES, RV_E_PROTOCOL, "has 24 bytes, must be 21");
	refused(0, 0, WORLD_CHUNK_BYTES - 3, RV_E_PROTOCOL, "has 21 bytes, must be 24");
	int others = 0;
	for (uint8_t part = 2; part <= NET_MAX_PART; part++) {
		struct pair p = pair_new(9);
		const bool its_turn = slow_contributes(part, p.w->doc.members[1].member, p.w->doc.round, 0);
		world_free(p.w);
		refused(0, part, WORLD_CHUNK_BYTES, its_turn ? RV_OK : RV_E_PROTOCOL, "contributes to one chunk of");
		others += !its_turn;
	}
	assert_true(others > 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_chunk_is_the_mean_of_those_that_contribute),
		cmocka_unit_test(test_in_k_rounds_to_each_chunk),
		cmocka_unit_test(test_attempts_with_other_forms),
		cmocka_unit_test(test_what_breaks_a_form_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
