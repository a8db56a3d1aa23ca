/* means_recovery.c: see means_recovery.h. */
#include "worker/state/means_recovery.h"

#include "base/planted.h"

uint64_t means_file_of(const struct global_config *g, uint64_t round) {
	return round % (2 * (uint64_t)fragments_count(&g->fragments));
}

/* Takes over what the attempt at `round` left that its log entry is of. Returns false if
 * nothing. */
static bool take(const struct means_files *files, const struct global_config *g, uint64_t round,
				 struct mean_residual *m, uint32_t *attempt) {
	struct rv_errtext et = {0};
	if (!files->log_attempt(files->ctx, round, attempt) || *attempt == 0 || RV_BUG("forget-means-at-a-restart"))
		return false;
	struct blob *b = files->load(files->ctx, round);
	if (!b)
		return false;
	enum rv_err e = mean_residual_load(m, g, b->data, b->bytes, &et);
	blob_unref(b);
	if (e != RV_OK)
		files->refuse(files->ctx, round, &et);
	return e == RV_OK && m->round == round && m->attempt == *attempt;
}

void means_recover(const struct means_files *files, const struct global_config *g, uint64_t round,
				   struct mean_residual *m) {
	const uint64_t n_fragments = fragments_count(&g->fragments);
	uint32_t attempt;
	if (!mean_residual_is_on(m))
		return;
	for (uint64_t r = round > n_fragments ? round - n_fragments : 0; r < round; r++)
		if (take(files, g, r, m, &attempt))
			mean_residual_commit(m, g, r, attempt);
	if (!take(files, g, round, m, &attempt))
		mean_residual_drop(m, g);
}
