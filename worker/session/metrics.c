/* metrics.c: the lines of metrics.jsonl (train/metrics.h), and the sums behind them. */
#include "worker/session/internal.h"

#include "base/hex.h"
#include "train/eval_schedule.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Returns the bytes of state and text that this process gave to others. */
static uint64_t given_bytes(const struct session *s) {
	return donor_bytes(s->donor) + session_text_given(s);
}

uint64_t session_bytes_sent(const struct session *s) {
	return s->sums.bytes_sent_before + peers_total(meshlink_peers(s->mesh)).tx_bytes - given_bytes(s);
}

uint64_t session_bytes_donated(const struct session *s) {
	return s->sums.bytes_donated_before + given_bytes(s);
}

int64_t session_compute_us(struct session *s, int64_t now_us) {
	struct trainer_progress p = trainer_progress(s->trainer);
	return p.compute_us + (p.step_since_us > 0 && now_us > p.step_since_us ? now_us - p.step_since_us : 0);
}

void session_count_roster(struct session *s, const struct document *d) {
	if (d->phase != RUN_REDUCE)
		return;
	s->sums.participants = (uint32_t)document_participants(d);
	s->sums.rows = d->n_rows > 1 ? d->n_rows : 1;
	s->sums.weights = s->sums.own_weight = 0;
	for (uint32_t row = 0; s->sums.rows > 1 && row < d->n_rows; row++)
		s->sums.weights += row != d->row ? d->row_weights[row] : 0;
	for (uint32_t i = 0; i < d->n_members; i++) {
		s->sums.weights += d->members[i].weight;
		if (d->members[i].member == s->member.member)
			s->sums.own_weight = d->members[i].weight;
	}
}

static void check_written(struct session *s, enum rv_err e, const struct rv_errtext *et) {
	if (e != RV_OK)
		rv_event(s->events, RV_WARN, "metrics", RV_FIELDS(rv_field_str("error", rv_err_name(e))), "%s", et->text);
}

/* Returns the bytes of a contribution to the round. */
static uint64_t payload_bytes(const struct session *s, uint64_t round) {
	const struct chunking exchanged = global_round_chunks(&s->store.cfg, round);
	return chunking_total_bytes(&exchanged, global_sent(&s->store.cfg));
}

/* Returns the bytes that an ideal all-reduce among `participants` sends. */
static uint64_t formula_bytes(const struct session *s, uint64_t round, uint32_t participants) {
	uint64_t mean_bytes = state_payload_bytes(&s->store.cfg, STATE_KIND_LOG, round);
	const uint64_t sum_bytes = merge_partial_bytes(global_round_chunks(&s->store.cfg, round).n);
	return metrics_rows_bytes(payload_bytes(s, round), mean_bytes, sum_bytes, participants, s->sums.rows);
}

void session_write_run(struct session *s) {
	const struct run_config *c = &s->member.config;
	struct rv_errtext et = {0};
	char name[64];
	if (s->opt->name[0] || s->member.name[0])
		snprintf(name, sizeof name, "%s", s->opt->name[0] ? s->opt->name : s->member.name);
	else
		snprintf(name, sizeof name, "worker%u", s->member.member);
	struct metrics_run r = {.name = name,
							.role = "worker",
							.method = "diloco",
							.codec = codec_facts[c->codec].name,
							.outer = outer_facts[c->outer].name,
							.member = s->member.member,
							.workers = (uint32_t)(c->data_hash[0] ? c->min_workers : c->data_shards),
							.n_params = s->store.cfg.n,
							.rounds = (uint64_t)c->rounds,
							.steps_per_round = (uint64_t)c->steps_per_round,
							.tokens_per_step = (uint64_t)(c->batch * c->grad_accum * c->context),
							.payload_bytes = payload_bytes(s, trainer_global(s->trainer)->round),
							.device = trainer_device(s->trainer),
							.data = s->content.text,
							.threads = replica_model(trainer_replica(s->trainer))->be->threads,
							.heldout_tokens = replica_eval_tokens(trainer_replica(s->trainer), 0)};
	check_written(s, metrics_write_run(s->metrics, &r, &et), &et);
}

