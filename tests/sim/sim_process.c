/* sim_process.c: a worker's process: it starts from what its disk proves, joins, and ends: killed,
 * without power, asked to, rolled back, or because the run is done. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { HEARTBEAT_US = SIM_S, LINGER_US = 15 * SIM_S, ALONE_US = 30 * SIM_S, GOODBYE_US = 2 * SIM_S };

static const int64_t WALL_US = SIM_WALL_S * (int64_t)SIM_S; /* the wall clocks when it all began */

/* ---- starts ---- */

static uint64_t term_of(const struct sim_disk *d) {
	const struct sim_file *f = disk_find(d, FILE_TERM, 0);
	uint64_t term = 0;
	if (f != NULL)
		memcpy(&term, f->data, sizeof term);
	return term;
}

static void clear(struct sim *s, struct sim_worker *w) {
	w->sim = s;
	w->host = (int)(w - s->workers);
	w->dark = w->finished = w->ending = w->turns = w->ended_banned = false;
	w->evidence_us = 0;
	w->parted = 0;
	w->session = NULL;
	w->core = NULL;
	w->told_wrong = 0;
	w->told_attempt = 0;
	w->strange = w->comebacks = 0;
	audits_forget(w);
	scores_forget(w);
	w->life_us = s->now_us;
	w->timer_us = INT64_MAX;
	w->store_thread = (struct store_thread){0};
}

void worker_start(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	RV_ASSERT(w->life == 0);
	if (audits_banished(s, host))
		return;
	if (s->banned[host])
		return; /* its person reads why it ended */
	clear(s, w);
	w->life = ++s->lives;
	w->term = term_of(&w->disk);
	w->version = sim_version(s, host);
	w->boot = (uint64_t)(WALL_US + s->now_us + s->wall_jump_us[host]);
	if (w->session_memory == NULL) {
		w->session_memory = sim_alloc(session_core_size());
		w->round_memory = sim_alloc(round_core_size());
	}
	trainer_load(s, host, &w->found);
	sim_say(s, host, "starts as process %llu at round %llu", (unsigned long long)w->life,
			(unsigned long long)w->global.round);
	http_open(s, host);
	worker_turn(s, host);
}

static struct round_config round_config_of(const struct sim *s, const struct sim_worker *w) {
	struct round_config cfg = {.member = w->member,
							   .term = w->term,
							   .seals = sim_seals(NULL),
							   .steps_per_round = s->opt.steps_per_round,
							   .step_sequences = s->opt.leases ? SIM_SEQUENCES : 0,
							   .overlap_steps = s->opt.overlap_steps,
							   .gives_away = s->opt.gives_away,
							   .n_fragments = s->opt.fragments,
							   .had_former = true,
							   .min_workers = s->opt.min_workers,
							   .run_hash = s->run_hash,
							   .rounds = s->opt.rounds,
							   .late = s->opt.late,
							   .logs_per_snapshot = state_logs_per_snapshot(&s->global_config),
							   .heartbeat_us = HEARTBEAT_US};
	for (uint32_t fragment = 0; fragment < s->opt.fragments; fragment++)
		cfg.n_chunks[fragment] = global_round_chunks(&s->global_config, fragment).n_chunks;
	return cfg;
}

void worker_open(struct sim *s, int host, uint32_t member) {
	struct sim_worker *w = &s->workers[host];
	w->member = member;
	w->receipts = (struct receipts){.n = 0};
	const struct session_config cfg = {.member = member,
									   .rounds = s->opt.rounds,
									   .min_workers = s->opt.min_workers,
									   .schedule = {.snapshot_every = s->opt.snapshot_every, .rounds = s->opt.rounds},
									   .saves_encodings = s->opt.overlap_steps > 0 || s->opt.feedback > 0,
									   .has_leases = s->opt.leases,
									   .eval_every = 2,
									   .eval_at_end = true,
									   .linger_us = LINGER_US,
									   .alone_us = ALONE_US,
									   .goodbye_us = GOODBYE_US};
	const struct session_ops ops = {
		.ctx = w, .trainer = sim_trainer_ops, .disk = sim_disk_ops, .links = sim_links_ops, .control = sim_control_ops};
	struct session_start start = {.round_memory = w->round_memory,
								  .round = round_config_of(s, w),
								  .boot = w->boot,
								  .at_round = w->global.round,
								  .chain = w->global.chain,
								  .progress = participant_progress(&w->participant),
								  .found = &w->found};
	start.has_part = recovery_find_part(&w->disk, &start.part_round);
	fetch_open(s, host);
	corpus_open(s, host);
	w->session = session_core_init(w->session_memory, &cfg, &ops, &start, s->now_us);
	w->core = session_core_round(w->session);
	w->found.reduced = NULL; /* the session has it */
	mesh_open(s, host);
	reach_open(s, host);
	session_core_pause(w->session, s->now_us, w->paused); /* it holds over restarts */
}

