/* test_worker_state_assembly.c: pieces in any order from anybody, restarts in the middle, disks
 * that refuse. */
#include "state_fixture.h"
#include "tests/common/check.h"
#include "worker/state/state_assembly.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the file system says to the first requests for room (0: nothing in its way). */
static int no_room[2], n_no_room;

int __real_posix_fallocate(int fd, off_t at, off_t n);
int __wrap_posix_fallocate(int fd, off_t at, off_t n);

int __wrap_posix_fallocate(int fd, off_t at, off_t n) {
	return n_no_room > 0 ? no_room[--n_no_room] : __real_posix_fallocate(fd, at, n);
}

/* A donor with files of rounds 0..5 and snapshots 2, 4; the joiner's directory is empty. */
struct scene {
	struct state_fixture *donor, *joiner;
	struct state_file *from;
	struct state_assembly *a;
	uint8_t *stored;
	struct rv_errtext et;
};

static int setup(void **state) {
	struct scene *s = calloc(1, sizeof *s);
	s->donor = state_fixture_new();
	s->joiner = state_fixture_new();
	state_fixture_play(s->donor, 6, 1);
	s->stored = malloc(STATE_PIECE_MAX_BYTES);
	*state = s;
	return 0;
}

static int teardown(void **state) {
	struct scene *s = *state;
	state_assembly_free(s->a);
	state_file_free(s->from);
	state_fixture_free(s->donor);
	state_fixture_free(s->joiner);
	free(s->stored);
	free(s);
	return 0;
}

static void open_donor(struct scene *s, enum state_kind kind, uint64_t round) {
	state_file_free(s->from);
	s->from = NULL;
	assert_int_equal(statestore_open(&s->donor->store, kind, round, &s->from, &s->et), RV_OK);
}

static void begin(struct scene *s) {
	if (state_assembly_new(&s->joiner->store, state_file_id(s->from), &s->a, &s->et) != RV_OK)
		fail_msg("%s", s->et.text);
}

static void give(struct scene *s, uint32_t i) {
	struct state_stored what = state_file_stored(s->from, i);
	assert_int_equal(state_file_read_stored(s->from, i, s->stored, &s->et), RV_OK);
	assert_int_equal(state_assembly_put(s->a, i, &what, s->stored, &s->et), RV_OK);
}

static uint32_t pieces(const struct scene *s) {
	return state_pieces(&s->joiner->store.cfg, state_file_id(s->from)->kind, state_file_id(s->from)->round);
}

static void give_all(struct scene *s) {
	if (!state_assembly_manifest(s->a))
		assert_int_equal(state_assembly_set_manifest(s->a, state_file_manifest(s->from), &s->et), RV_OK);
	for (uint32_t i = pieces(s); i-- > 0;)
		give(s, i);
	assert_int_equal(state_assembly_left(s->a), 0);
}

static void assert_is_the_donors(struct scene *s, const struct blob *log) {
	struct blob *given;
	assert_int_equal(state_file_load_log(s->from, &given, &s->et), RV_OK);
	assert_int_equal(log->bytes, given->bytes);
	assert_memory_equal(log->data, given->data, given->bytes);
	blob_unref(given);
}

/* warned: the disk did not take it. Returns the file; NULL: a log entry that is in memory only. */
static struct state_file *finish(struct scene *s, bool warned) {
	const struct state_id *id = state_file_id(s->from);
	struct state_file *f;
	struct blob *log;
	struct rv_errtext warning;
	assert_int_equal(state_assembly_finish(s->a, &f, &log, &warning, &s->et), RV_OK);
	assert_int_equal(warning.text[0] != '\0', warned);
	assert_int_equal(f != NULL, id->kind == STATE_KIND_SNAPSHOT);
	assert_int_equal(log != NULL, id->kind == STATE_KIND_LOG);
	if (log)
		assert_is_the_donors(s, log);
	blob_unref(log);
	if (log && warned)
		return NULL;
	if (log)
		assert_int_equal(statestore_open(&s->joiner->store, id->kind, id->round, &f, &s->et), RV_OK);
	assert_int_equal(state_file_verify(f, &s->et), RV_OK);
	assert_memory_equal(&state_file_id(f)->expect, &state_file_id(s->from)->expect, RV_HASH_BYTES);
	return f;
}

static bool exists(const struct scene *s, enum statestore_file kind, uint64_t round) {
	char path[STATESTORE_PATH_BYTES];
	statestore_path(&s->joiner->store, kind, round, path);
	return access(path, F_OK) == 0;
}

