/* disk_plan.c: what a worker takes of the disk, within what its person allows (--max-disk): first
 * the state, with as many snapshots as there is room for, then the text. */
#include "worker/session/internal.h"

#include "base/rows.h"
#include "base/run_audits.h"
#include "train/text/data.h"
#include "train/text/sequence_order.h"
#include "worker/state/state_format.h"

#include <inttypes.h>

/* Returns the most that a final owner keeps of a round: 1 / length of a row of all sums, and up to
 * twice that where lines differ (coordinator/core/deal.h). */
static uint64_t sums_bytes(const struct run_config *run, const struct global_config *g) {
	enum { UNEVEN = 2 };
	return UNEVEN * merge_partial_bytes(g->n) / (uint64_t)rows_shortest((int)run->row_size);
}

uint64_t session_audit_disk_bytes(const struct run_config *run, const struct global_config *g) {
	const uint64_t hashes = (uint64_t)g->chunks.n_chunks * sizeof(struct rv_hash);
	uint64_t bytes = 0;
	if (run_config_keeps_contributions(run))
		bytes += (uint64_t)(run->audit_window + 2) * (global_max_sent_bytes(g) + hashes);
	if (run_config_is_audited(run))
		bytes += (uint64_t)(run->audit_window + 2) * sums_bytes(run, g);
	if (run_config_is_repeated(run))
		bytes += (uint64_t)(session_repeat_rounds(run) + 1) * kept_states_bytes(g->n);
	return bytes;
}

uint64_t session_audit_disk_missing(const char *dir, const struct run_config *run, const struct global_config *g) {
	const uint64_t all = session_audit_disk_bytes(run, g);
	uint64_t there = 0;
	if (run_config_keeps_contributions(run))
		there += kept_contributions_there(dir, (uint32_t)run->audit_window + 1);
	if (run_config_is_audited(run))
		there += kept_sums_there(dir, (uint32_t)run->audit_window + 1);
	if (run_config_is_repeated(run))
		there += kept_states_there(dir, session_repeat_rounds(run));
	return there < all ? all - there : 0;
}

/* Returns the most that the state takes with `keep` snapshots: one more while it is written or
 * fetched, the log from the oldest on, this worker's own state and its successor, what is kept for
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
	const uint64_t means = run->mean_feedback > 0 ? 2 * vector / (uint64_t)run->min_workers : 0;
	return (uint64_t)(keep + 1) * snapshot + entries * longest + 2 * REPLICA_VECTORS * vector + means +
		   session_audit_disk_bytes(run, g) + vector;
}

/* Returns true if the run hands its text out, and this worker has none of its own. */
static bool fetches_text(const struct session *s, const struct run_config *run) {
	return run->data_hash[0] != '\0' && s->member.data[0] == '\0';
}

/* Returns the least of the text that a worker can read from without fetching it again and again:
 * what the coordinator states, or else all of the longest text that is read from everywhere in
 * it. */
static uint64_t least_text(const struct session *s) {
	enum { TOKEN_BYTES = 2 };
	return s->about.text_least_bytes > 0 ? s->about.text_least_bytes
										 : (uint64_t)ORDER_LEAST_BLOCKS * DATA_BLOCK * TOKEN_BYTES;
}

enum rv_err session_check_text_room(const struct session *s, uint64_t room_bytes, uint64_t least_bytes,
									struct rv_errtext *et) {
	const uint64_t cache = (uint64_t)s->opt->data_cache, lacks = least_bytes - room_bytes;
	const bool by_cap = room_bytes < cache;
	if (room_bytes >= least_bytes)
		return RV_OK;
	return rv_fail(
		et, RV_E_FULL,
		"%s %" PRIu64 " bytes for the run's text, and at least %" PRIu64
		" must fit: it is read from all over that much, and would be fetched again and again: allow %s %" PRIu64,
		by_cap ? "--max-disk leaves" : "--data-cache allows", room_bytes, least_bytes,
		by_cap ? "--max-disk" : "--data-cache", by_cap ? (uint64_t)s->opt->max_disk + lacks : least_bytes);
}

enum rv_err session_plan_disk(const struct session *s, const struct run_config *run, const struct global_config *g,
							  struct session_disk_plan *out, struct rv_errtext *et) {
	enum { KEPT_WITH_A_CAP = 2 }; /* of `all` */
	const bool fetches = fetches_text(s, run);
	const uint64_t cap = (uint64_t)s->opt->max_disk, text = fetches ? least_text(s) : 0;
	const int64_t least = run_audits_least_snapshots(run), asked = s->opt->keep_snapshots;
	*out = (struct session_disk_plan){.keep_snapshots = (uint64_t)(asked > 0 && asked < least ? least : asked),
									  .text_bytes = fetches ? (uint64_t)s->opt->data_cache : 0,
									  .text_least_bytes = fetches ? s->about.text_least_bytes : 0};
	RV_TRY(session_check_text_room(s, out->text_bytes, out->text_least_bytes, et));
	if (cap == 0)
		return RV_OK;
	int64_t keep = asked > 0 ? asked : KEPT_WITH_A_CAP;
	keep = keep < least ? least : keep;
	while (keep > least && state_bytes(run, g, keep) + text > cap)
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
