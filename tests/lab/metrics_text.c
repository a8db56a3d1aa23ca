/* metrics_text.c: see metrics_text.h. */
#include "tests/lab/metrics_text.h"

#include "tests/lab/lab_fixture.h"

#include <math.h>

enum { PARAMS = 1000, STEPS = 10, TOKENS = 100 };

static uint64_t bytes_of(const char *method, uint32_t workers, uint64_t round) {
	uint64_t payload = method[1] == 'd' ? PARAMS * 4 * STEPS : PARAMS;
	return round * metrics_allreduce_bytes(payload, workers);
}

static void write_round(struct rv_json_lines *m, const char *method, uint32_t workers, uint64_t round) {
	const struct metrics_round line = {.round = round,
									   .step = round * STEPS,
									   .tokens = round * STEPS * TOKENS * workers,
									   .participants = workers,
									   .train_loss = 5 / sqrt((double)round),
									   .bytes_sent = bytes_of(method, workers, round) * 101 / 100,
									   .formula_bytes = bytes_of(method, workers, round),
									   .compute_us = 2000000,
									   .reduce_us = 600000,
									   .overlap_us = 100000,
									   .idle_us = 250000};
	const struct metrics_eval eval = {.round = round,
									  .step = line.step,
									  .tokens = line.tokens,
									  .loss = 5 / sqrt((double)round),
									  .bytes_sent = line.bytes_sent};
	assert_int_equal(metrics_write_round(m, &line, NULL), RV_OK);
	assert_int_equal(metrics_write_eval(m, &eval, NULL), RV_OK);
}

void write_metrics(const char *path, const char *name, const char *role, const char *method, uint32_t member,
				   uint32_t workers, uint64_t rounds) {
	struct rv_json_lines *m;
	assert_int_equal(rv_json_lines_open(path, false, &m, NULL), RV_OK);
	const struct metrics_run run = {.name = name,
									.role = role,
									.method = method,
									.codec = "int8",
									.outer = "nesterov",
									.member = member,
									.workers = workers,
									.n_params = PARAMS,
									.rounds = rounds,
									.steps_per_round = STEPS,
									.tokens_per_step = TOKENS,
									.payload_bytes = PARAMS,
									.device = "none"};
	assert_int_equal(metrics_write_run(m, &run, NULL), RV_OK);
	for (uint64_t r = 1; r <= rounds; r++)
		write_round(m, method, workers, r);
	const struct metrics_end end = {.round = rounds,
									.tokens = rounds * STEPS * TOKENS * workers,
									.loss = 4.5 / sqrt((double)rounds),
									.wall_us = 1000000};
	assert_int_equal(metrics_write_end(m, &end, NULL), RV_OK);
	rv_json_lines_close(m);
}
