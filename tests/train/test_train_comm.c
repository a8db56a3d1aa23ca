/* test_train_comm.c: exchanges among threads: sums have the order that comm.h says, whoever comes
 * first. */

#include "base/rng.h"
#include "tests/common/check.h"
#include "train/comm.h"
#include "train/team.h"

#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 4, ELEMS = 10007, ROUNDS = 80 };

struct world {
	int n;
	const char *backend;
	struct backend *be[MEMBERS];
	struct comm_group *group;
	struct team *team;
	struct comm *comm[MEMBERS];
	float *x[MEMBERS];    /* backend memory */
	float *host[MEMBERS]; /* what x held before */
	double values[MEMBERS];
	int bad[MEMBERS]; /* counted by each member's thread: cmocka's assertions are for the main one */
};

static void join(void *ctx, int i) {
	struct world *w = ctx;
	comm_join(w->group, i, &w->comm[i]);
}

static void leave(void *ctx, int i) {
	struct world *w = ctx;
	comm_leave(w->comm[i]);
}

static float value_of(int member, size_t i) {
	struct rv_rng r = rv_rng_of((uint64_t)member, i);
	return (float)(2 * rv_rng_double(&r) - 1);
}

static void world_init(struct world *w, int n) {
	const struct backend_options opt = {.threads = 1};
	*w = (struct world){.n = n};
	for (int m = 0; m < n; m++) {
		void *x;
		assert_int_equal(backend_open("ref", &opt, &w->be[m], NULL), RV_OK);
		assert_int_equal(w->be[m]->ops->alloc(w->be[m], ELEMS * sizeof(float), &x, NULL), RV_OK);
		w->x[m] = x;
		w->host[m] = malloc(ELEMS * sizeof(float));
		assert_non_null(w->host[m]);
		for (size_t i = 0; i < ELEMS; i++)
			w->host[m][i] = w->x[m][i] = value_of(m, i);
	}
	assert_int_equal(comm_group_new(w->be, n, &w->group, NULL), RV_OK);
	assert_int_equal(team_new(n, &w->team, NULL), RV_OK);
	team_run(w->team, join, w);
}

static void world_release(struct world *w) {
	team_run(w->team, leave, w);
	team_free(w->team);
	comm_group_free(w->group);
	for (int m = 0; m < w->n; m++) {
		assert_int_equal(w->bad[m], 0);
		w->be[m]->ops->free(w->be[m], w->x[m]);
		backend_close(w->be[m]);
		free(w->host[m]);
	}
}

/* Over members 0, 1, ...: the bits that every member must have. */
static float ordered_sum(const struct world *w, size_t i) {
	float sum = w->host[0][i];
	for (int m = 1; m < w->n; m++)
		sum = sum + w->host[m][i];
	return sum;
}

static void scatter(void *ctx, int i) {
	struct world *w = ctx;
	comm_start_reduce_scatter(w->comm[i], w->x[i], ELEMS, ELEMS / 3, ELEMS); /* in pieces, the later one first */
	comm_start_reduce_scatter(w->comm[i], w->x[i], ELEMS, 0, ELEMS / 3);
	comm_wait(w->comm[i]);
}

static void gather(void *ctx, int i) {
	struct world *w = ctx;
	comm_start_all_gather(w->comm[i], w->x[i], ELEMS);
	comm_wait(w->comm[i]);
}

static void test_scatter_then_gather_is_all_reduce(void **state) {
	(void)state;
	for (int n = 1; n <= MEMBERS; n++) {
		struct world w;
		world_init(&w, n);
		team_run(w.team, scatter, &w);
		for (int m = 0; m < n; m++) {
			struct comm_slice s = comm_slice_of(ELEMS, n, m);
			for (size_t i = s.begin; i < s.end; i++)
				assert_memory_equal(&w.x[m][i], &(float){ordered_sum(&w, i)}, sizeof(float));
		}
		team_run(w.team, gather, &w);
		for (int m = 0; m < n; m++)
			for (size_t i = 0; i < ELEMS; i++)
				assert_memory_equal(&w.x[m][i], &(float){ordered_sum(&w, i)}, sizeof(float));
		world_release(&w);
	}
}

static void test_slices_cover_everything_once(void **state) {
	(void)state;
	for (size_t n = 0; n < 1200; n += 7)
		for (int size = 1; size <= COMM_MAX_MEMBERS; size++) {
			size_t at = 0;
			for (int r = 0; r < size; r++) {
				struct comm_slice s = comm_slice_of(n, size, r);
				assert_int_equal(s.begin, at);
				assert_true(s.end >= s.begin && (s.end % MOMENTS_BLOCK == 0 || s.end == n));
				at = s.end;
			}
			assert_int_equal(at, n);
		}
}

/* More operations than the ring has room for, of all kinds, while members are in different
 * places. */
static void storm(void *ctx, int i) {
	struct world *w = ctx;
	for (int k = 0; k < ROUNDS; k++) {
		size_t at = (size_t)k * 100, n = 100;
		comm_start_reduce(w->comm[i], w->x[i] + at, n, k % w->n);
		comm_start_broadcast(w->comm[i], w->x[i] + at, n, k % w->n);
		if (k % 16 == i)
			comm_wait(w->comm[i]);
		double one = i + 1;
		comm_sum(w->comm[i], &one, 1);
		w->bad[i] += one != w->n * (w->n + 1) / 2.0;
	}
	comm_wait(w->comm[i]);
	comm_barrier(w->comm[i]);
}