static void a_snapshot_comes_together(void **state) {
	struct scene *s = *state;
	struct global_state g;
	open_donor(s, STATE_KIND_SNAPSHOT, 4);
	begin(s);
	assert_int_equal(state_assembly_left(s->a), pieces(s));
	give_all(s);
	struct state_file *f = finish(s, false);
	assert_true(exists(s, STATE_FILE_PART, 4));
	assert_false(exists(s, STATE_FILE_SNAPSHOT, 4));
	assert_int_equal(state_fixture_theta0(s->joiner, &g), RV_OK);
	assert_int_equal(state_file_load_snapshot(f, &g, &s->et), RV_OK);
	struct rv_hash full = global_full_hash(&g);
	assert_memory_equal(full.b, s->donor->full[4].b, RV_HASH_BYTES);
	global_release(&g);
	state_file_free(f);
	assert_int_equal(statestore_adopt(&s->joiner->store, 4, &s->et), RV_OK);
	assert_true(exists(s, STATE_FILE_SNAPSHOT, 4));
	assert_false(exists(s, STATE_FILE_PART, 4));
	assert_int_equal(statestore_adopt(&s->joiner->store, 4, &s->et), RV_E_NOTFOUND);
}

/* Every chunk of round 3's log is read alone as it is in the payload. */
static void assert_chunks_are_read(const struct global_config *cfg, struct state_file *f, const struct blob *payload) {
	const struct chunking chunks = global_round_chunks(cfg, 3);
	static uint8_t piece[STATE_PIECE_MAX_BYTES];
	for (uint32_t i = 0; i < chunks.n_chunks; i++) {
		const size_t bytes = cfg->codec->encoded_bytes(cfg->codec, chunking_len(&chunks, i));
		const uint8_t *chunk;
		assert_int_equal(state_file_read_chunk(f, i, piece, &chunk, NULL), RV_OK);
		assert_memory_equal(chunk, (const uint8_t *)payload->data + chunking_offset_bytes(&chunks, cfg->codec, i),
							bytes);
	}
}

static void a_log_comes_together_and_is_durable_at_once(void **state) {
	struct scene *s = *state;
	struct blob *reduced;
	open_donor(s, STATE_KIND_LOG, 3);
	begin(s);
	give_all(s);
	struct state_file *f = finish(s, false);
	assert_int_equal(state_file_attempt(f), 0);
	assert_true(exists(s, STATE_FILE_LOG, 3));
	assert_int_equal(state_file_load_log(f, &reduced, &s->et), RV_OK);
	assert_int_equal(reduced->bytes, state_payload_bytes(&s->joiner->store.cfg, STATE_KIND_LOG, 3));
	assert_chunks_are_read(&s->joiner->store.cfg, f, reduced);
	blob_unref(reduced);
	state_file_free(f);
}

static void a_bad_manifest_and_a_bad_piece_are_the_donors_fault(void **state) {
	struct scene *s = *state;
	for (enum state_kind kind = STATE_KIND_SNAPSHOT; kind <= STATE_KIND_LOG; kind++) {
		open_donor(s, kind, 4);
		begin(s);
		uint32_t n = state_manifest_hashes(&s->joiner->store.cfg, kind, 4);
		struct rv_hash *bad = calloc(n, sizeof *bad);
		memcpy(bad, state_file_manifest(s->from), n * sizeof *bad);
		bad[n - 1].b[0] ^= 1;
		assert_int_equal(state_assembly_set_manifest(s->a, bad, &s->et), RV_E_CORRUPT);
		assert_null(state_assembly_manifest(s->a));
		free(bad);
		assert_int_equal(state_assembly_set_manifest(s->a, state_file_manifest(s->from), &s->et), RV_OK);
		struct state_stored what = state_file_stored(s->from, 0);
		assert_int_equal(state_file_read_stored(s->from, 0, s->stored, &s->et), RV_OK);
		s->stored[what.bytes / 2] ^= 4;
		assert_int_equal(state_assembly_put(s->a, 0, &what, s->stored, &s->et), RV_E_CORRUPT);
		assert_false(state_assembly_has(s->a, 0));
		give_all(s);
		state_assembly_free(s->a);
		s->a = NULL;
		(void)statestore_remove(&s->joiner->store, STATE_FILE_PART, 4, NULL);
	}
}

