/* reduce_points.c: see reduce_points.h. Nothing without RV_FAILPOINTS. */
#include "worker/mesh/reduce_points.h"

#ifdef RV_FAILPOINTS

#include "base/failpoint.h"

void reduce_points_begin(struct reduce_points *p, const struct document *d, uint32_t self_member) {
	int self = document_find(d, self_member);
	uint32_t own = 0;
	for (int i = 0; i < d->n_ranges; i++)
		own += d->ranges[i].owner == self ? d->ranges[i].count : 0;
	*p = (struct reduce_points){.n_scatter = d->n_chunks - own, .n_gather = own * (uint32_t)(d->n_members - 1)};
}

void reduce_points_sending(struct reduce_points *p, const struct reduce_msg *m) {
	if (m->type == REDUCE_SCATTER) {
		uint32_t i = p->scatter++;
		if (i == 0)
			RV_FAILPOINT("reduce.scatter-first");
		if (i == p->n_scatter / 2)
			RV_FAILPOINT("reduce.scatter-mid");
		if (i + 1 == p->n_scatter)
			RV_FAILPOINT("reduce.scatter-last");
	} else if (m->type == REDUCE_GATHER) {
		uint32_t i = p->gather++;
		if (i == 0)
			RV_FAILPOINT("reduce.gather-first");
		if (i == p->n_gather / 2)
			RV_FAILPOINT("reduce.gather-mid");
		if (i + 1 == p->n_gather)
			RV_FAILPOINT("reduce.gather-last");
	}
}

#endif
