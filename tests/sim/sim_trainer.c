/* sim_trainer.c: what a worker does with its parameters: fake training, encoding, the round log, the outer step; and
 * how all that comes back from its disk after a crash. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { REPLICA_EVERY_STEPS = 2 };
#define SPOILED_SHARE 0.02 /* of contributions, as of a machine that computes wrongly: they are thrown away */

/* ---- files ---- */

struct log_head {
	uint32_t attempt;
	struct rv_hash digest;
};

struct base_head {
	uint64_t round;
	struct rv_hash chain;
};

struct replica_head {
	uint64_t round, steps_done, tokens;
	struct sim_progress progress[SIM_MAX_FRAGMENTS];
};

static size_t vector_bytes(const struct sim *s) {
	return s->opt.n_params * sizeof(float);
}

uint64_t trainer_replica_round(const uint8_t *bytes) {
	struct replica_head head;
	memcpy(&head, bytes, sizeof head);
	return head.round;
}

bool trainer_replica_waits(const struct sim *s, const uint8_t *bytes) {
	struct replica_head head;
	memcpy(&head, bytes, sizeof head);
	return s->opt.overlap_steps > 0 && head.steps_done == s->opt.steps_per_round;
}

struct rv_hash trainer_base_chain(const uint8_t *bytes) {
	struct base_head head;
	memcpy(&head, bytes, sizeof head);
	return head.chain;
}

void trainer_write_base(struct sim *s, int host, disk_done *done) {
	const struct global_state *g = &s->workers[host].global;
	size_t n = vector_bytes(s), total = sizeof(struct base_head) + 2 * n;
	uint8_t *bytes = sim_alloc(total);
	struct base_head head = {.round = g->round, .chain = g->chain};
	memcpy(bytes, &head, sizeof head);
	memcpy(bytes + sizeof head, g->theta, n);
	memcpy(bytes + sizeof head + n, g->state[0], n);
	disk_write(s, host, FILE_BASE, g->round, bytes, total, done, g->round);
	free(bytes);
}

void trainer_read_base(const struct sim *s, const uint8_t *bytes, struct global_state *g) {
	struct base_head head;
	size_t n = vector_bytes(s);
	memcpy(&head, bytes, sizeof head);
	g->round = head.round;
	g->chain = head.chain;
	memcpy(g->theta, bytes + sizeof head, n);
	memcpy(g->state[0], bytes + sizeof head + n, n);
}

bool trainer_file_is_the_runs(const struct sim *s, const struct sim_file *f) {
	const struct sim_oracle *o = &s->oracle;
	size_t n = vector_bytes(s);
	if (f->kind == FILE_LOG) {
		struct log_head head;
		memcpy(&head, f->data, sizeof head);
		return f->round < o->n_committed && rv_hash_equal(&head.digest, &o->digest[f->round]);
	}
	const uint8_t *vectors = f->data + sizeof(struct base_head);
	return f->round <= o->n_committed && memcmp(vectors, o->theta[f->round], n) == 0 &&
		   memcmp(vectors + n, o->v[f->round], n) == 0;
}

void trainer_write_log(struct sim *s, int host, const struct sim_log *log, disk_done *done) {
	struct log_head head;
	memset(&head, 0, sizeof head);
	head.attempt = log->attempt;
	head.digest = log->digest;
	size_t payload = sim_payload(s, log->round);
	uint8_t *bytes = sim_alloc(sizeof head + payload);
	memcpy(bytes, &head, sizeof head);
	memcpy(bytes + sizeof head, log->bytes, payload);
	disk_write(s, host, FILE_LOG, log->round, bytes, sizeof head + payload, done, log->attempt);
	free(bytes);
}

const uint8_t *trainer_log_bytes(struct sim *s, const struct sim_file *f, uint32_t *attempt, struct rv_hash *digest) {
	struct log_head head;
	if (f->n != sizeof head + sim_payload(s, f->round))
		return NULL;
	memcpy(&head, f->data, sizeof head);
	*attempt = head.attempt;
	*digest = head.digest;
	return f->data + sizeof head;
}

