/* start.c: building a session once it is a member, and taking it apart. */
#include "worker/session/internal.h"

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/json_lines.h"
#include "base/run_silence.h"
#include "net/portmap/portmap.h"
#include "worker/transfer/donor_store.h"
#include "worker/transfer/fetch_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void wake(void *ctx) {
	http_client_wakeup(((struct session *)ctx)->http);
}

/* ---- once a member ---- */

static enum rv_err open_trainer(struct session *s, struct rv_errtext *et) {
	const struct run_config *run = &s->member.config;
	RV_TRY(session_check_shard(s, run, et));
	uint32_t shard = s->opt->shard >= 0 ? (uint32_t)s->opt->shard : s->member.member % (uint32_t)run->data_shards;
	if (run->data_hash[0])
		shard = 0;
	struct trainer_config cfg = {.run = run,
								 .run_hash = s->member.run_hash,
								 .shard = shard,
								 .device = s->opt->device,
								 .threads = (int)s->opt->threads};
	struct session_inputs in = {0};
	struct trainer_owner owner = session_trainer_owner;
	owner.ctx = s;
	owner.wake = wake;
	session_choose_savings(s, &cfg);
	s->local->threads = s->opt->threads;
	enum rv_err e = session_check_memory(s, &cfg, et); /* before its text, which may take long to get */
	if (e == RV_OK)
		e = session_open_inputs(s, &in, et);
	if (e == RV_OK) {
		cfg.data = in.data;
		cfg.initial_theta = in.initial_theta;
		e = session_plan_memory(s, &cfg, et);
	}
	if (e == RV_OK) {
		in.data = NULL;
		e = trainer_new(&cfg, &owner, &s->trainer, et);
	}
	session_release_inputs(&in);
	return e;
}

static void on_damage(void *ctx, enum rv_err why, const char *text) {
	rv_event(((struct session *)ctx)->events, RV_WARN, "damaged", RV_FIELDS(rv_field_str("error", rv_err_name(why))),
			 "%s", text);
}

static uint32_t logs_per_snapshot(const struct global_config *g) {
	uint32_t logs = state_logs_per_snapshot(g);
	return logs > NET_MAX_LOG_DIGESTS ? NET_MAX_LOG_DIGESTS : logs;
}

/* Sets the sizes of what each round exchanges. */
static void put_sizes(const struct global_config *g, struct round_config *cfg) {
	_Static_assert((int)FRAGMENTS_MAX == (int)NET_MAX_FRAGMENTS, "same");
	cfg->n_fragments = fragments_count(&g->fragments);
	for (uint32_t fragment = 0; fragment < cfg->n_fragments; fragment++)
		cfg->n_chunks[fragment] = global_round_chunks(g, fragment).n_chunks;
}

static struct round_config round_config_of(const struct session *s, const struct global_config *g) {
	const struct run_config *run = &s->member.config;
	struct round_config cfg = {
		.member = s->member.member,
		.run_hash = s->member.run_hash,
		.rounds = (uint64_t)run->rounds,
		.seals = seal_ed25519(NULL),
		.term = s->member.term,
		.steps_per_round = (uint64_t)run->steps_per_round,
		.step_sequences = run->data_hash[0] ? (uint32_t)(run->batch * run->grad_accum) : 0,
		.overlap_steps = (uint64_t)run_config_overlap(run),
		.gives_away = run_config_is_late(run),
		.had_former = true, /* costs little if it is the first */
		.min_workers = (uint32_t)run->min_workers,
		.late = run->late == RUN_LATE_DISCARD ? LATE_DISCARD : LATE_KEEP,
		.heartbeat_us = run_silence_of(run).report * RV_US_PER_MS,
		.logs_per_snapshot = logs_per_snapshot(g),
		.theta0_from_peers = run->init_hash[0] != '\0',
	};
	put_sizes(g, &cfg);
	return cfg;
}

/* Returns true if the replica's file is that of a round's encoding: steps ahead or a residual
 * depend on it. */
