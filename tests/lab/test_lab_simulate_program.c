/* `rivulet simulate` itself: what it prints, for people and for programs, and what it refuses. */
#include "tests/common/check.h"
#include "tests/common/process.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { OUTPUT_BYTES = 64 << 10 };

static char output[OUTPUT_BYTES];

/* Runs `rivulet simulate ARGS`, stderr included, into `output`. */
static int simulate_program(const char *args) {
	return process_shell(output, sizeof output, "'%s/rivulet' simulate %s", RV_TEST_BIN_DIR, args);
}

static void check(const char *args, int status, const char *needle) {
	int got = simulate_program(args);
	if (got != status || !strstr(output, needle))
		fail_msg("simulate %s: status %d, and not \"%s\" in:\n%s", args, got, needle, output);
}

/* Line `i` of the output as JSON. */
static json_t *json_line(int i) {
	char *line = output;
	for (; i > 0 && line; i--)
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
	json_t *v = line ? json_loads(line, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
	assert_non_null(v);
	return v;
}

static double number(const json_t *line, const char *key) {
	const json_t *v = json_object_get(line, key);
	assert_true(json_is_number(v));
	return json_number_value(v);
}

static void test_tables(void **state) {
	(void)state;
	check("--table streaming-diloco", 0, "65 of 75 exact, 75 within one grid point");
	json_t *cell = json_line(0), *summary = json_line(75);
	assert_string_equal(json_string_value(json_object_get(cell, "event")), "cell");
	assert_true(number(cell, "published_gbit_per_s") == 86.8);
	assert_true(number(summary, "exact") == 65 && number(summary, "cells") == 75);
	json_decref(cell);
	json_decref(summary);
	check("--table scaling-laws --format text", 0, "\n6 of 25 exact, 24 within one grid point\n");
}

static void test_runs(void **state) {
	(void)state;
	check("--params 1M --layers 4 --step-time-ms 100 --workers 2 --steps-per-round 10 --rate 8mbit --latency-ms 10 "
		  "--sync-ms 30 --overhead 1 --bits 8 --steps 1000 --method diloco",
		  0, "\"event\":\"simulate\"");
	json_t *line = json_line(0);
	/* 10 steps of 0.1 s, 8 Mbit at 8 Mbit/s, 7 ways of 10 ms, 30 ms */
	assert_true(number(line, "utilisation") > 1 / 2.1 - 1e-6 && number(line, "utilisation") < 1 / 2.1 + 1e-6);
	assert_true(number(line, "wall_s") > 209.999 && number(line, "wall_s") < 210.001);
	assert_true(number(line, "sent_bytes") > 100.9e6 && number(line, "sent_bytes") < 101.1e6);
	json_decref(line);
	check("--format text", 0, "streaming (P 4, overlap 0)");
	/* 124 M bytes, of which each of four sends 1.5, a hundred times, and 1 % of headers */
	check("--method diloco --format text", 0, " 18.8 GB\n");
	check("--rate UNLIMITED", 0, "\"rate_bits_per_s\":null,\"reachable\":true");
	check("--steps-per-round 1 --rate 1Gbit/s", 0, "\"streaming\"");
}

/* Rounds of 10 steps of 0.1 s, each with a quarter of 4 M bytes: 8 Mbit at 8 Mbit/s, 7 ways of 10
 * ms, 30 ms; as `rivulet train --fragments 4 --steps-per-round 10 --overlap-steps 5` takes 1000
 * steps for a hundred rounds. */
static void test_a_fragment_a_round(void **state) {
	(void)state;
	static const char run[] = "--params 4M --layers 4 --step-time-ms 100 --workers 2 --steps-per-round 10 --rate 8mbit "
							  "--latency-ms 10 --sync-ms 30 --overhead 1 --steps 1000 --method streaming --fragments 4 "
							  "--overlap-steps ";
	static const struct {
		int overlap;
		double round_s;
	} cases[] = {{0, 2.1}, {5, 1.6}, {10, 1.1}};
	for (int i = 0; i < 3; i++) {
		char args[sizeof run + 16];
		(void)snprintf(args, sizeof args, "%s%d", run, cases[i].overlap);
		check(args, 0, "\"fragments\":4");
		json_t *line = json_line(0);
		double wall_s = number(line, "wall_s"), sent = number(line, "sent_bytes");
		assert_true(wall_s > 100 * cases[i].round_s - 1e-3 && wall_s < 100 * cases[i].round_s + 1e-3);
		assert_true(sent > 100.9e6 && sent < 101.1e6);
		json_decref(line);
	}
}

/* 72 G values of 71 bytes in 4096, twice, 69 / 70 of them, 1.25 times as long as the bare line. */
static void test_covenant(void **state) {
	(void)state;
	check("--preset covenant-72b --method diloco", 0, "\"workers\":70");
	json_t *line = json_line(0);
	const double exchange_s = 72e9 * 2 * (71.0 * 8 / 4096) * 69 / 70 * 1.25 / 110e6, round_s = 1203 + exchange_s;
	assert_true(number(line, "utilisation") > 1203 / (round_s + 0.3) && number(line, "utilisation") < 1203 / round_s);
	assert_true(number(line, "mean_bits") == number(line, "bits") && number(line, "down_bits_per_s") == 500e6);
	json_decref(line);
	check("--preset covenant-72b --format text", 0, "gather ");
	check("--preset covenant-72b --format text", 0, "\nThe paper: 94.50 % computing, 70 s of exchange a round");
	check("--preset covenant-72b --method streaming --fragments 1 --overlap-steps 30 --format text", 0, "100.00 %");
	check("--preset covenant", 2, "covenant-72b");
}

/* The largest of everything is answered: the work does not grow with the steps of a round. */
static void test_long_rounds_cost_nothing(void **state) {
	(void)state;
	check("--steps-per-round 1000000 --layers 1024 --method streaming --fragments 1024 --overlap-steps 999999 "
		  "--solve utilisation=0.99",
		  0, "\"reachable\":true");
	check("--steps-per-round 1000000 --layers 1024 --solve utilisation=0.99", 0, "\"reachable\":true");
}

static void test_solve(void **state) {
	(void)state;
	char again[128];
	check("--method diloco --solve utilisation=0.9", 0, "\"rate_bits_per_s\":");
	json_t *line = json_line(0);
	(void)snprintf(again, sizeof again, "--method diloco --rate %.0fbit", number(line, "rate_bits_per_s"));
	json_decref(line);
	check(again, 0, "\"event\"");
	line = json_line(0);
	assert_true(number(line, "utilisation") > 0.9 - 1e-6 && number(line, "utilisation") < 0.9 + 1e-6);
	json_decref(line);
	check("--steps-per-round 1 --solve utilisation=0.95 --format text", 0, "none suffices");
	check("--method diloco --steps-per-round 1 --solve utilisation=0.95", 1, "raise --steps-per-round");
}

/* A line that one worker needs would be a line for nothing. */
static void test_one_worker_needs_no_line(void **state) {
	(void)state;
	check("--workers 1 --solve utilisation=0.95", 1, "one worker does not exchange");
	check("--workers 1 --solve utilisation=0.95 --method streaming", 1, "try --workers 2");
	check("--workers 1 --rate 1bit --format text", 0, "1 worker, without exchanges, rounds of");
	check("--workers 1 --rate 1bit --format text --method ddp", 0,
		  "not needed      100.00 %      83.3 min               0 B\n");
}

static void test_refusals(void **state) {
	(void)state;
	check("--help", 0, "rivulet simulate --table streaming-diloco");
	check("--tabel x", 2, "did you mean --table?");
	check("--table streaming-diloko", 2, "did you mean streaming-diloco?");
	check("--table 4", 2, "scaling-laws");
	check("--solve utilization=0.9", 2, "try --solve utilisation=0.95");
	check("--solve utilisation", 2, "utilisation=X");
	check("--solve utilisation=95", 2, "a share, not a percentage");
	check("--solve utilisation=0.9 --rate 1gbit", 2, "leave one of them out");
	check("--solve utilisation=0.9 --table scaling-laws", 2, "leave --table or --solve out");
	check("--rate 20", 2, "20mbit");
	check("--rate 20MB", 2, "20mbit");
	check("--rate 0gbit", 2, "at least 1 bit/s");
	check("--params many", 2, "124M");
	check("--params 0", 2, "params = 0");
	check("--fragments 13", 2, "must be in [1, 12]");
	check("--method streaming --overlap-steps 101", 2, "overlap-steps = 101: must be in [0, 100]");
	check("--method diloco --fragments 4", 2, "try --method streaming --fragments 4");
	check("--method ddp --overlap-steps 4", 2, "try --method streaming");
	check("--method fedavg", 2, "ddp");
	check("--layers 0", 2, "[1, 1024]");
}

/* Several cards that divide weights train what none of them could hold. */
static void test_seven_billion_on_eight_cards(void **state) {
	(void)state;
	static const char *const commands[] = {"--memory --gpu 24GB --gpus 8 --model llama-7b",
										   "--memory --gpu 24GB --gpus 8 --model gpt2-7b"};
	for (int c = 0; c < 2; c++) {
		int chosen = 0;
		check(commands[c], 0, "\"event\":\"card_savings\"");
		for (int i = 0; i < 24; i++) {
			json_t *line = json_line(i);
			const bool divides = strstr(json_string_value(json_object_get(line, "savings")), "--zero 3") != NULL;
			assert_true(number(line, "params") > 6.5e9 && number(line, "link_bytes") > 0);
			assert_true(divides || !json_is_true(json_object_get(line, "fits")));
			if (json_is_true(json_object_get(line, "chosen"))) {
				assert_true(divides && number(line, "device_bytes") <= 24e9);
				chosen++;
			}
			json_decref(line);
		}
		assert_int_equal(chosen, 1);
	}
}

/* What fits a card, without one, for people and for programs. */
static void test_memory_of_cards(void **state) {
	(void)state;
	check("--memory --format text", 0, "8 x 80 GB");
	check("--memory", 0, "\"event\":\"card_memory\"");
	double last = 0;
	for (int i = 0; i < 7; i++) { /* 8, 12, 16, 24, 2 x 24, 8 x 24, 8 x 80 GB */
		json_t *line = json_line(i);
		const double filled = number(line, "device_bytes") / number(line, "card_bytes");
		assert_true(number(line, "params") > last && filled > 0.97 && filled <= 1);
		last = number(line, "params");
		json_decref(line);
	}
	check("--memory --gpu 24GB --model gpt2-1.5b", 0, "\"event\":\"card_savings\"");
	int chosen = 0;
	for (int i = 0; i < 16; i++) {
		json_t *line = json_line(i);
		const bool fits = json_is_true(json_object_get(line, "fits"));
		assert_true(fits == (number(line, "device_bytes") <= 24e9));
		chosen += json_is_true(json_object_get(line, "chosen"));
		json_decref(line);
	}
	assert_int_equal(chosen, 1);
	check("--memory --gpu 12GB --model gpt2-1.5b", 0, "--offload yes\"");
	check("--memory --gpu 24GB --gpus 2 --model gpt2-1.5b --format text", 0, "2 x 24 GB");
	check("--memory --gpu 4GB --model gpt2-1.5b --format text", 0, "No combination fits.");
	check("--memory --gpu 24GB --host 16GB --model gpt2-1.5b --format text", 0, "No combination fits.");
	/* Two contributions, and the weights that one of them moves: 6 bytes a parameter. */
	double host[2];
	for (int strangers = 0; strangers < 2; strangers++) {
		check(strangers ? "--memory --gpu 24GB --strangers" : "--memory --gpu 24GB", 0, "\"event\":\"card_memory\"");
		json_t *line = json_line(0);
		host[strangers] = number(line, "host_bytes") / number(line, "params");
		json_decref(line);
	}
	assert_true(host[1] - host[0] > 5.9 && host[1] - host[0] < 6.1);
	check("--strangers", 2, "strangers belongs to --memory");
	check("--gpu 24GB", 2, "gpu belongs to --memory");
	check("--sequences 8", 2, "sequences belongs to --memory");
	check("--memory --rate 20mbit", 2, "rate belongs to the question about lines");
	check("--memory --params 124M", 2, "params belongs to the question about lines");
	check("--memory --workers 8", 2, "workers belongs to the question about lines");
	check("--memory --model gpt2-1.5b", 2, "add --gpu 24GB");
	check("--memory --gpu 24GB --gpus 8 --sequences 4", 2, "at least one for each of 8 GPUs");
	check("--memory --gpu 24GB --model gpt2-2b", 2, "did you mean");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_seven_billion_on_eight_cards),
		cmocka_unit_test(test_memory_of_cards),
		cmocka_unit_test(test_a_fragment_a_round),
		cmocka_unit_test(test_long_rounds_cost_nothing),
		cmocka_unit_test(test_solve),
		cmocka_unit_test(test_covenant),
		cmocka_unit_test(test_one_worker_needs_no_line),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
