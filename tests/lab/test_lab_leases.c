/* test_lab_leases.c: replicas that lease sequences of a text read each one once a pass, whatever
 * the method, who misses rounds, and where the run was interrupted. */
#include "lab/methods/methods.h"
#include "tests/lab/lab_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 3 blocks of 31 sequences are for training, one is held out. */
enum { CONTEXT = 512, TEXT_BYTES = 4 * 16384, PASS = 3 * 31, ROUNDS = 9, POSITIONS = 4 * PASS };

static struct lab_fixture f;

/* ---- what is read (linked in place of the dataset's function) ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int times_read[POSITIONS];

typedef enum rv_err read_fn(const struct dataset *d, uint64_t position, int32_t *inputs, int32_t *targets,
							struct rv_errtext *et);
read_fn __real_dataset_sequence_at, __wrap_dataset_sequence_at;
enum rv_err __wrap_dataset_sequence_at(const struct dataset *d, uint64_t position, int32_t *inputs, int32_t *targets,
									   struct rv_errtext *et) {
	pthread_mutex_lock(&lock);
	assert_true(position < POSITIONS);
	times_read[position]++;
	pthread_mutex_unlock(&lock);
	return __real_dataset_sequence_at(d, position, inputs, targets, et);
}

/* ---- runs ---- */

static int setup(void **state) {
	(void)state;
	char path[300];
	lab_fixture_init(&f);
	dataset_close(f.data);
	f.cfg.run.context = CONTEXT;
	f.cfg.run.n_embd = 4; /* what is read matters, not what is learned */
	f.cfg.run.n_head = 1;
	f.cfg.run.rounds = ROUNDS;
	memset(f.cfg.run.data_hash, 'a', sizeof f.cfg.run.data_hash - 1);
	f.cfg.run.data = RUN_DATA_OWN; /* the text is not published */
	(void)snprintf(path, sizeof path, "%s/text", f.dir);
	assert_int_equal(truncate(path, TEXT_BYTES), 0);
	const struct dataset_config data = dataset_config_of(&f.cfg.run, path);
	assert_true(data.order);
	assert_int_equal(dataset_open(&data, &f.data, NULL), RV_OK);
	memset(times_read, 0, sizeof times_read);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

static void choose(const struct lab_method *m) {
	f.cfg.method = m;
	f.cfg.run.updates = m->updates;
	f.cfg.run.mix = m == &lab_method_easgd ? 0.75 : 0; /* it diverges otherwise: batches would be refused */
	f.cfg.run.eager_share = m->updates == UPDATES_EAGER ? 0.25 : 0;
	if (m->configure)
		m->configure(&f.cfg);
}

/* Returns true if a replica holds the position, or nobody does yet. */
static bool is_to_come(const struct lab_run *r, uint64_t position) {
	const struct leases *l = &r->leases.all;
	bool held = position >= l->next;
	for (uint32_t i = 0; i < l->n_holders; i++)
		for (uint32_t k = 0; k < l->holders[i].n; k++) {
			const struct lease_piece *p = &l->holders[i].pieces[k];
			held |= position >= p->begin && position < p->begin + p->count;
		}
	return held;
}

/* Checks that all that is consumed was read once, and nothing else more often. Of the rest only
 * contributions to come may have read. Returns how many sequences were read. */
static int check_once(const struct lab_run *r) {
	int n = 0;
	assert_true(leases_are_valid(&r->leases.all));
	assert_int_equal(leases_free(&r->leases.all), 0);
	for (uint64_t i = 0; i < POSITIONS; i++) {
		if (is_to_come(r, i))
			assert_in_range(times_read[i], 0, 1);
		else
			assert_int_equal(times_read[i], 1);
		n += times_read[i];
	}
	return n;
}

static void every_method_reads_each_sequence_once(void **state) {
	for (int m = 0; lab_methods[m]; m++) {
		if (lab_methods[m]->alone)
			continue;
		(void)setup(state);
		choose(lab_methods[m]);
		struct lab_run *r = lab_fixture_finished(&f);
		assert_int_equal(check_once(r), ROUNDS * 4 * 3 * 2); /* rounds, workers, steps, sequences */
		assert_int_equal(r->leases.all.consumed, ROUNDS * 4 * 3 * 2);
		assert_true(r->leases.all.consumed > 2 * PASS);
		lab_run_free(r);
		(void)teardown(state);
	}
}

/* What a worker has read when it misses a round it keeps, and it waits when it has read all that it
 * holds. */
static void missed_rounds_leave_nothing_out(void **state) {
	(void)setup(state);
	f.cfg.drop_sync = 0.6;
	struct lab_run *r = lab_fixture_finished(&f);
	const int n = check_once(r);
	int waiting = 0;
	for (int i = 0; i < 4; i++) {
		waiting += (int)r->participants[i].sequences;
		assert_in_range(r->participants[i].sequences, 0, LEASE_ROUNDS * 3 * 2);
	}
	assert_int_equal(n, (int)r->leases.all.consumed + waiting);
	assert_true(n < ROUNDS * 4 * 3 * 2); /* somebody waited */
	lab_run_free(r);
	(void)teardown(state);
}

/* Discarded steps are done again with the same sequences. */
static void discarded_sequences_are_read_again(void **state) {
	(void)setup(state);
	f.cfg.drop_sync = 0.4;
	f.cfg.run.late = RUN_LATE_DISCARD;
	struct lab_run *r = lab_fixture_finished(&f);
	int again = 0;
	for (uint64_t i = 0; i < POSITIONS; i++) {
		assert_true(is_to_come(r, i) || times_read[i] > 0);
		again += times_read[i] > 1;
	}
	assert_true(again > 0);
	assert_int_equal(leases_free(&r->leases.all), 0);
	lab_run_free(r);
	(void)teardown(state);
}

/* An interrupted run goes on with the sequences that the straight one reads. */
static void a_checkpoint_has_the_leases(void **state) {
	static const struct lab_method *const methods[] = {&lab_method_diloco, &lab_method_eager};
	for (size_t u = 0; u < sizeof methods / sizeof methods[0]; u++) {
		char path[300];
		struct lab_round round;
		(void)setup(state);
		choose(methods[u]);
		f.cfg.drop_sync = methods[u]->updates == UPDATES_EAGER ? 0 : 0.5;
		const struct rv_hash straight = lab_fixture_result(&f);
		memset(times_read, 0, sizeof times_read);
		(void)snprintf(path, sizeof path, "%s/checkpoint", f.dir);
		struct lab_run *r = lab_fixture_start(&f);
		for (int i = 0; i < ROUNDS; i++) {
			assert_int_equal(lab_run_round(r, &round, NULL), RV_OK);
			assert_int_equal(lab_run_save(r, path, NULL), RV_OK);
			lab_run_free(r);
			r = lab_fixture_start(&f);
			assert_int_equal(lab_run_load(r, path, NULL), RV_OK);
		}
		(void)check_once(r);
		const struct rv_hash resumed = r->cfg.method->state_hash(r);
		assert_hashes_equal(straight, resumed);
		lab_run_free(r);
		(void)teardown(state);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_method_reads_each_sequence_once),
		cmocka_unit_test(missed_rounds_leave_nothing_out),
		cmocka_unit_test(discarded_sequences_are_read_again),
		cmocka_unit_test(a_checkpoint_has_the_leases),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
