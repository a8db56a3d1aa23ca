/* test_worker_transfer.c: donor and fetcher together, message by message, over real files: whole
 * snapshots and logs from several donors, a part that survives a restart, donors that lie, lack it
 * or are asked for too much, the share of the line that giving takes. */
#include "tests/common/check.h"
#include "transfer_world.h"

#include <semaphore.h>
#include <stdio.h>

enum { MS = TRANSFER_MS, S = 1000 * MS };

static int setup(void **state) {
	*state = transfer_world_new();
	return 0;
}

static int teardown(void **state) {
	transfer_world_free(*state);
	return 0;
}

/* ---- the tests ---- */

static void a_snapshot_and_the_log_after_it(void **state) {
	struct transfer_world *w = *state;
	uint64_t done, total;
	struct state_id snapshot = transfer_id(w, STATE_KIND_SNAPSHOT, 4), log = transfer_id(w, STATE_KIND_LOG, 4);
	transfer_want(w, &snapshot, &log);
	transfer_until(w, 1);
	assert_int_equal(w->id.kind, STATE_KIND_SNAPSHOT);
	transfer_assert_snapshot(w, 4);
	while (transfer_step(w))
		;
	assert_int_equal(w->files, 1); /* the log is there, but nobody waits for it */
	transfer_want(w, &log, NULL);
	fetcher_progress(w->fetcher, &done, &total);
	assert_int_equal(done, total);
	transfer_until(w, 2);
	assert_int_equal(w->log->bytes, state_payload_bytes(&w->source->store.cfg, STATE_KIND_LOG, 4));
	struct rv_hash digest = global_digest(&w->source->g, 4, w->log->data);
	assert_true(rv_hash_equal(&digest, &log.expect));
	struct state_file *kept;
	assert_int_equal(statestore_open(&w->target->store, STATE_KIND_LOG, 4, &kept, NULL), RV_OK);
	assert_int_equal(state_file_attempt(kept), 0);
	state_file_free(kept);
	assert_int_equal(w->bad + w->failures, 0);
}

static void liars_are_named_and_the_others_finish(void **state) {
	struct transfer_world *w = *state;
	struct state_id snapshot = transfer_id(w, STATE_KIND_SNAPSHOT, 4);
	w->liars = 1u << 1;
	transfer_want(w, &snapshot, NULL);
	transfer_until(w, 1);
	transfer_assert_snapshot(w, 4);
	assert_true(w->bad > 0);
	assert_int_equal(w->bad_member, 1);
}

static void donors_with_nothing_are_asked_again(void **state) {
	struct transfer_world *w = *state;
	struct state_id snapshot = transfer_id(w, STATE_KIND_SNAPSHOT, 4);
	for (uint32_t m = 1; m <= TRANSFER_DONORS; m++) {
		donor_free(w->donors[m]);
		struct donor_config cfg = {.run_tag = TRANSFER_TAG};
		assert_int_equal(donor_new(&cfg, &w->target->store, /* an empty directory */
								   &w->donors[m], NULL),
						 RV_OK);
	}
	transfer_want(w, &snapshot, NULL);
	for (int i = 0; i < 3000; i++)
		transfer_step(w);
	assert_int_equal(w->files + w->bad, 0);
	assert_int_equal(w->pieces[1] + w->pieces[2] + w->pieces[3], 0);
	donor_free(w->donors[2]);
	struct donor_config cfg = {.run_tag = TRANSFER_TAG};
	assert_int_equal(donor_new(&cfg, &w->source->store, &w->donors[2], NULL), RV_OK);
	transfer_until(w, 1);
	assert_int_equal(w->pieces[1] + w->pieces[3], 0);
}

/* Fetches some of it, and starts again. How much was there. */
static uint64_t leave_a_part(struct transfer_world *w, const struct state_id *snapshot) {
	transfer_want(w, snapshot, NULL);
	uint64_t done = 0, total = 1;
	while (done == 0) {
		transfer_step(w);
		fetcher_progress(w->fetcher, &done, &total);
	}
	assert_int_equal(w->files, 0);
	fetcher_free(w->fetcher);
	for (uint32_t m = 1; m <= TRANSFER_DONORS; m++)
		donor_link_down(w->donors[m], TRANSFER_JOINER);
	transfer_open_fetcher(w);
	return done;
}