static bool saves_encodings(const struct run_config *run) {
	return run_config_overlap(run) > 0 || run->error_feedback > 0;
}

static struct session_config core_config_of(const struct session *s) {
	enum { LINGER_US = 15 * RV_US_PER_S, ALONE_US = 2 * LINGER_US, GOODBYE_US = 2 * RV_US_PER_S };
	const struct run_config *run = &s->member.config;
	return (struct session_config){.member = s->member.member,
								   .rounds = (uint64_t)run->rounds,
								   .min_workers = (uint32_t)run->min_workers,
								   .schedule = s->store.schedule,
								   .saves_encodings = saves_encodings(run),
								   .eval_every = session_eval_every(s),
								   .eval_at_end = s->opt->eval_every != 0,
								   .has_leases = run->data_hash[0] != '\0',
								   .eval_tokens = (uint64_t)s->opt->eval_tokens,
								   .linger_us = LINGER_US,
								   .alone_us = ALONE_US,
								   .goodbye_us = GOODBYE_US};
}

/* Makes the core, which takes over the reduced bytes of `found`. */
static enum rv_err open_core(struct session *s, uint64_t boot, const struct recovered *found, struct rv_errtext *et) {
	const struct global_state *g = trainer_global(s->trainer);
	const struct session_config cfg = core_config_of(s);
	const struct session_ops ops = {.ctx = s,
									.trainer = session_trainer_ops,
									.disk = session_disk_ops,
									.links = session_links_ops,
									.control = session_control_ops};
	void *memory = malloc(session_core_size());
	s->round_memory = malloc(round_core_size());
	if (!memory || !s->round_memory) {
		free(memory);
		return rv_fail(et, RV_E_NOMEM, "no memory for the round");
	}
	struct session_start start = {.round_memory = s->round_memory,
								  .round = round_config_of(s, &g->cfg),
								  .boot = boot,
								  .at_round = g->round,
								  .chain = g->chain,
								  .progress = trainer_progress(s->trainer).done,
								  .found = found};
	start.has_part = statestore_find_part(&s->store, &start.part_round);
	s->core = session_core_init(memory, &cfg, &ops, &start, rv_clock_monotonic_us());
	session_core_on_away(s->core, rv_clock_monotonic_us(), s->is_away);
	return RV_OK;
}

/* Logs the loss of this worker's share of outer steps and its momentum, which only its own file
 * had. */
static void log_lost_share(struct session *s, struct trainer_resumed resumed) {
	const struct global_state *g = trainer_global(s->trainer);
	if (s->member.config.updates != UPDATES_EAGER || resumed.exact || g->round == 0)
		return;
	rv_event(s->events, RV_INFO, "start_over", RV_FIELDS(rv_field_int("round", (int64_t)g->round)),
			 "no file of this worker is of round %" PRIu64
			 ": it goes on from the shared weights, without the share of outer steps that was its own (eager updates)",
			 g->round);
}

static enum statestore_theta0 theta0_of(const struct session *s) {
	if (s->member.config.init_hash[0] == '\0')
		return THETA0_OF_SEED;
	return s->opt->init[0] ? THETA0_GIVEN : THETA0_IS_LACKED;
}

