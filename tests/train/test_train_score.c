/* Scores tell work from none: what training gives lowers the loss, and its opposite raises it. */
#include "train/score.h"
#include "train_fixture.h"

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
	float *scratch = malloc(2 * n * sizeof *scratch);
	struct score s;
	const struct score_text text = {.reading = &reading, .next = 0, .steps = 3};
	assert_ok(score_contribution(r, theta, delta, share, &text, scratch, &s, &et));
	free(scratch);
	return s;
}

static void work_scores_and_its_opposite_does_not(void **state) {
	(void)state;
	const size_t n = replica_n_params(r);
	float *theta = fixture_copy_theta(r), *delta = calloc(n, sizeof *delta);
	const struct score nothing = score_of(theta, delta, 1);
	assert_true(nothing.before == nothing.after && nothing.before > 0);
	replica_set_theta(r, theta);
	replica_read(r, &reading, 0);
	fixture_steps(r, 8);
	const float *local = replica_theta(r);
	for (size_t i = 0; i < n; i++)
		delta[i] = theta[i] - local[i];
	const struct score work = score_of(theta, delta, 1), half = score_of(theta, delta, 0.5f);
	const struct score flipped = score_of(theta, delta, -1);
	assert_true(work.before == nothing.before && half.before == nothing.before);
	assert_true(work.after < work.before && half.after < half.before && flipped.after > flipped.before);
	/* The same call gives the same bits. */
	const struct score again = score_of(theta, delta, 1);
	assert_memory_equal(&again, &work, sizeof work);
	free(theta);
	free(delta);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(work_scores_and_its_opposite_does_not, setup, teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
