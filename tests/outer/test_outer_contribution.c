/* A worker's contribution with error feedback: nothing is lost, nothing counts twice. */
#include "base/slow_lines.h"
#include "outer/contribution.h"
#include "outer/float_bits.h"
#include "outer/recode.h"
#include "tests/common/check.h"
#include "tests/outer/vectors.h"

#include <math.h>
#include <string.h>

enum { N = 9000, ROUNDS = 12 };

static const struct contribution_form plain;

static float theta[N], local[N], before[N], sum[N], sent[N];
static uint8_t out[8 * N], out2[8 * N];
static float scratch[N];

struct world {
	struct run_config run;
	struct global_state g;
	struct contribution c;
};

static void begin(struct world *w, const char *codec, double beta) {
	const struct rv_hash nameless = {{0}};
	struct global_config cfg;
	run_config_defaults(&w->run);
	(void)rv_options_set(run_config_options, &w->run, "codec", codec, NULL);
	w->run.error_feedback = beta;
	w->run.chunk_elems = 5 * 1024;
	fill_normal(theta, N, 1);
	assert_int_equal(global_config_of(&w->run, N, &(struct fragment_layers){0}, &nameless, &cfg, NULL), RV_OK);
	assert_int_equal(global_init(&w->g, &cfg, theta, NULL), RV_OK);
	assert_int_equal(contribution_init(&w->c, &w->run, &w->g.cfg, NULL), RV_OK);
}

static void end(struct world *w) {
	contribution_release(&w->c);
	global_release(&w->g);
}

/* What training made of theta in that round. */
static void train(uint64_t round) {
	fill_normal(local, N, 100 + round);
	for (size_t i = 0; i < N; i++)
		local[i] = theta[i] - local[i] * 0.01f;
}

static void encode(struct world *w, uint64_t round) {
	w->g.round = round;
	assert_int_equal(contribution_encode(&w->c, &w->g, round, local, out, NULL), RV_OK);
}

static void decode(const struct world *w) {
	const struct codec *codec = global_sent(&w->g.cfg);
	for (uint32_t i = 0; i < w->g.cfg.chunks.n_chunks; i++)
		assert_int_equal(codec->decode(codec, out + chunking_offset_bytes(&w->g.cfg.chunks, codec, i),
									   chunking_len(&w->g.cfg.chunks, i), sent + i * w->g.cfg.chunks.chunk_elems, NULL),
						 RV_OK);
}

static bool is_exact(float whole, float part, float rest) {
	const double s = (double)part + (double)rest, back = s - (double)part;
	return s == (double)whole && ((double)part - (s - back)) + ((double)rest - back) == 0;
}

/* Identity 12: Delta^ + e' = beta e + Delta, in every round, to the bit. */
static void test_nothing_is_lost(void **state) {
	(void)state;
	for (const struct codec *const *c = codec_registry; *c; c++)
		for (int b = 0; b < 2; b++) {
			const float beta = b ? 0.95f : 1;
			struct world w;
			begin(&w, (*c)->name, (double)beta);
			for (uint64_t round = 0; round < ROUNDS; round++) {
				train(round);
				memcpy(before, w.c.residual, sizeof before);
				encode(&w, round);
				assert_memory_equal(before, w.c.residual, sizeof before);
				decode(&w);
				contribution_commit(&w.c, &w.g.cfg, round, NULL, &plain);
				for (size_t i = 0; i < N; i++) {
					const float delta = theta[i] - local[i], a = beta * before[i] + delta;
					assert_true(w.c.residual[i] == a - sent[i]);
					assert_true(is_exact(a, sent[i], w.c.residual[i]));
				}
			}
			end(&w);
		}
}

/* Sets `sent` to the values of what was sent in that form. */
static void decode_as(const struct world *w, uint64_t round, const struct contribution_form *form) {
	const struct chunking *c = &w->g.cfg.chunks;
	const struct codec *as = global_sent_as(&w->g.cfg, form->codec);
	if (form->codec == 0)
		memcpy(out2, out, chunking_total_bytes(c, as));
	else
		assert_int_equal(recode_vector(c, global_sent(&w->g.cfg), as, out, out2, scratch, NULL), RV_OK);
	for (uint32_t i = 0; i < c->n_chunks; i++) {
		float *at = sent + i * c->chunk_elems;
		assert_int_equal(as->decode(as, out2 + chunking_offset_bytes(c, as, i), chunking_len(c, i), at, NULL), RV_OK);
		for (size_t k = 0; k < chunking_len(c, i); k++)
			at[k] = slow_contributes(form->part, form->member, round, i) ? at[k] : 0;
	}
}

