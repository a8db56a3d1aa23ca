/* disk_plan.c: what a worker takes of the disk, within what its person allows (--max-disk): first
 * the state, with as many snapshots as there is room for, then the text. */
#include "worker/session/internal.h"

#include "worker/state/state_format.h"

#include <inttypes.h>

/* Returns the most that the state takes with `keep` snapshots: one more while it is written or
 * fetched, the log from the oldest on, this worker's own state and its successor, what it gives
 * auditors, and at the end the weights. */
static uint64_t state_bytes(const struct run_config *run, const struct global_config *g, int64_t keep) {
	enum { REPLICA_VECTORS = 3 }; /* theta and both moments */
	const uint64_t snapshot = state_file_max_bytes(g, STATE_KIND_SNAPSHOT, 0);
	const uint64_t vector = sizeof(float) * (uint64_t)g->n;
	uint64_t longest = 0;
	for (uint32_t fragment = 0; fragment < fragments_count(&g->fragments); fragment++) {
		const uint64_t log = state_file_max_bytes(g, STATE_KIND_LOG, fragment);
		longest = log > longest ? log : longest;
	}
	const uint64_t entries = (uint64_t)(keep + 1) * (uint64_t)run->snapshot_every;
	const uint64_t given = run_config_keeps_contributions(run)
							   ? (uint64_t)(run->audit_window + 1) * global_max_sent_bytes(g) +
									 (uint64_t)g->chunks.n_chunks * sizeof(struct rv_hash)
							   : 0;
	const uint64_t means = run->mean_feedback > 0 ? 2 * vector / (uint64_t)run->min_workers : 0;
	return (uint64_t)(keep + 1) * snapshot + entries * longest + 2 * REPLICA_VECTORS * vector + means + given + vector;
}

/* Returns the least of the text that a worker can read from: two shards (--data-cache). */
static uint64_t least_text(const struct session *s, const struct run_config *run) {
	enum { SHARDS = 2, SHARD_BYTES = 4 << 20 };
	return run->data_hash[0] && !s->member.data[0] ? SHARDS * (uint64_t)SHARD_BYTES : 0;
}

enum rv_err session_plan_disk(const struct session *s, const struct run_config *run, const struct global_config *g,
							  struct session_disk_plan *out, struct rv_errtext *et) {
	enum { KEPT_WITH_A_CAP = 2 }; /* of `all` */
	const uint64_t cap = (uint64_t)s->opt->max_disk, text = least_text(s, run);
	*out = (struct session_disk_plan){.keep_snapshots = (uint64_t)s->opt->keep_snapshots,
									  .text_bytes = (uint64_t)s->opt->data_cache};
	if (cap == 0)
		return RV_OK;
	int64_t keep = s->opt->keep_snapshots > 0 ? s->opt->keep_snapshots : KEPT_WITH_A_CAP;
	while (keep > 1 && state_bytes(run, g, keep) + text > cap)
		keep--;
	const uint64_t state = state_bytes(run, g, keep);
	if (state + text > cap)
		return rv_fail(et, RV_E_FULL,
					   "--max-disk %" PRIu64 " MB is too little for this run: its state takes up to %" PRIu64
					   " MB of disk, its text at least %" PRIu64 " MB: allow %" PRIu64 " MB",
					   cap / 1000000, state / 1000000 + 1, text / 1000000, (state + text) / 1000000 + 1);
	out->keep_snapshots = (uint64_t)keep;
	if (out->text_bytes > cap - state)
		out->text_bytes = cap - state;
	return RV_OK;
}
