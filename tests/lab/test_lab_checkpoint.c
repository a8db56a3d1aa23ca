/* Stop and resume is straight through, wherever it stops; a damaged or foreign checkpoint is
 * refused. */
#include "lab/methods/methods.h"
#include "lab/run/checkpoint_header.h"
#include "lab/run/checkpoint_pair.h"
#include "tests/lab/lab_fixture.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct lab_fixture f;
static char path[300];

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	snprintf(path, sizeof path, "%s/checkpoint", f.dir);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

/* Ends the run when the count of all replicas' steps reaches `stop_at`: in the middle of a round,
 * replicas apart. */
static enum rv_err stopping_step(struct lab_run *r, int i, struct step_stats *out, struct rv_errtext *et) {
	enum rv_err e = participant_step(&r->participants[i], &r->global, r->rounds_done, out, et);
	if (replica_global_step(r->replicas[i]) == (uint64_t)(4 + i % 2))
		lab_run_stop(r);
	return e;
}

static struct lab_run *loaded(void) {
	struct lab_run *r = lab_fixture_start(&f);
	struct rv_errtext et = {0};
	if (lab_run_load(r, path, &et) != RV_OK)
		fail_msg("%s", et.text);
	return r;
}

static void test_between_rounds(void **state) {
	(void)state;
	for (int m = 0; lab_methods[m]; m++) {
		f.cfg.method = lab_methods[m];
		f.cfg.drop_sync = lab_methods[m] == &lab_method_papa ? 0.3 : 0;
		f.cfg.run.mix = 0.5;
		struct rv_hash straight = lab_fixture_result(&f), resumed;
		struct lab_run *r = lab_fixture_start(&f);
		struct lab_round round;
		for (int i = 0; i < 2; i++)
			assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		assert_int_equal(lab_run_save(r, path, NULL), RV_OK);
		uint64_t bytes = r->bytes_sent, tokens = r->tokens_done;
		lab_run_free(r);
		r = loaded();
		assert_int_equal(r->rounds_done, 2);
		assert_int_equal(r->bytes_sent, bytes);
		assert_int_equal(r->tokens_done, tokens);
		lab_fixture_finish(r);
		resumed = r->cfg.method->state_hash(r);
		assert_hashes_equal(straight, resumed);
		lab_run_free(r);
	}
}

static void test_within_a_round(void **state) {
	(void)state;
	struct lab_round whole, split;
	struct lab_run *r = lab_fixture_start(&f);
	assert_int_equal(lab_run_round(r, &whole, NULL), RV_OK);
	assert_int_equal(lab_run_round(r, &whole, NULL), RV_OK);
	lab_fixture_finish(r);
	struct rv_hash straight = r->cfg.method->state_hash(r), resumed;
	lab_run_free(r);

	r = lab_fixture_start(&f);
	assert_int_equal(lab_run_round(r, &split, NULL), RV_OK);
	for (int i = 0; i < 4; i++) { /* replicas stop after different numbers of steps */
		lab_run_inner_steps(r, i, (r->rounds_done + 1) * (uint64_t)r->cfg.run.steps_per_round, stopping_step);
		atomic_store(&r->stop, i == 2);
	}
	assert_int_equal(lab_run_first_fault(r, NULL), RV_E_CANCELLED);
	assert_int_equal(lab_run_save(r, path, NULL), RV_OK);
	lab_run_free(r);

	r = loaded();
	assert_int_equal(lab_run_round(r, &split, NULL), RV_OK);
	assert_true(split.train_loss == whole.train_loss);
	assert_int_equal(split.tokens, whole.tokens);
	lab_fixture_finish(r);
	resumed = r->cfg.method->state_hash(r);
	assert_hashes_equal(straight, resumed);
	lab_run_free(r);
}

/* What the last round has measured cannot be measured again after its outer step; nor can time. */
static void test_what_was_measured(void **state) {
	(void)state;
	f.cfg.eval_replicas = true;
	struct lab_run *r = lab_fixture_finished(&f);
	r->wall_us = 1234567;
	double average = r->average_loss, replica = r->replica_loss;
	assert_true(average > 0 && replica > 0 && average != replica);
	assert_int_equal(lab_run_save(r, path, NULL), RV_OK);
	lab_run_free(r);
	r = loaded();
	assert_true(lab_run_finished(r));
	assert_true(r->average_loss == average && r->replica_loss == replica);
	assert_int_equal(r->wall_us, 1234567);
	lab_run_free(r);
}