static void write_replica(struct sim *s, int host) {
	const struct sim_worker *w = &s->workers[host];
	struct replica_head head;
	memset(&head, 0, sizeof head);
	head.round = w->global.round;
	head.steps_done = w->steps_done;
	head.tokens = w->tokens;
	memcpy(head.progress, w->progress, sizeof head.progress);
	uint8_t *bytes = sim_alloc(sizeof head + vector_bytes(s));
	memcpy(bytes, &head, sizeof head);
	memcpy(bytes + sizeof head, w->local, vector_bytes(s));
	disk_write(s, host, FILE_REPLICA, 0, bytes, sizeof head + vector_bytes(s), NULL, 0);
	free(bytes);
}

/* ---- from disk ---- */

static void local_from_theta(struct sim *s, struct sim_worker *w) {
	memcpy(w->local, w->global.theta, vector_bytes(s));
	for (int fragment = 0; fragment < SIM_MAX_FRAGMENTS; fragment++)
		w->progress[fragment].n = 0;
	w->steps_done = w->tokens = w->ahead = w->ahead_tokens = 0;
}

static void load_replica(struct sim *s, struct sim_worker *w, const struct recovered *found) {
	local_from_theta(s, w);
	struct replica_head head;
	if (!found->has_replica)
		return;
	memcpy(&head, found->replica_payload, sizeof head);
	if (head.round != w->global.round)
		return;
	w->steps_done = head.steps_done;
	w->tokens = head.tokens;
	memcpy(w->progress, head.progress, sizeof w->progress);
	memcpy(w->local, found->replica_payload + sizeof head, vector_bytes(s));
}

void trainer_load(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	RV_ASSERT(global_init(&w->global, &s->global_config, s->theta0, NULL) == RV_OK);
	w->local = sim_alloc(vector_bytes(s));
	w->own = sim_alloc(s->max_payload);
	w->reduced = sim_alloc(s->max_payload);
	w->log = (struct sim_log){.bytes = sim_alloc(s->max_payload)};
	w->persisting = (struct sim_log){.bytes = sim_alloc(s->max_payload)};
	w->flags = sim_alloc(reduce_flags_bytes(s->global_config.chunks.n_chunks));
	for (int i = 0; i < s->opt.n_workers; i++)
		w->held[i] = sim_alloc(s->max_payload);
	w->trainer++;
	w->snapshot_round = 0;
	struct recovered found;
	recovery_load(s, host, &found);
	w->found_full_round = found.full_round;
	w->found_full = found.full_hash;
	if (found.has_log) {
		w->log = (struct sim_log){.held = true,
								  .round = found.log.round,
								  .attempt = found.log.attempt,
								  .digest = found.log.digest,
								  .bytes = w->log.bytes};
		memcpy(w->log.bytes, found.reduced->data, found.reduced->bytes);
		blob_unref(found.reduced);
	}
	load_replica(s, w, &found);
	oracle_applied(s, host);
}

void trainer_unload(struct sim_worker *w) {
	if (w->local == NULL)
		return;
	global_release(&w->global);
	free(w->local);
	free(w->own);
	free(w->reduced);
	free(w->log.bytes);
	free(w->persisting.bytes);
	free(w->flags);
	for (int i = 0; i < SIM_MAX_WORKERS; i++)
		free(w->held[i]);
	memset(w->held, 0, sizeof w->held);
	w->local = NULL;
}

/* ---- jobs of the trainer: one at a time; an event of an earlier one is void ---- */

static void job_at(struct sim *s, int host, int64_t at_us, sim_fire *fire) {
	uint64_t *number = sim_alloc(sizeof *number);
	*number = s->workers[host].trainer;
	sim_at(s, at_us, host, s->workers[host].life, fire, number);
}

static bool job_is_current(struct sim *s, int host, void *arg) {
	uint64_t number = *(uint64_t *)arg;
	free(arg);
	return number == s->workers[host].trainer;
}

uint64_t trainer_overlap(const struct sim *s, uint64_t round) {
	return round + 1 < s->opt.rounds ? s->opt.overlap_steps : 0;
}

/* Steps ahead begin somewhere else (outer/eager.h, delayed), and what was encoded is not in theta_local any more. */
static void give_away(const struct sim *s, struct sim_worker *w) {
	if (!s->opt.gives_away || w->ahead > 0)
		return;
	memcpy(w->local, w->global.theta, vector_bytes(s));
	w->progress[0].n = 0;
}