/* In each form what was sent and what is left are what was to be said: to a rounding of what a
 * coarser codec left, and to the bit where a chunk was not sent. */
static void test_what_a_form_leaves_out_is_kept(void **state) {
	(void)state;
	const struct contribution_form forms[] = {{.member = 3, .codec = 3},
											  {.member = 3, .codec = 8},
											  {.member = 3, .part = 2},
											  {.member = 3, .codec = 3, .part = 2}};
	for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
		struct world w;
		begin(&w, "int8", 0.95);
		for (uint64_t round = 0; round < ROUNDS; round++) {
			train(round);
			memcpy(before, w.c.residual, sizeof before);
			encode(&w, round);
			decode_as(&w, round, &forms[f]);
			contribution_commit(&w.c, &w.g.cfg, round, out, &forms[f]);
			for (size_t i = 0; i < N; i++) {
				const float a = 0.95f * before[i] + (theta[i] - local[i]);
				const bool was_sent = slow_contributes(forms[f].part, 3, round, (uint32_t)(i / (5 * 1024)));
				if (!was_sent)
					assert_true(w.c.residual[i] == a);
				else
					assert_true(fabsf(w.c.residual[i] - (a - sent[i])) <= 1e-6f * fabsf(a));
			}
		}
		end(&w);
	}
}

/* With beta = 1 what was sent in all rounds and what is left add up to all that was to be said. */
static void test_all_is_said_in_the_end(void **state) {
	(void)state;
	struct world w;
	double said = 0, meant = 0;
	begin(&w, "topk128", 1);
	memset(sum, 0, sizeof sum);
	static double total[N], all[N];
	memset(total, 0, sizeof total);
	memset(all, 0, sizeof all);
	for (uint64_t round = 0; round < 200; round++) {
		train(0); /* the same again and again */
		encode(&w, round);
		decode(&w);
		contribution_commit(&w.c, &w.g.cfg, round, NULL, &plain);
		for (size_t i = 0; i < N; i++) {
			total[i] += (double)sent[i];
			all[i] += (double)theta[i] - (double)local[i];
		}
	}
	for (size_t i = 0; i < N; i++) {
		assert_true(fabs(total[i] + (double)w.c.residual[i] - all[i]) <= 1e-5 * fabs(all[i]) + 1e-30);
		said += total[i] * total[i];
		meant += all[i] * all[i];
	}
	assert_true(said > 0.8 * meant); /* of 3 % in a round */
	end(&w);
}

/* A round that is not committed with it changes nothing: the next one says the same as if it had
 * not been. */
static void test_what_is_not_committed_was_not_said(void **state) {
	(void)state;
	struct world w, v;
	begin(&w, "topk64", 0.9);
	begin(&v, "topk64", 0.9);
	for (uint64_t round = 0; round < 6; round++) {
		train(round);
		encode(&w, round);
		if (round == 3)
			continue; /* others' round */
		contribution_commit(&w.c, &w.g.cfg, round, NULL, &plain);
		v.g.round = round;
		assert_int_equal(contribution_encode(&v.c, &v.g, round, local, out2, NULL), RV_OK);
		contribution_commit(&v.c, &v.g.cfg, round, NULL, &plain);
		assert_memory_equal(out, out2, chunking_total_bytes(&w.g.cfg.chunks, &codec_topk64));
	}
	assert_memory_equal(w.c.residual, v.c.residual, N * sizeof(float));
	end(&w);
	end(&v);
}

/* Another attempt of the same round: the same bytes. */
static void test_encoding_again_gives_the_same(void **state) {
	(void)state;
	struct world w;
	begin(&w, "int4", 0.9);
	for (uint64_t round = 0; round < 3; round++) {
		train(round);
		encode(&w, round);
		assert_int_equal(contribution_encode(&w.c, &w.g, round, local, out2, NULL), RV_OK);
		assert_memory_equal(out, out2, chunking_total_bytes(&w.g.cfg.chunks, &codec_int4));
		contribution_commit(&w.c, &w.g.cfg, round, NULL, &plain);
	}
	end(&w);
}