/* ---- ends ---- */

static void end_session(struct sim_worker *w) {
	blob_unref(w->found.reduced);
	w->found.reduced = NULL;
	if (w->session != NULL)
		session_core_release(w->session);
	w->session = NULL;
	w->core = NULL;
	w->reduce = NULL;
}

void worker_crash(struct sim *s, int host, bool silent) {
	struct sim_worker *w = &s->workers[host];
	reach_crash(w);
	mesh_crash(s, host, silent);
	if (!silent)
		coordinator_hang_up(s, host);
	disk_crash(s, host, silent);
	fetch_end(w);
	corpus_end(s, host, silent);
	store_end(s, host);
	trainer_unload(w);
	end_session(w);
	w->life = 0;
	w->dark = silent;
	s->frozen_until_us[host] = 0;
	sim_say(s, host, silent ? "loses power" : "is gone");
}

void worker_leave(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	if (w->session == NULL || w->ending)
		return;
	sim_say(s, host, "leaves");
	session_core_stop(w->session, s->now_us);
	worker_turn(s, host);
}

void worker_pause(struct sim *s, int host, bool paused) {
	struct sim_worker *w = &s->workers[host];
	w->paused = paused;
	if (w->session == NULL || w->ending)
		return;
	sim_say(s, host, paused ? "pauses" : "goes on");
	oracle_pauses(s, host);
	session_core_pause(w->session, s->now_us, paused);
	worker_turn(s, host);
}

static void start_again(struct sim *s, int nobody, void *arg) {
	(void)nobody;
	int host = *(int *)arg;
	free(arg);
	if (s->workers[host].life == 0 && (s->healed || s->now_us >= s->down_until_us[host]))
		worker_start(s, host);
}

static void start_again_at(struct sim *s, int host, int64_t at_us) {
	int *which = sim_alloc(sizeof *which);
	*which = host;
	sim_at(s, at_us, SIM_NOBODY, 0, start_again, which);
}

void worker_crash_and_return(struct sim *s, int host) {
	worker_crash(s, host, false);
	start_again_at(s, host, s->now_us + SIM_S / 4);
}

/* The new term is on disk: a new process takes over. */
static disk_done term_stored;

static void store_term(struct sim *s, int host, uint64_t term) {
	disk_write(s, host, FILE_TERM, 0, &term, sizeof term, term_stored, term);
}

static void term_stored(struct sim *s, int host, uint64_t term, bool ok) {
	if (!ok) {
		store_term(s, host, term);
		return;
	}
	worker_crash(s, host, false);
	worker_start(s, host);
}

static void exits(struct sim *s, int host, void *arg) {
	/* A person starts a worker that was asked to stop when the time has come, one that gave up
	 * soon, and one that has finished when those that are not done may need it. */
	enum { SOON_US = SIM_S, LOOKS_AFTER_US = 20 * SIM_S };
	struct sim_worker *w = &s->workers[host];
	uint64_t round, term;
	(void)arg;
	if (session_core_rolled_back(w->session, &round, &term)) {
		sim_say(s, host, "rolls back to round %llu: term %llu", (unsigned long long)round, (unsigned long long)term);
		w->done = false;
		recovery_rewind(s, host, round);
		store_term(s, host, term);
		return;
	}
	reach_close(w);
	mesh_leave(w);
	w->done = session_core_exported(w->session);
	w->done_round = w->global.round;
	worker_crash(s, host, false);
	start_again_at(s, host, s->now_us + (w->done ? LOOKS_AFTER_US : SOON_US));
	if (s->down_until_us[host] > s->now_us)
		start_again_at(s, host, s->down_until_us[host]);
}

void worker_end(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	struct rv_errtext et = {0};
	enum rv_err e = session_core_fault(w->session, &et);
	w->ending = true;
	if (e == RV_OK && (w->tasks != NULL || w->n_requests > 0))
		sim_fail(s, "w%d: ends before all is stored", host);
	if (e != RV_OK)
		sim_say(s, host, "gives up: %s", et.text);
	if (e != RV_OK && e != RV_E_RANGE && e != RV_E_FULL)
		sim_fail(s, "w%d: its session ended: %s", host, et.text);
	sim_at(s, s->now_us, host, w->life, exits, NULL);
}

void worker_release(struct sim_worker *w) {
	if (w->sim == NULL)
		return; /* the universe has ended before it started */
	end_session(w);
	corpus_release(w);
	fetch_end(w);
	store_end(w->sim, w->host);
	trainer_unload(w);
	disk_release(&w->disk);
	sums_release(w);
	mesh_leave(w);
	pipe_release(&w->ends);
	free(w->reach.memory);
	free(w->control_memory);
	free(w->fetcher_memory);
	free(w->fetch_core_memory);
	free(w->donor_memory);
	free(w->session_memory);
	free(w->round_memory);
	free(w->reduce_memory);
}
