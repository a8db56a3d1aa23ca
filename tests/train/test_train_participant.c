/* test_train_participant.c: what a replica takes of a round, and what it keeps. */
#include "train/participant/participant.h"
#include "train_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 256, FRAGMENTS = 3 };

struct scene {
	struct fixture_run run;
	struct global_state g;
	struct participant p;
	float *local; /* the replica's before */
};

static void begin(struct scene *s, uint32_t fragments, float mix) {
	fixture_run_init(&s->run, NULL, "cpu");
	s->run.cfg.chunk_elems = CHUNK;
	s->run.cfg.fragments = fragments;
	s->run.cfg.mix = (double)mix;
	size_t n = replica_n_params(s->run.replica);
	const struct fragment_layers *layers = &replica_model(s->run.replica)->layout.layers;
	struct global_config cfg;
	s->local = malloc(n * sizeof *s->local);
	assert_int_equal(global_config_of(&s->run.cfg, n, layers, &(struct rv_hash){0}, &cfg, NULL), RV_OK);
	for (size_t i = 0; i < n; i++)
		s->local[i] = (float)(i % 97) * 0.01f;
	replica_set_theta(s->run.replica, s->local);
	for (size_t i = 0; i < n; i++)
		s->local[i] = -1 - s->local[i];
	assert_int_equal(global_init(&s->g, &cfg, s->local, NULL), RV_OK);
	assert_int_equal(participant_init(&s->p, &participant_replica, s->run.replica, &s->run.cfg, &s->g, NULL), RV_OK);
	memcpy(s->local, replica_theta(s->run.replica), n * sizeof *s->local);
}

static void end(struct scene *s) {
	participant_release(&s->p);
	global_release(&s->g);
	free(s->local);
	fixture_run_release(&s->run);
}

/* All of the vector lies in exactly one round of a cycle. */
static void check(uint32_t fragments, float mix) {
	for (uint64_t round = 0; round < fragments; round++) {
		struct scene s;
		begin(&s, fragments, mix);
		const struct chunking c = global_round_chunks(&s.g.cfg, round);
		participant_mix(&s.p, &s.g, round);
		const float *now = replica_theta(s.run.replica);
		size_t taken = 0;
		for (uint32_t i = 0; i < c.n_chunks; i++) {
			size_t at = global_round_chunk_at(&s.g.cfg, round, i);
			for (size_t k = at; k < at + chunking_len(&c, i); k++, taken++) {
				float want = mix == 0 ? s.g.theta[k] : mix * s.local[k] + (1 - mix) * s.g.theta[k];
				assert_true(now[k] == want);
				s.local[k] = now[k];
			}
		}
		assert_int_equal(taken, c.n);
		assert_memory_equal(now, s.local, s.g.cfg.n * sizeof *now); /* the rest is untouched */
		end(&s);
	}
}

static void what_the_round_exchanged_is_taken(void **state) {
	(void)state;
	check(1, 0);
	check(FRAGMENTS, 0);
}

static void a_share_is_kept(void **state) {
	(void)state;
	check(1, 0.25f);
	check(FRAGMENTS, 0.75f);
}

static void all_is_kept(void **state) {
	(void)state;
	struct scene s;
	begin(&s, FRAGMENTS, 1);
	s.g.theta[0] = NAN; /* it is not even looked at */
	for (uint64_t round = 0; round < FRAGMENTS; round++)
		participant_mix(&s.p, &s.g, round);
	assert_memory_equal(replica_theta(s.run.replica), s.local, s.g.cfg.n * sizeof *s.local);
	end(&s);
}

/* A worker that rests for rounds trains on: its contribution grows by the steps of each. A part of
 * one goes on to be whole, and without the policy a whole one is ready as it is. */
static void a_contribution_that_rests_grows(void **state) {
	(void)state;
	for (int skips = 0; skips < 2; skips++)
		for (int part = 0; part < 2; part++) {
			struct scene s;
			begin(&s, 1, 0);
			s.run.cfg.slow_members = skips ? SLOW_SKIP : SLOW_WAIT;
			const uint64_t h = (uint64_t)s.run.cfg.steps_per_round, done = part ? h - 1 : h;
			s.p.steps_done = done;
			s.p.tokens = 100;
			s.g.round = s.p.round + 1;
			(void)participant_adopt(&s.p, &s.g, s.g.theta, PARTICIPANT_KEEP);
			assert_int_equal(s.p.steps_done, skips && !part ? 0 : done);
			assert_int_equal(s.p.tokens, 100);
			end(&s);
		}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_round_exchanged_is_taken),
		cmocka_unit_test(a_share_is_kept),
		cmocka_unit_test(all_is_kept),
		cmocka_unit_test(a_contribution_that_rests_grows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
