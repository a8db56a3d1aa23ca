/* audit.c: audits: this worker's contributions are kept and given to auditors, and it audits what
 * its documents order: averages here, training in score.c. */
#include "worker/session/internal.h"

#include "base/merkle.h"
#include "worker/audit/kept_contributions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A member audits a few chunks of a round; and where training is audited, a whole contribution now
 * and then, by chance of several rounds in a row. */
enum { PIECES_AT_ONCE = 4 * NET_MAX_AUDITS, PIECES_OF_ROUND = NET_MAX_AUDITS };

static size_t chunk_bytes(void *ctx, uint64_t round, uint8_t codec, uint32_t chunk) {
	const struct session *s = ctx;
	const struct chunking chunks = global_round_chunks(&s->store.cfg, round);
	const struct codec *sent = global_sent_as(&s->store.cfg, codec);
	return sent->encoded_bytes(sent, chunking_len(&chunks, chunk));
}

static bool own(void *ctx, uint64_t round, uint32_t chunk, uint8_t *out, size_t bytes) {
	struct session *s = ctx;
	size_t found;
	const uint8_t *piece = kept_contributions_piece(s->audit.kept, round, chunk, &found);
	if (!piece || found != bytes)
		return false;
	memcpy(out, piece, bytes);
	return true;
}

/* Sets *out to the leaf (base/merkle.h) of the chunk that was committed; returns false if this
 * worker's log entry of the round is not the committed one. */
static bool committed_hash(struct session *s, const struct auditor_case *c, struct rv_hash *out) {
	const struct document *d = round_document(session_round(s));
	const struct rv_hash *digest = d ? document_digest(d, c->roster->round) : NULL;
	struct state_file *f;
	if (!digest || statestore_open(&s->store, STATE_KIND_LOG, c->roster->round, &f, NULL) != RV_OK)
		return false;
	const bool same = rv_hash_equal(&state_file_id(f)->expect, digest);
	if (same)
		*out = state_file_manifest(f)[c->chunk];
	state_file_free(f);
	return same;
}

/* Merges the contributions again, as their owner had to; sets *out to the leaf of the encoded
 * mean. */
static enum rv_err merge_again(const struct session *s, const struct auditor_case *c, struct rv_hash *out) {
	const struct global_config *g = &s->store.cfg;
	const struct chunking chunks = global_round_chunks(g, c->roster->round);
	const size_t n = chunking_len(&chunks, c->chunk), mean_bytes = g->codec->encoded_bytes(g->codec, n);
	struct merge_rule rule = global_merge(g);
	const struct codec *codecs[NET_MAX_ROW];
	uint32_t weights[NET_MAX_ROW];
	for (int i = 0; i < c->n; i++) {
		codecs[i] = global_sent_as(g, c->members[i]->codec);
		weights[i] = c->members[i]->weight;
	}
	rule.codecs = codecs;
	const size_t floats = merge_scratch(&rule, n, c->n);
	float *scratch = malloc(floats * sizeof *scratch + mean_bytes);
	if (!scratch)
		return RV_E_NOMEM;
	uint8_t *mean = (uint8_t *)(scratch + floats);
	const enum rv_err e = merge_chunk(&rule, c->data, weights, c->n, n, scratch, NULL, mean, NULL, NULL);
	if (e == RV_OK)
		*out = merkle_leaf(c->chunk, mean, mean_bytes);
	free(scratch);
	return e;
}

static enum audit_verdict judge(void *ctx, const struct auditor_case *c, struct rv_hash *found) {
	struct session *s = ctx;
	struct rv_hash committed;
	if (!committed_hash(s, c, &committed) || merge_again(s, c, found) != RV_OK)
		return AUDIT_UNABLE;
	if (rv_hash_equal(found, &committed))
		return AUDIT_RIGHT;
	rv_event(s->events, RV_WARN, "audit_wrong",
			 RV_FIELDS(rv_field_int("round", (int64_t)c->roster->round), rv_field_int("chunk", c->chunk)),
			 "round %" PRIu64
			 ", chunk %u: the committed average is not the average of what the members sent: its owner lied, "
			 "or its memory is bad. The coordinator has others check it too",
			 c->roster->round, c->chunk);
	return AUDIT_WRONG;
}

static bool linked(void *ctx, uint32_t member) {
	return peers_linked(meshlink_peers(((struct session *)ctx)->mesh), member);
}

static void *take(void *ctx, size_t bytes) {
	(void)ctx;
	return malloc(bytes);
}

static void give(void *ctx, void *memory) {
	(void)ctx;
	free(memory);
}

/* ---- life ---- */

static size_t piece_bytes(const struct global_config *g) {
	const struct codec *sent = global_sent(g);
	return sent->encoded_bytes(sent, g->chunks.chunk_elems);
}

static enum rv_err open_donor(struct session *s, uint64_t run_tag, struct rv_errtext *et) {
	const int64_t bytes = (int64_t)piece_bytes(&s->store.cfg);
	const int64_t whole = run_config_is_scored(&s->member.config) ? s->store.cfg.chunks.n_chunks * bytes : 0;
	const struct donor_config cfg = {
		.run_tag = run_tag,
		.cap = &s->donate_cap,
		.budget = donor_budget_of(PIECES_AT_ONCE * bytes + NET_MAX_SCORES * whole, PIECES_OF_ROUND * bytes + whole / 4),
		.source = kept_contributions_source(s->audit.kept)};
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
									.chunk_bytes = chunk_bytes,
									.own = own,
									.judge = judge,
									.linked = linked,
									.take = take,
									.give = give,
									.sent_bytes = session_score_bytes,
									.score = session_score};
	if (!run_config_keeps_contributions(run))
		return RV_OK;
	RV_TRY(kept_contributions_new(&s->store, (uint32_t)run->audit_window + 1, &s->audit.kept, et));
	RV_TRY(open_donor(s, run_tag, et));
	void *memory = malloc(auditor_size());
	if (!memory)
		return rv_fail(et, RV_E_NOMEM, "no memory to audit averages");
	s->audit.auditor = auditor_init(memory, s->member.member, run_tag, patience_us(run), &ops);
	return RV_OK;
}

void session_close_audit(struct session *s) {
	if (s->audit.auditor)
		auditor_release(s->audit.auditor);
	free(s->audit.auditor);
	free(s->audit.donor);
	kept_contributions_free(s->audit.kept);
	session_close_score(s);
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
	auditor_tick(s->audit.auditor, now_us);
	session_turn_score(s, now_us);
	if (auditor_has_news(s->audit.auditor))
		session_core_report_soon(s->core);
}

int64_t session_audit_deadline_us(struct session *s, int64_t now_us) {
	if (!s->audit.auditor)
		return INT64_MAX;
	const int64_t asks = auditor_deadline_us(s->audit.auditor), gives = donor_deadline_us(s->audit.donor, now_us);
	const int64_t scores = session_score_deadline_us(s), first = asks < gives ? asks : gives;
	return first < scores ? first : scores;
}

/* ---- on the storage thread ---- */

void session_keep_contribution(struct session *s, const struct state_log_info *log, const struct blob *sent) {
	struct rv_errtext et = {0};
	if (sent && kept_contributions_write(s->audit.kept, log->round, log->form.codec, sent->data, &et) != RV_OK)
		rv_event(s->events, RV_WARN, "contribution_lost", RV_FIELDS(rv_field_int("round", (int64_t)log->round)),
				 "this worker's contribution to round %" PRIu64 " is not kept for audits: %s", log->round, et.text);
}