/* Logs what a restarted worker goes on from. */
static void log_recovered(struct session *s, const struct recovered *found, struct trainer_resumed resumed) {
	const struct global_state *g = trainer_global(s->trainer);
	char from[64] = "the initial weights", own[128] = "no Adam state of its own";
	const char *next = !found->has_log          ? ""
					   : found->log.attempt > 0 ? ", and the vote of the next"
												: ", and the result of the next";
	uint64_t entries = g->round - found->start.round;
	if (found->lacks_state || (g->round == 0 && !found->has_replica && !found->has_log))
		return;
	if (found->start.snapshot)
		snprintf(from, sizeof from, "snapshot-%" PRIu64 ".rvs", found->start.round);
	if (resumed.saved)
		snprintf(own, sizeof own, "its own Adam state and data position of round %" PRIu64 ", %" PRIu64 " steps in",
				 found->replica.round, found->replica.steps_done);
	rv_event(s->events, RV_DEBUG, "recovered",
			 RV_FIELDS(rv_field_int("round", (int64_t)g->round), rv_field_bool("snapshot", found->start.snapshot),
					   rv_field_int("from_round", (int64_t)found->start.round),
					   rv_field_int("log_entries", (int64_t)entries), rv_field_bool("vote", found->has_log),
					   rv_field_int("replica_round", found->has_replica ? (int64_t)found->replica.round : -1)),
			 "at round %" PRIu64 " from %s and %" PRIu64 " log entr%s%s; with %s", g->round, from, entries,
			 entries == 1 ? "y" : "ies", next, own);
}

/* Returns the bytes of what means left, with an equal share of the parameters. */
static size_t means_bytes_of(const struct run_config *run, const struct global_config *g) {
	return run->mean_feedback > 0 ? g->n * sizeof(float) / (size_t)run->min_workers : 0;
}

static struct statestore store_of(struct session *s, const struct global_config *g) {
	const struct run_config *run = &s->member.config;
	struct statestore store = {
		.theta0 = theta0_of(s),
		.cfg = *g,
		.schedule = {.snapshot_every = (uint64_t)run->snapshot_every, .rounds = (uint64_t)run->rounds},
		.waits_at_steps = saves_encodings(run) ? (uint64_t)run->steps_per_round : 0,
		.means_bytes = means_bytes_of(run, g),
		.policy = {.keep_snapshots = (uint64_t)s->opt->keep_snapshots, .keep_log = (uint64_t)s->opt->keep_log},
		.notice = on_damage,
		.notice_ctx = s};
	snprintf(store.dir, sizeof store.dir, "%s", s->opt->dir);
	return store;
}

/* Continues the sums of metrics from the replica's file; tokens from metrics if the file is of a
 * later round, which was taken back. */
static void take_sums(struct session *s, const struct recovered *found) {
	uint64_t round = trainer_global(s->trainer)->round;
	if (!found->has_replica)
		return;
	s->sums.tokens = found->replica.round > round ? session_tokens_at(s, round) : found->replica.run_tokens;
	s->sums.bytes_sent_before = found->replica.bytes_sent;
	s->sums.formula_bytes = found->replica.formula_bytes;
}

static enum rv_err recover(struct session *s, uint64_t boot, struct recovered *found, struct rv_errtext *et) {
	struct global_state *g = trainer_global(s->trainer);
	struct session_disk_plan disk;
	s->store = store_of(s, &g->cfg);
	RV_TRY(session_plan_disk(s, &s->member.config, &g->cfg, &disk, et));
	s->store.policy.keep_snapshots = disk.keep_snapshots;
	RV_FAILPOINT("recover.before");
	RV_TRY(statestore_recover(&s->store, g, found, et));
	RV_FAILPOINT("recover.after");
	RV_TRY(mean_residual_init(&s->mean_residual, &s->member.config, &g->cfg, et));
	statestore_recover_means(&s->store, g->round, &s->mean_residual);
	struct trainer_resumed resumed = trainer_resume(s->trainer, found, on_damage, s);
	replica_file_free(found->replica_file);
	found->replica_file = NULL;
	log_recovered(s, found, resumed);
	log_lost_share(s, resumed);
	session_trace_open(s);
	session_trace_start(s, boot, found, resumed);
	take_sums(s, found);
	return RV_OK;
}

