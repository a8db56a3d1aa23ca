/* test_train_pace.c: how many micro-batches a device has at a time, on the emulated GPU whose
 * streams run what they are given when it is waited for: none is waited for in a short step, the
 * one before in a long one, and each where one alone is long, or the device's time is limited. All
 * have the same bits. No clock is read: the times of the step before are set. */
#include "tests/train/train_fixture.h"

#include "kernels/cuda/cuda_backend.h"
#include "kernels/gate.h"
#include "tests/emu/runtime.h"
#include "train/replica_internal.h"

#include <stdlib.h>
#include <string.h>

enum { ACCUM = 4, SHORT_US = 1000, LONG_US = 600 * 1000 };

/* ---- a device that notes the order of calls ---- */

enum event { STEPS = 'm', PACES = 'p', SYNCS = 's', LOSSES = 'l' };

static struct {
	char list[64]; /* of enum event */
	size_t n;
	uint64_t launches[64]; /* that have run by the end of each */
} events;

static void note(enum event e) {
	assert_true(events.n < sizeof events.list - 1);
	events.launches[events.n] = emu_count().launches;
	events.list[events.n++] = (char)e;
	events.list[events.n] = 0;
}

static void noted_step(struct backend *be, const struct micro_batch *batch, void (*pass)(void *ctx), void *ctx) {
	cuda_ops.micro_step(be, batch, pass, ctx);
	note(STEPS);
}

static void noted_pace(struct backend *be) {
	cuda_ops.micro_pace(be);
	note(PACES);
}

static void noted_sync(struct backend *be) {
	cuda_ops.sync(be);
	note(SYNCS);
}

static const float *noted_losses(struct backend *be, size_t *n, const float *x, size_t x_n, double *squares) {
	const float *losses = cuda_ops.micro_losses(be, n, x, x_n, squares);
	note(LOSSES);
	return losses;
}

/* ---- a replica on it ---- */

struct on_gpu {
	struct fixture_run run; /* for its data */
	struct backend_ops noted;
	struct device_set devices;
	struct replica *r;
};

static void gpu_init(struct on_gpu *g) {
	struct run_config cfg = fixture_config();
	const struct backend_options opt = {.threads = 1, .compute = DTYPE_F32};
	struct backend *be;
	cfg.grad_accum = ACCUM;
	const struct replica_options o = {.n_shards = (uint32_t)cfg.data_shards};
	(void)setenv("RIVULET_CUDA_GRAPHS", "0", 1);
	fixture_run_init(&g->run, &cfg, "cpu");
	assert_ok(cuda_ops.open(&opt, &be, &et));
	g->noted = cuda_ops;
	g->noted.micro_step = noted_step;
	g->noted.micro_pace = noted_pace;
	g->noted.micro_losses = noted_losses;
	g->noted.sync = noted_sync;
	be->ops = &g->noted;
	g->devices = (struct device_set){.choice = {.backend = "cuda", .n = 1}, .be = {be}};
	assert_ok(replica_new_on(&cfg, g->run.data, &o, &g->devices, &g->r, &et));
}

static void gpu_release(struct on_gpu *g) {
	replica_free(g->r);
	g->devices.be[0]->ops->close(g->devices.be[0]);
	fixture_run_release(&g->run);
}

/* Makes a first step, and one after it whose predecessor took so long; returns its loss. */
static float step_after(struct on_gpu *g, int64_t gradient_us, int64_t batch_us, const char *want) {
	struct step_stats stats;
	events.n = 0;
	assert_int_equal(replica_step(g->r, &stats, NULL), RV_OK);
	assert_string_equal(events.list, "msmsmsmsl"); /* of the first nothing is known */
	assert_true(g->r->gradient_us > 0 && g->r->batch_us == g->r->gradient_us / ACCUM);
	g->r->gradient_us = gradient_us;
	g->r->batch_us = batch_us;
	events.n = 0;
	assert_int_equal(replica_step(g->r, &stats, NULL), RV_OK);
	assert_string_equal(events.list, want);
	return stats.loss;
}

/* The i-th pace has left its micro-batch, and all of those before it have run. */
static void expect_one_to_run(uint64_t before) {
	uint64_t ran = before, of_one = 0;
	for (int i = 0; i < ACCUM; i++) {
		const uint64_t now = events.launches[2 * i + 1];
		if (i == 0)
			assert_int_equal(now, before);
		if (i == 1)
			of_one = now - ran;
		if (i > 1) /* the first of a step writes its gradients, and may have other kernels */
			assert_true(now > ran && 2 * (now - ran) > of_one && now - ran < 2 * of_one);
		ran = now;
	}
	assert_true(events.launches[2 * ACCUM] > ran);
}

static void test_one_computes_while_the_next_is_launched(void **state) {
	static const struct {
		int64_t gradient_us, batch_us;
		int share;
		const char *want;
	} cases[] = {
		{SHORT_US, SHORT_US, 100, "mmmml"},
		{LONG_US, SHORT_US, 100, "mpmpmpmpl"},
		{ACCUM * LONG_US, LONG_US, 100, "msmsmsmsl"},
		{LONG_US, SHORT_US, 99, "msmsmsmsl"},
	};
	(void)state;
	float loss = 0;
	emu_configure(&(struct emu_options){.streams = EMU_LAZY});
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct on_gpu g;
		gpu_init(&g);
		gate_set_device_share(cases[i].share);
		const float found = step_after(&g, cases[i].gradient_us, cases[i].batch_us, cases[i].want);
		gate_set_device_share(100);
		if (i == 1)
			expect_one_to_run(events.launches[0]);
		assert_true(i == 0 || found == loss);
		loss = found;
		gpu_release(&g);
	}
	emu_configure(&(struct emu_options){.streams = EMU_EAGER});
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_computes_while_the_next_is_launched)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
