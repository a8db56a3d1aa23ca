/* test_train_reading.c: what a member reads of a published text: numbers of its stream and their
 * positions, steps over them, and which of them are in a contribution. */
#include "tests/train/train_fixture.h"
#include "train/participant/participant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers and positions ---- */

static void numbers_have_positions(void **state) {
	(void)state;
	struct reading r = {.first = 100};
	assert_true(reading_end(&r) == 100 && reading_has(&r, 100, 0) && !reading_has(&r, 100, 1));
	assert_true(reading_add(&r, 40, 5) && reading_add(&r, 45, 5) && reading_add(&r, 7, 3));
	assert_int_equal(r.n, 2); /* the second goes on where the first ends */
	assert_int_equal(reading_end(&r), 113);
	assert_int_equal(reading_position(&r, 100), 40);
	assert_int_equal(reading_position(&r, 109), 49);
	assert_int_equal(reading_position(&r, 110), 7);
	assert_int_equal(reading_position(&r, 112), 9);
	assert_true(reading_has(&r, 105, 8) && !reading_has(&r, 105, 9) && !reading_has(&r, 99, 1));
	assert_false(reading_has(&r, 113, 1) || reading_has(&r, 101, UINT64_MAX));
}

static void a_part_has_the_same_positions(void **state) {
	(void)state;
	struct reading r = {.first = 5};
	for (uint64_t i = 0; i < READING_MAX_PIECES; i++)
		assert_true(reading_add(&r, 1000 - 50 * i, i + 1));
	assert_false(reading_add(&r, 1, 1)); /* there is no room */
	assert_int_equal(r.n, READING_MAX_PIECES);
	for (uint64_t from = r.first; from < reading_end(&r); from++)
		for (uint64_t n = 0; from + n <= reading_end(&r); n++) {
			const struct reading part = reading_part(&r, from, n);
			assert_true(part.first == from && reading_end(&part) == from + n);
			for (uint64_t k = from; k < from + n; k++)
				assert_true(reading_position(&part, k) == reading_position(&r, k));
		}
}

/* ---- steps ---- */

/* A run whose text is read by position. */
static void begin(struct fixture_run *f) {
	char path[300];
	fixture_run_init(f, NULL, "cpu");
	replica_free(f->replica);
	dataset_close(f->data);
	(void)snprintf(path, sizeof path, "%s/text", f->dir);
	struct dataset_config data = dataset_config_of(&f->cfg, path);
	data.order = true;
	assert_ok(dataset_open(&data, &f->data, &et));
	f->replica = fixture_replica(f, &f->cfg);
}

/* Each position of a pass is another training sequence; the next pass has them again. */
static void positions_of_a_pass_are_its_sequences(void **state) {
	(void)state;
	struct fixture_run f;
	begin(&f);
	const uint64_t length = dataset_train_sequences(f.data, 0);
	assert_int_equal(length, 9 * ((DATA_BLOCK - 1) / 16)); /* 12 blocks, one of four held out */
	int32_t inputs[16], targets[16];
	for (uint64_t i = 0; i < 2 * length; i += 97) {
		assert_ok(dataset_sequence_at(f.data, i, inputs, targets, &et));
		assert_memory_equal(inputs + 1, targets, 15 * sizeof inputs[0]);
	}
	fixture_run_release(&f);
}

static struct reading reading_of(uint64_t first, uint64_t begin_at, uint64_t count) {
	struct reading r = {.first = first};
	assert_true(reading_add(&r, begin_at, count));
	return r;
}

/* Numbers do not matter to a step, positions do. A step takes two sequences here. */
static void steps_read_positions(void **state) {
	(void)state;
	struct fixture_run f;
	begin(&f);
	struct replica *pieces = fixture_replica(&f, &f.cfg), *other = fixture_replica(&f, &f.cfg);
	const struct reading whole = reading_of(0, 50, 8), elsewhere = reading_of(0, 51, 8);
	struct reading cut = {.first = 900};
	assert_true(reading_add(&cut, 3, 4) && reading_add(&cut, 50, 3) && reading_add(&cut, 53, 5));
	replica_read(f.replica, &whole, 0);
	replica_read(pieces, &cut, 904);
	replica_read(other, &elsewhere, 0);
	fixture_steps(f.replica, 4);
	fixture_steps(pieces, 4);
	fixture_steps(other, 4);
	const size_t bytes = replica_n_params(f.replica) * sizeof(float);
	assert_memory_equal(replica_theta(f.replica), replica_theta(pieces), bytes);
	assert_memory_not_equal(replica_theta(f.replica), replica_theta(other), bytes);
	assert_true(replica_next(f.replica) == 8 && replica_next(pieces) == 912);
	replica_free(pieces);
	replica_free(other);
	fixture_run_release(&f);
}

