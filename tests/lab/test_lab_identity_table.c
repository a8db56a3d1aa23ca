/* test_lab_identity_table.c: every method of lab/methods/methods.def has a row: something else that
 * it must be, bit for bit, at one end of its range, and the test that proves what sets it apart.
 * Both sides of each row are run. A method without a row fails. */
#include "lab/methods/methods.h"
#include "lab/methods/preset.h"
#include "tests/lab/lab_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOURCE_BYTES = 256 << 10 };

static struct lab_fixture f;

static int setup(void **state) {
	(void)state;
	lab_fixture_init(&f);
	f.cfg.run.codec = CODEC_fp32;
	f.cfg.run.rounds = 2;
	return 0;
}

static int teardown(void **state) {
	(void)state;
	lab_fixture_release(&f);
	return 0;
}

/* ---- the sides of the rows ---- */

static void use(const struct lab_method *m) {
	f.cfg.method = m;
	method_configure(&f.cfg);
}

static void diloco_with(const char *outer, double lr, double momentum) {
	lab_fixture_outer(&f, outer, lr, momentum);
	use(&lab_method_diloco);
}

/* Four workers or one, who read the same text. */
static void same_text(const struct lab_method *m, int workers) {
	f.cfg.run.data_shards = 1;
	f.cfg.workers = workers;
	use(m);
}

static void diloco_of_four(void) {
	same_text(&lab_method_diloco, 4);
}
static void diloco_of_one(void) {
	same_text(&lab_method_diloco, 1);
}
static void demo_of_four(void) {
	same_text(&lab_method_demo, 4);
}
static void demo_of_one(void) {
	same_text(&lab_method_demo, 1);
}

static void fedavg(void) {
	use(&lab_method_fedavg);
}
static void diloco_with_average(void) {
	diloco_with("average", 1, 0);
}

static void fedopt(void) {
	lab_fixture_outer(&f, "nesterov", 0.005, 0.9);
	use(&lab_method_fedopt);
}
static void diloco_with_adam(void) {
	diloco_with("adam", 0.005, 0.9);
}

static void fedprox_without_mu(void) {
	f.cfg.run.prox_mu = 0;
	use(&lab_method_fedprox);
}

static void lookahead(void) {
	f.cfg.workers = 1;
	lab_fixture_outer(&f, "nesterov", 0.5, 0.9);
	use(&lab_method_lookahead);
}
static void sgd_of_one(void) {
	f.cfg.workers = 1;
	diloco_with("sgd", 0.5, 0);
}

static void snoo(void) {
	f.cfg.workers = 1;
	lab_fixture_outer(&f, "nesterov", 0.7, 0.9);
	use(&lab_method_snoo);
}
static void nesterov_of_one(void) {
	f.cfg.workers = 1;
	diloco_with("nesterov", 0.7, 0.9);
}

static void ddp(void) {
	use(&lab_method_ddp);
}
static void ddp_in_one_round(void) {
	f.cfg.run.steps_per_round *= f.cfg.run.rounds;
	f.cfg.run.rounds = 1;
	use(&lab_method_ddp);
}

static void papa_that_keeps_nothing(void) {
	f.cfg.run.mix = 0;
	use(&lab_method_papa);
}

static void easgd_without_elasticity(void) {
	f.cfg.run.mix = 1;
	use(&lab_method_easgd);
}
static void a_worker_alone(void) {
	f.cfg.workers = 1;
	use(&lab_method_ddp);
}

static void eager_of_one(void) {
	f.cfg.workers = 1;
	lab_fixture_outer(&f, "nesterov", 0.7, 0.9);
	use(&lab_method_eager);
}

static void delayed_for_a_round(void) {
	f.cfg.run.rounds = 1;
	use(&lab_method_delayed);
}
static void diloco_for_a_round(void) {
	f.cfg.run.rounds = 1;
	use(&lab_method_diloco);
}

static void sparseloco(void) {
	use(&lab_method_sparseloco);
}
static void diloco_with_its_options(void) {
	use(&lab_method_sparseloco);
	use(&lab_method_diloco);
}

/* ---- the table ---- */

enum part { RESULT, REPLICA_0 };

