/* preflight.c: what a run's configuration asks of this machine, looked at before the join, which
 * spends an invite and a member's number: the data shard, the caps, the memory, the disk, the
 * text. */
#include "worker/session/internal.h"

#include "base/model_shape.h"
#include "worker/options/input_checks.h"
#include "worker/state/state_format.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/statvfs.h>

enum rv_err session_check_shard(const struct session *s, const struct run_config *run, struct rv_errtext *et) {
	const int64_t data_shards = run->data_shards;
	if (run->data_hash[0] && s->opt->shard >= 0)
		return rv_fail(et, RV_E_INVALID,
					   "--shard %" PRId64 ": this run leases sequences to its members: leave --shard out",
					   s->opt->shard);
	if (s->opt->shard < data_shards)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE,
				   "--shard %" PRId64 ": the run has %" PRId64
				   " data shard%s, numbered from 0: give one of [0, %" PRId64
				   "], or leave --shard out for the one that falls to this worker",
				   s->opt->shard, data_shards, data_shards == 1 ? "" : "s", data_shards - 1);
}

enum rv_err session_global_of(const struct run_config *run, struct model_extent *extent, struct global_config *out,
							  struct rv_errtext *et) {
	RV_TRY(model_extent_of(run, extent, et));
	const struct fragment_layers layers = {
		.begin = extent->layers_begin, .layer_elems = extent->layer_elems, .n = (int)run->n_layer};
	return global_config_of(run, extent->n_params, &layers, &(struct rv_hash){0}, out, et);
}

/* Refuses a cap at which one chunk takes more than half of silence-ms: frames leave whole, one
 * after the other, and a peer that gets none for silence-ms suspects this worker. The other half is
 * for the line and for other peers. */
static enum rv_err check_cap(const struct run_config *run, const struct global_config *g, const char *name,
							 int64_t cap_bytes_per_s, struct rv_errtext *et) {
	int64_t timeout_ms = run->silence_ms;
	const size_t elems = chunking_len(&g->chunks, 0), mean = g->codec->encoded_bytes(g->codec, elems);
	const size_t sent = global_sent(g)->encoded_bytes(global_sent(g), elems);
	int64_t chunk_bytes = (int64_t)(mean > sent ? mean : sent);
	int64_t least = chunk_bytes * 2 * 1000 / timeout_ms;
	if (cap_bytes_per_s == 0 || cap_bytes_per_s >= least)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE,
				   "%s is too low for this run: a chunk of %" PRId64
				   " bytes has to pass within half of silence-ms = %" PRId64
				   ", or the others take this worker for dead; allow at least %" PRId64 "kbit",
				   name, chunk_bytes, timeout_ms, least * 8 / 1000 + 1);
}

enum rv_err session_check_caps(const struct session *s, const struct run_config *run, const struct global_config *g,
							   struct rv_errtext *et) {
	RV_TRY(check_cap(run, g, "max-up", s->opt->max_up, et));
	return check_cap(run, g, "max-down", s->opt->max_down, et);
}

uint64_t session_least_disk_bytes(const struct global_config *g) {
	enum { REPLICA_VECTORS = 3 }; /* theta and both moments */
	uint64_t snapshot = state_file_max_bytes(g, STATE_KIND_SNAPSHOT, 0),
			 log = state_file_max_bytes(g, STATE_KIND_LOG, 0);
	return snapshot + log + 2 * REPLICA_VECTORS * sizeof(float) * (uint64_t)g->n;
}

/* Refuses a --dir without room for the least that a member stores. */
static enum rv_err check_disk(const struct session *s, const struct run_config *run, struct rv_errtext *et) {
	struct model_extent extent;
	struct global_config g;
	struct statvfs disk;
	struct session_disk_plan plan;
	RV_TRY(session_global_of(run, &extent, &g, et));
	RV_TRY(session_plan_disk(s, run, &g, &plan, et));
	if (statvfs(s->opt->dir, &disk) != 0)
		return rv_fail_errno(et, errno, "%s: statvfs", s->opt->dir);
	const uint64_t free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize,
				   audits = session_audit_disk_missing(s->opt->dir, run, &g),
				   least = session_least_disk_bytes(&g) + audits;
	if (free_bytes >= least)
		return RV_OK;
	return rv_fail(et, RV_E_FULL,
				   "%s: the state of this run (%zu parameters) takes %" PRIu64 " MB of disk at least (%" PRIu64
				   " MB of it are kept for auditors), and %" PRIu64
				   " MB are free: make room, or choose a --dir on another disk",
				   s->opt->dir, extent.n_params, least / 1000000 + 1, audits / 1000000, free_bytes / 1000000);
}

static enum rv_err check_memory(struct session *s, const struct run_config *run, struct rv_errtext *et) {
	struct trainer_config cfg = {.run = run, .device = s->opt->device, .threads = (int)s->opt->threads};
	session_choose_savings(s, &cfg);
	return session_check_memory(s, &cfg, et);
}

enum rv_err session_preflight(struct session *s, const struct run_config *run, struct rv_errtext *et) {
	struct model_extent extent;
	struct global_config g;
	RV_TRY(session_check_shard(s, run, et));
	RV_TRY(session_check_init(s, run, et));
	RV_TRY(session_global_of(run, &extent, &g, et));
	RV_TRY(session_check_caps(s, run, &g, et));
	RV_TRY(check_memory(s, run, et));
	RV_TRY(check_disk(s, run, et));
	RV_TRY(session_check_own_text(s, run, et));
	enum rv_err e = input_check_run_data(run, s->data_path, s->member.tokenizer, et);
	return e == RV_OK ? session_check_tokens(s, run, et) : rv_fail_context(et, e, "--data");
}
