/* test_chaos_mean.c: the check of means (mean_check.h) accepts a run that is right, and finds each
 * way in which a mean can be wrong: a check that cannot fail is none. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/chain.h"
#include "base/file.h"
#include "base/run_config.h"
#include "coordinator/store/sqlite.h"
#include "outer/global.h"
#include "tests/chaos/mean_check.h"
#include "tests/chaos/mean_dump.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"
#include "train/model/model.h"

enum { N_WHOLE = 1500, N_MAX = 8000, MEMBERS = 3, ROUNDS = 4, BYTES_MAX = 4 * N_MAX + 64, PATH_BYTES = 128 };

static const char whole[] = "weight-by-tokens = true\nrounds = 9\n",
				  streaming[] = "weight-by-tokens = true\nrounds = 9\nfragments = 3\nchunk-elems = 256\nn-layer = 2\n"
								"n-head = 1\nn-embd = 8\ncontext = 8\n";
static const uint8_t run_id[NET_RUN_ID_BYTES] = "0123456789abcdef";

/* What is wrong with a run. */
enum plant { NOTHING, REDUCED_BIT, LEFT_OUT, TWICE, UNWEIGHTED, OTHER_BOOT, OTHER_ROSTER, CHAIN, N_PLANTS };

struct made {
	char dir[64], store[PATH_BYTES];
	size_t n;
	struct global_config g;
	struct chunking c; /* of the round at hand */
	struct rv_hash chain;
	uint8_t given[MEMBERS][BYTES_MAX], reduced[BYTES_MAX];
	size_t bytes;
};

static void put(const struct made *m, const char *kind, uint64_t round, uint32_t member, uint64_t which,
				const uint8_t *vector) {
	static uint8_t file[MEAN_DUMP_HEADER_BYTES + BYTES_MAX];
	char path[PATH_BYTES];
	struct rv_writer w = rv_writer_of(file, sizeof file);
	rv_write_bytes(&w, MEAN_DUMP_MAGIC, 8);
	rv_write_u64(&w, m->n);
	rv_write_u64(&w, round);
	rv_write_u64(&w, member);
	rv_write_u64(&w, which);
	rv_write_u64(&w, m->bytes);
	rv_write_bytes(&w, vector, m->bytes);
	(void)snprintf(path, sizeof path, "%s/%s-%" PRIu64 "-%u-%" PRIu64, m->dir, kind, round, member, which);
	assert_ok(rv_file_write_atomic(path, file, rv_writer_len(&w), 0600, &et));
}

static void give(struct made *m, uint64_t round) {
	static float x[N_MAX];
	for (int i = 0; i < MEMBERS; i++) {
		for (int k = 0; k < (int)m->n; k++)
			x[k] = (float)((k * 7919 + i * 104729 + (int)round * 31) % 2001 - 1000) * 1e-5f;
		for (uint32_t c = 0; c < m->c.n_chunks; c++)
			assert_int_equal(m->g.codec->encode(m->g.codec, x + global_round_chunk_at(&m->g, round, c),
												chunking_len(&m->c, c),
												m->given[i] + chunking_offset_bytes(&m->c, m->g.codec, c), NULL),
							 RV_OK);
		put(m, "contribution", round, (uint32_t)i, 100 + (uint64_t)i, m->given[i]);
	}
}

/* By the product's function, over what the plant says. */
static void reduce(struct made *m, enum plant plant) {
	static float scratch[N_MAX];
	uint32_t weights[MEMBERS + 1] = {2, 1, 3, 3};
	int n_in = plant == LEFT_OUT ? MEMBERS - 1 : plant == TWICE ? MEMBERS + 1 : MEMBERS;
	const struct merge_rule rule = global_merge(&m->g);
	for (int i = 0; i < MEMBERS && plant == UNWEIGHTED; i++)
		weights[i] = 1;
	for (uint32_t c = 0; c < m->c.n_chunks; c++) {
		size_t at = chunking_offset_bytes(&m->c, m->g.codec, c);
		const uint8_t *in[] = {m->given[0] + at, m->given[1] + at, m->given[2] + at, m->given[2] + at};
		assert_int_equal(
			merge_chunk(&rule, in, weights, n_in, chunking_len(&m->c, c), scratch, NULL, m->reduced + at, NULL, NULL),
			RV_OK);
	}
}