static const struct identity {
	const struct lab_method *method;
	void (*side)(void), (*equal)(void);
	enum part of;      /* what is compared */
	const char *claim; /* "METHOD, ..." */
	const char *file, *proof;
} identities[] = {
	{&lab_method_diloco, diloco_of_four, diloco_of_one, RESULT, "of workers that read the same text is one worker",
	 "test_lab_identities.c", "test_sgd_is_the_parameter_mean"},
	{&lab_method_fedavg, fedavg, diloco_with_average, RESULT, "is diloco with outer average", "test_lab_presets.c",
	 "test_fedavg_is_the_outer_average"},
	{&lab_method_fedopt, fedopt, diloco_with_adam, RESULT, "is diloco with outer adam", "test_lab_presets.c",
	 "test_fedopt_is_the_adaptive_outer_optimizer"},
	{&lab_method_fedprox, fedprox_without_mu, fedavg, RESULT, "with prox-mu 0 is fedavg", "test_lab_presets.c",
	 "test_fedprox_holds_replicas"},
	{&lab_method_lookahead, lookahead, sgd_of_one, RESULT, "is diloco of one worker with outer sgd",
	 "test_lab_presets.c", "test_lookahead_is_its_equation"},
	{&lab_method_snoo, snoo, nesterov_of_one, RESULT, "is diloco of one worker with outer nesterov",
	 "test_lab_presets.c", "test_snoo_is_one_worker_with_nesterov"},
	{&lab_method_ddp, ddp, ddp_in_one_round, RESULT, "is the same for every H", "test_lab_identities.c",
	 "test_ddp_of_one_is_replica_step"},
	{&lab_method_papa, papa_that_keeps_nothing, fedavg, RESULT, "with mix 0 is fedavg", "test_lab_methods.c",
	 "test_papa_that_keeps_all_leaves_replicas_alone"},
	{&lab_method_easgd, easgd_without_elasticity, a_worker_alone, REPLICA_0, "with mix 1 leaves each worker alone",
	 "test_lab_methods.c", "test_easgd_is_its_equations"},
	{&lab_method_eager, eager_of_one, nesterov_of_one, RESULT, "of one worker is diloco", "test_lab_methods.c",
	 "test_eager_rounds"},
	{&lab_method_delayed, delayed_for_a_round, diloco_for_a_round, RESULT, "of one round is diloco",
	 "test_lab_methods.c", "test_delayed_rounds"},
	{&lab_method_sparseloco, sparseloco, diloco_with_its_options, RESULT, "is diloco with its options",
	 "test_lab_compression.c", "test_sparseloco_is_its_equations"},
	{&lab_method_demo, demo_of_four, demo_of_one, RESULT, "of workers that read the same text is one worker",
	 "test_lab_demo.c", "test_demo_is_its_equations"},
};
enum { N_IDENTITIES = sizeof identities / sizeof identities[0] };

/* ---- the tests ---- */

static const float *part_of(struct lab_run *r, enum part of) {
	return of == RESULT ? r->cfg.method->theta(r) : replica_theta(r->replicas[0]);
}

/* To the end; *moved says whether it has gone anywhere. */
static float *run_side(void (*side)(void), enum part of, size_t *n, bool *moved) {
	const struct lab_config usual = f.cfg;
	side();
	struct lab_run *r = lab_fixture_start(&f);
	*n = replica_n_params(r->replicas[0]);
	const size_t bytes = *n * sizeof(float);
	float *before = malloc(bytes), *out = malloc(bytes);
	assert_true(before && out);
	memcpy(before, part_of(r, of), bytes);
	lab_fixture_finish(r);
	memcpy(out, part_of(r, of), bytes);
	*moved = memcmp(before, out, bytes) != 0;
	free(before);
	lab_run_free(r);
	f.cfg = usual;
	return out;
}

static void check_identity(const struct identity *i) {
	size_t n, n_equal;
	bool moved, equal_moved;
	float *side = run_side(i->side, i->of, &n, &moved);
	float *equal = run_side(i->equal, i->of, &n_equal, &equal_moved);
	if (!moved || !equal_moved)
		fail_msg("%s: nothing was trained", i->method->name);
	if (n != n_equal || memcmp(side, equal, n * sizeof *side) != 0)
		fail_msg("%s %s: it is not, by %g", i->method->name, i->claim, n == n_equal ? farthest(side, equal, n) : 0);
	free(side);
	free(equal);
}

static void test_every_row_is_true(void **state) {
	(void)state;
	for (int i = 0; i < N_IDENTITIES; i++)
		check_identity(&identities[i]);
}

static void test_every_method_has_a_row(void **state) {
	(void)state;
	for (int m = 0; lab_methods[m]; m++) {
		int n = 0;
		for (int i = 0; i < N_IDENTITIES; i++)
			n += identities[i].method == lab_methods[m];
		if (n == 0)
			fail_msg("method %s: say what it must be equal to, and which test proves what it is", lab_methods[m]->name);
	}
}

/* A side that runs another method than the row's would prove nothing of it. */
static void test_every_row_runs_its_method(void **state) {
	(void)state;
	for (int i = 0; i < N_IDENTITIES; i++) {
		const struct lab_config usual = f.cfg;
		identities[i].side();
		assert_ptr_equal(f.cfg.method, identities[i].method);
		f.cfg = usual;
	}
}

/* The test that a row names is there, and is run. */
static void test_every_proof_is_a_test(void **state) {
	(void)state;
	static char source[SOURCE_BYTES];
	for (int i = 0; i < N_IDENTITIES; i++) {
		char path[600], head[160];
		snprintf(path, sizeof path, "%s/%s", LAB_TESTS, identities[i].file);
		snprintf(head, sizeof head, "static void %s(void **state) {", identities[i].proof);
		FILE *file = fopen(path, "r");
		if (!file)
			fail_msg("cannot open %s", path);
		source[fread(source, 1, sizeof source - 1, file)] = '\0';
		(void)fclose(file);
		const char *test = strstr(source, head);
		if (!test || !strstr(test + strlen(head), identities[i].proof))
			fail_msg("%s: no test %s, or it is not run", path, identities[i].proof);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(test_every_method_has_a_row),
		TEST(test_every_row_runs_its_method),
		TEST(test_every_row_is_true),
		TEST(test_every_proof_is_a_test),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