static void a_part_survives_a_restart(void **state) {
	struct transfer_world *w = *state;
	struct state_id snapshot = transfer_id(w, STATE_KIND_SNAPSHOT, 4);
	uint64_t found, total, done = leave_a_part(w, &snapshot);
	transfer_want(w, &snapshot, NULL);
	transfer_settle(w);
	fetcher_progress(w->fetcher, &found, &total);
	assert_true(found >= done);
	transfer_until(w, 1);
	transfer_assert_snapshot(w, 4);
}

/* A job of the storage thread that waits for another thread: a slow disk. */
struct gate {
	struct job job;
	sem_t open;
};

static void wait_at_gate(struct job *j) {
	(void)sem_wait(&JOB_OWNER(j, struct gate, job)->open);
}

static void gate_done(struct job *j) {
	(void)j;
}

static void post_gate(struct transfer_world *w, struct gate *g) {
	assert_int_equal(sem_init(&g->open, 0, 0), 0);
	g->job = (struct job){.run = wait_at_gate, .done = gate_done};
	jobs_post(w->storage, &g->job);
}

/* The disk is slow: what is on it is not known for a while, and not asked for meanwhile. */
static void what_a_part_holds_is_not_fetched_again(void **state) {
	struct transfer_world *w = *state;
	struct state_id snapshot = transfer_id(w, STATE_KIND_SNAPSHOT, 4);
	struct gate busy;
	uint64_t before = leave_a_part(w, &snapshot), done, total;
	post_gate(w, &busy);
	transfer_want(w, &snapshot, NULL);
	w->bytes = 0;
	for (int i = 0; i < 500; i++)
		transfer_say(w);
	fetcher_progress(w->fetcher, &done, &total);
	uint64_t manifest_bytes = w->bytes;
	assert_int_equal(sem_post(&busy.open), 0);
	transfer_settle(w);
	assert_int_equal(done, 0);
	assert_true(manifest_bytes > 0);
	fetcher_progress(w->fetcher, &done, &total);
	assert_true(done >= before);
	transfer_until(w, 1);
	transfer_assert_snapshot(w, 4);
	assert_true(w->bytes <= manifest_bytes + total - done);
}

/* Stopping does not wait until a slow disk has taken what came in for a file that nobody wants any
 * more. */
static void what_is_given_up_does_not_go_to_the_disk(void **state) {
	struct transfer_world *w = *state;
	struct state_id snapshot = transfer_id(w, STATE_KIND_SNAPSHOT, 4);
	struct gate busy;
	uint64_t done = 0, total = 1;
	transfer_want(w, &snapshot, NULL);
	transfer_settle(w);
	post_gate(w, &busy);
	for (int i = 0; i < 20000 && done < total; i++) {
		transfer_say(w);
		fetcher_progress(w->fetcher, &done, &total);
	}
	enum rv_err e = fetcher_want(w->fetcher, w->now, NULL, 0, NULL);
	assert_int_equal(sem_post(&busy.open), 0);
	transfer_settle(w);
	assert_int_equal(e, RV_OK);
	assert_int_equal(done, total);
	w->dead = ~UINT64_C(0);
	transfer_want(w, &snapshot, NULL);
	transfer_settle(w);
	assert_int_equal(w->files + w->failures, 0);
	fetcher_progress(w->fetcher, &done, &total);
	assert_int_equal(done, 0);
	w->dead = 0;
	transfer_until(w, 1);
	transfer_assert_snapshot(w, 4);
}