/* Returns the budgets for a joiner's needs: a snapshot, and the log from there to the next. */
static struct donor_budget donations(const struct session *s) {
	const struct global_config *g = &s->store.cfg;
	int64_t snapshot_every = s->member.config.snapshot_every;
	int64_t entries = snapshot_every < NET_MAX_LOG_DIGESTS ? snapshot_every : NET_MAX_LOG_DIGESTS, longest = 0;
	for (uint32_t fragment = 0; fragment < fragments_count(&g->fragments); fragment++) {
		int64_t bytes = (int64_t)state_payload_bytes(g, STATE_KIND_LOG, fragment);
		longest = bytes > longest ? bytes : longest;
	}
	return donor_budget_of((int64_t)state_payload_bytes(g, STATE_KIND_SNAPSHOT, 0) + entries * longest, longest);
}

static enum rv_err open_transfer(struct session *s, uint64_t tag, struct rv_errtext *et) {
	const struct donor_config donor = {.run_tag = tag, .cap = &s->donate_cap, .budget = donations(s)};
	struct fetcher_config fetcher = {.run_tag = tag,
									 .self_member = s->member.member,
									 .stall_us = s->member.config.silence_ms * RV_US_PER_MS,
									 .check_initial = session_check_initial,
									 .owner = session_fetcher_owner};
	fetcher.owner.ctx = s;
	s->donate_cap = rate_of(s->opt->max_donate, 0);
	RV_TRY(donor_new(&donor, &s->store, &s->donor, et));
	RV_TRY(session_open_text_donor(s, tag, et));
	RV_TRY(session_open_audit(s, tag, et));
	session_meet_members(s, tag);
	return fetcher_new(&fetcher, &s->store, s->storage, &s->fetcher, et);
}

/* Returns the timeout of a link: that of a peer, but at least 3 s, as a packet lost three times
 * stops a link with 300 ms round trip for 2 s. */
static int64_t link_silent_us(const struct run_config *run) {
	const int64_t least_us = 3 * RV_US_PER_S, us = run_silence_of(run).silent * RV_US_PER_MS;
	return us > least_us ? us : least_us;
}

static enum rv_err open_mesh(struct session *s, struct rv_errtext *et) {
	const struct global_config *g = &trainer_global(s->trainer)->cfg;
	uint64_t tag = frame_run_tag(s->member.invite.run_id);
	struct allreduce_config reduce = {.global = g,
									  .mean_residual = &s->mean_residual,
									  .self_member = s->member.member,
									  .silence = run_silence_of(&s->member.config),
									  .seals = seal_ed25519(&s->member.identity)};
	RV_TRY(session_check_caps(s, &s->member.config, g, et));
	RV_TRY(allreduce_new(&reduce, &s->reduce, et));
	RV_TRY(open_transfer(s, tag, et));
	struct meshlink_config cfg = {
		.peers = {.identity = &s->member.identity,
				  .self_member = s->member.member,
				  .listen = s->listen,
				  .max_up = s->opt->max_up,
				  .max_down = s->opt->max_down,
				  .silent_us = link_silent_us(&s->member.config),
				  .rng_seed = (uint64_t)rv_clock_wall_us()},
		.reduce = s->reduce,
		.donor = s->donor,
		.fetcher = s->fetcher,
		.text = s->text ? text_members_of(s->text) : NULL,
		.text_donor = s->text_donor,
		.auditor = s->audit.auditor,
		.gather = session_gather(s),
		.contributions = s->audit.donor,
		.events = s->events,
		.on_unreached = session_on_unreached,
		.on_route_end = session_on_route_end,
		.ctx = s,
	};
	memcpy(cfg.peers.run_id, s->member.invite.run_id, NET_RUN_ID_BYTES);
	memcpy(cfg.peers.serving_key, run_trust_key(&s->member.trust), NET_KEY_BYTES);
	memcpy(cfg.peers.ticket, s->member.ticket, NET_SIG_BYTES);
	enum rv_err e = meshlink_new(&cfg, &s->mesh, et);
	if (e == RV_E_BUSY && s->opt->listen[0] == '\0') { /* another program took the port meanwhile */
		RV_TRY(session_choose_listen(s, et));
		e = meshlink_new(&cfg, &s->mesh, et);
	}
	RV_TRY(e);
	RV_TRY(session_open_prober(s, et));
	RV_TRY(session_open_reach(s, et));
	return session_open_own_relay(s, et);
}

