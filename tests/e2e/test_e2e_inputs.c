/* test_e2e_inputs.c: what a run can start from: weights of another run, which a worker without them
 * gets from its peers; a tokenizer that makes tokens of the text. With a Llama, and memory saved by
 * computing again. */
#include "ends.h"
#include "tests/common/check.h"
#include "tests/common/scratch.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char one_worker[] = "model = llama\nn-layer = 1\nn-head = 2\nn-embd = 32\ncontext = 32\nbatch = 2\n"
								 "data-shards = 1\nmin-workers = 1\nsteps-per-round = 2\nrounds = 2\n" E2E_PATIENT;

static struct e2e first, second;

static int setup(void **state) {
	(void)state;
	memset(&first, 0, sizeof first);
	memset(&second, 0, sizeof second);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	e2e_close(&first);
	if (second.dir[0])
		e2e_close(&second);
	return 0;
}

/* What the last program run as `name` printed. */
static void printed(const struct e2e *e, const char *name, char *out, size_t cap) {
	char path[E2E_PATH + 32];
	snprintf(path, sizeof path, "%s/%s.log", e->dir, name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	size_t n = fread(out, 1, cap - 1, f);
	assert_true(n < cap - 1);
	out[n] = '\0';
	fclose(f);
}

/* The configuration of a run of two workers that `option` adds something to. */
static void make_config(const char *option, const char *value, const char *rounds, const char *outer, char *config,
						size_t cap) {
	char conf[E2E_PATH + 32];
	snprintf(conf, sizeof conf, "%s/run.conf", first.dir);
	const char *const two_workers[] = {"rivulet",
									   "config",
									   "--config",
									   conf,
									   "--data-shards",
									   "2",
									   "--min-workers",
									   "2",
									   "--rounds",
									   rounds,
									   "--holdout-every",
									   "5",
									   "--snapshot-every",
									   "64",
									   option,
									   value,
									   "--outer",
									   outer,
									   NULL};
	e2e_run(&first, "config", two_workers, 0);
	printed(&first, "config", config, cap);
}

static bool exists(const char *dir, const char *name) {
	char path[E2E_PATH + 32];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return stat(path, &st) == 0;
}

/* What was refused costs neither an invite nor a member's number. */
static void assert_not_joined(const struct e2e *e, int i) {
	char dir[E2E_PATH];
	e2e_worker_dir(e, i, dir);
	assert_false(exists(dir, "run.conf"));
}

static void finish(struct e2e *e, int n) {
	char chain[65], full[65];
	e2e_assert_same_end(e, (const int[]){0, 1, 2, 3}, n, chain, full);
}

/* The only copy that worker i has of the weights that its run starts from. */
static void damage_base0(const struct e2e *e, int i) {
	char dir[E2E_PATH], path[E2E_PATH + 32];
	e2e_worker_dir(e, i, dir);
	snprintf(path, sizeof path, "%s/snapshot-0.rvs", dir);
	FILE *f = fopen(path, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, -5, SEEK_END), 0);
	int c = fgetc(f);
	assert_int_equal(fseek(f, -5, SEEK_END), 0);
	fputc(c ^ 1, f);
	assert_int_equal(fclose(f), 0);
}

/* Its logs must not be replayed onto weights drawn from the seed: the snapshot comes from the peer
 * again. */
static void restart_with_a_damaged_base0(struct e2e *e, int i) {
	json_decref(e2e_wait_event(&e->workers[i], "round", NULL, 0, NULL));
	process_signal(&e->workers[i], SIGTERM);
	process_assert_exit(&e->workers[i], 0);
	damage_base0(e, i);
	const char *init = e->worker_args[0];
	e->worker_args[0] = NULL;
	e2e_start_worker(e, i, NULL, NULL);
	e->worker_args[0] = init;
}

