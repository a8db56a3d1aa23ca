/* inner_adamw.c: AdamW (Loshchilov & Hutter 2019), the inner optimizer of DiLoCo. */
#include "train/inner.h"

static void step(const struct inner_slice *s, const struct inner_params *p) {
	const struct moments_place place = {s->n_moments, s->at, s->first};
	if (s->moments == MOMENTS_INT8)
		s->be->ops->adamw8(s->be, s->theta, s->grad, s->m, s->v, s->spans, s->n_spans, &p->adamw, place);
	else
		s->be->ops->adamw(s->be, s->theta, s->grad, (float *)s->m + s->at, (float *)s->v + s->at, s->spans, s->n_spans,
						  &p->adamw);
}

const struct inner_optimizer inner_adamw = {.name = "adamw", .has_moments8 = true, .step = step};