static void commit(struct made *m, struct store *s, uint64_t round, enum plant plant) {
	struct global_state names = {.cfg = m->g};
	struct core_record rec = {.id = 2 * round + 1,
							  .type = CORE_ROSTER,
							  .round = round,
							  .attempt = 1,
							  .n_chunks = m->c.n_chunks,
							  .n_members = MEMBERS};
	for (uint32_t i = 0; i < MEMBERS; i++) {
		rec.members[i] = i;
		rec.tokens[i] = (const uint64_t[]){20, 10, 30}[i];
		rec.boots[i] = 100 + i + (plant == OTHER_BOOT);
	}
	assert_ok(s->ops->append(s, &rec, NULL, &et));
	rec.id++;
	rec.type = CORE_COMMIT;
	rec.n_members = plant == OTHER_ROSTER ? MEMBERS - 1 : MEMBERS;
	rec.digest = global_digest(&names, round, m->reduced);
	m->chain = rv_chain_next(plant == CHAIN ? &rec.digest : &m->chain, &rec.digest);
	rec.chain = m->chain;
	assert_ok(s->ops->append(s, &rec, NULL, &et));
}

/* The model's layers, where fragments need them. */
static void configure(struct made *m, const char *config_text, const struct run_config *run) {
	const struct model_shape shape = model_shape_of(run);
	const struct model_ops *family = model_family(run);
	struct model_layout layout;
	struct rv_hash run_hash = rv_run_hash(run_id, config_text);
	assert_ok(model_layout_init(&layout, family, &shape, NULL, &et));
	m->n = run->fragments > 1 ? layout.n_params : N_WHOLE;
	assert_true(m->n <= N_MAX);
	assert_ok(global_config_of(run, m->n, &layout.layers, &run_hash, &m->g, &et));
	m->chain = rv_chain_start(&run_hash);
	model_layout_release(&layout);
}

static void make_run(struct made *m, const char *config_text, enum plant plant) {
	struct run_config run;
	struct store *s;
	scratch_make(m->dir, sizeof m->dir);
	(void)snprintf(m->store, sizeof m->store, "%s/store.db", m->dir);
	assert_ok(run_config_parse(&run, "test", config_text, &et));
	configure(m, config_text, &run);
	assert_ok(sqlite_store_create(m->store, run_id, config_text, &et));
	assert_ok(sqlite_store_open(m->store, &s, &et));
	for (uint64_t round = 0; round < ROUNDS; round++) {
		enum plant now = round + 1 == ROUNDS ? plant : NOTHING; /* a run that was right before */
		m->c = global_round_chunks(&m->g, round);
		m->bytes = chunking_total_bytes(&m->c, m->g.codec);
		give(m, round);
		reduce(m, now);
		commit(m, s, round, now);
		m->reduced[m->bytes / 2] ^= now == REDUCED_BIT ? 1 : 0;
		put(m, "reduced", round, 1, 1, m->reduced);
		put(m, "reduced", round, 2, 1, m->reduced);
	}
	store_close(s);
}

static void check_right(const char *config) {
	static struct made m;
	static struct mean_check got;
	struct rv_errtext et = {0};
	make_run(&m, config, NOTHING);
	enum rv_err e = mean_check(m.store, m.dir, &got, &et);
	if (e != RV_OK)
		fail_msg("%s", et.text);
	assert_int_equal(got.rounds, ROUNDS);
	assert_int_equal(got.contributions, ROUNDS * MEMBERS);
	assert_int_equal(got.reduced, ROUNDS * 2);
	assert_true(rv_hash_equal(&got.chain[ROUNDS], &m.chain));
	scratch_remove(m.dir);
}

static void a_run_that_is_right(void **state) {
	(void)state;
	check_right(whole);
	check_right(streaming);
}

static void every_wrong_mean_is_found(void **state) {
	(void)state;
	static struct made m;
	static struct mean_check got;
	static const char *const says[N_PLANTS] = {[REDUCED_BIT] = "what member 1 reduced",
											   [LEFT_OUT] = "what member 1 reduced",
											   [TWICE] = "what member 1 reduced",
											   [UNWEIGHTED] = "what member 1 reduced",
											   [OTHER_BOOT] = "contribution-3-0-101",
											   [OTHER_ROSTER] = "not over the last roster",
											   [CHAIN] = "the committed chain does not follow"};
	for (int i = 2 * REDUCED_BIT; i < 2 * N_PLANTS; i++) {
		enum plant plant = (enum plant)(i / 2);
		struct rv_errtext et = {0};
		make_run(&m, i % 2 ? streaming : whole, plant);
		assert_int_not_equal(mean_check(m.store, m.dir, &got, &et), RV_OK);
		if (strstr(et.text, says[plant]) == NULL)
			fail_msg("plant %d: %s", plant, et.text);
		scratch_remove(m.dir);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_that_is_right),
		cmocka_unit_test(every_wrong_mean_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
