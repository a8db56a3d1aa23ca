/* audit.c: audits: this worker's contributions are kept and given to auditors, and it audits what
 * its documents order: averages here, training in score.c. */
#include "worker/session/internal.h"

#include "base/merkle.h"
#include "base/round_number.h"
#include "train/inner_state.h"
#include "worker/audit/remerge.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A member audits a few chunks of a round; and where training is audited, a whole contribution now
 * and then, by chance of several rounds in a row. One that weighs another member asks for all of
 * some rounds. */
enum { PIECES_AT_ONCE = 4 * NET_MAX_AUDITS, PIECES_OF_ROUND = NET_MAX_AUDITS, MEANS_AT_ONCE = 4 };

size_t session_chunk_bytes(void *ctx, uint64_t round, uint8_t codec, uint32_t chunk) {
	const struct session *s = ctx;
	const struct chunking chunks = global_round_chunks(&s->store.cfg, round);
	const struct codec *sent = global_sent_as(&s->store.cfg, codec);
	return sent->encoded_bytes(sent, chunking_len(&chunks, chunk));
}

static size_t sum_bytes(void *ctx, uint64_t round, uint32_t chunk) {
	const struct session *s = ctx;
	const struct chunking chunks = global_round_chunks(&s->store.cfg, round);
	return merge_partial_bytes(chunking_len(&chunks, chunk));
}

bool session_own_piece(void *ctx, uint64_t round, uint32_t chunk, uint8_t *out, size_t bytes) {
	struct session *s = ctx;
	size_t found;
	const uint8_t *piece = kept_contributions_piece(s->audit.kept, round, chunk, &found);
	if (!piece || found != bytes)
		return false;
	memcpy(out, piece, bytes);
	return true;
}

/* Returns this worker's log entry of the round, which the caller frees; NULL: it is not there, or
 * not the committed one. */
static struct state_file *committed_log(struct session *s, uint64_t round) {
	const struct document *d = round_document(session_round(s));
	const struct rv_hash *digest = d ? document_digest(d, round) : NULL;
	struct state_file *f;
	if (!digest || statestore_open(&s->store, STATE_KIND_LOG, round, &f, NULL) != RV_OK)
		return NULL;
	if (rv_hash_equal(&state_file_id(f)->expect, digest))
		return f;
	state_file_free(f);
	return NULL;
}

/* Sets *out to the leaf (base/merkle.h) of the chunk that was committed; returns false if it is not
 * here. */
static bool committed_hash(struct session *s, const struct auditor_case *c, struct rv_hash *out) {
	struct state_file *f = committed_log(s, c->roster->round);
	if (!f)
		return false;
	*out = state_file_manifest(f)[c->chunk];
	state_file_free(f);
	return true;
}

static enum audit_verdict judge(void *ctx, const struct auditor_case *c, struct rv_hash *found) {
	struct session *s = ctx;
	struct rv_hash committed = c->sum;
	if ((c->kind != AUDIT_OF_SUM && !committed_hash(s, c, &committed)) ||
		remerge_leaf(&s->store.cfg, c, found) != RV_OK)
		return AUDIT_UNABLE;
	if (rv_hash_equal(found, &committed))
		return AUDIT_RIGHT;
	rv_event(s->events, RV_WARN, "audit_wrong",
			 RV_FIELDS(rv_field_int("round", (int64_t)c->roster->round), rv_field_int("chunk", c->chunk)),
			 "round %" PRIu64 ", chunk %u: the committed average is not the average of what the members sent: %s lied, "
			 "or its memory is bad. The coordinator has others check it too",
			 round_number(c->roster->round), c->chunk,
			 c->kind == AUDIT_OF_SUM ? "the owner of its row's sum" : "its owner");
	return AUDIT_WRONG;
}

static bool is_beyond(void *ctx, const struct auditor_case *c) {
	struct session *s = ctx;
	struct state_file *f = committed_log(s, c->roster->round);
	uint8_t *piece = malloc(STATE_PIECE_MAX_BYTES);
	const uint8_t *mean;
	const bool beyond = f && piece && state_file_read_chunk(f, c->chunk, piece, &mean, NULL) == RV_OK &&
						remerge_is_beyond(&s->store.cfg, c, mean);
	free(piece);
	state_file_free(f);
	if (beyond)
		rv_event(
			s->events, RV_WARN, "audit_wrong",
			RV_FIELDS(rv_field_int("round", (int64_t)c->roster->round), rv_field_int("chunk", c->chunk)),
			"round %" PRIu64 ", chunk %u: some members do not show what they sent, and whatever it was, the committed "
			"average is too far from what the others sent: its owner lied, or its memory is bad. The coordinator has "
			"others check it too",
			round_number(c->roster->round), c->chunk);
	return beyond;
}