static void check_initial_weights_from_a_peer(const char *outer) {
	char weights[E2E_PATH], config[8192];
	e2e_open(&first, one_worker, 1);
	e2e_start_worker(&first, 0, NULL, NULL);
	finish(&first, 1);
	e2e_worker_dir(&first, 0, weights);
	make_config("--init", weights, "60", outer, config, sizeof config);
	assert_non_null(strstr(config, "model = llama"));

	e2e_open(&second, config, 2);
	e2e_start_worker(&second, 0, NULL, NULL); /* without them: it must not start from the seed */
	json_decref(e2e_wait_event(&second.workers[0], "no_initial_weights", NULL, 0, NULL));
	second.worker_args[0] = "--init";
	second.worker_args[1] = weights;
	second.worker_args[2] = "--recompute=block";
	e2e_gate_at(&second, 8);
	e2e_start_worker(&second, 1, E2E_GATED, NULL);
	long from = 0;
	json_t *installed = e2e_wait_event(&second.workers[0], "installed", NULL, 0, &from);
	assert_int_equal(e2e_int(installed, "round"), 0);
	json_decref(installed);
	restart_with_a_damaged_base0(&second, 0);
	e2e_open_gate(&second);
	from = 0;
	json_decref(e2e_wait_event(&second.workers[0], "damaged", NULL, 0, &from));
	json_decref(e2e_wait_event(&second.workers[0], "installed", NULL, 0, &from));
	finish(&second, 2);
}

static void who_lacks_the_initial_weights_gets_them_from_a_peer(void **state) {
	(void)state;
	check_initial_weights_from_a_peer("nesterov");
}

/* Its second moments do not start from zero. */
static void with_an_adaptive_outer_optimizer_too(void **state) {
	(void)state;
	check_initial_weights_from_a_peer("adam");
}

static void weights_of_another_run_are_refused(void **state) {
	(void)state;
	char weights[E2E_PATH];
	e2e_open(&first, one_worker, 1);
	e2e_start_worker(&first, 0, NULL, NULL);
	finish(&first, 1);
	e2e_worker_dir(&first, 0, weights);
	e2e_open(&second, one_worker, 1);
	second.worker_args[0] = "--init";
	second.worker_args[1] = weights;
	e2e_launch_worker(&second, 0);
	process_assert_exit(&second.workers[0], 1);
	assert_not_joined(&second, 0);
	json_t *failed = e2e_wait_event(&second.workers[0], "failed", NULL, 0, NULL);
	assert_non_null(strstr(e2e_text(failed, "text"), "starts from its seed"));
	json_decref(failed);
}

/* A model for which no machine has memory: the worker says so before it takes any, or opens its
 * text. */
static void a_run_that_cannot_fit_is_refused(void **state) {
	(void)state;
	static const char huge[] = "n-layer = 20\nn-head = 2\nn-embd = 16384\ncontext = 32\nbatch = 2\n"
							   "data-shards = 1\nmin-workers = 1\nsteps-per-round = 2\nrounds = 2\n" E2E_PATIENT;
	e2e_open(&first, huge, 1);
	e2e_launch_worker(&first, 0);
	process_assert_exit(&first.workers[0], 1);
	assert_not_joined(&first, 0);
	long from = 0;
	json_t *failed = e2e_wait_event(&first.workers[0], "failed", NULL, 0, &from);
	assert_non_null(strstr(e2e_text(failed, "text"), "training needs "));
	json_decref(failed);
	first.worker_args[0] = "--short-of-memory=warn"; /* nor is there a disk for it */
	e2e_launch_worker(&first, 0);
	process_assert_exit(&first.workers[0], 1);
	assert_not_joined(&first, 0);
	failed = e2e_wait_event(&first.workers[0], "failed", NULL, 0, &from);
	assert_non_null(strstr(e2e_text(failed, "text"), "MB of disk at least"));
	json_decref(failed);
}

/* A text of which the tokenizer makes too few tokens costs no invite: they are counted before. */
static void refuse_too_few_tokens(struct e2e *e) {
	char text[E2E_PATH], words[4096];
	snprintf(text, sizeof text, "%s", e->data);
	memset(words, 'a', sizeof words);
	for (size_t i = 0; i < sizeof words; i += 5)
		words[i] = ' ';
	scratch_write(e->dir, "short.txt", words, sizeof words);
	snprintf(e->data, sizeof e->data, "%s/short.txt", e->dir);
	e2e_launch_worker(e, 0);
	process_assert_exit(&e->workers[0], 1);
	assert_not_joined(e, 0);
	snprintf(e->data, sizeof e->data, "%s", text);
}

