/* test_train_repeat.c: the state of the inner optimizer as bytes, a replica that gives its place
 * for a while, and steps that are made again: the same ones come out the same, others do not. */
#include "tests/train/train_fixture.h"
#include "train/repeat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { H = 4, ROUND = 1 };

static struct fixture_run f;
static struct dataset *ordered;
static struct reading text; /* of all rounds */

/* A replica on `devices` devices that reads the ordered text. */
struct worker {
	struct device_set devices;
	struct replica *r;
};

static void worker_init(struct worker *w, int devices, struct savings savings) {
	const struct device_choice choice = {.backend = "cpu", .n = devices};
	const struct backend_options opt = {
		.threads = 1, .compute = run_config_compute(&f.cfg, &choice, "auto"), .isa = "auto"};
	assert_ok(device_set_open(&w->devices, &choice, &opt, &et));
	assert_ok(replica_new_on(&f.cfg, ordered, &(struct replica_options){.n_shards = 1, .savings = savings}, &w->devices,
							 &w->r, &et));
}

static void worker_release(struct worker *w) {
	replica_free(w->r);
	device_set_close(&w->devices);
}

static int setup(void **state) {
	(void)state;
	struct run_config cfg = fixture_config();
	cfg.batch = 4;
	fixture_run_init(&f, &cfg, "ref");
	struct dataset_config d = dataset_config_of(&f.cfg, f.dir);
	d.n_shards = 1;
	d.order = true;
	assert_ok(dataset_open(&d, &ordered, &et));
	text = (struct reading){.first = 0};
	assert_true(reading_add(&text, 0, 64));
	return 0;
}

static int teardown(void **state) {
	(void)state;
	dataset_close(ordered);
	fixture_run_release(&f);
	return 0;
}

static uint64_t sequences_of(uint64_t rounds) {
	return rounds * H * (uint64_t)(f.cfg.batch * f.cfg.grad_accum);
}

static struct global_config config_of(size_t n) {
	return (struct global_config){.n = n, .chunks = chunking_of(n, 512), .codec = &codec_int8};
}

static void train(struct replica *r, const struct reading *reading, uint64_t round, int steps) {
	replica_read(r, reading, sequences_of(round));
	replica_set_global_step(r, round * H);
	fixture_steps(r, steps);
}

static uint8_t *inner_of(const struct replica *r) {
	const size_t bytes = inner_state_bytes(replica_n_params(r));
	uint8_t *out = malloc(bytes);
	inner_state_read(r, 0, bytes, out);
	return out;
}

/* ---- what an author sends and commits to ---- */

struct author {
	float *before;        /* weights with which ROUND begins */
	uint8_t *begin, *end; /* its inner states */
	uint8_t *encoded;
};

static uint8_t *encode(const float *before, const float *after, size_t n) {
	const struct global_config g = config_of(n);
	uint8_t *out = malloc(chunking_total_bytes(&g.chunks, g.codec));
	float *delta = malloc(n * sizeof *delta);
	for (size_t i = 0; i < n; i++)
		delta[i] = before[i] - after[i];
	for (uint32_t c = 0; c < g.chunks.n_chunks; c++)
		assert_ok(g.codec->encode(g.codec, delta + (size_t)c * g.chunks.chunk_elems, chunking_len(&g.chunks, c),
								  out + chunking_offset_bytes(&g.chunks, g.codec, c), &et));
	free(delta);
	return out;
}

/* Trains a round, and another one with so many steps. */
static struct author author_of(struct worker *w, int steps, bool flips) {
	const size_t n = replica_n_params(w->r);
	struct author a;
	train(w->r, &text, 0, H);
	a.before = fixture_copy_theta(w->r);
	a.begin = inner_of(w->r);
	train(w->r, &text, ROUND, steps);
	a.end = inner_of(w->r);
	float *after = fixture_copy_theta(w->r);
	a.encoded = flips ? encode(after, a.before, n) : encode(a.before, after, n);
	free(after);
	return a;
}

static void author_release(struct author *a) {
	free(a->before);
	free(a->begin);
	free(a->end);
	free(a->encoded);
}

/* ---- an auditor ---- */

static int stops_asked;
static bool has_made(void *most, uint64_t made) {
	stops_asked++;
	return made >= *(const uint64_t *)most;
}

/* Repeats ROUND of the author, so many steps at a time, by the auditor's replica, which trains
 * another one meanwhile. */
