/* test_lab_replay.c: traces of two workers that both stopped, in round 1, between their vote and
 * the outer step: who took part is in the vote of the attempt that counted. */
#include "base/file.h"
#include "base/json_lines.h"
#include "lab/worker_files/replay.h"

#include "base/hex.h"
#include "tests/common/check.h"
#include "tests/lab/lab_fixture.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 2, ROUNDS = 3, STEPS = 3, STOPPED_IN = 1, MAX_VOTES = 3 };

/* What a worker's trace tells of the round in which it stopped. */
struct told {
	struct trace_roster votes[MAX_VOTES];
	int n;
	uint32_t attempt; /* of the outer step */
	bool goes_back;   /* its disk is of the round before: it does that outer step and its own steps again */
	int deaths;       /* processes that were killed after some steps of that round */
	int copies;       /* of the replica that each of them made, one after each step, and the disk never had */
};

static struct lab_fixture f;
static struct rv_hash chains[ROUNDS], end;

static struct trace_roster roster_of(uint64_t round, uint32_t attempt, uint32_t weight) {
	struct trace_roster r = {.round = round, .attempt = attempt, .n = WORKERS};
	for (int i = 0; i < WORKERS; i++) {
		r.members[i].member = (uint32_t)i;
		r.members[i].weight = i == 0 ? weight : 1;
		r.members[i].boot = (uint64_t)i + (round > STOPPED_IN ? 200 : 100);
	}
	return r;
}

/* What the traces are to end in. */
static void record_run(void) {
	struct lab_run *r = lab_fixture_start(&f);
	for (int i = 0; i < ROUNDS; i++) {
		struct lab_round round;
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		chains[i] = r->global.chain;
	}
	end = global_full_hash(&r->global);
	lab_run_free(r);
}

