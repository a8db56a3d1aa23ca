/* links.c: the session core's links: the all-reduce, state from peers, state to them. */
#include "worker/session/internal.h"

#include "base/failpoint.h"
#include "base/hex.h"
#include "train/files/weights.h"
#include "worker/transfer/donor_store.h"

#include <string.h>

static void allow(void *ctx, const struct document *d) {
	struct session *s = ctx;
	session_limit_reach(s);
	reach_core_follow(reach_core_of(s->reach), rv_clock_monotonic_us(), d);
	meshlink_allow(s->mesh, rv_clock_monotonic_us(), d);
	session_count_roster(s, d);
	session_check_proofs(s, d);
	session_check_promise(s, d);
	session_audit_follow(s, rv_clock_monotonic_us(), d);
	session_weigh_roster(s, d);
}

static void pause_links(void *ctx, bool paused) {
	struct session *s = ctx;
	struct rv_errtext et;
	meshlink_pause(s->mesh, rv_clock_monotonic_us(), paused);
	if (s->text)
		text_pause(s->text, paused);
	if (paused)
		session_close_own_relay(s);
	else if (session_open_own_relay(s, &et) != RV_OK)
		rv_event(s->events, RV_WARN, "own_relay", RV_NO_FIELDS, "no relay for others: %s", et.text);
}

/* ---- the all-reduce ---- */

static struct line_counts line_counts_of(const struct session *s) {
	const struct peers *p = meshlink_peers(s->mesh);
	return (struct line_counts){.tx_bytes = peers_delivered(p), .rx_bytes = peers_total(p).rx_bytes};
}

static enum rv_err begin_reduce(void *ctx, const struct document *d, struct rv_errtext *et) {
	struct session *s = ctx;
	int64_t now_us = rv_clock_monotonic_us();
	RV_FAILPOINT("reduce.start");
	const struct allreduce_inputs in = {.own = trainer_encoded(s->trainer),
										.own_nodes = trainer_tree(s->trainer),
										.last = trainer_last_mean(s->trainer)};
	RV_TRY(allreduce_start(s->reduce, now_us, d, &in, et));
	session_trace_attempt(s, d);
	session_audit_roster(s, d);
	s->sums.reduce_started_us = now_us;
	s->sums.reduce_compute_us = session_compute_us(s, now_us);
	s->done_attempt = 0;
	line_meter_begin(&s->line, now_us, line_counts_of(s));
	meshlink_announce_links(s->mesh, now_us);
	return RV_OK;
}

static enum rv_err resume_reduce(void *ctx, const struct document *d, struct rv_errtext *et) {
	struct session *s = ctx;
	int64_t now_us = rv_clock_monotonic_us();
	RV_FAILPOINT("reduce.resume");
	RV_TRY(allreduce_restart(s->reduce, now_us, d, et));
	session_trace_attempt(s, d);
	session_audit_roster(s, d);
	meshlink_announce_links(s->mesh, now_us); /* a member may be new in this roster */
	return RV_OK;
}

static void count_reduce_time(struct session *s, int64_t now_us) {
	struct session_sums *sums = &s->sums;
	if (sums->reduce_started_us == 0)
		return;
	int64_t all_us = now_us - sums->reduce_started_us;
	int64_t compute_us = session_compute_us(s, now_us) - sums->reduce_compute_us;
	sums->reduce_us += all_us;
	sums->overlap_us += compute_us < all_us ? compute_us : all_us;
	sums->reduce_started_us = 0;
}

static void end_reduce(void *ctx) {
	struct session *s = ctx;
	int64_t now_us = rv_clock_monotonic_us();
	count_reduce_time(s, now_us);
	s->sums.exchanged = allreduce_info(s->reduce);
	s->sums.attempts = allreduce_attempt(s->reduce);
	struct reduce_receipt receipts[NET_MAX_ROW];
	receipts_note(&s->receipts, receipts, allreduce_receipts(s->reduce, receipts));
	line_meter_end(&s->line, now_us, line_counts_of(s));
	allreduce_stop(s->reduce);
}

static struct blob *result(void *ctx) {
	const struct session *s = ctx;
	struct blob *b = blob_new(state_payload_bytes(&s->store.cfg, STATE_KIND_LOG, allreduce_round(s->reduce)));
	if (b)
		memcpy(b->data, allreduce_reduced(s->reduce), b->bytes);
	return b;
}

static bool means_left(void *ctx, struct blob **out) {
	const struct session *s = ctx;
	const struct global_config *g = &s->store.cfg;
	*out = NULL;
	if (!mean_residual_is_on(&s->mean_residual))
		return true;
	*out = blob_new(mean_residual_saved_bytes(&s->mean_residual, g));
	if (*out)
		mean_residual_save(&s->mean_residual, g, (*out)->data);
	return *out != NULL;
}