static void a_step_needs_all_its_sequences(void **state) {
	(void)state;
	struct fixture_run f;
	begin(&f);
	struct step_stats stats;
	struct rv_errtext et = {0};
	const struct reading odd = reading_of(10, 0, 3);
	replica_read(f.replica, &odd, 10);
	fixture_steps(f.replica, 1);
	float *before = fixture_copy_theta(f.replica);
	assert_fault(replica_step_over(f.replica, NULL, 0, &stats, &et), RV_E_BUSY, &et,
				 "2 sequences, number 12 and later; leased are those from 10 to 13");
	assert_memory_equal(replica_theta(f.replica), before, replica_n_params(f.replica) * sizeof *before);
	assert_true(replica_next(f.replica) == 12 && replica_global_step(f.replica) == 1);
	replica_read(f.replica, &odd, 9); /* before what is leased */
	assert_int_equal(replica_step(f.replica, &stats, NULL), RV_E_BUSY);
	free(before);
	fixture_run_release(&f);
}

/* n workers that compute together read n times as many of one stream. */
static void steps_over_shards_read_on(void **state) {
	(void)state;
	struct fixture_run f;
	begin(&f);
	const struct reading r = reading_of(0, 0, 6);
	struct step_stats stats;
	replica_read(f.replica, &r, 0);
	assert_int_equal(replica_step_shards(f.replica, (const uint32_t[]){0, 1, 2}, 3, &stats, NULL), RV_OK);
	assert_int_equal(replica_next(f.replica), 6);
	assert_int_equal(replica_step_shards(f.replica, (const uint32_t[]){0}, 1, &stats, NULL), RV_E_BUSY);
	fixture_run_release(&f);
}

/* ---- contributions ---- */

struct scene {
	struct fixture_run f;
	struct global_state g;
	struct participant p;
};

static void open_scene(struct scene *s) {
	struct global_config cfg;
	begin(&s->f);
	const struct fragment_layers *layers = &replica_model(s->f.replica)->layout.layers;
	assert_int_equal(
		global_config_of(&s->f.cfg, replica_n_params(s->f.replica), layers, &(struct rv_hash){0}, &cfg, NULL), RV_OK);
	assert_int_equal(global_init(&s->g, &cfg, replica_theta(s->f.replica), NULL), RV_OK);
	assert_int_equal(participant_init(&s->p, &participant_replica, s->f.replica, &s->f.cfg, &s->g, NULL), RV_OK);
}

static void close_scene(struct scene *s) {
	participant_release(&s->p);
	global_release(&s->g);
	fixture_run_release(&s->f);
}

static void train(struct scene *s, uint64_t round, int steps) {
	struct step_stats stats;
	participant_begin(&s->p, &s->g, round);
	for (int i = 0; i < steps; i++)
		assert_ok(participant_step(&s->p, &s->g, round, &stats, &et));
}

static void assert_counts(const struct scene *s, uint64_t first, uint64_t sequences, uint64_t ahead_sequences) {
	const struct participant_progress p = participant_progress(&s->p);
	assert_int_equal(p.first, first);
	assert_int_equal(p.sequences, sequences);
	assert_int_equal(p.ahead_sequences, ahead_sequences);
}

static void adopt(struct scene *s, enum participant_adopt how) {
	s->g.round++;
	(void)participant_adopt(&s->p, &s->g, s->g.theta, how);
}

/* A contribution of 4 steps, and 2 ahead, of 2 sequences each. */
static void a_contribution_is_a_stretch_of_the_stream(void **state) {
	static const struct {
		enum participant_adopt how;
		uint64_t first, sequences; /* of the next contribution */
	} cases[] = {{PARTICIPANT_ADOPT, 28, 4}, {PARTICIPANT_KEEP, 20, 12}, {PARTICIPANT_DISCARD, 20, 0}};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct scene s;
		const struct reading r = reading_of(20, 300, 40);
		open_scene(&s);
		participant_read(&s.p, &r);
		train(&s, 0, 4);
		assert_counts(&s, 20, 8, 0);
		train(&s, 1, 2);
		assert_counts(&s, 20, 8, 4);
		adopt(&s, cases[i].how);
		assert_counts(&s, cases[i].first, cases[i].sequences, 0);
		participant_read(&s.p, &r);
		assert_int_equal(replica_next(s.f.replica), cases[i].first + cases[i].sequences); /* discarded: again */
		close_scene(&s);
	}
}