static bool is_relayed(void *ctx, uint32_t member) {
	return peers_path(meshlink_peers(((struct session *)ctx)->mesh), member) == PATH_RELAYED;
}

bool session_is_linked(void *ctx, uint32_t member) {
	return peers_linked(meshlink_peers(((struct session *)ctx)->mesh), member);
}

/* Returns true if the member owes an answer to a weighing. */
static bool is_busy(void *ctx, uint32_t member) {
	const struct gather *g = session_gather(ctx);
	return g && gather_owes(g, member);
}

static void *take(void *ctx, size_t bytes) {
	(void)ctx;
	return malloc(bytes);
}

static void give(void *ctx, void *memory) {
	(void)ctx;
	free(memory);
}

/* Scores end with the request under way, repeated steps after the one under way. */
static void drop(void *ctx) {
	struct session *s = ctx;
	s->audit.dropped = true;
	session_drop_repeat(s);
}

/* ---- life ---- */

static size_t piece_bytes(const struct global_config *g) {
	const struct codec *sent = global_sent(g);
	return sent->encoded_bytes(sent, g->chunks.chunk_elems);
}

/* ---- what auditors are given ---- */

/* Returns the budget of inner states. An audit that repeats moves one, and some pieces of another.
 * The coordinator draws at most one audit of a member in a round, and so many of all that they cost
 * audit-training of the run's compute; a repeat costs what a member trains in a round. So a
 * member's steps are repeated in audit-training of its rounds, a newcomer's a few times as often,
 * by one of two others or more. It may take three states at once, should some audits in a row fall
 * to it, which come back within an hour; and with each round four times audit-training of one. */
static struct donor_budget inner_budget(const struct session *s) {
	enum { AT_ONCE = 3, OFTEN = 4 };
	const int64_t all = (int64_t)inner_state_bytes(s->store.cfg.n), ends = REPEAT_PIECES * (int64_t)INNER_PIECE_BYTES;
	const int64_t one = all + (ends < all ? ends : all);
	const double share = OFTEN * s->member.config.audit_training;
	if (!s->audit.states)
		return (struct donor_budget){.whole_bytes = 0};
	return (struct donor_budget){.whole_bytes = AT_ONCE * one,
								 .entry_bytes = (int64_t)((double)one * (share < 1 ? share : 1))};
}

/* Returns the bytes of the sums of a chunk, of all rows that there can be. */
static int64_t sums_bytes(const struct session *s) {
	const size_t one = merge_partial_bytes(s->store.cfg.chunks.chunk_elems);
	return s->audit.sums ? NET_MAX_ROWS * (int64_t)one : 0;
}

static enum rv_err open_donor(struct session *s, uint64_t run_tag, struct rv_errtext *et) {
	const int64_t bytes = (int64_t)piece_bytes(&s->store.cfg);
	const int64_t all = s->store.cfg.chunks.n_chunks * bytes, weighed = session_weigh_rounds(&s->member.config) * all;
	const int64_t whole = run_config_is_scored(&s->member.config) ? all : 0, sums = sums_bytes(s);
	s->audit.source =
		(struct kept_source){.contributions = s->audit.kept, .states = s->audit.states, .sums = s->audit.sums};
	const struct donor_config cfg = {
		.run_tag = run_tag,
		.cap = &s->donate_cap,
		.least_bytes = (uint32_t)bytes,
		.budget = donor_budget_of(PIECES_AT_ONCE * bytes + NET_MAX_SCORES * whole + weighed + MEANS_AT_ONCE * sums,
								  PIECES_OF_ROUND * bytes + whole / 4 + sums),
		.inner = inner_budget(s),
		.source = kept_source_of(&s->audit.source)};
	void *memory = malloc(donor_size());
	if (!memory)
		return rv_fail(et, RV_E_NOMEM, "no memory to give contributions to auditors");
	s->audit.donor = donor_init(memory, &cfg);
	return RV_OK;
}

/* Returns how long auditors wait for a chunk: longer than a link takes to come back behind a router
 * whose address has changed (docs/nat.md), less in runs that tolerate less silence, but always long
 * enough to ask again after a NONE. */
static int64_t patience_us(const struct run_config *run) {
	enum { SILENCES = 3, MOST_MS = 30 * 1000, QUESTIONS = 3 };
	const int64_t ms = SILENCES * run->silence_ms, least_us = QUESTIONS * (int64_t)AUDITOR_AGAIN_US;
	const int64_t us = (ms < MOST_MS ? ms : MOST_MS) * RV_US_PER_MS;
	return us > least_us ? us : least_us;
}