static void append(const char *path, const char *line) {
	FILE *file = fopen(path, "a");
	assert_non_null(file);
	assert_true(fputs(line, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void write_restart(struct rv_json_lines *t, uint32_t member, bool goes_back) {
	const uint64_t before = STOPPED_IN - 1, round = goes_back ? before : STOPPED_IN;
	const struct trace_started again = {.member = member,
										.boot = 200 + member,
										.round = round,
										.saved = true,
										.exact = true,
										.saved_round = round,
										.saved_steps = STEPS,
										.threads = 1,
										.dtype = "fp32"};
	const struct trace_applied apply = {.round = before, .participated = true, .chain = chains[before], .attempt = 1};
	assert_int_equal(rv_json_lines_write(t, trace_start(&again), NULL), RV_OK);
	if (!goes_back)
		return;
	assert_int_equal(rv_json_lines_write(t, trace_apply(&apply), NULL), RV_OK);
	assert_int_equal(rv_json_lines_write(t, trace_train(STOPPED_IN, 0, STEPS, NULL), NULL), RV_OK);
}

/* Each process starts from the same copy, made at the end of the round before. */
static void write_deaths(struct rv_json_lines *t, uint32_t member, const struct told *told) {
	const struct trace_started again = {.member = member,
										.boot = 100 + member,
										.round = STOPPED_IN,
										.saved = true,
										.exact = true,
										.saved_round = STOPPED_IN,
										.threads = 1,
										.dtype = "fp32"};
	for (int death = 0; death < told->deaths; death++) {
		for (uint64_t step = 0; step < (uint64_t)told->copies; step++) {
			assert_ok(rv_json_lines_write(t, trace_train(STOPPED_IN, step, step + 1, NULL), &et));
			assert_ok(rv_json_lines_write(t, trace_save(STOPPED_IN, step + 1), &et));
		}
		assert_ok(rv_json_lines_write(t, trace_start(&again), &et));
	}
}

static void write_round(struct rv_json_lines *t, uint32_t member, uint64_t round, const struct told *told) {
	const bool stops = round == STOPPED_IN;
	const struct trace_roster usual = roster_of(round, 1, 1);
	const struct trace_applied apply = {.round = round,
										.participated = true,
										.copy = true,
										.chain = chains[round],
										.attempt = stops ? told->attempt : 1};
	uint64_t boot = (round > STOPPED_IN ? 200 : 100) + member;
	if (stops)
		write_deaths(t, member, told);
	assert_int_equal(rv_json_lines_write(t, trace_train(round, 0, STEPS, NULL), NULL), RV_OK);
	assert_int_equal(rv_json_lines_write(t, trace_encode(round, boot, true, true), NULL), RV_OK);
	for (int i = 0; stops && i < told->n; i++)
		assert_int_equal(rv_json_lines_write(t, trace_vote(&told->votes[i]), NULL), RV_OK);
	if (!stops)
		assert_int_equal(rv_json_lines_write(t, trace_vote(&usual), NULL), RV_OK);
	if (stops)
		write_restart(t, member, told->goes_back);
	assert_int_equal(rv_json_lines_write(t, trace_apply(&apply), NULL), RV_OK);
}

static void make_trace(uint32_t member, const struct told *told, struct trace_record *out) {
	const struct trace_started start = {.member = member, .boot = 100 + member, .threads = 1, .dtype = "fp32"};
	struct rv_json_lines *t;
	char path[300];
	snprintf(path, sizeof path, "%s/trace-%u", f.dir, member);
	(void)remove(path);
	assert_int_equal(rv_json_lines_open(path, true, &t, NULL), RV_OK);
	assert_int_equal(rv_json_lines_write(t, trace_start(&start), NULL), RV_OK);
	for (uint64_t round = 0; round < ROUNDS; round++)
		write_round(t, member, round, told);
	rv_json_lines_close(t);
	assert_ok(trace_read(path, out, &et));
}

/* The fault of making the replay, or of the first round that fails; RV_OK: it ended in the run's
 * bits. */
static enum rv_err replay_all(const struct told told[WORKERS], struct rv_errtext *et) {
	struct trace_record traces[WORKERS];
	struct replay *p = NULL;
	for (uint32_t i = 0; i < WORKERS; i++)
		make_trace(i, &told[i], &traces[i]);
	struct lab_run *run = lab_fixture_start(&f);
	enum rv_err e = replay_new(run, traces, WORKERS, &p, et);
	for (int i = 0; e == RV_OK && i < ROUNDS; i++)
		e = replay_round(p, et);
	if (e == RV_OK) {
		const struct rv_hash replayed = global_full_hash(&run->global);
		assert_int_equal(replay_rounds(p), ROUNDS);
		assert_hashes_equal(replayed, end);
	}
	replay_free(p);
	lab_run_free(run);
	for (int i = 0; i < WORKERS; i++)
		trace_record_release(&traces[i]);
	return e;
}

static void replays(const struct told told[WORKERS]) {
	assert_ok(replay_all(told, &et));
}

static void fails(const struct told told[WORKERS], enum rv_err kind, const char *why) {
	struct rv_errtext et = {0};
	assert_fault(replay_all(told, &et), kind, &et, why);
}

/* One vote each, of the attempt that counted. */
static struct told usual(uint32_t applied) {
	return (struct told){.votes = {roster_of(STOPPED_IN, 2, 1)}, .n = 1, .attempt = applied};
}

static void test_a_later_process_names_the_attempt_of_its_vote(void **state) {
	(void)state;
	replays((const struct told[]){usual(2), usual(2)});
	replays((const struct told[]){usual(2), {.attempt = 0}});
	replays((const struct told[]){{.attempt = 2}, usual(0)});
}

/* The first and the third came to a result too: other weights, other bits. */
static void test_the_attempt_that_counted_is_taken(void **state) {
	(void)state;
	const struct told all = {
		.votes = {roster_of(STOPPED_IN, 1, 3), roster_of(STOPPED_IN, 2, 1), roster_of(STOPPED_IN, 3, 5)},
		.n = 3,
		.attempt = 2};
	replays((const struct told[]){all, all});
	replays((const struct told[]){all, {.attempt = 0}});
	struct told first = all;
	first.attempt = 1;
	fails((const struct told[]){first, {.attempt = 0}}, RV_E_PROTOCOL,
		  "round 2: the state hash is not the recorded one");
}

static void test_an_attempt_that_nobody_names(void **state) {
	(void)state;
	replays((const struct told[]){usual(0), usual(0)});
	struct told other = usual(0);
	other.votes[0] = roster_of(STOPPED_IN, 1, 3);
	fails((const struct told[]){usual(0), other}, RV_E_NOTFOUND,
		  "round 2: attempts 2 and 1 had other participants, and no trace that is here says which of them counted");
}

static void test_votes_that_contradict_each_other(void **state) {
	(void)state;
	struct told other = usual(2);
	other.votes[0] = roster_of(STOPPED_IN, 2, 3);
	fails((const struct told[]){usual(2), other}, RV_E_INVALID,
		  "round 2, attempt 2: member 1 recorded other participants than the others");
}

static void test_no_vote_of_that_attempt(void **state) {
	(void)state;
	fails((const struct told[]){{.attempt = 0}, {.attempt = 0}}, RV_E_NOTFOUND,
		  "round 2: no trace that is here says who took part");
	struct told other = usual(3);
	fails((const struct told[]){other, other}, RV_E_NOTFOUND, "round 2: no trace that is here says who took part");
	other.votes[0].members[1].member = 7;
	other.attempt = 2;
	fails((const struct told[]){other, other}, RV_E_NOTFOUND, "round 2: member 7 took part, and its trace is not here");
}

/* With mixed weights the outer step before cannot be done again once the others are a round
 * further. */
static void test_a_participant_that_starts_again_from_the_round_before(void **state) {
	(void)state;
	f.cfg.run.mix = 0.5;
	record_run();
	struct told back = usual(2);
	back.goes_back = true;
	replays((const struct told[]){back, usual(2)});
	replays((const struct told[]){back, back});
	f.cfg.run.mix = 0;
	record_run();
}

/* Processes that are killed before the disk has any copy of theirs, and one whose full disk refuses
 * all: the next starts from the older copy that is on disk. */
static void test_copies_that_the_disk_never_had(void **state) {
	(void)state;
	struct told dies = usual(2);
	dies.copies = 1;
	for (dies.deaths = 1; dies.deaths <= 4; dies.deaths++)
		replays((const struct told[]){dies, usual(2)});
	dies.deaths = 1;
	dies.copies = STEPS;
	replays((const struct told[]){dies, dies});
}

static void test_lines_that_are_none(void **state) {
	static const char *const lines[] = {
		"{\"event\":\"vote\",\"round\":1,\"attempt\":1,\"roster\":[]}\n",
		"{\"event\":\"vote\",\"round\":1,\"attempt\":0,\"roster\":[{\"member\":0,\"weight\":1,\"boot\":1}]}\n",
		"{\"event\":\"vote\",\"round\":1,\"roster\":[{\"member\":0,\"weight\":1,\"boot\":1}]}\n",
		"{\"event\":\"vote\",\"round\":1,\"attempt\":4294967296,\"roster\":[{\"member\":0,\"weight\":1,\"boot\":1}]}\n",
		"{\"event\":\"vote\",\"round\":1,\"attempt\":1,\"roster\":[{\"member\":0,\"weight\":0,\"boot\":1}]}\n",
		"{\"event\":\"apply\",\"round\":1,\"participated\":true,\"keep\":false,\"copy\":false,\"chain\":\"00\"}\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		const struct trace_started start = {.member = 1, .boot = 1, .threads = 1, .dtype = "fp32"};
		struct trace_record record;
		struct rv_errtext et = {0};
		struct rv_json_lines *t;
		char path[300];
		snprintf(path, sizeof path, "%s/bad-%zu", f.dir, i);
		assert_int_equal(rv_json_lines_open(path, true, &t, NULL), RV_OK);
		assert_int_equal(rv_json_lines_write(t, trace_start(&start), NULL), RV_OK);
		rv_json_lines_close(t);
		append(path, lines[i]);
		assert_fault(trace_read(path, &record, &et), RV_E_CORRUPT, &et, "line 2 is no event of a trace");
	}
}

/* A later release may write fields and events that this one does not know: its version is read
 * before them. */
static void test_a_newer_trace_is_refused_by_its_version(void **state) {
	static const char newer[] = "{\"event\":\"start\",\"version\":2,\"members\":[]}\n";
	const struct trace_started start = {.member = 1, .boot = 1, .threads = 1, .dtype = "fp32"};
	struct trace_record record;
	struct rv_errtext et = {0};
	struct rv_json_lines *t;
	uint8_t *text;
	size_t n;
	char path[300];
	(void)state;
	snprintf(path, sizeof path, "%s/newer", f.dir);
	assert_int_equal(rv_json_lines_open(path, true, &t, NULL), RV_OK);
	assert_int_equal(rv_json_lines_write(t, trace_start(&start), NULL), RV_OK);
	rv_json_lines_close(t);
	assert_int_equal(rv_file_read(path, 1 << 16, &text, &n, NULL), RV_OK);
	assert_non_null(strstr((const char *)text, "\"version\":1,"));
	free(text);
	append(path, newer);
	assert_fault(trace_read(path, &record, &et), RV_E_UNSUPPORTED, &et,
				 "newer: line 2: version 2 of the trace, this program reads version 1: use the release that wrote it");
}

static void write_starts(const char *path, const char *const *dtypes, int n) {
	struct rv_json_lines *t;
	(void)remove(path);
	assert_int_equal(rv_json_lines_open(path, true, &t, NULL), RV_OK);
	for (int i = 0; i < n; i++) {
		const struct trace_started start = {.member = 1, .boot = 1 + (uint64_t)i, .threads = 1, .dtype = dtypes[i]};
		assert_int_equal(rv_json_lines_write(t, trace_start(&start), NULL), RV_OK);
	}
	rv_json_lines_close(t);
}

/* Every start tells the savings of its process. */
static void test_a_trace_names_the_savings_of_each_process(void **state) {
	(void)state;
	const struct savings told[] = {
		{.micro_batch = 2, .zero = ZERO_MOMENTS, .logits_rows = 512},
		{.micro_batch = 3,
		 .zero = ZERO_WEIGHTS,
		 .moments = MOMENTS_INT8,
		 .recompute = RECOMPUTE_NORMS,
		 .offload = true},
	};
	struct trace_record record;
	struct rv_json_lines *t;
	char path[300];
	snprintf(path, sizeof path, "%s/savings", f.dir);
	(void)remove(path);
	assert_ok(rv_json_lines_open(path, true, &t, &et));
	for (int i = 0; i < 2; i++) {
		const struct trace_started start = {
			.member = 1, .boot = 1 + (uint64_t)i, .threads = 1, .dtype = "fp32", .savings = told[i]};
		assert_ok(rv_json_lines_write(t, trace_start(&start), &et));
	}
	rv_json_lines_close(t);
	assert_ok(trace_read(path, &record, &et));
	assert_memory_equal(&record.savings, &told[0], sizeof told[0]);
	for (int i = 0; i < 2; i++)
		assert_memory_equal(&record.events[i].savings, &told[i], sizeof told[i]);
	trace_record_release(&record);
}

/* A start as programs wrote it before they told their rows of logits. */
static void write_without_rows(const char *path, const char *device) {
	const struct trace_started start = {.member = 1, .boot = 1, .threads = 1, .dtype = "fp32", .device = device};
	json_t *line = trace_start(&start);
	assert_int_equal(json_object_del(line, "logits_rows"), 0);
	char *text = json_dumps(line, JSON_COMPACT);
	assert_non_null(text);
	(void)remove(path);
	append(path, text);
	append(path, "\n");
	free(text);
	json_decref(line);
}

/* Processors have all logits at once; on a GPU the rows depended on its free memory. */
static void test_a_trace_without_rows_of_logits(void **state) {
	struct trace_record record;
	struct rv_errtext et = {0};
	char path[300];
	(void)state;
	snprintf(path, sizeof path, "%s/rows", f.dir);
	write_without_rows(path, "cpu");
	assert_int_equal(trace_read(path, &record, &et), RV_OK);
	assert_int_equal(record.savings.logits_rows, 0);
	trace_record_release(&record);
	write_without_rows(path, "cuda");
	assert_fault(trace_read(path, &record, &et), RV_E_UNSUPPORTED, &et,
				 "without 'logits_rows': the order of sums on cuda");
	assert_non_null(strstr(et.text, "replay it with the program that it names"));
}

static void test_a_trace_names_the_dtype_of_its_worker(void **state) {
	static const char *const same[] = {"bf16", "bf16"}, *const moved[] = {"bf16", "fp32"}, *const unknown[] = {"fp8"};
	struct trace_record record;
	struct rv_errtext et = {0};
	char path[300];
	(void)state;
	snprintf(path, sizeof path, "%s/dtype", f.dir);
	write_starts(path, same, 2);
	assert_int_equal(trace_read(path, &record, &et), RV_OK);
	assert_int_equal(record.dtype, RUN_DTYPE_BF16);
	assert_false(record.dtype_changed);
	trace_record_release(&record);
	write_starts(path, moved, 2);
	assert_int_equal(trace_read(path, &record, &et), RV_OK);
	assert_true(record.dtype_changed);
	trace_record_release(&record);
	write_starts(path, unknown, 1);
	assert_fault(trace_read(path, &record, &et), RV_E_CORRUPT, &et, "line 1 is no event of a trace");
}

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	f.cfg.workers = WORKERS;
	record_run();
	return 0;
}

static int teardown(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

static void write_device(const char *path, const char *first, const char *second) {
	struct rv_json_lines *t;
	(void)remove(path);
	assert_int_equal(rv_json_lines_open(path, true, &t, NULL), RV_OK);
	for (int i = 0; i < 2; i++) {
		const struct trace_started start = {
			.member = 1, .boot = 1 + (uint64_t)i, .threads = 1, .dtype = "bf16", .device = i ? second : first};
		assert_int_equal(rv_json_lines_write(t, trace_start(&start), NULL), RV_OK);
	}
	rv_json_lines_close(t);
}

static void test_a_trace_names_the_device_of_its_worker(void **state) {
	struct trace_record record;
	struct rv_errtext et = {0};
	char path[300];
	(void)state;
	snprintf(path, sizeof path, "%s/device", f.dir);
	write_device(path, "cuda:0,1", "cuda:0,1");
	assert_int_equal(trace_read(path, &record, &et), RV_OK);
	assert_string_equal(record.device, "cuda:0,1");
	assert_false(record.device_changed);
	trace_record_release(&record);
	write_device(path, "cuda", "cpu");
	assert_int_equal(trace_read(path, &record, &et), RV_OK);
	assert_true(record.device_changed);
	trace_record_release(&record);
	write_device(path, NULL, NULL);
	assert_int_equal(trace_read(path, &record, &et), RV_OK);
	assert_string_equal(record.device, "");
	trace_record_release(&record);
	write_device(path, "abacus", "cpu");
	assert_fault(trace_read(path, &record, &et), RV_E_CORRUPT, &et, "line 1 is no event of a trace");
}

/* A replay that measures a member ends in the same bits; its loss with the member is that of the
 * run's weights, and without it another one. */
static void test_a_round_without_a_member(void **state) {
	struct trace_record traces[WORKERS];
	struct replay *p;
	const struct told told = usual(2);
	(void)state;
	for (uint32_t i = 0; i < WORKERS; i++)
		make_trace(i, &told, &traces[i]);
	struct lab_run *run = lab_fixture_start(&f);
	assert_ok(replay_new(run, traces, WORKERS, &p, &et));
	struct replay_without w;
	assert_int_equal(replay_leave_out(p, WORKERS, NULL), RV_E_NOTFOUND);
	assert_ok(replay_leave_out(p, 1, &et));
	assert_false(replay_left_out(p, &w));
	for (int i = 0; i < ROUNDS; i++) {
		double loss;
		assert_ok(replay_round(p, &et));
		assert_true(replay_left_out(p, &w));
		assert_ok(replica_eval(run->replicas[0], run->global.theta, 0, &loss, &et));
		assert_true(w.with == loss && w.without != loss && w.without > 0);
	}
	const struct rv_hash replayed = global_full_hash(&run->global);
	assert_hashes_equal(replayed, end);
	replay_free(p);
	lab_run_free(run);
	for (int i = 0; i < WORKERS; i++)
		trace_record_release(&traces[i]);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_newer_trace_is_refused_by_its_version),
		cmocka_unit_test(test_a_round_without_a_member),
		cmocka_unit_test(test_a_later_process_names_the_attempt_of_its_vote),
		cmocka_unit_test(test_the_attempt_that_counted_is_taken),
		cmocka_unit_test(test_an_attempt_that_nobody_names),
		cmocka_unit_test(test_votes_that_contradict_each_other),
		cmocka_unit_test(test_no_vote_of_that_attempt),
		cmocka_unit_test(test_a_participant_that_starts_again_from_the_round_before),
		cmocka_unit_test(test_copies_that_the_disk_never_had),
		cmocka_unit_test(test_lines_that_are_none),
		cmocka_unit_test(test_a_trace_names_the_dtype_of_its_worker),
		cmocka_unit_test(test_a_trace_names_the_savings_of_each_process),
		cmocka_unit_test(test_a_trace_without_rows_of_logits),
		cmocka_unit_test(test_a_trace_names_the_device_of_its_worker),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
