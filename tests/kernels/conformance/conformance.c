/* conformance.c: see conformance.h. */
#include "tests/kernels/conformance/conformance.h"

static const struct conformance_case *const tables[] = {cases_norm,      cases_pointwise, cases_embed,    cases_linear,
														cases_attention, cases_head,      cases_optimizer};

static void run_case(struct duo *d, const struct conformance_case *c, bool all_sizes, struct conformance_count *count) {
	int sizes = all_sizes ? c->sizes : c->light;
	for (int i = 0; i < sizes; i++) {
		c->run(d, i);
		duo_clear(d);
		count->runs++;
	}
}

void conformance_run(struct backend *be, bool all_sizes, struct conformance_count *count) {
	struct backend *ref = open_ref();
	struct duo d;
	duo_init(&d, ref, be);
	for (int t = 0; t < COUNT(tables); t++)
		for (const struct conformance_case *c = tables[t]; c->name; c++)
			run_case(&d, c, all_sizes, count);
	count->arrays += d.checked;
	count->digest = d.digest;
	backend_close(ref);
}