static void refused(enum rv_err want, const char *why) {
	struct lab_run *r = lab_fixture_start(&f);
	struct rv_errtext et = {0};
	assert_fault(lab_run_load(r, path, &et), want, &et, why);
	lab_run_free(r);
}

static void save_fresh(void) {
	struct lab_run *r = lab_fixture_start(&f);
	assert_int_equal(lab_run_save(r, path, NULL), RV_OK);
	lab_run_free(r);
}

static void test_refuses_another_run(void **state) {
	(void)state;
	save_fresh();
	f.cfg.threads = 2;
	refused(RV_E_PROTOCOL, "another number of threads");
	f.cfg.threads = 1;
	f.cfg.workers = 3;
	refused(RV_E_PROTOCOL, "another number of workers");
	f.cfg.workers = 4;
	f.cfg.run_hash.b[3] = 1;
	refused(RV_E_PROTOCOL, "another run-hash");
	f.cfg.run_hash.b[3] = 0;
	f.cfg.run.lr *= 2; /* whatever run hash was given */
	refused(RV_E_PROTOCOL, "another configuration");
	f.cfg.run.lr /= 2;
	f.cfg.isa = "portable";
	refused(RV_E_PROTOCOL, "another configuration");
	f.cfg.isa = "auto";
	f.cfg.method = &lab_method_ddp;
	refused(RV_E_PROTOCOL, "another method");
	f.cfg.method = &lab_method_diloco;
	lab_run_free(loaded());
}

/* What means lost is a part of the state. */
static void test_sparse_means(void **state) {
	(void)state;
	struct lab_round round;
	f.cfg.run.codec = CODEC_topk64;
	f.cfg.run.mean_codec = MEAN_CODEC_topk64;
	f.cfg.run.mean_feedback = 1;
	f.cfg.move_owners = 0.2;
	struct rv_hash straight = lab_fixture_result(&f);
	struct lab_run *r = lab_fixture_start(&f);
	assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
	assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
	assert_int_equal(lab_run_save(r, path, NULL), RV_OK);
	lab_run_free(r);
	r = loaded();
	lab_fixture_finish(r);
	struct rv_hash resumed = r->cfg.method->state_hash(r);
	assert_hashes_equal(straight, resumed);
	lab_run_free(r);
	f.cfg.move_owners = 0;
	refused(RV_E_PROTOCOL, "another configuration");
}

/* A model of another size would have a checkpoint of another size: what differs is said all the
 * same. */
static void test_refuses_another_model(void **state) {
	(void)state;
	save_fresh();
	struct run_config mine = f.cfg.run;
	f.cfg.run.n_embd = 32;
	refused(RV_E_PROTOCOL, "another configuration");
	f.cfg.run = mine;
}

static void test_refuses_another_text(void **state) {
	(void)state;
	save_fresh();
	struct dataset *mine = f.data;
	uint8_t *text;
	size_t n;
	char other[300];
	snprintf(other, sizeof other, "%s/text", f.dir);
	assert_int_equal(rv_file_read(other, 1 << 24, &text, &n, NULL), RV_OK);
	memset(text, 'x', n / 2);
	fixture_write(f.dir, "other", text, n, other, sizeof other);
	free(text);
	const struct dataset_config source = {.path = other, .n_shards = 4, .holdout_every = 4, .context = 16, .seed = 1};
	assert_int_equal(dataset_open(&source, &f.data, NULL), RV_OK);
	refused(RV_E_PROTOCOL, "another text");
	dataset_close(f.data);
	f.data = mine;
	lab_run_free(loaded());
}

static void test_refuses_damage(void **state) {
	(void)state;
	save_fresh();
	uint8_t *bytes;
	size_t n;
	assert_int_equal(rv_file_read(path, 1 << 24, &bytes, &n, NULL), RV_OK);
	for (size_t i = 0; i < n; i += n / 40 + 1) {
		char again[300];
		bytes[i] ^= 4;
		fixture_write(f.dir, "checkpoint", bytes, n, again, sizeof again);
		refused(RV_E_CORRUPT, i < 8 ? "not a checkpoint" : "hash does not match");
		bytes[i] ^= 4;
	}
	const size_t cuts[] = {0, 3, 83, 84, n / 2, n - 1};
	for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
		char again[300];
		fixture_write(f.dir, "checkpoint", bytes, cuts[i], again, sizeof again);
		refused(RV_E_CORRUPT, path);
	}
	free(bytes);
}

enum { VERSION_AT = 8 };