static void a_restart_goes_on_with_what_is_whole(void **state) {
	struct scene *s = *state;
	open_donor(s, STATE_KIND_SNAPSHOT, 4);
	begin(s);
	assert_int_equal(state_assembly_set_manifest(s->a, state_file_manifest(s->from), &s->et), RV_OK);
	give(s, 1);
	state_assembly_free(s->a);
	begin(s);
	assert_non_null(state_assembly_manifest(s->a));
	assert_true(state_assembly_has(s->a, 1));
	assert_false(state_assembly_has(s->a, 0));
	state_assembly_free(s->a);
	char path[STATESTORE_PATH_BYTES]; /* a bit of the piece flips meanwhile */
	statestore_path(&s->joiner->store, STATE_FILE_PART, 4, path);
	FILE *f = fopen(path, "r+b");
	fseek(f, -100, SEEK_END);
	fputc(0x55, f);
	fclose(f);
	begin(s);
	assert_int_equal(state_assembly_left(s->a), pieces(s));
	give_all(s);
	state_file_free(finish(s, false));
}

static void the_part_of_another_state_is_not_taken_up(void **state) {
	struct scene *s = *state;
	open_donor(s, STATE_KIND_SNAPSHOT, 4);
	begin(s);
	give_all(s);
	state_assembly_free(s->a);
	struct state_id other = *state_file_id(s->from);
	other.expect.b[3] ^= 1;
	assert_int_equal(state_assembly_new(&s->joiner->store, &other, &s->a, &s->et), RV_OK);
	assert_null(state_assembly_manifest(s->a));
	assert_int_equal(state_assembly_left(s->a), pieces(s));
	state_assembly_free(s->a);
	open_donor(s, STATE_KIND_SNAPSHOT, 2);
	begin(s);
	assert_false(exists(s, STATE_FILE_PART, 4)); /* one at a time */
	assert_true(exists(s, STATE_FILE_PART, 2));
}

static void where_the_disk_refuses_memory_takes_it(void **state) {
	struct scene *s = *state;
	const struct statestore there = s->joiner->store;
	snprintf(s->joiner->store.dir, sizeof s->joiner->store.dir, "/nonexistent/rivulet");
	for (enum state_kind kind = STATE_KIND_SNAPSHOT; kind <= STATE_KIND_LOG; kind++) {
		open_donor(s, kind, 4);
		begin(s);
		give_all(s);
		state_file_free(finish(s, true));
		state_assembly_free(s->a);
		s->a = NULL;
	}
	s->joiner->store = there;
}

/* Network file systems cannot promise room, and signals come at any time: neither is a full
 * disk. */
static void a_disk_that_promises_no_room_is_used(void **state) {
	struct scene *s = *state;
	char path[STATESTORE_PATH_BYTES];
	struct stat st;
	no_room[1] = EINTR;
	no_room[0] = EOPNOTSUPP;
	n_no_room = 2;
	open_donor(s, STATE_KIND_SNAPSHOT, 4);
	begin(s);
	assert_int_equal(n_no_room, 0);
	statestore_path(&s->joiner->store, STATE_FILE_PART, 4, path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal((size_t)st.st_size, state_file_max_bytes(&s->joiner->store.cfg, STATE_KIND_SNAPSHOT, 4));
	give_all(s);
	state_file_free(finish(s, false));
}

static void any_manifest_is_taken_where_nothing_is_vouched_for(void **state) {
	struct scene *s = *state;
	open_donor(s, STATE_KIND_SNAPSHOT, 4);
	struct state_id id = *state_file_id(s->from);
	id.expect = (struct rv_hash){{0}};
	assert_int_equal(state_assembly_new(&s->joiner->store, &id, &s->a, &s->et), RV_OK);
	give_all(s);
	state_assembly_free(s->a);
	assert_int_equal(state_assembly_new(&s->joiner->store, &id, &s->a, &s->et), RV_OK);
	assert_int_equal(state_assembly_left(s->a), 0);
	state_file_free(finish(s, false));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_snapshot_comes_together),
		T(a_log_comes_together_and_is_durable_at_once),
		T(a_bad_manifest_and_a_bad_piece_are_the_donors_fault),
		T(a_restart_goes_on_with_what_is_whole),
		T(the_part_of_another_state_is_not_taken_up),
		T(where_the_disk_refuses_memory_takes_it),
		T(a_disk_that_promises_no_room_is_used),
		T(any_manifest_is_taken_where_nothing_is_vouched_for),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	state_fixture_fragments(3);
	return failed + cmocka_run_group_tests_name("fragments", tests, NULL, NULL);
}
