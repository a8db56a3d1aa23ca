/* Scores tell work from none: what training gives lowers the loss, and its opposite raises it. */
#include "base/slow_lines.h"
#include "train/score.h"
#include "train_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct fixture_run f;
static struct dataset *ordered;
static struct replica *r;
static struct reading reading;

static int setup(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	fixture_run_init(&f, &cfg, "ref");
	struct dataset_config d = dataset_config_of(&f.cfg, f.dir);
	d.n_shards = 1;
	d.order = true;
	assert_ok(dataset_open(&d, &ordered, &et));
	assert_ok(replica_new(&f.cfg, ordered, &(struct replica_options){.n_shards = 1}, f.be, &r, &et));
	reading = (struct reading){.first = 0};
	assert_true(reading_add(&reading, 0, 64));
	return 0;
}

static int teardown(void **state) {
	(void)state;
	replica_free(r);
	dataset_close(ordered);
	fixture_run_release(&f);
	return 0;
}

static struct score score_of(const float *theta, const float *delta, float share) {
	const size_t n = replica_n_params(r);
	float *moved = malloc(2 * n * sizeof *moved);
	struct score s;
	const struct score_text text = {.reading = &reading, .next = 1, .n = 13};
	for (size_t i = 0; i < n; i++) {
		moved[i] = theta[i] - share * delta[i];
		moved[n + i] = theta[i] + share * delta[i];
	}
	assert_ok(score_measure(r, moved, moved + n, &text, &s, &et));
	free(moved);
	return s;
}

static void work_scores_and_its_opposite_does_not(void **state) {
	(void)state;
	const size_t n = replica_n_params(r);
	float *theta = fixture_copy_theta(r), *delta = calloc(n, sizeof *delta);
	const struct score nothing = score_of(theta, delta, 1);
	assert_true(nothing.gain == 0 && nothing.error == 0);
	replica_set_theta(r, theta);
	replica_read(r, &reading, 0);
	fixture_steps(r, 8);
	const float *local = replica_theta(r);
	for (size_t i = 0; i < n; i++)
		delta[i] = theta[i] - local[i];
	float *local_copy = fixture_copy_theta(r);
	const uint64_t next = replica_next(r);
	const struct score work = score_of(theta, delta, 1), half = score_of(theta, delta, 0.5f);
	const struct score flipped = score_of(theta, delta, -1);
	assert_true(work.gain > 0 && half.gain > 0 && work.error > 0 && work.gain > half.gain);
	assert_true(flipped.gain == -work.gain && flipped.error == work.error);
	/* The same call gives the same bits, and leaves the replica as it was. */
	assert_memory_equal(replica_theta(r), local_copy, n * sizeof(float));
	assert_int_equal(replica_next(r), next);
	const struct score again = score_of(theta, delta, 1);
	assert_memory_equal(&again, &work, sizeof work);
	free(theta);
	free(delta);
	free(local_copy);
}

/* Both steps are moved in one vector, and score as in two. */
static void an_auditor_scores_both(void **state) {
	enum { CHUNK = 256, SEQUENCES = 13 };
	(void)state;
	const size_t n = replica_n_params(r);
	const struct global_config g = {.n = n, .chunks = chunking_of(n, CHUNK), .codec = &codec_fp32};
	float *theta = fixture_copy_theta(r), *delta = calloc(n, sizeof *delta);
	replica_read(r, &reading, 0);
	fixture_steps(r, 8);
	for (size_t i = 0; i < n; i++)
		delta[i] = theta[i] - replica_theta(r)[i];
	const struct score_sent sent = {.encoded = (const uint8_t *)delta};
	struct score_job job = {.theirs = sent, .own = sent, .share = 0.5f, .their_text.first = 1, .own_text.first = 1};
	job.theirs.member = 1;
	for (int k = 0; k < 2; k++)
		assert_true(reading_add(k ? &job.own_text : &job.their_text, 1, SEQUENCES));
	assert_ok(score_run(r, &g, theta, &job, &et));
	const struct score expected = score_of(theta, delta, 0.5f);
	assert_true(expected.gain > 0);
	assert_memory_equal(&job.own_found, &expected, sizeof expected);
	assert_memory_equal(&job.theirs_found, &expected, sizeof expected);
	free(theta);
	free(delta);
}

/* theta - share * the contribution as it was sent: all of it, or every third chunk. */
static void a_contribution_moves_the_chunks_that_it_has(void **state) {
	enum { N = 2 * 256 + 7, CHUNK = 256, MEMBER = 5, ROUND = 4 };
	(void)state;
	const struct global_config g = {.n = N, .chunks = chunking_of(N, CHUNK), .codec = &codec_fp32};
	float theta[N], delta[N], moved[N], sent[N];
	for (int i = 0; i < N; i++) {
		theta[i] = (float)i;
		delta[i] = (float)(i % 8);
	}
	for (uint8_t part = 0; part <= 3; part += 3) {
		size_t n = 0;
		for (uint32_t k = 0; k < g.chunks.n_chunks; k++)
			for (size_t i = 0; slow_contributes(part, MEMBER, ROUND, k) && i < chunking_len(&g.chunks, k); i++)
				sent[n++] = delta[k * CHUNK + i];
		const struct score_sent s = {.round = ROUND, .member = MEMBER, .part = part, .encoded = (const uint8_t *)sent};
		assert_int_equal(score_sent_bytes(&g, &s), n * sizeof(float));
		assert_ok(score_move(&g, &s, 0.25f, theta, moved, &et));
		for (uint32_t i = 0; i < N; i++)
			assert_true(moved[i] ==
						theta[i] - (slow_contributes(part, MEMBER, ROUND, i / CHUNK) ? 0.25f * delta[i] : 0));
	}
	sent[0] = NAN;
	const struct score_sent bad = {.round = ROUND, .member = MEMBER, .encoded = (const uint8_t *)sent};
	assert_int_equal(score_move(&g, &bad, 0.25f, theta, moved, NULL), RV_E_CORRUPT);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(work_scores_and_its_opposite_does_not, setup, teardown),
		cmocka_unit_test_setup_teardown(an_auditor_scores_both, setup, teardown),
		cmocka_unit_test(a_contribution_moves_the_chunks_that_it_has),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