static void test_many_exchanges_under_way(void **state) {
	(void)state;
	struct world w;
	world_init(&w, MEMBERS);
	team_run(w.team, storm, &w);
	for (int m = 0; m < MEMBERS; m++)
		for (size_t i = 0; i < ROUNDS * 100; i++)
			assert_memory_equal(&w.x[m][i], &(float){ordered_sum(&w, i)}, sizeof(float));
	world_release(&w);
}

static void sum(void *ctx, int i) {
	struct world *w = ctx;
	w->values[i] = i == 0 ? 1e16 : 1;
	comm_sum(w->comm[i], &w->values[i], 1);
}

static void test_small_sums_are_the_same_bits_everywhere(void **state) {
	(void)state;
	struct world w;
	world_init(&w, MEMBERS);
	team_run(w.team, sum, &w);
	for (int m = 0; m < MEMBERS; m++)
		assert_true(w.values[m] == ((1e16 + 1) + 1) + 1);
	world_release(&w);
}

/* ---- devices with memory of their own, without a library ---- */

enum { LARGE = 2 * COMM_STAGED * COMM_STAGED_FLOATS + 1234 };

/* The first member's floats on their way through the host: its thread alone counts. */
static struct {
	struct backend_ops ops;
	bool ended; /* what is only sent never comes back */
	size_t now, most;
} counted;

static enum rv_err device_alloc(struct backend *be, size_t bytes, void **out, struct rv_errtext *et) {
	return counted.ops.alloc(be, bytes, out, et);
}

static void counted_download(struct backend *be, void *host, const void *src, size_t bytes) {
	counted.ops.download(be, host, src, bytes);
	counted.now += bytes / sizeof(float);
	counted.most = counted.now > counted.most && !counted.ended ? counted.now : counted.most;
}

static void counted_upload(struct backend *be, void *dst, const void *host, size_t bytes) {
	counted.ops.upload(be, dst, host, bytes);
	counted.now -= bytes / sizeof(float);
}

struct large {
	struct comm_group *group;
	struct comm *comm[2];
	float *x[2];
};

static void join_large(void *ctx, int i) {
	struct large *w = ctx;
	comm_join(w->group, i, &w->comm[i]);
}

/* Sums to the first, which sends and receives, in two vectors; then gives the sum to all. */
static void sum_large(void *ctx, int i) {
	struct large *w = ctx;
	comm_start_reduce(w->comm[i], w->x[i], LARGE / 3, 0);
	comm_start_reduce(w->comm[i], w->x[i] + LARGE / 3, LARGE - LARGE / 3, 0);
	(void)comm_wait(w->comm[i]);
	if (i == 0)
		counted.ended = true;
	comm_start_broadcast(w->comm[i], w->x[i], LARGE, 0);
	(void)comm_wait(w->comm[i]);
}

static void leave_large(void *ctx, int i) {
	struct large *w = ctx;
	comm_leave(w->comm[i]);
}

/* However large exchanges are, a member has as much of them in the host's memory as its plan
 * says. */
static void test_exchanges_through_the_host_take_bounded_memory(void **state) {
	(void)state;
	const struct backend_options opt = {.threads = 1};
	struct backend_ops device[2];
	struct backend *be[2];
	struct team *team;
	struct large w = {.group = NULL};
	for (int m = 0; m < 2; m++) {
		assert_ok(backend_open("ref", &opt, &be[m], &et));
		counted.ops = device[m] = *be[m]->ops;
		device[m].alloc = device_alloc;
		w.x[m] = malloc(LARGE * sizeof(float));
		assert_non_null(w.x[m]);
		for (size_t i = 0; i < LARGE; i++)
			w.x[m][i] = (float)(i % 1000) * (float)(m + 1);
	}
	device[0].download = counted_download;
	device[0].upload = counted_upload;
	for (int m = 0; m < 2; m++)
		be[m]->ops = &device[m];
	assert_ok(comm_group_new(be, 2, &w.group, &et));
	assert_ok(team_new(2, &team, &et));
	team_run(team, join_large, &w);
	team_run(team, sum_large, &w);
	team_run(team, leave_large, &w);
	assert_in_range(counted.most * sizeof(float), COMM_STAGED_FLOATS * sizeof(float), comm_staged_bytes(2) / 2);
	for (int m = 0; m < 2; m++) {
		for (size_t i = 0; i < LARGE; i++)
			if (w.x[m][i] != (float)(i % 1000) * 3)
				fail_msg("member %d: sum %zu is wrong", m, i);
		free(w.x[m]);
	}
	team_free(team);
	comm_group_free(w.group);
	for (int m = 0; m < 2; m++)
		backend_close(be[m]);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scatter_then_gather_is_all_reduce),
		cmocka_unit_test(test_slices_cover_everything_once),
		cmocka_unit_test(test_many_exchanges_under_way),
		cmocka_unit_test(test_small_sums_are_the_same_bits_everywhere),
		cmocka_unit_test(test_exchanges_through_the_host_take_bounded_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