/* A contribution that was given away and missed its round is lost, with its sequences; the steps
 * ahead are kept. */
static void a_lost_contribution_is_left_out(void **state) {
	(void)state;
	struct scene s;
	const struct reading r = reading_of(0, 0, 40);
	open_scene(&s);
	participant_read(&s.p, &r);
	train(&s, 0, 4);
	train(&s, 1, 1);
	s.p.gave_away = true;
	adopt(&s, PARTICIPANT_KEEP);
	assert_counts(&s, 8, 2, 0);
	close_scene(&s);
}

/* A participant without steps begins where what its member holds begins, even if that is another
 * place now. */
static void starting_over_follows_the_leases(void **state) {
	(void)state;
	struct scene s;
	struct reading r = reading_of(0, 0, 40);
	open_scene(&s);
	participant_read(&s.p, &r);
	train(&s, 0, 3);
	participant_start_over(&s.p, &s.g);
	r = reading_of(70, 900, 40);
	participant_read(&s.p, &r);
	assert_int_equal(replica_next(s.f.replica), 70);
	train(&s, 0, 1);
	assert_counts(&s, 70, 2, 0);
	close_scene(&s);
}

/* A batch that is refused is read, and in the contribution. */
static void refused_batches_count(void **state) {
	(void)state;
	struct scene s;
	struct step_stats stats;
	const struct reading r = reading_of(0, 0, 400);
	open_scene(&s);
	participant_read(&s.p, &r);
	train(&s, 0, 1);
	float *good = fixture_copy_theta(s.f.replica), *broken = fixture_copy_theta(s.f.replica);
	broken[3] = NAN;
	replica_set_theta(s.f.replica, broken);
	assert_int_equal(participant_step(&s.p, &s.g, 0, &stats, NULL), RV_E_RANGE);
	replica_set_theta(s.f.replica, good);
	train(&s, 0, 1);
	assert_counts(&s, 0, 2 * (1 + REPLICA_REFUSED_MAX + 1), 0);
	assert_int_equal(s.p.tokens, 2 * 2 * 16);
	free(good);
	free(broken);
	close_scene(&s);
}

/* Another process goes on behind the sequences of the copy that it loads. */
static void a_copy_goes_on_behind_its_sequences(void **state) {
	(void)state;
	struct scene s, later;
	const struct reading r = reading_of(30, 100, 40);
	open_scene(&s);
	open_scene(&later);
	participant_read(&s.p, &r);
	train(&s, 0, 2);
	uint8_t *copy = malloc(replica_state_bytes(s.f.replica));
	replica_save(s.f.replica, copy);
	const struct participant_progress saved = participant_progress(&s.p);
	assert_int_equal(replica_load(later.f.replica, copy, replica_state_bytes(later.f.replica), NULL), RV_OK);
	participant_resume(&later.p, &later.g, true, &saved);
	participant_read(&later.p, &r);
	train(&s, 0, 2);
	train(&later, 0, 2);
	assert_counts(&later, 30, 8, 0);
	assert_memory_equal(replica_theta(s.f.replica), replica_theta(later.f.replica),
						replica_n_params(s.f.replica) * sizeof(float));
	free(copy);
	close_scene(&s);
	close_scene(&later);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_positions),
		cmocka_unit_test(a_part_has_the_same_positions),
		cmocka_unit_test(positions_of_a_pass_are_its_sequences),
		cmocka_unit_test(steps_read_positions),
		cmocka_unit_test(a_step_needs_all_its_sequences),
		cmocka_unit_test(steps_over_shards_read_on),
		cmocka_unit_test(a_contribution_is_a_stretch_of_the_stream),
		cmocka_unit_test(a_lost_contribution_is_left_out),
		cmocka_unit_test(starting_over_follows_the_leases),
		cmocka_unit_test(refused_batches_count),
		cmocka_unit_test(a_copy_goes_on_behind_its_sequences),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