static struct repeat_job audit_that(struct worker *auditor, const struct author *a, uint64_t most, enum rv_err wanted) {
	const size_t n = replica_n_params(auditor->r), bytes = inner_state_bytes(n);
	const struct global_config g = config_of(n);
	const struct reading read = reading_part(&text, sequences_of(ROUND), sequences_of(1));
	const uint32_t pieces = inner_state_pieces(n);
	uint8_t *ends = calloc(REPEAT_PIECES, INNER_PIECE_BYTES), *own = malloc(replica_state_bytes(auditor->r)),
			*after = malloc(replica_state_bytes(auditor->r));
	struct repeat_job job = {.round = ROUND,
							 .steps = H,
							 .before = a->before,
							 .encoded = a->encoded,
							 .ends = ends,
							 .state = {.theta = malloc(n * sizeof(float)),
									   .inner = aligned_alloc(64, (bytes + 63) / 64 * 64),
									   .room = malloc(INNER_PIECE_BYTES)}};
	assert_true(pieces <= REPEAT_PIECES);
	for (uint32_t i = 0; i < pieces; i++) {
		job.pieces[job.n_pieces++] = i;
		memcpy(ends + (size_t)i * INNER_PIECE_BYTES, a->end + (size_t)i * INNER_PIECE_BYTES, inner_piece_bytes(n, i));
	}
	memcpy(job.state.inner, a->begin, bytes);
	repeat_begin(auditor->r, &job, &read);
	replica_save(auditor->r, own);
	enum rv_err e = RV_OK;
	for (int calls = 0; job.done < job.steps && e == RV_OK; calls++) {
		e = repeat_steps(auditor->r, &job, has_made, &most, NULL);
		assert_true(calls < H);
	}
	assert_int_equal(e, wanted);
	replica_save(auditor->r, after);
	assert_memory_equal(after, own, replica_state_bytes(auditor->r));
	if (e == RV_OK)
		assert_ok(repeat_judge(&g, &job, &et));
	free(job.state.theta);
	free(job.state.inner);
	free(job.state.room);
	free(after);
	free(own);
	free(ends);
	return job;
}

static struct repeat_job audit(struct worker *auditor, const struct author *a, uint64_t most) {
	return audit_that(auditor, a, most, RV_OK);
}

/* ---- */

static void steps_that_are_repeated_come_out_the_same(void **state) {
	struct worker a, b;
	(void)state;
	worker_init(&a, 1, (struct savings){0});
	worker_init(&b, 1, (struct savings){0});
	struct author of = author_of(&a, H, false);
	train(b.r, &text, 2, 3); /* the auditor is elsewhere */
	stops_asked = 0;
	const struct repeat_job at_once = audit(&b, &of, H), in_slices = audit(&b, &of, 1);
	assert_true(stops_asked >= H - 1);
	assert_true(at_once.contribution == 0 && at_once.inner == 0);
	assert_true(in_slices.contribution == 0 && in_slices.inner == 0);
	author_release(&of);
	worker_release(&a);
	worker_release(&b);
}

/* Half of the steps, the opposite of what they give, or another inner state at the end. */
static void other_steps_do_not(void **state) {
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct worker a, b;
		worker_init(&a, 1, (struct savings){0});
		worker_init(&b, 1, (struct savings){0});
		struct author of = author_of(&a, how == 0 ? H / 2 : H, how == 1);
		const size_t bytes = inner_state_bytes(replica_n_params(a.r));
		if (how == 2)
			memset(of.end + bytes / 2, 0, bytes / 4);
		const struct repeat_job job = audit(&b, &of, 1);
		assert_true(how == 2 ? job.contribution == 0 : job.contribution > 0.15);
		assert_true(how == 1 ? job.inner == 0 : job.inner > 0.3);
		author_release(&of);
		worker_release(&a);
		worker_release(&b);
	}
}

/* Each divides its state otherwise: what is read of it, and repeated by it, is the same to
 * rounding. */
static void several_devices_repeat_too(void **state) {
	(void)state;
	static const struct savings kinds[] = {{.zero = ZERO_MOMENTS}, {.zero = ZERO_GRADIENTS}, {.zero = ZERO_WEIGHTS}};
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		struct worker a, b;
		worker_init(&a, i % 2 == 0 ? 1 : 2, i % 2 == 0 ? (struct savings){0} : kinds[i]);
		worker_init(&b, 2, kinds[i]);
		struct author of = author_of(&a, H, false);
		train(b.r, &text, 2, 3);
		const struct repeat_job job = audit(&b, &of, 1);
		assert_true(job.contribution < 0.02 && job.inner < 0.02);
		author_release(&of);
		worker_release(&a);
		worker_release(&b);
	}
}

/* What an author gives need not be a state of training. */
static void nobody_trains_from_a_state_that_is_none(void **state) {
	struct worker a, b;
	(void)state;
	worker_init(&a, 1, (struct savings){0});
	worker_init(&b, 1, (struct savings){0});
	struct author of = author_of(&a, H, false);
	memset(of.begin + INNER_HEAD_BYTES, 0xff, 4096); /* NaN */
	(void)audit_that(&b, &of, H, RV_E_RANGE);
	author_release(&of);
	worker_release(&a);
	worker_release(&b);
}

