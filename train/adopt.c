/* adopt.c: see adopt.h. Elementwise and without contraction: the same bits in the lab and in every worker. */
#include "train/adopt.h"

void adopt_round(struct replica *r, struct global_state *g, uint64_t round, float mix) {
	const struct chunking c = global_round_chunks(&g->cfg, round);
	if (mix == 1)
		return;
	if (mix == 0 && fragments_count(&g->cfg.fragments) == 1) {
		replica_set_theta(r, g->theta);
		return;
	}
	for (uint32_t i = 0; i < c.n_chunks; i++) {
		size_t at = global_round_chunk_at(&g->cfg, round, i), n = chunking_len(&c, i);
		if (mix == 0) {
			replica_set_part(r, at, n, g->theta + at);
			continue;
		}
		replica_get_part(r, at, n, g->scratch);
		for (size_t k = 0; k < n; k++)
			g->scratch[k] = mix * g->scratch[k] + (1 - mix) * g->theta[at + k];
		replica_set_part(r, at, n, g->scratch);
	}
}