static void round_event(struct session *s, const struct metrics_round *r) {
	char chain[2 * RV_HASH_BYTES + 1], what[64], gave[80] = "";
	if (r->bytes_donated > 0)
		snprintf(gave, sizeof gave, ", and %.1f MB of state and text to workers that lacked it",
				 (double)r->bytes_donated * 1e-6);
	rv_hex_encode(r->chain.b, RV_HASH_BYTES, chain);
	if (isfinite(r->train_loss))
		snprintf(what, sizeof what, "loss %.3f, %u worker%s", r->train_loss, r->participants,
				 r->participants == 1 ? "" : "s");
	else
		snprintf(what, sizeof what, "caught up, no steps of its own");
	rv_event(s->events, RV_INFO, "round",
			 RV_FIELDS(rv_field_int("round", (int64_t)r->round), rv_field_int("step", (int64_t)r->step),
					   rv_field_int("participants", r->participants), rv_field_double("loss", r->train_loss),
					   rv_field_int("bytes_sent", (int64_t)r->bytes_sent),
					   rv_field_int("bytes_donated", (int64_t)r->bytes_donated),
					   rv_field_int("bytes_relayed", (int64_t)r->bytes_relayed),
					   rv_field_int("compute_us", r->compute_us), rv_field_int("reduce_us", r->reduce_us),
					   rv_field_int("overlap_us", r->overlap_us), rv_field_int("idle_us", r->idle_us),
					   rv_field_int("checkpoint_us", r->checkpoint_us), rv_field_int("attempts", s->sums.attempts),
					   rv_field_int("exchange_tx_bytes", (int64_t)s->sums.exchanged.tx_bytes),
					   rv_field_int("exchange_resent_bytes", (int64_t)s->sums.exchanged.resent_bytes),
					   rv_field_str("chain", chain)),
			 "round %" PRIu64 " of %" PRId64 " is done: %s, sent %.1f MB%s", r->round, s->member.config.rounds, what,
			 (double)r->bytes_sent * 1e-6, gave);
	s->sums.exchanged = (struct reduce_info){0};
	s->sums.attempts = 0;
}

/* Splits the time since the last apply into its parts. */
static void split_time(struct session *s, const struct trainer_progress *p, struct metrics_round *r) {
	struct session_sums *sums = &s->sums;
	int64_t now_us = rv_clock_monotonic_us();
	int64_t all_us = now_us - sums->applied_us;
	r->compute_us = p->compute_us - sums->compute_then;
	r->reduce_us = sums->reduce_us - sums->reduce_then;
	r->overlap_us = sums->overlap_us - sums->overlap_then;
	int64_t busy_us = r->compute_us + r->reduce_us - r->overlap_us;
	r->idle_us = all_us > busy_us ? all_us - busy_us : 0;
	r->wall_us = now_us - s->started_us;
	sums->applied_us = now_us;
	sums->compute_then = p->compute_us;
	sums->reduce_then = sums->reduce_us;
	sums->overlap_then = sums->overlap_us;
}

/* Returns true if this worker's gradient is in the mean of the round applied last. */
static bool gave(const struct session *s) {
	return session_core_applying(s->core).participated;
}

/* Returns the tokens of all contributions to the round: H steps each; if steps end by time, an
 * estimate from this worker's tokens and the weights, or the last such one for a round without
 * it. */
static uint64_t tokens_of_round(struct session *s, uint32_t participants) {
	const struct run_config *c = &s->member.config;
	struct session_sums *sums = &s->sums;
	if (c->round_ms > 0 && gave(s) && sums->own_weight > 0)
		sums->round_tokens = sums->own_tokens * sums->weights / sums->own_weight;
	if (c->round_ms > 0 && sums->round_tokens > 0)
		return sums->round_tokens;
	return (uint64_t)(c->batch * c->grad_accum * c->context * c->steps_per_round) * participants;
}

static void count_given(struct session *s) {
	if (!gave(s) || s->sums.attempts == 0) /* or a former process gave it */
		return;
	s->sums.given_rounds++;
	s->sums.given_tokens += s->sums.own_tokens;
}

void session_write_round(struct session *s, uint64_t round) {
	const struct run_config *c = &s->member.config;
	const struct global_state *g = trainer_global(s->trainer);
	struct trainer_progress p = trainer_progress(s->trainer);
	struct rv_errtext et = {0};
	uint64_t h = (uint64_t)c->steps_per_round;
	uint32_t participants = s->sums.participants > 0 ? s->sums.participants : 1;
	bool stepped = isfinite(p.last_round_loss);
	int64_t copy_us = p.copy_us - s->sums.copy_then;
	s->sums.copy_then = p.copy_us;
	s->sums.tokens += tokens_of_round(s, participants);
	count_given(s);
	if (gave(s) && s->sums.attempts > 0) /* not a former process */
		s->sums.formula_bytes += formula_bytes(s, round, participants);
	struct metrics_round r = {.round = round + 1,
							  .step = (round + 1) * h,
							  .tokens = s->sums.tokens,
							  .participants = participants,
							  .train_loss = p.last_round_loss,
							  .lr = stepped ? (double)p.lr : NAN,
							  .grad_norm = stepped ? (double)p.grad_norm : NAN,
							  .bytes_sent = session_bytes_sent(s),
							  .formula_bytes = s->sums.formula_bytes,
							  .bytes_donated = session_bytes_donated(s),
							  .given_rounds = s->sums.given_rounds,
							  .given_tokens = s->sums.given_tokens,
							  .bytes_relayed = peers_relayed(meshlink_peers(s->mesh)).tx_bytes,
							  .checkpoint_us = copy_us,
							  .chain = g->chain};
	session_count_text(s, &r);
	split_time(s, &p, &r);
	check_written(s, metrics_write_round(s->metrics, &r, &et), &et);
	session_note_round(s, round, r.train_loss);
	round_event(s, &r);
}