/* Whole, but for the sum of the file, which is not reached. */
static void test_refuses_another_version(void **state) {
	(void)state;
	uint8_t *bytes;
	size_t n;
	const size_t summed = CHECKPOINT_HEADER_BYTES - RV_HASH_BYTES;
	save_fresh();
	assert_int_equal(rv_file_read(path, 1 << 24, &bytes, &n, NULL), RV_OK);
	bytes[VERSION_AT] = CHECKPOINT_VERSION + 1;
	const struct rv_hash sum = rv_hash_of(bytes, summed);
	memcpy(bytes + summed, sum.b, sizeof sum.b);
	fixture_write(f.dir, "checkpoint", bytes, n, path, sizeof path);
	free(bytes);
	refused(RV_E_UNSUPPORTED,
			"version 2; this program reads 1; finish it with the program that wrote it, or remove it");
}

/* A release whose header is longer has its hash elsewhere; one whose header is shorter may end
 * before ours. */
static void test_a_newer_header_is_not_damage(void **state) {
	(void)state;
	uint8_t bytes[CHECKPOINT_HEADER_BYTES + 100];
	memset(bytes, 7, sizeof bytes);
	memcpy(bytes, "rivuletL\x03\0\0", 12);
	fixture_write(f.dir, "checkpoint", bytes, sizeof bytes, path, sizeof path);
	refused(RV_E_UNSUPPORTED, "version 3; this program reads 1; finish it with the program that wrote it");
	fixture_write(f.dir, "checkpoint", bytes, 60, path, sizeof path);
	refused(RV_E_UNSUPPORTED, "version 3; this program reads 1; finish it with the program that wrote it");
	memset(bytes + VERSION_AT, 0xee, 4);
	fixture_write(f.dir, "checkpoint", bytes, sizeof bytes, path, sizeof path);
	refused(RV_E_CORRUPT, "damaged: its header's hash does not match");
}

/* ---- the one before it ---- */

/* One bit of the byte at `at`; of the one in the middle, where that is 0. */
static void flip_at(const char *name, size_t at) {
	char file[300];
	uint8_t *bytes;
	size_t n;
	snprintf(file, sizeof file, "%s/%s", f.dir, name);
	assert_int_equal(rv_file_read(file, 1 << 24, &bytes, &n, NULL), RV_OK);
	bytes[at > 0 ? at : n / 2] ^= 4;
	fixture_write(f.dir, name, bytes, n, file, sizeof file);
	free(bytes);
}

static void flip(const char *name) {
	flip_at(name, 0);
}

/* Checkpoints after rounds 1 and 2; the result of a run that went straight through. */
static struct rv_hash two_checkpoints(void) {
	struct lab_run *r = lab_fixture_start(&f);
	struct lab_round round;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
		assert_int_equal(checkpoint_pair_save(r, f.dir, NULL), RV_OK);
	}
	lab_fixture_finish(r);
	struct rv_hash straight = r->cfg.method->state_hash(r);
	lab_run_free(r);
	return straight;
}