static void inner_step(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	bool ahead = w->training != w->global.round;
	if (ahead)
		give_away(s, w);
	uint64_t *done = ahead ? &w->ahead : &w->steps_done;
	/* A step that is done again, by another process, does not come out the same: so what a former one sent is never
	 * taken for its successor's unnoticed. */
	uint64_t what = (uint64_t)host << 48 ^ w->life << 32 ^ w->training << 16 ^ *done;
	for (size_t i = 0; i < s->opt.n_params; i++)
		w->local[i] -= 0.01f * (sim_noise(s->opt.seed, what, i) + 0.1f * w->local[i]);
	for (uint32_t fragment = 0; fragment < s->opt.fragments; fragment++) {
		struct sim_progress *p = &w->progress[fragment];
		RV_ASSERT(p->n < SIM_MAX_STEPS);
		p->ids[p->n++] = (uint32_t)(w->training * SIM_MAX_H + *done); /* the same when it is done again */
	}
	*done += 1;
	*(ahead ? &w->ahead_tokens : &w->tokens) += SIM_TOKENS_PER_STEP;
}

/* What a worker of speed 1 takes for H steps is over before another of this one's would end. */
static bool time_is_up(const struct sim *s, const struct sim_worker *w) {
	return s->opt.by_time && (double)(w->steps_done + 1) / w->speed > (double)s->opt.steps_per_round;
}

static void step_ends(struct sim *s, int host, void *arg) {
	struct sim_worker *w = &s->workers[host];
	if (!job_is_current(s, host, arg))
		return;
	if (host == s->ghost) {
		job_at(s, host, s->now_us + s->opt.step_us, step_ends);
		return;
	}
	inner_step(s, host);
	bool ahead = w->training != w->global.round;
	if (!ahead && w->steps_done % REPLICA_EVERY_STEPS == 0)
		write_replica(s, host);
	round_on_trained(w->core, s->now_us, w->training, ahead ? w->ahead : w->steps_done,
					 ahead ? w->ahead_tokens : w->tokens);
	bool time_up = !ahead && time_is_up(s, w);
	if (time_up)
		round_on_time_up(w->core, w->global.round);
	if (--w->steps_left > 0 && !time_up)
		job_at(s, host, s->now_us + (int64_t)((double)s->opt.step_us / w->speed), step_ends);
	worker_turn(s, host);
}

void trainer_train(struct sim *s, int host, const struct round_action *a) {
	struct sim_worker *w = &s->workers[host];
	bool ahead = a->round == w->global.round + 1;
	RV_ASSERT((a->round == w->global.round || ahead) && a->steps > 0);
	w->trainer++;
	w->training = a->round;
	w->steps_left = a->steps;
	uint64_t most = ahead ? trainer_overlap(s, w->global.round) : s->opt.steps_per_round;
	if (a->from != (ahead ? w->ahead : w->steps_done) || a->from + a->steps > most)
		sim_fail(s, "w%d: asked for %llu steps of round %llu from step %llu on, after %llu, and %llu ahead", host,
				 (unsigned long long)a->steps, (unsigned long long)a->round, (unsigned long long)a->from,
				 (unsigned long long)w->steps_done, (unsigned long long)w->ahead);
	job_at(s, host, s->now_us + (int64_t)((double)s->opt.step_us / w->speed), step_ends);
}

/* In a universe of loud members one contribution of four is up to eight times as large as it should be: a function of
 * the round and the host, as all training. */
static const float *to_encode(const struct sim *s, int host) {
	const struct sim_worker *w = &s->workers[host];
	float luck = sim_noise(s->opt.seed ^ 0x6c6f7564, (uint64_t)host, w->global.round);
	if (!s->opt.loud || luck < 0.5f)
		return w->local;
	float times = 1 + 14 * (luck - 0.5f);
	for (size_t i = 0; i < s->opt.n_params; i++)
		s->scratch[i] = w->global.theta[i] + times * (w->local[i] - w->global.theta[i]);
	return s->scratch;
}