static void announce_start(struct session *s) {
	const struct global_state *g = trainer_global(s->trainer);
	char run_hash[2 * RV_HASH_BYTES + 1];
	rv_hex_encode(s->member.run_hash.b, RV_HASH_BYTES, run_hash);
	rv_event(s->events, RV_DEBUG, "started",
			 RV_FIELDS(rv_field_int("member", s->member.member), rv_field_int("round", (int64_t)g->round),
					   rv_field_int("parameters", (int64_t)g->cfg.n),
					   rv_field_int("port", peers_port(meshlink_peers(s->mesh))),
					   rv_field_int("max_up_bytes_per_s", s->opt->max_up),
					   rv_field_int("max_down_bytes_per_s", s->opt->max_down),
					   rv_field_str("device", trainer_device(s->trainer)), rv_field_str("run_hash", run_hash)),
			 "member %u, %zu parameters, at round %" PRIu64 ", on %s", s->member.member, g->cfg.n, g->round,
			 trainer_device(s->trainer));
}

static enum rv_err open_metrics(struct session *s, struct rv_errtext *et) {
	char path[SESSION_PATH_BYTES];
	snprintf(path, sizeof path, "%s/%s", s->opt->dir, METRICS_FILE);
	RV_TRY(rv_json_lines_open(path, true, &s->metrics, et));
	session_load_history(s);
	s->owes_end = !metrics_ended(s->metrics);
	if (s->owes_end)
		session_write_run(s);
	return RV_OK;
}

static enum rv_err bring_up(struct session *s, struct recovered *found, struct rv_errtext *et) {
	const uint64_t boot = (uint64_t)rv_clock_wall_us();
	RV_TRY(open_trainer(s, et));
	RV_TRY(jobs_new("storage", wake, s, &s->storage, et));
	RV_TRY(recover(s, boot, found, et));
	RV_TRY(open_mesh(s, et));
	RV_TRY(open_metrics(s, et));
	announce_start(s);
	s->sums.applied_us = rv_clock_monotonic_us();
	RV_TRY(open_core(s, boot, found, et));
	found->reduced = NULL; /* the core has it */
	return RV_OK;
}

enum rv_err session_bring_up(struct session *s, struct rv_errtext *et) {
	struct recovered found = {0};
	enum rv_err e = bring_up(s, &found, et);
	blob_unref(found.reduced);
	replica_file_free(found.replica_file);
	RV_TRY(e);
	trainer_reserve_copies(s->trainer);
	http_client_set_unacknowledged(s->http, run_silence_of(&s->member.config).coordinator);
	control_client_follow(s->control);
	return RV_OK;
}

static void release_core(struct session *s) {
	if (s->core)
		session_core_release(s->core);
	free(s->core);
	free(s->round_memory);
}

void session_release(struct session *s) {
	session_close_allowed(s);
	/* Threads first: they use what the rest owns. */
	jobs_free(s->storage);
	session_stop_weigh(s);
	trainer_free(s->trainer);
	session_release_reach(s);
	session_close_own_relay(s);
	reach_free(s->reach);
	s->reach = NULL; /* the mesh, which ends later, asks it for routes */
	meshlink_free(s->mesh);
	session_close_text(s);
	fetcher_free(s->fetcher);
	donor_free(s->donor);
	session_close_text_donor(s);
	session_close_weigh(s);
	session_close_audit(s);
	allreduce_free(s->reduce);
	mean_residual_release(&s->mean_residual);
	release_core(s);
	control_client_free(s->control);
	http_client_free(s->http);
	rv_json_lines_close(s->metrics);
	rv_json_lines_close(s->trace.file);
	membership_release(&s->member);
	session_unwatch_addresses(s);
	portmap_stop(s->portmap);
	if (s->lock_fd >= 0)
		rv_dir_unlock(s->lock_fd);
	rv_events_free(s->events);
}