uint64_t session_tokens_at(struct session *s, uint64_t round) {
	char path[SESSION_PATH_BYTES];
	struct rv_errtext et = {0};
	uint64_t tokens = 0;
	snprintf(path, sizeof path, "%s/" METRICS_FILE, s->opt->dir);
	check_written(s, metrics_tokens_at(path, round, &tokens, &et), &et);
	return tokens;
}

void session_write_rollback(struct session *s, uint64_t round, uint64_t term) {
	struct rv_errtext et = {0};
	struct metrics_rollback r = {.round = round,
								 .from_round = round_round(session_round(s)),
								 .term = term,
								 .tokens = session_tokens_at(s, round),
								 .bytes_sent = session_bytes_sent(s),
								 .formula_bytes = s->sums.formula_bytes};
	check_written(s, metrics_write_rollback(s->metrics, &r, &et), &et);
}

int64_t session_eval_every(const struct session *s) {
	const struct run_config *c = &s->member.config;
	const uint64_t round_tokens = (uint64_t)(c->batch * c->grad_accum * c->context * c->steps_per_round);
	const uint64_t tokens = replica_eval_tokens(trainer_replica(s->trainer), (uint64_t)s->opt->eval_tokens);
	return eval_every_rounds(s->opt->eval_every, tokens, round_tokens, c->rounds);
}

void session_write_eval(struct session *s, uint64_t round, bool last, double loss) {
	struct rv_errtext et = {0};
	uint64_t h = (uint64_t)s->member.config.steps_per_round;
	struct metrics_eval e = {.round = round,
							 .step = round * h,
							 .tokens = s->sums.tokens,
							 .loss = loss,
							 .bytes_sent = session_bytes_sent(s),
							 .eval_tokens =
								 replica_eval_tokens(trainer_replica(s->trainer), (uint64_t)s->opt->eval_tokens)};
	if (last) {
		s->sums.eval_loss = loss;
		s->sums.eval_round = round;
	}
	check_written(s, metrics_write_eval(s->metrics, &e, &et), &et);
	session_note_measured(s, round, loss);
	rv_event(s->events, RV_INFO, "eval",
			 RV_FIELDS(rv_field_int("round", (int64_t)round), rv_field_double("loss", loss),
					   rv_field_int("eval_tokens", (int64_t)e.eval_tokens)),
			 "held-out loss %.4f after round %" PRIu64, loss, round);
}

void session_write_end(struct session *s, const struct rv_hash *state) {
	const struct global_state *g = trainer_global(s->trainer);
	struct rv_errtext et = {0};
	bool evaluated = session_core_is_first(s->core) && s->sums.eval_round == g->round;
	struct metrics_end e = {.round = g->round,
							.step = g->round * (uint64_t)s->member.config.steps_per_round,
							.tokens = s->sums.tokens,
							.loss = evaluated ? s->sums.eval_loss : NAN,
							.bytes_sent = session_bytes_sent(s),
							.formula_bytes = s->sums.formula_bytes,
							.bytes_donated = session_bytes_donated(s),
							.wall_us = rv_clock_monotonic_us() - s->started_us,
							.chain = g->chain,
							.state = *state};
	if (s->owes_end)
		check_written(s, metrics_write_end(s->metrics, &e, &et), &et);
	double stall = (double)trainer_progress(s->trainer).copy_us / (double)(e.wall_us > 0 ? e.wall_us : 1);
	rv_event(s->events, RV_DEBUG, "finished",
			 RV_FIELDS(rv_field_int("round", (int64_t)g->round), rv_field_double("checkpoint_stall_share", stall)),
			 "the run is complete: %" PRIu64
			 " rounds; the weights are in %s; checkpoints held training up for %.2f %% of "
			 "the time",
			 g->round, s->opt->dir, stall * 100);
	memory_report_peak(s->events, &s->memory);
}
