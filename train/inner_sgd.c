/* inner_sgd.c: plain SGD, p <- p - lr (g' + wd p); with outer steps of H = 1, data-parallel SGD. */
#include "train/inner.h"

static void step(const struct inner_slice *s, const struct inner_params *p) {
	const struct adamw_params *a = &p->adamw;
	for (int i = 0; i < s->n_spans; i++) {
		size_t at = s->spans[i].begin, n = s->spans[i].end - at;
		float keep = s->spans[i].decay ? 1 - a->lr * a->weight_decay : 1;
		s->be->ops->add_scaled(s->be, s->theta + at, keep, -a->lr * a->grad_scale, s->grad + at, NULL, n);
	}
}

const struct inner_optimizer inner_sgd = {.name = "sgd", .step = step};