static void means_commit(void *ctx, uint64_t round, uint32_t attempt) {
	struct session *s = ctx;
	mean_residual_commit(&s->mean_residual, &s->store.cfg, round, attempt);
}

static void means_forget(void *ctx) {
	struct session *s = ctx;
	mean_residual_forget(&s->mean_residual, &s->store.cfg);
}

struct session_reduce session_see(struct session *s, int64_t now_us) {
	if (!allreduce_running(s->reduce))
		return (struct session_reduce){.running = false};
	allreduce_tick(s->reduce, now_us);
	line_meter_sample(&s->line, now_us, line_counts_of(s));
	const struct session_reduce seen = {.running = true,
										.complete = allreduce_done(s->reduce),
										.round = allreduce_round(s->reduce),
										.attempt = allreduce_attempt(s->reduce),
										.suspects = allreduce_suspects(s->reduce)};
	if (seen.complete && s->done_attempt != seen.attempt) {
		s->done_attempt = seen.attempt;
		count_reduce_time(s, now_us);
		RV_FAILPOINT("reduce.done");
	}
	return seen;
}

/* ---- state from peers ---- */

static enum rv_err want(void *ctx, const struct state_id *ids, int n, struct rv_errtext *et) {
	struct session *s = ctx;
	if (n > 0)
		RV_FAILPOINT("fetch.begin");
	return fetcher_want(s->fetcher, rv_clock_monotonic_us(), ids, n, et);
}

static bool nowhere(void *ctx) {
	struct session *s = ctx;
	fetcher_tick(s->fetcher, rv_clock_monotonic_us());
	return fetcher_nowhere(s->fetcher);
}

static void on_failed(void *ctx, const struct state_id *id, enum rv_err e, const char *text) {
	session_core_on_fetch_failed(((struct session *)ctx)->core, rv_clock_monotonic_us(), id, e, text);
}

static void on_file(void *ctx, const struct fetched *what, bool late) {
	struct session *s = ctx;
	RV_FAILPOINT("fetch.done");
	if (!late)
		session_core_on_fetched(s->core, rv_clock_monotonic_us(), &what->id, what->snapshot, what->log,
								what->warning.text);
	else if (what->log)
		session_core_on_stored_late(s->core, &what->id, what->log);
	else
		state_file_free(what->snapshot); /* its part stays on the disk */
	blob_unref(what->log);
}

static void on_bad_donor(void *ctx, uint32_t member, const struct state_id *id, const char *text) {
	struct session *s = ctx;
	rv_event(s->events, RV_WARN, "bad_donor",
			 RV_FIELDS(rv_field_int("member", member), rv_field_int("round", (int64_t)id->round)),
			 "%s; going on with others", text);
}

/* Checks that theta is what the run starts from, and the outer state that before the first step. */
enum rv_err session_check_initial(void *ctx, const struct rv_hash *manifest, struct rv_errtext *et) {
	const struct session *s = ctx;
	const struct global_config *g = &s->store.cfg;
	char hex[2 * RV_HASH_BYTES + 1];
	struct rv_hash weights = weights_hash_of(g->n, manifest);
	rv_hex_encode(weights.b, RV_HASH_BYTES, hex);
	if (strcmp(hex, s->member.config.init_hash) != 0)
		return rv_fail(et, RV_E_CORRUPT, "these are not the weights that the run starts from");
	return global_check_initial(g, manifest, et);
}

const struct fetcher_owner session_fetcher_owner = {
	.on_file = on_file, .on_failed = on_failed, .on_bad_donor = on_bad_donor};

/* ---- state to peers ---- */

static void forget(void *ctx, enum state_kind kind, uint64_t round) {
	donor_forget(((struct session *)ctx)->donor, kind, round);
}

static void forget_all(void *ctx) {
	donor_forget_all(((struct session *)ctx)->donor);
}

static const struct member_set *askers(void *ctx) {
	return donor_askers(((struct session *)ctx)->donor);
}

static uint64_t given_bytes(void *ctx) {
	return donor_bytes(((struct session *)ctx)->donor);
}

const struct session_links_ops session_links_ops = {.allow = allow,
													.pause = pause_links,
													.reduce_start = begin_reduce,
													.reduce_restart = resume_reduce,
													.reduce_stop = end_reduce,
													.result = result,
													.means_left = means_left,
													.means_commit = means_commit,
													.means_forget = means_forget,
													.want = want,
													.nowhere = nowhere,
													.forget = forget,
													.forget_all = forget_all,
													.askers = askers,
													.given_bytes = given_bytes};
