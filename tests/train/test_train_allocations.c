/* test_train_allocations.c: once a replica has done one step, its steps and evaluations allocate
 * nothing. Linked with --wrap for the allocators, so that every call of ours is counted, whoever
 * makes it. */
#include "tests/train/train_fixture.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_long n_allocations;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);

void *__wrap_malloc(size_t n) {
	atomic_fetch_add(&n_allocations, 1);
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size) {
	atomic_fetch_add(&n_allocations, 1);
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n) {
	atomic_fetch_add(&n_allocations, 1);
	return __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n) {
	atomic_fetch_add(&n_allocations, 1);
	return __real_aligned_alloc(align, n);
}

struct variant {
	const char *backend, *model;
	enum dtype compute;
	enum recompute recompute;
};

static const struct variant variants[] = {
	{"cpu", "gpt2", DTYPE_F32, RECOMPUTE_NONE},  {"cpu", "gpt2", DTYPE_BF16, RECOMPUTE_NONE},
	{"cpu", "llama", DTYPE_F32, RECOMPUTE_NONE}, {"cpu", "llama", DTYPE_BF16, RECOMPUTE_BLOCK},
	{"ref", "gpt2", DTYPE_F32, RECOMPUTE_BLOCK}, {"ref", "llama", DTYPE_F32, RECOMPUTE_NONE},
};

static void one_step(struct replica *r) {
	struct rv_errtext et = {0};
	struct step_stats stats;
	double loss;
	if (replica_step(r, &stats, &et) != RV_OK || replica_eval(r, NULL, 1, &loss, &et) != RV_OK)
		fail_msg("%s", et.text);
}

static void check(struct fixture_run *f, const struct variant *v) {
	struct run_config cfg = f->cfg;
	struct backend_options opt = {.threads = 2, .compute = v->compute, .isa = "auto"};
	struct replica_options options = {.n_shards = (uint32_t)cfg.data_shards, .savings.recompute = v->recompute};
	struct rv_errtext et = {0};
	struct backend *be;
	struct replica *r = NULL;
	(void)rv_options_set(run_config_options, &cfg, "model", v->model, NULL);
	cfg.grad_accum = 2;
	if (backend_open(v->backend, &opt, &be, &et) != RV_OK || replica_new(&cfg, f->data, &options, be, &r, &et) != RV_OK)
		fail_msg("%s", et.text);
	long before = atomic_load(&n_allocations);
	one_step(r);
	long start = atomic_load(&n_allocations);
	for (int i = 0; i < 3; i++)
		one_step(r);
	long after = atomic_load(&n_allocations);
	if (after != start)
		fail_msg("%s %s: %ld allocations in three steps (%ld in the first)", v->backend, v->model, after - start,
				 start - before);
	replica_free(r);
	backend_close(be);
}

static void test_steps_allocate_nothing(void **state) {
	(void)state;
	struct fixture_run f;
	fixture_run_init(&f, NULL, "ref");
	for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
		check(&f, &variants[i]);
	fixture_run_release(&f);
}

/* The counters count: building a replica allocates. */
static void test_building_is_counted(void **state) {
	(void)state;
	struct fixture_run f;
	long before = atomic_load(&n_allocations);
	fixture_run_init(&f, NULL, "cpu");
	assert_true(atomic_load(&n_allocations) > before + 5);
	fixture_run_release(&f);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_allocate_nothing),
		cmocka_unit_test(test_building_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
