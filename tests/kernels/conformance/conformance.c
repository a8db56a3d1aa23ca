/* conformance.c: see conformance.h. */
#include "tests/kernels/conformance/conformance.h"

static const struct conformance_case *const tables[] = {cases_norm,      cases_pointwise, cases_embed,    cases_linear,
														cases_attention, cases_head,      cases_optimizer};

static void run_case(struct duo *d, const struct conformance_case *c, bool all_sizes, struct conformance_count *count) {
	int sizes = all_sizes ? c->sizes : c->light;
	for (int i = 0; i < sizes; i++) {
		duo_begin(d, DUO_TEST, 1);
		c->run(d, i);
		duo_clear(d);
		count->runs++;
	}
}

const struct conformance_case *conformance_case_at(int i) {
	for (int t = 0; t < COUNT(tables); t++)
		for (const struct conformance_case *c = tables[t]; c->name; c++)
			if (i-- == 0)
				return c;
	return NULL;
}

void conformance_measure(struct duo *d, const struct conformance_case *c, int size, int repetitions,
						 struct conformance_row *out) {
	*out = (struct conformance_row){.name = c->name};
	duo_begin(d, DUO_MEASURE, 1);
	c->run(d, size);
	duo_clear(d);
	out->checked = d->found;
	if (repetitions < 1)
		return;
	duo_begin(d, DUO_TIME, repetitions);
	c->run(d, size);
	duo_clear(d);
	out->warm = d->found;
}

void conformance_run(struct backend *be, bool all_sizes, struct conformance_count *count) {
	struct backend *ref = open_ref();
	struct duo d;
	duo_init(&d, ref, be);
	const struct conformance_case *c;
	for (int i = 0; (c = conformance_case_at(i)); i++)
		run_case(&d, c, all_sizes, count);
	count->arrays += d.checked;
	count->digest = d.digest;
	backend_close(ref);
}