/* Without feedback: what global_encode_delta gives. With what loses nothing: no residual. */
static void test_plain(void **state) {
	(void)state;
	struct world w;
	begin(&w, "int8", 0);
	assert_true(contribution_is_plain(&w.c) && !w.c.residual);
	train(0);
	encode(&w, 0);
	assert_int_equal(global_encode_delta(&w.g, local, out2, NULL), RV_OK);
	assert_memory_equal(out, out2, chunking_total_bytes(&w.g.cfg.chunks, &codec_int8));
	contribution_commit(&w.c, &w.g.cfg, 0, NULL, &plain);
	end(&w);
	begin(&w, "fp32", 0.5);
	train(0);
	encode(&w, 0);
	assert_int_equal(global_encode_delta(&w.g, local, out2, NULL), RV_OK);
	assert_memory_equal(out, out2, N * sizeof(float));
	contribution_commit(&w.c, &w.g.cfg, 0, NULL, &plain);
	for (size_t i = 0; i < N; i++)
		assert_true(w.c.residual[i] == 0);
	end(&w);
}

static void test_forget(void **state) {
	(void)state;
	struct world w;
	begin(&w, "int4", 0.9);
	train(0);
	encode(&w, 0);
	contribution_commit(&w.c, &w.g.cfg, 0, NULL, &plain);
	contribution_forget(&w.c, &w.g.cfg);
	encode(&w, 1);
	assert_int_equal(global_encode_delta(&w.g, local, out2, NULL), RV_OK);
	assert_memory_equal(out, out2, chunking_total_bytes(&w.g.cfg.chunks, &codec_int4));
	contribution_commit(&w.c, &w.g.cfg, 1, NULL, &plain);
	contribution_commit(&w.c, &w.g.cfg, 2, NULL, &plain); /* another process encoded that */
	for (size_t i = 0; i < N; i++)
		assert_true(w.c.residual[i] == 0);
	end(&w);
}

/* A fragment's residual waits for that fragment's next round. */
static void test_fragments(void **state) {
	(void)state;
	const struct fragment_layers layers = {.begin = 1024, .layer_elems = 2048, .n = 3};
	const struct rv_hash nameless = {{0}};
	struct global_config cfg;
	struct world w;
	run_config_defaults(&w.run);
	w.run.codec = CODEC_int4;
	w.run.error_feedback = 1;
	w.run.chunk_elems = 512;
	w.run.fragments = 2;
	fill_normal(theta, N, 1);
	assert_int_equal(global_config_of(&w.run, N, &layers, &nameless, &cfg, NULL), RV_OK);
	assert_int_equal(global_init(&w.g, &cfg, theta, NULL), RV_OK);
	assert_int_equal(contribution_init(&w.c, &w.run, &w.g.cfg, NULL), RV_OK);
	for (uint64_t round = 0; round < 4; round++) {
		train(round);
		memcpy(before, w.c.residual, sizeof before);
		encode(&w, round);
		contribution_commit(&w.c, &w.g.cfg, round, NULL, &plain);
		const struct chunking c = global_round_chunks(&w.g.cfg, round);
		size_t changed = 0, exchanged = 0;
		for (size_t i = 0; i < N; i++)
			changed += w.c.residual[i] != before[i];
		for (uint32_t i = 0; i < c.n_chunks; i++) {
			exchanged += chunking_len(&c, i);
			memcpy(before + global_round_chunk_at(&w.g.cfg, round, i),
				   w.c.residual + global_round_chunk_at(&w.g.cfg, round, i), chunking_len(&c, i) * sizeof(float));
		}
		assert_memory_equal(before, w.c.residual, sizeof before);
		assert_true(exchanged < N && changed > exchanged / 2);
	}
	end(&w);
}

/* What diverged is named; a residual that has grown too large is said, too. */
static void test_what_cannot_be_sent(void **state) {
	(void)state;
	struct rv_errtext et = {0};
	struct world w;
	begin(&w, "topk32", 1);
	train(0);
	local[4567] = INFINITY;
	assert_int_equal(contribution_encode(&w.c, &w.g, 0, local, out, &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "parameter 4567 is inf"));
	train(0);
	w.c.residual[20] = 3e38f;
	local[20] = -3e38f;
	assert_int_equal(contribution_encode(&w.c, &w.g, 0, local, out, &et), RV_E_RANGE);
	assert_non_null(strstr(et.text, "too large to be sent"));
	end(&w);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_lost),
		cmocka_unit_test(test_what_a_form_leaves_out_is_kept),
		cmocka_unit_test(test_all_is_said_in_the_end),
		cmocka_unit_test(test_what_is_not_committed_was_not_said),
		cmocka_unit_test(test_encoding_again_gives_the_same),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_what_cannot_be_sent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