static void a_tokenizer_makes_the_tokens_and_is_remembered(void **state) {
	(void)state;
	char tokenizer[E2E_PATH + 32], config[8192], dir[E2E_PATH];
	e2e_open(&first, one_worker, 1); /* for its text */
	snprintf(tokenizer, sizeof tokenizer, "%s/tokenizer.json", first.dir);
	const char *const train[] = {"rivulet", "tokenizer", "train", "--data",  first.data,
								 "--vocab", "300",       "--out", tokenizer, NULL};
	e2e_run(&first, "tokenizer", train, 0);
	make_config("--tokenizer", tokenizer, "80", "nesterov", config, sizeof config);
	e2e_open(&second, config, 2);
	e2e_launch_worker(&second, 0); /* text, and no tokenizer */
	process_assert_exit(&second.workers[0], 1);
	assert_not_joined(&second, 0);
	long from = 0;
	json_t *failed = e2e_wait_event(&second.workers[0], "failed", NULL, 0, &from);
	assert_non_null(strstr(e2e_text(failed, "text"), "--tokenizer"));
	json_decref(failed);
	second.worker_args[0] = "--tokenizer";
	second.worker_args[1] = tokenizer;
	refuse_too_few_tokens(&second);
	e2e_start_workers(&second, 2);
	json_decref(e2e_wait_event(&second.workers[1], "round", NULL, 0, NULL));
	process_signal(&second.workers[1], SIGTERM);
	process_assert_exit(&second.workers[1], 0);
	second.worker_args[0] = NULL;
	e2e_start_worker(&second, 1, NULL, NULL);
	finish(&second, 2);
	e2e_worker_dir(&second, 1, dir);
	assert_true(exists(dir, "tokenizer.json") && exists(dir, "config.json") && exists(dir, "model.safetensors"));
}

/* A rank file of GPT-2's size, which tells the pattern: the bytes, and 50,000 pairs of them. */
static void write_ranks(const char *path) {
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	enum { BYTES = 256, PAIRS = 50000 };
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	for (unsigned i = 0; i < BYTES; i++)
		fprintf(f, "%c%c== %u\n", digits[i >> 2], digits[(i & 3) << 4], i);
	for (unsigned i = 0; i < PAIRS; i++)
		fprintf(f, "%c%c%c= %u\n", digits[i >> 10], digits[i >> 4 & 63], digits[(i & 15) << 2], BYTES + i);
	assert_int_equal(fclose(f), 0);
}

static void start_with_tokenizer(int i, const char *file) {
	second.worker_args[0] = "--tokenizer";
	second.worker_args[1] = file;
	e2e_start_worker(&second, i, NULL, NULL);
}

/* The weights are what counts: they are there, whatever becomes of the tokenizer's file. */
static void a_rank_file_is_a_tokenizer_and_may_be_gone_at_the_end(void **state) {
	(void)state;
	char kept[E2E_PATH + 32], lost[E2E_PATH + 32], config[8192], dir[E2E_PATH];
	e2e_open(&first, one_worker, 1); /* for its text */
	snprintf(kept, sizeof kept, "%s/kept.tiktoken", first.dir);
	snprintf(lost, sizeof lost, "%s/lost.tiktoken", first.dir);
	write_ranks(kept);
	write_ranks(lost);
	make_config("--tokenizer", kept, "2", "nesterov", config, sizeof config);
	e2e_open(&second, config, 2);
	start_with_tokenizer(0, lost);
	json_decref(e2e_wait_event(&second.workers[0], "started", NULL, 0, NULL));
	assert_int_equal(remove(lost), 0);
	start_with_tokenizer(1, kept);
	finish(&second, 2);
	e2e_worker_dir(&second, 0, dir);
	assert_true(exists(dir, "model.safetensors") && exists(dir, "config.json"));
	assert_false(exists(dir, "tokenizer.tiktoken") || exists(dir, "tokenizer.json"));
	json_t *warning = e2e_wait_event(&second.workers[0], "no_tokenizer", NULL, 0, NULL);
	assert_non_null(strstr(e2e_text(warning, "text"), "lost.tiktoken"));
	json_decref(warning);
	e2e_worker_dir(&second, 1, dir);
	assert_true(exists(dir, "model.safetensors") && exists(dir, "tokenizer.tiktoken"));
	assert_false(exists(dir, "tokenizer.json"));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_lacks_the_initial_weights_gets_them_from_a_peer, setup, teardown),
		cmocka_unit_test_setup_teardown(with_an_adaptive_outer_optimizer_too, setup, teardown),
		cmocka_unit_test_setup_teardown(weights_of_another_run_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_run_that_cannot_fit_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_rank_file_is_a_tokenizer_and_may_be_gone_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(a_tokenizer_makes_the_tokens_and_is_remembered, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
