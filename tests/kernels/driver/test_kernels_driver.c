/* test_kernels_driver.c: the plugin that ships, built without the CUDA runtime, on a stand-in for
 * the driver (stand_in.h): every kernel of training steps of every family, in fp32 and bf16, is in
 * the code for every card, and starts with a grid and shared memory that the card has; cards and
 * drivers that are too old are refused in one sentence. What is computed is not looked at: kernels
 * do not run. Skipped (77) where the plugin is not built, or needs the runtime. */
#include "kernels/device.h"
#include "kernels/plugin.h"
#include "tests/common/check.h"
#include "tests/kernels/driver/stand_in_counts.h"
#include "train/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, STEPS = 3, BATCH = 2, CONTEXT = 70, VOCAB = 300, TEXT_BYTES = 600 };

/* Trains a model for some steps: plainly, captured, and replayed. */
static void train(struct backend *be, const struct model_ops *family, int head_dim) {
	const struct model_shape shape = {.n_layer = 2,
									  .n_head = 2,
									  .n_embd = 2 * head_dim,
									  .vocab = VOCAB,
									  .context = CONTEXT,
									  .norm_eps = 1e-5f,
									  .tied = true,
									  .rope = {.theta = 10000}};
	const struct model_options options = {.max_batch = BATCH};
	struct model *m = NULL;
	assert_ok(model_new(family, &shape, &options, be, &m, &et));
	const size_t n = m->layout.n_params;
	void *vectors[4];
	int32_t tokens[BATCH * CONTEXT] = {0};
	for (int i = 0; i < 4; i++)
		assert_ok(be->ops->alloc(be, n * sizeof(float), &vectors[i], &et));
	float *params = vectors[0], *grads = vectors[1], losses[BATCH * CONTEXT];
	for (int step = 1; step <= STEPS; step++) {
		size_t n_losses;
		(void)model_micro_step(m, params, grads, tokens, tokens, BATCH, CONTEXT, 1, losses, GRADIENT_WRITE);
		double squares;
		(void)be->ops->micro_losses(be, &n_losses, grads, n, &squares);
		assert_int_equal(n_losses, BATCH * CONTEXT);
		const struct adamw_params adamw = {
			.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f, .grad_scale = 1, .step = step};
		be->ops->adamw(be, params, grads, vectors[2], vectors[3], m->spans, m->n_spans, &adamw);
		be->ops->add_scaled(be, grads, 0, 1, params, NULL, n);
	}
	for (int i = 0; i < 4; i++)
		be->ops->free(be, vectors[i]);
	model_free(m);
}

/* Opens the plugin's backend in both types and trains all families. */
static void train_all(bool ptx) {
	static const int head_dims[] = {24, 32, 64, 128};
	const struct backend_plugin *p = NULL;
	assert_ok(plugin_load("cuda", &p, &et));
	for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) {
		const struct backend_options options = {.compute = dtype};
		struct backend *be = NULL;
		assert_ok(p->ops->open(&options, &be, &et));
		for (int f = 0; model_registry[f]; f++)
			for (size_t i = 0; i < sizeof head_dims / sizeof head_dims[0]; i++)
				train(be, model_registry[f], head_dims[i]);
		backend_close(be);
		assert_int_equal(stand_in_counts_now().contexts, 0); /* the driver's memory is free, too */
	}
	const struct stand_in_counts c = stand_in_counts_now();
	print_message("%d modules (%d PTX), %d kernels, %d launches, %d of them captured, %d graphs launched\n", c.modules,
				  c.ptx_modules, c.functions, c.launches, c.captured, c.graph_launches);
	assert_int_equal(c.refusals, 0);
	assert_int_equal(c.ptx_modules, ptx ? c.modules : 0);
	assert_int_equal(c.unloaded, c.modules);
	assert_int_equal(c.allocations, 0);
	assert_true(c.spins == 0 && c.sleeps > 100); /* a person uses the processors */
	assert_true(c.functions >= 50 && c.launches > 1000 && c.captured > 100 && c.graph_launches > 10);
}

struct card {
	const char *capability, *driver;
	bool ptx;         /* newer than all machine code in the plugin */
	const char *says; /* the refusal of the card, or of the driver; NULL: none */
};

/* `auto` is the processor, with the reason; a GPU that was asked for is refused with the remedy. */
static void check_the_processor_is_used(const char *says) {
	struct device_choice choice;
	struct rv_errtext why = {0};
	assert_ok(device_choose("auto", &choice, &et));
	assert_string_equal(choice.backend, "cpu");
	assert_non_null(strstr(choice.why_not_gpu, says));
	assert_true(device_choose("cuda", &choice, &why) != RV_OK);
	assert_non_null(strstr(why.text, says));
	assert_non_null(strstr(why.text, "--device cpu trains on the processor instead"));
}

/* Where the plugin has machine code for one major version alone, PTX is for all others. */
static bool takes_ptx(const struct card *c) {
	enum { MINORS = 10 };
	return c->ptx || (ONLY_MAJOR != 0 && atoi(c->capability) / MINORS != ONLY_MAJOR);
}

/* Runs in a process of its own: a driver's answers do not change within one. */
static int child(const struct card *c) {
	(void)setenv("RIVULET_STAND_IN_CAPABILITY", c->capability, 1);
	(void)setenv("RIVULET_STAND_IN_DRIVER", c->driver, 1);
	const struct backend_plugin *p = NULL;
	struct rv_errtext why = {0};
	struct plugin_device device;
	int n = 0;
	assert_ok(plugin_load("cuda", &p, &et));
	enum rv_err e = p->devices(&n, &why);
	if (e == RV_OK)
		e = p->device(0, &device, &why);
	if (c->says) {
		print_message("%s\n", why.text);
		check_the_processor_is_used(c->says);
		return e != RV_OK && strstr(why.text, c->says) ? 0 : 1;
	}
	assert_int_equal(e, RV_OK);
	train_all(takes_ptx(c));
	return 0;
}

static void in_child(const struct card *c) {
	int status;
	(void)fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(child(c));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		fail_msg("compute capability %s, driver %s: status %d", c->capability, c->driver, status);
}

static void test_every_card(void **state) {
	(void)state;
	const struct card cards[] = {
		{"80", "12000", false, NULL},  {"86", "12000", false, NULL},  {"89", "12000", false, NULL},
		{"90", "12000", false, NULL},  {"100", "12080", false, NULL}, {"103", "12090", false, NULL},
		{"120", "13000", false, NULL}, {"121", "13000", false, NULL}, {"130", "13000", true, NULL}};
	for (size_t i = 0; i < sizeof cards / sizeof cards[0]; i++)
		in_child(&cards[i]);
}

static void test_old_cards_and_drivers_are_refused(void **state) {
	(void)state;
	const struct card cards[] = {
		{"75", "12000", false,
		 "is older than those that can train here (NVIDIA's compute capability 7.5, at least 8.0 is needed)"},
		{"90", "11080", false, "older than CUDA 12.0 (525)"}};
	for (size_t i = 0; i < sizeof cards / sizeof cards[0]; i++)
		in_child(&cards[i]);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_card),
									   cmocka_unit_test(test_old_cards_and_drivers_are_refused)};
	if (access(PLUGIN, R_OK) != 0) {
		(void)printf("skipped: %s is not built\n", PLUGIN);
		return SKIPPED;
	}
	(void)setenv("RIVULET_CUDA_PLUGIN", PLUGIN, 1);
	const struct backend_plugin *p = NULL;
	struct rv_errtext et = {0};
	if (plugin_load("cuda", &p, &et) != RV_OK) {
		(void)printf("skipped: %s\n", et.text);
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