static void encode_ends(struct sim *s, int host, void *arg) {
	struct sim_worker *w = &s->workers[host];
	if (!job_is_current(s, host, arg))
		return;
	if (w->ahead > 0)
		sim_fail(s, "w%d: encodes round %llu with steps of the next", host, (unsigned long long)w->global.round);
	if (w->steps_done < s->opt.steps_per_round && !s->opt.by_time)
		sim_fail(s, "w%d: encodes round %llu after %llu of its steps", host, (unsigned long long)w->global.round,
				 (unsigned long long)w->steps_done);
	if (!s->opt.calm && sim_chance(s, host, LUCK_WORK, SPOILED_SHARE)) {
		sim_say(s, host, "round %llu came to nothing", (unsigned long long)w->global.round);
		local_from_theta(s, w);
		round_on_encoded(w->core, s->now_us, w->global.round, false);
		worker_turn(s, host);
		return;
	}
	RV_ASSERT(global_encode_delta(&w->global, to_encode(s, host), w->own, NULL) == RV_OK);
	w->own_progress = w->progress[w->global.round % s->opt.fragments];
	if (s->opt.overlap_steps > 0)
		write_replica(s, host);
	round_on_encoded(w->core, s->now_us, w->global.round, true);
	worker_turn(s, host);
}

void trainer_encode(struct sim *s, int host, const struct round_action *a) {
	RV_ASSERT(a->round == s->workers[host].global.round);
	s->workers[host].trainer++;
	job_at(s, host, s->now_us + sim_between(s, host, LUCK_WORK, SIM_MS, 20 * SIM_MS), encode_ends);
}

static void persisted(struct sim *s, int host, uint64_t attempt, bool ok) {
	struct sim_worker *w = &s->workers[host];
	if (attempt != w->persisting.attempt || w->core == NULL)
		return; /* a later attempt's is on its way */
	struct sim_log done = w->persisting;
	if (ok) {
		w->persisting = w->log;
		w->persisting.held = false;
		w->log = done;
	}
	round_on_persisted(w->core, s->now_us, done.round, done.attempt, &done.digest, ok);
	worker_turn(s, host);
}

void trainer_persist(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	struct sim_log *log = &w->persisting;
	log->held = true;
	log->round = w->reduce_round;
	log->attempt = w->reduce_attempt;
	memcpy(log->bytes, w->reduced, sim_payload(s, log->round));
	log->digest = global_digest(&w->global, log->round, log->bytes);
	trainer_write_log(s, host, log, persisted);
}

/* ---- the outer step ---- */

/* The full hash is that of the copy that was written, whether the disk has taken it or not. */
static void base_written(struct sim *s, int host, uint64_t round, bool ok) {
	struct sim_worker *w = &s->workers[host];
	struct rv_hash hash = w->snapshot_hash;
	if (w->core == NULL || w->snapshot_round != round)
		return;
	if (ok)
		recovery_prune(s, host);
	oracle_full_hash(s, host, round, &hash);
	worker_turn(s, host);
}

/* What the round exchanged is theta's, but for what is mixed; nothing else is touched. */
static void adopt(struct sim *s, struct sim_worker *w, uint64_t round) {
	const struct chunking c = global_round_chunks(&s->global_config, round);
	for (uint32_t i = 0; i < c.n_chunks; i++) {
		size_t at = global_round_chunk_at(&s->global_config, round, i);
		for (size_t k = at; k < at + chunking_len(&c, i); k++)
			w->local[k] = s->opt.mix * w->local[k] + (1 - s->opt.mix) * w->global.theta[k];
	}
	w->progress[round % s->opt.fragments].n = 0;
	w->steps_done = w->ahead;
	w->tokens = w->ahead_tokens;
	w->ahead = w->ahead_tokens = 0;
	s->stats.overlapped += w->steps_done > 0;
}

static void shift_local(const struct sim *s, struct sim_worker *w, const float *before) {
	for (size_t i = 0; i < s->opt.n_params; i++)
		w->local[i] += w->global.theta[i] - before[i];
}

/* The steps ahead are the next round's, whatever became of this one's. */
static void move_on(struct sim *s, struct sim_worker *w, const float *before) {
	shift_local(s, w, before);
	w->steps_done = w->ahead;
	w->tokens = w->ahead_tokens;
	w->ahead = w->ahead_tokens = 0;
	s->stats.overlapped++;
	s->stats.given_away++;
}

