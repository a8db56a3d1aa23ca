/* test_kernels_conformance_measure.c: what device_conformance reports: a damaged operation is
 * measured, named, and does not keep the following sizes from being measured. */
#include "tests/kernels/conformance/conformance.h"

#include <math.h>
#include <string.h>

/* `cpu`, whose operations a test replaces. */
struct damaged {
	struct backend *be;
	struct backend_ops ops;
	const struct backend_ops *own;
};

static struct damaged open_damaged(void) {
	struct damaged d = {.be = NULL};
	struct rv_errtext et = {0};
	const struct backend_options opt = {.threads = 1, .isa = "portable"};
	if (backend_open("cpu", &opt, &d.be, &et) != RV_OK)
		fail_msg("%s", et.text);
	d.own = d.be->ops;
	d.ops = *d.own;
	return d;
}

static void close_damaged(struct damaged *d) {
	d->be->ops = d->own;
	backend_close(d->be);
}

static const struct conformance_case *find(const char *name) {
	const struct conformance_case *c;
	for (int i = 0; (c = conformance_case_at(i)); i++)
		if (strcmp(c->name, name) == 0)
			return c;
	fail_msg("no case %s", name);
	return NULL;
}

/* All but the last number of a row are SwiGLU's. */
static void swiglu_without_the_last(struct backend *be, act_t *out, const act_t *in, int n, int f) {
	(void)be;
	const float *gate_up = (const float *)(const void *)in;
	float *to = (float *)(void *)out;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < f - 1; j++) {
			float gate = gate_up[i * 2 * f + j];
			to[i * f + j] = gate / (1 + expf(-gate)) * gate_up[i * 2 * f + f + j];
		}
}

static void a_damaged_operation_is_measured_at_every_size(void **state) {
	(void)state;
	struct damaged broken = open_damaged();
	broken.ops.swiglu_forward = swiglu_without_the_last;
	broken.be->ops = &broken.ops;
	struct backend *ref = open_ref();
	const struct conformance_case *c = find("swiglu");
	struct duo d;
	duo_init(&d, ref, broken.be);
	for (int i = 0; i < c->sizes; i++) {
		struct conformance_row row;
		conformance_measure(&d, c, i, 2, &row);
		assert_true(row.checked.differences > 0 && row.checked.worst > 1);
		assert_int_equal(strncmp(row.checked.worst_at, "out[", 4), 0);
		assert_int_equal(row.checked.n_parts, 2);
		assert_int_equal(row.checked.parts[0].calls, 1);
		assert_int_equal(row.warm.parts[1].calls, 2);
		assert_string_equal(row.warm.parts[1].name, "backward");
	}
	backend_close(ref);
	close_damaged(&broken);
}

static void nan_losses(struct backend *be, float *losses, act_t *dx, float *dwte, const act_t *x, const float *wte,
					   const int32_t *targets, int n, int c, int v, int vp, float grad_scale, enum gradient_mode mode) {
	(void)be, (void)dx, (void)dwte, (void)x, (void)wte, (void)targets, (void)c, (void)v, (void)vp, (void)grad_scale;
	(void)mode;
	for (int i = 0; i < n; i++)
		losses[i] = NAN;
}

static void a_nan_is_beyond_measure(void **state) {
	(void)state;
	struct damaged broken = open_damaged();
	broken.ops.classifier = nan_losses;
	broken.be->ops = &broken.ops;
	struct backend *ref = open_ref();
	struct duo d;
	struct conformance_row row;
	duo_init(&d, ref, broken.be);
	conformance_measure(&d, find("classifier"), 0, 0, &row);
	assert_true(row.checked.worst == DUO_INFINITE);
	conformance_measure(&d, find("nan_token"), 0, 0, &row);
	assert_true(row.checked.worst == DUO_INFINITE && row.checked.differences == 1);
	assert_int_equal(strncmp(row.checked.worst_at, "not so: ", 8), 0);
	assert_int_equal(row.warm.n_parts, 0);
	backend_close(ref);
	close_damaged(&broken);
}

static void what_conforms_is_within_its_limits(void **state) {
	(void)state;
	struct damaged whole = open_damaged();
	struct backend *ref = open_ref();
	struct duo d;
	duo_init(&d, ref, whole.be);
	const struct conformance_case *c;
	for (int i = 0; (c = conformance_case_at(i)); i++) {
		struct conformance_row row;
		conformance_measure(&d, c, c->light - 1, 0, &row);
		if (row.checked.differences || row.checked.worst > 1)
			fail_msg("%s %s: %s", c->name, row.checked.shape, row.checked.worst_at);
		assert_true(row.checked.shape[0] != 0);
	}
	backend_close(ref);
	close_damaged(&whole);
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_damaged_operation_is_measured_at_every_size),
									   cmocka_unit_test(a_nan_is_beyond_measure),
									   cmocka_unit_test(what_conforms_is_within_its_limits)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