/* Finite moments from which every step leads far away are none of training either: who commits to
 * them does not keep auditors from a verdict. */
static void nobody_trains_from_moments_that_no_training_leaves(void **state) {
	struct worker a, b;
	(void)state;
	worker_init(&a, 1, (struct savings){0});
	worker_init(&b, 1, (struct savings){0});
	struct author of = author_of(&a, H, false);
	const size_t n = replica_n_params(a.r);
	assert_true(inner_state_is_sane(a.r, of.begin) && inner_state_is_sane(a.r, of.end));
	for (size_t i = 0; i < n; i++) { /* m without the squares that it would have */
		const float m = 1e30f, v = 0;
		memcpy(of.begin + INNER_HEAD_BYTES + i * sizeof m, &m, sizeof m);
		memcpy(of.begin + INNER_HEAD_BYTES + (n + i) * sizeof v, &v, sizeof v);
	}
	(void)audit_that(&b, &of, H, RV_E_RANGE);
	author_release(&of);
	worker_release(&a);
	worker_release(&b);
}

/* The state is sane, and a batch is refused nevertheless: that says nothing about the author. */
static void a_batch_that_is_refused_is_not_the_authors_fault(void **state) {
	struct worker a, b;
	(void)state;
	worker_init(&a, 1, (struct savings){0});
	worker_init(&b, 1, (struct savings){0});
	struct author of = author_of(&a, H, false);
	of.before[3] = NAN; /* so that this auditor's arithmetic refuses it */
	(void)audit_that(&b, &of, H, RV_E_UNSUPPORTED);
	memset(of.begin + INNER_HEAD_BYTES, 0xff, 4096); /* nor is that of the first batch */
	(void)audit_that(&b, &of, H, RV_E_UNSUPPORTED);
	author_release(&of);
	worker_release(&a);
	worker_release(&b);
}

/* Kernels take the number of the next update as positive. */
static void nobody_counts_on_from_updates_that_cannot_be(void **state) {
	static const uint64_t updates[] = {INT64_MAX - H, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
	struct worker a, b;
	(void)state;
	worker_init(&a, 1, (struct savings){0});
	worker_init(&b, 1, (struct savings){0});
	struct author of = author_of(&a, H, false);
	for (size_t i = 0; i < sizeof updates / sizeof updates[0]; i++) {
		memcpy(of.begin, &updates[i], sizeof updates[i]);
		(void)audit_that(&b, &of, 1, RV_E_RANGE);
	}
	author_release(&of);
	worker_release(&a);
	worker_release(&b);
}

static void an_inner_state_is_read_in_pieces(void **state) {
	struct worker a;
	(void)state;
	worker_init(&a, 2, (struct savings){.zero = ZERO_WEIGHTS});
	train(a.r, &text, 0, H);
	const size_t n = replica_n_params(a.r), bytes = inner_state_bytes(n);
	uint8_t *whole = inner_of(a.r), *saved = malloc(replica_state_bytes(a.r)), part[64];
	replica_save(a.r, saved);
	assert_memory_equal(whole + INNER_HEAD_BYTES, saved + REPLICA_HEAD_BYTES + n * sizeof(float),
						2 * n * sizeof(float));
	for (size_t at = 0; at + sizeof part <= bytes; at += 44) {
		inner_state_read(a.r, at, sizeof part, part);
		assert_memory_equal(part, whole + at, sizeof part);
	}
	inner_state_read(a.r, 4, 4, part);
	assert_memory_equal(part, whole + 4, 4);
	assert_int_equal(inner_state_pieces(n), (bytes + INNER_PIECE_BYTES - 1) / INNER_PIECE_BYTES);
	free(whole);
	free(saved);
	worker_release(&a);
	worker_init(&a, 1, (struct savings){.moments = MOMENTS_INT8});
	assert_false(inner_state_is_there(a.r));
	worker_release(&a);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_counts_on_from_updates_that_cannot_be),
		cmocka_unit_test(nobody_trains_from_a_state_that_is_none),
		cmocka_unit_test(nobody_trains_from_moments_that_no_training_leaves),
		cmocka_unit_test(a_batch_that_is_refused_is_not_the_authors_fault),
		cmocka_unit_test(an_inner_state_is_read_in_pieces),
		cmocka_unit_test(other_steps_do_not),
		cmocka_unit_test(several_devices_repeat_too),
		cmocka_unit_test(steps_that_are_repeated_come_out_the_same),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