static void test_the_one_before_a_damaged_one(void **state) {
	(void)state;
	struct rv_errtext et = {0}, damage;
	bool resumed;
	struct rv_hash straight = two_checkpoints();
	struct lab_run *r = lab_fixture_start(&f);
	assert_int_equal(checkpoint_pair_load(r, f.dir, &resumed, &damage, &et), RV_OK);
	assert_true(resumed && r->rounds_done == 2);
	assert_string_equal(damage.text, "");
	flip(LAB_CHECKPOINT_FILE);
	if (checkpoint_pair_load(r, f.dir, &resumed, &damage, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_true(resumed && r->rounds_done == 1);
	assert_non_null(strstr(damage.text, LAB_CHECKPOINT_FILE ": damaged: its hash does not match; the one before it"));
	assert_non_null(strstr(damage.text, "the damaged one is now " LAB_CHECKPOINT_DAMAGED_FILE));
	snprintf(path, sizeof path, "%s/" LAB_CHECKPOINT_DAMAGED_FILE, f.dir);
	refused(RV_E_CORRUPT, "hash does not match");
	struct lab_round round;
	assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
	assert_int_equal(checkpoint_pair_save(r, f.dir, NULL), RV_OK);
	flip(LAB_CHECKPOINT_FILE); /* the damaged one was not kept as the one before */
	assert_int_equal(checkpoint_pair_load(r, f.dir, &resumed, &damage, &et), RV_OK);
	assert_int_equal(r->rounds_done, 1);
	lab_fixture_finish(r);
	struct rv_hash result = r->cfg.method->state_hash(r);
	assert_hashes_equal(straight, result);
	lab_run_free(r);
}

/* Damage of the version is damage, and no other version. */
static void test_the_one_before_a_damaged_version(void **state) {
	(void)state;
	struct rv_errtext et = {0}, damage;
	bool resumed;
	(void)two_checkpoints();
	flip_at(LAB_CHECKPOINT_FILE, VERSION_AT + 1);
	struct lab_run *r = lab_fixture_start(&f);
	if (checkpoint_pair_load(r, f.dir, &resumed, &damage, &et) != RV_OK)
		fail_msg("%s", et.text);
	assert_true(resumed && r->rounds_done == 1);
	lab_run_free(r);
}

/* A newest that cannot be read now is no damaged one: `link` stands in for it, and nothing takes
 * its place. */
static void refuses_to_tell(const char *link, const char *why) {
	struct rv_errtext et = {0}, damage;
	char newest[300], aside[300];
	bool resumed;
	snprintf(newest, sizeof newest, "%s/" LAB_CHECKPOINT_FILE, f.dir);
	snprintf(aside, sizeof aside, "%s/aside", f.dir);
	(void)two_checkpoints();
	assert_int_equal(rename(newest, aside), 0);
	assert_int_equal(symlink(link, newest), 0);
	struct lab_run *r = lab_fixture_start(&f);
	assert_fault(checkpoint_pair_load(r, f.dir, &resumed, &damage, &et), RV_E_IO, &et, why);
	assert_int_equal(rename(aside, newest), 0);
	assert_int_equal(checkpoint_pair_load(r, f.dir, &resumed, &damage, &et), RV_OK);
	assert_true(resumed && r->rounds_done == 2);
	snprintf(newest, sizeof newest, "%s/" LAB_CHECKPOINT_BEFORE_FILE, f.dir);
	assert_int_equal(access(newest, F_OK), 0);
	lab_run_free(r);
}

static void test_one_that_cannot_be_read_stays(void **state) {
	(void)state;
	refuses_to_tell(".", LAB_CHECKPOINT_FILE ": cannot read");                                    /* EISDIR */
	refuses_to_tell(LAB_CHECKPOINT_FILE, LAB_CHECKPOINT_FILE ": cannot check whether it exists"); /* ELOOP */
}

static void test_no_checkpoint_serves(void **state) {
	(void)state;
	struct rv_errtext et = {0}, damage;
	char newest[300];
	bool resumed;
	struct lab_run *r = lab_fixture_start(&f);
	assert_int_equal(checkpoint_pair_load(r, f.dir, &resumed, &damage, &et), RV_OK);
	assert_false(resumed);
	assert_int_equal(checkpoint_pair_save(r, f.dir, NULL), RV_OK);
	flip(LAB_CHECKPOINT_FILE);
	assert_fault(checkpoint_pair_load(r, f.dir, &resumed, &damage, &et), RV_E_CORRUPT, &et,
				 "no earlier one is kept: remove it, and the same command trains anew");
	lab_run_free(r);
	(void)two_checkpoints();
	flip(LAB_CHECKPOINT_FILE);
	flip(LAB_CHECKPOINT_BEFORE_FILE);
	r = lab_fixture_start(&f);
	assert_fault(checkpoint_pair_load(r, f.dir, &resumed, &damage, &et), RV_E_CORRUPT, &et,
				 LAB_CHECKPOINT_BEFORE_FILE ": damaged: its hash does not match; remove both");
	snprintf(newest, sizeof newest, "%s/" LAB_CHECKPOINT_FILE, f.dir);
	assert_int_equal(unlink(newest), 0); /* who removes it wants to begin anew */
	assert_int_equal(checkpoint_pair_load(r, f.dir, &resumed, &damage, &et), RV_OK);
	assert_false(resumed);
	lab_run_free(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_between_rounds),
		TEST(test_sparse_means),
		TEST(test_within_a_round),
		TEST(test_what_was_measured),
		TEST(test_refuses_another_run),
		TEST(test_refuses_another_model),
		TEST(test_refuses_another_text),
		TEST(test_refuses_damage),
		TEST(test_refuses_another_version),
		TEST(test_a_newer_header_is_not_damage),
		TEST(test_the_one_before_a_damaged_one),
		TEST(test_the_one_before_a_damaged_version),
		TEST(test_one_that_cannot_be_read_stays),
		TEST(test_no_checkpoint_serves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