enum rv_err session_open_audit(struct session *s, uint64_t run_tag, struct rv_errtext *et) {
	const struct run_config *run = &s->member.config;
	const struct auditor_ops ops = {.ctx = s,
									.chunk_bytes = session_chunk_bytes,
									.sum_bytes = sum_bytes,
									.own = session_own_piece,
									.judge = judge,
									.is_beyond = is_beyond,
									.linked = session_is_linked,
									.relayed = is_relayed,
									.is_busy = is_busy,
									.take = take,
									.give = give,
									.sent_bytes = session_score_bytes,
									.score = session_score,
									.inner_bytes = session_inner_bytes,
									.draw = session_draw,
									.repeat = session_repeat,
									.drop = drop};
	if (!run_config_keeps_contributions(run))
		return RV_OK;
	RV_TRY(kept_contributions_new(&s->store, (uint32_t)run->audit_window + 1, &s->audit.kept, et));
	if (run_config_is_audited(run))
		RV_TRY(kept_sums_new(&s->store, (uint32_t)run->audit_window + 1, &s->audit.sums, et));
	if (run_config_is_repeated(run))
		RV_TRY(kept_states_new(&s->store, session_repeat_rounds(run), &s->audit.states, et));
	RV_TRY(open_donor(s, run_tag, et));
	void *memory = malloc(auditor_size());
	if (!memory)
		return rv_fail(et, RV_E_NOMEM, "no memory to audit averages");
	s->audit.auditor = auditor_init(memory, s->member.member, run_tag, patience_us(run), &ops);
	return session_open_weigh(s, run_tag, patience_us(run), et);
}

/* The run is over, so that nobody audits, and the files are large. */
static void drop_states(struct session *s) {
	struct rv_errtext et = {0};
	if (kept_states_drop(&s->store, session_repeat_rounds(&s->member.config), &et) != RV_OK)
		rv_event(s->events, RV_WARN, "inner_states_left", RV_NO_FIELDS,
				 "the run is over, but what was kept for its audits stays in the directory: %s", et.text);
}

void session_close_audit(struct session *s) {
	if (s->audit.states && session_is_up(s) && session_core_exported(s->core))
		drop_states(s);
	if (s->audit.auditor)
		auditor_release(s->audit.auditor);
	free(s->audit.auditor);
	free(s->audit.donor);
	kept_contributions_free(s->audit.kept);
	kept_sums_free(s->audit.sums);
	session_close_score(s);
	session_close_repeat(s);
	kept_states_free(s->audit.states);
	s->audit = (struct session_audit){0};
}

/* ---- a turn ---- */

void session_audit_roster(struct session *s, const struct document *d) {
	if (!s->audit.auditor)
		return;
	auditor_note_roster(s->audit.auditor, d);
	session_note_read(s, d);
}

void session_audit_follow(struct session *s, int64_t now_us, const struct document *d) {
	if (s->audit.auditor)
		auditor_follow(s->audit.auditor, now_us, d);
}

void session_report_audits(const struct session *s, struct report *r) {
	if (!s->audit.auditor)
		return;
	auditor_report(s->audit.auditor, r);
	r->appeals = s->audit.appeals;
}

void session_turn_audit(struct session *s, int64_t now_us) {
	if (!s->audit.auditor)
		return;
	auditor_note_exchange(s->audit.auditor, now_us, allreduce_running(s->reduce) && !allreduce_done(s->reduce));
	auditor_tick(s->audit.auditor, now_us);
	session_turn_score(s, now_us);
	session_turn_repeat(s, now_us);
	if (auditor_has_news(s->audit.auditor))
		session_core_report_soon(s->core);
}

int64_t session_audit_deadline_us(struct session *s, int64_t now_us) {
	if (!s->audit.auditor)
		return INT64_MAX;
	const int64_t asks = auditor_deadline_us(s->audit.auditor), gives = donor_deadline_us(s->audit.donor, now_us);
	const int64_t scores = session_score_deadline_us(s), repeats = session_repeat_deadline_us(s);
	const int64_t first = asks < gives ? asks : gives, trains = scores < repeats ? scores : repeats;
	return first < trains ? first : trains;
}

/* ---- on the storage thread ---- */

void session_keep_contribution(struct session *s, const struct state_log_info *log, const struct blob *sent) {
	struct rv_errtext et = {0};
	if (sent && kept_contributions_write(s->audit.kept, log->round, log->form.codec, sent->data, &et) != RV_OK)
		rv_event(s->events, RV_WARN, "contribution_lost", RV_FIELDS(rv_field_int("round", (int64_t)log->round)),
				 "this worker's contribution to round %" PRIu64 " is not kept for audits: %s", round_number(log->round),
				 et.text);
}

void session_keep_sums(struct session *s, const struct state_log_info *log, const struct blob *image) {
	struct rv_errtext et = {0};
	if (image && kept_sums_write(s->audit.sums, log->round, image, &et) != RV_OK)
		rv_event(s->events, RV_WARN, "sums_lost", RV_FIELDS(rv_field_int("round", (int64_t)log->round)),
				 "the sums that this worker was given in round %" PRIu64 " are not kept for audits: %s",
				 round_number(log->round), et.text);
}