/* theta_local after theta moved from `before`. */
static void adjust_local(struct sim *s, struct sim_worker *w, const float *before, const struct round_action *a) {
	bool gave_away = s->opt.gives_away && w->ahead > 0;
	if (gave_away && (a->participated || a->late == LATE_KEEP)) {
		move_on(s, w, before);
		return;
	}
	if (a->participated) {
		adopt(s, w, a->round);
		return;
	}
	if (a->late == LATE_DISCARD) {
		local_from_theta(s, w);
		return;
	}
	s->stats.kept_progress += w->progress[a->round % s->opt.fragments].n > 0;
	w->tokens += w->ahead_tokens;
	w->ahead = w->ahead_tokens = 0;
	shift_local(s, w, before);
}

void trainer_keep_base(struct sim *s, int host) {
	struct sim_worker *w = &s->workers[host];
	w->snapshot_round = w->global.round;
	w->snapshot_hash = oracle_full_hash_of(s, &w->global);
	trainer_write_base(s, host, base_written);
}

static void apply_ends(struct sim *s, int host, void *arg) {
	struct sim_worker *w = &s->workers[host];
	if (!job_is_current(s, host, arg))
		return;
	const struct round_action *a = &w->applying;
	bool ours = w->log.held && w->log.round == a->round && rv_hash_equal(&w->log.digest, &a->expect);
	if (!ours) {
		sim_fail(s, "w%d: asked to apply round %llu, whose bytes it does not hold", host, (unsigned long long)a->round);
		return;
	}
	memcpy(s->scratch, w->global.theta, vector_bytes(s));
	RV_ASSERT(global_apply(&w->global, w->log.bytes, &a->expect, NULL) == RV_OK);
	adjust_local(s, w, s->scratch, a);
	oracle_applied(s, host);
	round_on_applied(w->core, s->now_us, a->round, &w->global.chain, true);
	bool base = sim_is_checked(s, w->global.round);
	if (s->opt.overlap_steps == 0 || base || !a->participated) /* as worker/session_round.c */
		write_replica(s, host);
	if (base)
		trainer_keep_base(s, host);
	worker_turn(s, host);
}

/* Everyone makes the outer step at the same place among its inner steps, so that the run could be done again. */
static void check_place(struct sim *s, int host, const struct round_action *a) {
	const struct sim_worker *w = &s->workers[host];
	bool latest = round_document(w->core)->round == a->round + 1;
	bool whole = w->steps_done == s->opt.steps_per_round;
	if (a->participated && latest && whole && w->ahead != trainer_overlap(s, a->round))
		sim_fail(s, "w%d: the outer step of round %llu comes after %llu steps of the next round, not %llu", host,
				 (unsigned long long)a->round, (unsigned long long)w->ahead,
				 (unsigned long long)trainer_overlap(s, a->round));
}

void trainer_apply(struct sim *s, int host, const struct round_action *a) {
	struct sim_worker *w = &s->workers[host];
	check_place(s, host, a);
	w->trainer++; /* stops training at a step boundary; every step was told */
	w->applying = *a;
	job_at(s, host, s->now_us + sim_between(s, host, LUCK_WORK, SIM_MS, 20 * SIM_MS), apply_ends);
}

void trainer_install(struct sim *s, int host, const uint8_t *base) {
	struct sim_worker *w = &s->workers[host];
	w->trainer++;
	w->snapshot_round = 0;
	if (base != NULL) {
		trainer_read_base(s, base, &w->global);
		recovery_forget_from(s, host, w->global.round);
		trainer_write_base(s, host, NULL);
	} else {
		recovery_forget_from(s, host, 0);
		global_release(&w->global);
		RV_ASSERT(global_init(&w->global, &s->global_config, s->theta0, NULL) == RV_OK);
	}
	local_from_theta(s, w);
	oracle_installed(s, host);
}

void trainer_install_payload(struct sim *s, int host, uint64_t round, const struct rv_hash *chain,
							 const uint8_t *payload) {
	struct base_head head = {.round = round, .chain = *chain};
	size_t n = 2 * vector_bytes(s);
	uint8_t *file = sim_alloc(sizeof head + n);
	memcpy(file, &head, sizeof head);
	memcpy(file + sizeof head, payload, n);
	trainer_install(s, host, file);
	free(file);
}
