/* test_train_bf16.c: a small model trained with products in bf16 learns what it learns in fp32: its
 * held-out loss after training differs by less than training with another seed makes it differ. */
#include "tests/train/train_fixture.h"

#include <math.h>
#include <stdio.h>

enum { SEEDS = 3, STEPS = 40 };

static struct run_config config(const char *model, int seed, const char *dtype) {
	struct run_config c = fixture_config();
	(void)rv_options_set(run_config_options, &c, "model", model, NULL);
	(void)rv_options_set(run_config_options, &c, "dtype", dtype, NULL);
	c.n_embd = 32;
	c.batch = 4;
	c.seed = seed;
	c.steps_per_round = STEPS;
	c.rounds = 1;
	return c;
}

/* Held-out loss after STEPS steps. */
static double train(const struct fixture_run *f, const struct run_config *c) {
	struct backend_options opt = {
		.threads = 2, .compute = run_config_compute(c, &(struct device_choice){.backend = "cpu"}, NULL), .isa = "auto"};
	const struct replica_options options = {.n_shards = (uint32_t)c->data_shards};
	struct rv_errtext et = {0};
	struct step_stats stats;
	struct backend *be;
	struct replica *r = NULL;
	double loss = 0;
	bool ok = backend_open("cpu", &opt, &be, &et) == RV_OK && replica_new(c, f->data, &options, be, &r, &et) == RV_OK;
	for (int i = 0; i < STEPS && ok; i++)
		ok = replica_step(r, &stats, &et) == RV_OK;
	if (!ok || replica_eval(r, NULL, 16, &loss, &et) != RV_OK)
		fail_msg("%s", et.text);
	replica_free(r);
	backend_close(be);
	return loss;
}

static void check(const struct fixture_run *f, const char *model) {
	double fp32[SEEDS], mean = 0, variance = 0, shift = 0, largest = 0;
	for (int s = 0; s < SEEDS; s++) {
		struct run_config full = config(model, s + 1, "fp32"), half = config(model, s + 1, "bf16");
		fp32[s] = train(f, &full);
		double difference = train(f, &half) - fp32[s];
		mean += fp32[s] / SEEDS;
		shift += difference / SEEDS;
		largest = fmax(largest, fabs(difference));
	}
	for (int s = 0; s < SEEDS; s++)
		variance += (fp32[s] - mean) * (fp32[s] - mean) / (SEEDS - 1);
	print_message("%s: fp32 %.4f, standard deviation over seeds %.4f; bf16 differs by %.5f in the mean, %.5f at most\n",
				  model, mean, sqrt(variance), shift, largest);
	assert_true(largest > 0); /* bf16 was really computed in */
	assert_true(fabs(shift) < sqrt(variance));
	assert_true(largest < 2 * sqrt(variance));
	assert_true(mean < 2.5); /* it learned: ln 256 = 5.5 */
}

static void test_bf16_learns_as_fp32_does(void **state) {
	(void)state;
	struct fixture_run f;
	struct run_config c = config("gpt2", 1, "fp32");
	fixture_run_init(&f, &c, "ref");
	check(&f, "gpt2");
	check(&f, "llama");
	fixture_run_release(&f);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_bf16_learns_as_fp32_does)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