static void damage(struct transfer_world *w, enum statestore_file kind, uint64_t round) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(&w->target->store, kind, round, path);
	FILE *f = fopen(path, "r+b");
	assert_non_null(f);
	assert_int_equal(fseek(f, -1, SEEK_END), 0);
	int last = fgetc(f);
	assert_int_equal(fseek(f, -1, SEEK_END), 0);
	assert_true(fputc(last ^ 1, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int pieces(const struct transfer_world *w) {
	return w->pieces[1] + w->pieces[2] + w->pieces[3];
}

/* Neither a link nor a donor is needed for it. */
static void what_is_on_the_own_disk_is_not_fetched(void **state) {
	struct transfer_world *w = *state;
	struct state_id snapshot = transfer_id(w, STATE_KIND_SNAPSHOT, 4), log = transfer_id(w, STATE_KIND_LOG, 4);
	struct state_id earlier = transfer_id(w, STATE_KIND_SNAPSHOT, 2);
	state_fixture_play(w->target, TRANSFER_ROUNDS, 1);
	fetcher_allow(w->fetcher, w->now, &(struct member_set){0});
	transfer_want(w, &snapshot, &log);
	transfer_settle(w);
	assert_int_equal(w->files, 1);
	transfer_assert_snapshot(w, 4);
	transfer_want(w, &log, NULL);
	transfer_settle(w);
	assert_int_equal(w->files, 2);
	struct rv_hash digest = global_digest(&w->source->g, 4, w->log->data);
	assert_true(rv_hash_equal(&digest, &log.expect));
	earlier.chain.b[0] ^= 1; /* of another history */
	transfer_want(w, &earlier, NULL);
	transfer_settle(w);
	assert_int_equal(w->files, 2);
	assert_int_equal(pieces(w) + w->failures, 0);
}

static void what_is_damaged_on_the_own_disk_is_fetched(void **state) {
	struct transfer_world *w = *state;
	struct state_id snapshot = transfer_id(w, STATE_KIND_SNAPSHOT, 4), log = transfer_id(w, STATE_KIND_LOG, 4);
	state_fixture_play(w->target, TRANSFER_ROUNDS, 1);
	damage(w, STATE_FILE_SNAPSHOT, 4);
	damage(w, STATE_FILE_LOG, 4);
	transfer_want(w, &snapshot, &log);
	transfer_settle(w);
	assert_int_equal(w->files, 0);
	transfer_until(w, 1);
	transfer_assert_snapshot(w, 4);
	transfer_want(w, &log, NULL);
	transfer_until(w, 2);
	assert_true(pieces(w) > 0);
	struct state_file *kept;
	assert_int_equal(statestore_open(&w->target->store, STATE_KIND_LOG, 4, &kept, NULL), RV_OK);
	assert_int_equal(state_file_verify(kept, NULL), RV_OK);
	state_file_free(kept);
}

static void a_dead_donor_is_done_without(void **state) {
	struct transfer_world *w = *state;
	struct state_id snapshot = transfer_id(w, STATE_KIND_SNAPSHOT, 4);
	w->dead = 1u << 1 | 1u << 2; /* they never answer; the links stand */
	transfer_want(w, &snapshot, NULL);
	transfer_until(w, 1);
	transfer_assert_snapshot(w, 4);
}

static void nothing_is_fetched_after_a_cancel(void **state) {
	struct transfer_world *w = *state;
	struct state_id snapshot = transfer_id(w, STATE_KIND_SNAPSHOT, 4), log = transfer_id(w, STATE_KIND_LOG, 2);
	transfer_want(w, &snapshot, NULL);
	transfer_step(w);
	assert_int_equal(fetcher_want(w->fetcher, w->now, NULL, 0, NULL), RV_OK);
	while (transfer_step(w))
		;
	assert_int_equal(w->files, 0);
	transfer_want(w, &log, NULL);
	transfer_until(w, 1);
	assert_int_equal(w->id.round, 2);
}

static void a_greedy_joiner_is_stopped(void **state) {
	struct transfer_world *w = *state;
	uint8_t body[FRAME_FETCH_BYTES];
	struct frame_fetch f = {.kind = FRAME_FETCH_LOG, .round = 3};
	struct frame_header h = frame_fetch_encode(&f, TRANSFER_TAG, body);
	for (int i = 0; i < DONOR_MAX_WAITING; i++)
		assert_int_equal(donor_receive(w->donors[1], 9, &h, body, NULL), RV_OK);
	assert_int_equal(donor_receive(w->donors[1], 9, &h, body, NULL), RV_E_PROTOCOL);
	assert_true(donor_busy(w->donors[1]));
	donor_link_down(w->donors[1], 9);
	assert_false(donor_busy(w->donors[1]));
}

static void fill_queue_with(struct transfer_world *w, uint32_t joiner, enum frame_fetch_kind kind) {
	uint8_t body[FRAME_FETCH_BYTES];
	struct frame_fetch f = {.kind = (uint8_t)kind, .round = 4};
	struct frame_header h = frame_fetch_encode(&f, TRANSFER_TAG, body);
	while (donor_receive(w->donors[1], joiner, &h, body, NULL) == RV_OK)
		;
}

static void fill_queue(struct transfer_world *w, uint32_t joiner) {
	fill_queue_with(w, joiner, FRAME_FETCH_SNAPSHOT);
}

/* Bytes given to two joiners that always want more, from now on. */
static uint64_t given_within(struct transfer_world *w, int64_t us, uint64_t sent[2]) {
	struct peers_message m;
	uint64_t before = donor_bytes(w->donors[1]);
	for (int64_t end = w->now + us; w->now < end; w->now += MS)
		for (uint32_t joiner = 8; joiner < 10; joiner++) {
			fill_queue(w, joiner);
			while (donor_send(w->donors[1], w->now, joiner, &m))
				sent[joiner - 8] += m.header.body_bytes;
		}
	return donor_bytes(w->donors[1]) - before;
}

static void giving_keeps_its_cap_and_is_fair(void **state) {
	struct transfer_world *w = *state;
	enum { RATE = 200000 };
	uint64_t sent[2] = {0};
	struct rate cap = rate_of(RATE, 0);
	struct donor_config cfg = {.run_tag = TRANSFER_TAG, .cap = &cap};
	donor_free(w->donors[1]);
	assert_int_equal(donor_new(&cfg, &w->source->store, &w->donors[1], NULL), RV_OK);
	uint64_t given = given_within(w, 10 * S, sent);
	assert_in_range(given, RATE * 10 * 8 / 10, RATE * 10);
	assert_true(sent[0] < sent[1] + sent[1] / 4 && sent[1] < sent[0] + sent[0] / 4);
}

/* Row 22 of the attacks. The other joiner is not held up by it. */
static void a_member_that_fetches_for_ever_meets_its_budget(void **state) {
	struct transfer_world *w = *state;
	enum { BUDGET_STATE = 200000, SLICE = DONOR_SLICE_BYTES + 200 };
	uint64_t sent[2] = {0};
	struct donor_config cfg = {.run_tag = TRANSFER_TAG, .budget = donor_budget_of(BUDGET_STATE, 1000)};
	donor_free(w->donors[1]);
	assert_int_equal(donor_new(&cfg, &w->source->store, &w->donors[1], NULL), RV_OK);
	donor_set_round(w->donors[1], 5, false);
	(void)given_within(w, 10 * S, sent);
	for (int i = 0; i < 2; i++)
		assert_in_range(sent[i], 2 * BUDGET_STATE - 4096, 2 * BUDGET_STATE + SLICE + 20 * BUDGET_STATE / 3600);
	int64_t ready_us = donor_deadline_us(w->donors[1], w->now);
	assert_true(ready_us > w->now && ready_us < INT64_MAX);
	assert_true(donor_busy(w->donors[1])); /* they are not refused: it comes later */
	uint64_t before = sent[0];
	w->now += 1800 * (int64_t)S;
	(void)given_within(w, S, sent);
	assert_in_range(sent[0] - before, BUDGET_STATE - SLICE, BUDGET_STATE + 2 * SLICE);
}

/* Auditors that ask for inner states without end have their contributions nevertheless. */
static void inner_states_have_a_budget_of_their_own(void **state) {
	struct transfer_world *w = *state;
	enum { INNER = 2000, STATE = 200000 };
	struct donor_config cfg = {.run_tag = TRANSFER_TAG, .budget = donor_budget_of(STATE, 1000)};
	struct peers_message m;
	uint64_t sent = 0;
	cfg.inner.whole_bytes = INNER;
	donor_free(w->donors[1]);
	assert_int_equal(donor_new(&cfg, &w->source->store, &w->donors[1], NULL), RV_OK);
	fill_queue_with(w, 8, FRAME_FETCH_INNER);
	while (donor_send(w->donors[1], w->now, 8, &m)) { /* that it has none costs something, too */
		sent += FRAME_HEADER_BYTES + m.header.body_bytes;
		fill_queue_with(w, 8, FRAME_FETCH_INNER);
	}
	assert_in_range(sent, INNER, INNER + FRAME_HEADER_BYTES + FRAME_NONE_BYTES);
	assert_true(donor_deadline_us(w->donors[1], w->now) > w->now);
	donor_link_down(w->donors[1], 8);
	fill_queue(w, 8);
	assert_true(donor_send(w->donors[1], w->now, 8, &m));
	assert_int_equal(m.header.type, FRAME_PIECE);
}

/* Bytes given to `joiner`, who always wants more, in a second in which an all-reduce sends a
 * megabyte. */
static uint64_t given_beside_a_megabyte(struct transfer_world *w, uint32_t joiner, enum frame_fetch_kind kind) {
	struct donor *d = w->donors[1];
	struct peers_message m;
	uint64_t before = donor_bytes(d);
	for (int i = 0; i < 100; i++, w->now += 10 * MS) {
		donor_reduce_sent(d, w->now, 10000);
		do
			fill_queue_with(w, joiner, kind);
		while (donor_send(d, w->now, joiner, &m));
		assert_true(donor_deadline_us(d, w->now) > w->now);
	}
	return donor_bytes(d) - before;
}

/* A tenth for a snapshot; for log entries as much again, or a member that lags gets them more
 * slowly than the run makes them, and lags for good. */
static void an_all_reduce_leaves_it_a_share(void **state) {
	struct transfer_world *w = *state;
	struct donor *d = w->donors[1];
	struct peers_message m;
	donor_set_round(d, 5, true);
	assert_in_range(given_beside_a_megabyte(w, 8, FRAME_FETCH_SNAPSHOT), 80 * 1000, 120 * 1000);
	assert_in_range(given_beside_a_megabyte(w, 9, FRAME_FETCH_LOG), 900 * 1000, 1100 * 1000);
	/* One that waits for a snapshot with no credit left does not hold up the other kind. */
	assert_in_range(given_beside_a_megabyte(w, 9, FRAME_FETCH_LOG), 900 * 1000, 1100 * 1000);
	do
		fill_queue(w, 8);
	while (donor_send(d, w->now, 8, &m)); /* the credit of a snapshot that came together meanwhile */
	donor_set_round(d, 5, false);
	assert_true(donor_send(d, w->now, 8, &m));
	donor_set_round(d, 5, true);
	w->now += 2 * S; /* it has nothing to send: it waits for others */
	assert_true(donor_send(d, w->now, 8, &m));
}

static void ask_donor(struct transfer_world *w, enum frame_fetch_kind kind, uint64_t round) {
	uint8_t body[FRAME_FETCH_BYTES];
	struct frame_fetch f = {.kind = (uint8_t)kind, .part = FRAME_PART_MANIFEST, .round = round};
	struct frame_header h = frame_fetch_encode(&f, TRANSFER_TAG, body);
	assert_int_equal(donor_receive(w->donors[1], 9, &h, body, NULL), RV_OK);
}

static enum frame_type answer_of(struct transfer_world *w) {
	struct peers_message m;
	assert_true(donor_send(w->donors[1], w->now, 9, &m));
	return m.header.type;
}

/* A damaged file is not read again for every request. */
static void what_is_damaged_is_left_alone_for_a_while(void **state) {
	struct transfer_world *w = *state;
	char path[STATESTORE_PATH_BYTES], aside[STATESTORE_PATH_BYTES + 8];
	statestore_path(&w->source->store, STATE_FILE_LOG, 3, path);
	snprintf(aside, sizeof aside, "%s.whole", path);
	assert_int_equal(rename(path, aside), 0);
	ask_donor(w, FRAME_FETCH_LOG, 3);
	assert_int_equal(answer_of(w), FRAME_NONE);
	FILE *short_file = fopen(path, "w");
	assert_non_null(short_file);
	assert_int_equal(fclose(short_file), 0);
	ask_donor(w, FRAME_FETCH_LOG, 3);
	assert_int_equal(answer_of(w), FRAME_NONE);
	assert_int_equal(rename(aside, path), 0);
	ask_donor(w, FRAME_FETCH_LOG, 3);
	assert_int_equal(answer_of(w), FRAME_NONE);
	w->now += 2 * S;
	ask_donor(w, FRAME_FETCH_LOG, 3);
	assert_int_equal(answer_of(w), FRAME_PIECE);
}

/* One that asks for another file each time does not keep the event loop busy with opening them. */
static void files_are_not_opened_without_end(void **state) {
	struct transfer_world *w = *state;
	struct peers_message m;
	enum { LOGS = STATE_FIXTURE_ROUNDS, FILES = LOGS + LOGS / STATE_FIXTURE_SNAPSHOT_EVERY };
	_Static_assert((int)FILES > (int)DONOR_FILES, "more than are kept open");
	int answers = 0;
	state_fixture_play(w->source, LOGS, 1);
	for (int i = 0; i < 20 * FILES && !donor_busy(w->donors[1]); i++) {
		uint64_t file = (uint64_t)(i % FILES);
		if (file < LOGS)
			ask_donor(w, FRAME_FETCH_LOG, file);
		else
			ask_donor(w, FRAME_FETCH_SNAPSHOT, STATE_FIXTURE_SNAPSHOT_EVERY * (file - LOGS + 1));
		if (donor_send(w->donors[1], w->now, 9, &m))
			answers += m.header.type == FRAME_PIECE;
	}
	assert_in_range(answers, FILES, 100);
	assert_true(donor_busy(w->donors[1]));
	int64_t at = donor_deadline_us(w->donors[1], w->now);
	assert_in_range(at, w->now + 1, w->now + S);
	w->now = at;
	assert_int_equal(answer_of(w), FRAME_PIECE);
}

/* For the leak sanitizer: of two files, one is given up and one wanted when the storage thread
 * ends, and nobody takes the answers of its jobs. */
static void a_fetcher_may_end_with_jobs_that_nobody_took(void **state) {
	struct transfer_world *w = *state;
	struct state_id snapshot = transfer_id(w, STATE_KIND_SNAPSHOT, 4), log = transfer_id(w, STATE_KIND_LOG, 4);
	state_fixture_play(w->target, TRANSFER_ROUNDS, 1);
	transfer_want(w, &snapshot, NULL);
	transfer_want(w, &log, NULL);
	jobs_free(w->storage);
	fetcher_free(w->fetcher);
	assert_int_equal(w->files + w->failures, 0);
	transfer_open_storage(w);
	transfer_open_fetcher(w);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_snapshot_and_the_log_after_it),
		T(liars_are_named_and_the_others_finish),
		T(donors_with_nothing_are_asked_again),
		T(a_part_survives_a_restart),
		T(what_a_part_holds_is_not_fetched_again),
		T(what_is_given_up_does_not_go_to_the_disk),
		T(what_is_on_the_own_disk_is_not_fetched),
		T(what_is_damaged_on_the_own_disk_is_fetched),
		T(a_dead_donor_is_done_without),
		T(nothing_is_fetched_after_a_cancel),
		T(a_greedy_joiner_is_stopped),
		T(giving_keeps_its_cap_and_is_fair),
		T(an_all_reduce_leaves_it_a_share),
		T(a_member_that_fetches_for_ever_meets_its_budget),
		T(inner_states_have_a_budget_of_their_own),
		T(what_is_damaged_is_left_alone_for_a_while),
		T(files_are_not_opened_without_end),
		T(a_fetcher_may_end_with_jobs_that_nobody_took),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	state_fixture_fragments(3);
	return failed + cmocka_run_group_tests_name("fragments", tests, NULL, NULL);
}
