/* document.c: the encoding of the run document, and everything that must hold inside one.
 *
 * Order on the wire: head, run, snapshot, log, the banned, members; in phase REDUCE also the former
 * attempt, the ownership map and the signed roots of the contributions; the term, the digests
 * before the snapshot, what is to be kept of them, the members that are behind, the deadline of the
 * attempt, the relays; in phase REDUCE also the rows (rows.c); the receiver's leases; its
 * audits. */
#include "net/control/control.h"
#include "net/control/fields.h"
#include "net/control/layout.h"
#include "net/control/rows.h"

#include <string.h>

static const char WHAT[] = "document";

enum { CANDIDATES_BYTES = 1 + NET_MAX_CANDIDATES * (1 + 2 + NET_ADDR_BYTES) };
_Static_assert(560 + NET_MAX_PROOFS * EQUIVOCATION_BYTES +
					   NET_MAX_SYNCING * (4 + NET_KEY_BYTES + CANDIDATES_BYTES + 1) +
					   NET_MAX_LOG_DIGESTS * RV_HASH_BYTES + NET_MAX_BANNED * 4 +
					   (NET_MAX_ROW + NET_MAX_COLUMN) * (4 + 4 + 8 + NET_KEY_BYTES + CANDIDATES_BYTES + 3 + 2 + 1) +
					   NET_MAX_ROW * SEAL_BYTES + NET_MAX_RANGES * 10 + NET_MAX_ROWS * 8 +
					   NET_MAX_SECTIONS * (8 + NET_MAX_ROWS) + NET_MAX_RELAYS * (NET_KEY_BYTES + 2 + NET_ADDR_BYTES) +
					   NET_MAX_KEPT_SNAPSHOTS * (8 + RV_HASH_BYTES) + 9 + NET_MAX_LEASES * 12 + 2 * RV_HASH_BYTES + 1 +
					   NET_MAX_AUDITS * 16 + 1 + NET_MAX_SCORES * (23 + RV_HASH_BYTES + SCORE_PIECES * 12) +
					   NET_SIG_BYTES <=
				   NET_MAX_DOCUMENT_BYTES,
			   "the largest document fits");

static const struct layout hash[] = {{.kind = LAYOUT_PLAIN, .bytes = RV_HASH_BYTES}, LAYOUT_LAST};

static const struct layout number[] = {{.kind = LAYOUT_PLAIN, .bytes = sizeof(uint32_t)}, LAYOUT_LAST};

static const struct layout candidate[] = {
	LAYOUT_FIELD(PLAIN, struct candidate_ref, kind),
	LAYOUT_FIELD(TEXT, struct candidate_ref, addr),
	LAYOUT_LAST,
};

const struct layout layout_participant[] = {
	LAYOUT_FIELD(PLAIN, struct member_ref, member),
	LAYOUT_FIELD(PLAIN, struct member_ref, weight),
	LAYOUT_FIELD(PLAIN, struct member_ref, boot),
	LAYOUT_FIELD(PLAIN, struct member_ref, key),
	LAYOUT_COUNTED(struct member_ref, candidates, n_candidates, candidate),
	LAYOUT_FIELD(PLAIN, struct member_ref, relay),
	LAYOUT_FIELD(PLAIN, struct member_ref, codec),
	LAYOUT_FIELD(PLAIN, struct member_ref, part),
	LAYOUT_LAST,
};

static const struct layout syncing[] = {
	LAYOUT_FIELD(PLAIN, struct member_ref, member),
	LAYOUT_FIELD(PLAIN, struct member_ref, key),
	LAYOUT_COUNTED(struct member_ref, candidates, n_candidates, candidate),
	LAYOUT_FIELD(PLAIN, struct member_ref, relay),
	LAYOUT_LAST,
};

static const struct layout relay[] = {
	LAYOUT_FIELD(PLAIN, struct relay_ref, key),
	LAYOUT_FIELD(TEXT, struct relay_ref, addr),
	LAYOUT_LAST,
};

static const struct layout range[] = {
	LAYOUT_FIELD(PLAIN, struct owner_range, first),
	LAYOUT_FIELD(PLAIN, struct owner_range, count),
	LAYOUT_FIELD(PLAIN, struct owner_range, owner),
	LAYOUT_LAST,
};

static const struct layout kept[] = {
	LAYOUT_FIELD(PLAIN, struct kept_snapshot, round),
	LAYOUT_FIELD(PLAIN, struct kept_snapshot, hash),
	LAYOUT_LAST,
};

static const struct layout head[] = {
	LAYOUT_FIELD(PLAIN, struct document, run_id),
	LAYOUT_FIELD(PLAIN, struct document, seq),
	LAYOUT_FIELD(PLAIN, struct document, phase),
	LAYOUT_FIELD(PLAIN, struct document, round),
	LAYOUT_FIELD(PLAIN, struct document, attempt),
	LAYOUT_FIELD(PLAIN, struct document, final_round),
	LAYOUT_FIELD(PLAIN, struct document, run_hash),
	LAYOUT_FIELD(PLAIN, struct document, chain),
	LAYOUT_FIELD(PLAIN, struct document, snapshot_round),
	LAYOUT_FIELD(PLAIN, struct document, snapshot_hash),
	LAYOUT_FIELD(PLAIN, struct document, snapshot_chain),
	LAYOUT_COUNTED(struct document, log, n_log, hash),
	LAYOUT_COUNTED(struct document, banned.members, banned.n, number),
	LAYOUT_COUNTED(struct document, members, n_members, layout_participant),
	LAYOUT_LAST,
};

static const struct layout ownership_map[] = {
	LAYOUT_FIELD(PLAIN, struct document, roster_hash),
	LAYOUT_FIELD(PLAIN, struct document, former_attempt),
	LAYOUT_FIELD(PLAIN, struct document, n_chunks),
	LAYOUT_COUNTED(struct document, ranges, n_ranges, range),
	LAYOUT_LAST,
};

static const struct layout tail[] = {
	LAYOUT_FIELD(PLAIN, struct document, term),
	LAYOUT_FIELD(PLAIN, struct document, term_round),
	LAYOUT_COUNT_OF(struct document, older, n_older),
	LAYOUT_FIELD(PLAIN, struct document, older_chain),
	LAYOUT_LIST_OF(struct document, older, n_older, hash),
	LAYOUT_FIELD(PLAIN, struct document, n_kept_rounds),
	LAYOUT_COUNTED(struct document, kept_snapshots, n_kept_snapshots, kept),
	LAYOUT_COUNTED(struct document, syncing, n_syncing, syncing),
	LAYOUT_FIELD(PLAIN, struct document, deadline_ms),
	LAYOUT_FIELD(PLAIN, struct document, slow_deadline_ms),
	LAYOUT_COUNTED(struct document, relays, n_relays, relay),
	LAYOUT_LAST,
};

static const struct layout lease[] = {
	LAYOUT_FIELD(PLAIN, struct lease_piece, begin),
	LAYOUT_FIELD(PLAIN, struct lease_piece, count),
	LAYOUT_LAST,
};

static const struct layout own_leases[] = {
	LAYOUT_FIELD(PLAIN, struct document, lease_first),
	LAYOUT_COUNTED(struct document, leases, n_leases, lease),
	LAYOUT_LAST,
};

static const struct layout audit[] = {
	LAYOUT_FIELD(PLAIN, struct audit_order, round),
	LAYOUT_FIELD(PLAIN, struct audit_order, attempt),
	LAYOUT_FIELD(PLAIN, struct audit_order, chunk),
	LAYOUT_FIELD(PLAIN, struct audit_order, kind),
	LAYOUT_FIELD(PLAIN, struct audit_order, member),
	LAYOUT_FIELD(PLAIN, struct audit_order, sum),
	LAYOUT_LAST,
};

static const struct layout own_audits[] = {
	LAYOUT_FIELD(PLAIN, struct document, audit_promise),
	LAYOUT_FIELD(PLAIN, struct document, audit_secret),
	LAYOUT_COUNTED(struct document, audits, n_audits, audit),
	LAYOUT_COUNTED(struct document, scores, n_scores, layout_score_order),
	LAYOUT_LAST,
};

static const struct layout asked[] = {
	LAYOUT_COUNTED(struct document, asked, n_asked, number),
	LAYOUT_LAST,
};

static void write_roots(const struct document *m, struct rv_writer *w) {
	for (int i = 0; i < m->n_members; i++) {
		rv_write_bytes(w, m->members[i].contribution.root.b, RV_HASH_BYTES);
		rv_write_bytes(w, m->members[i].contribution.signature, NET_SIG_BYTES);
	}
	layout_write(asked, m, w);
}

static void write_proofs(const struct document *m, struct rv_writer *w) {
	rv_write_u8(w, m->n_proofs);
	for (int i = 0; i < m->n_proofs; i++)
		equivocation_write(&m->proofs[i], w);
}

static enum rv_err read_proofs(struct document *out, struct rv_reader *r, struct rv_errtext *et) {
	const uint8_t n = rv_read_u8(r);
	if (n > NET_MAX_PROOFS)
		return rv_fail(et, RV_E_INVALID, "%s: n_proofs = %u, at most %d", WHAT, n, (int)NET_MAX_PROOFS);
	for (out->n_proofs = 0; out->n_proofs < n; out->n_proofs++)
		RV_TRY(equivocation_read(r, out->run_id, &out->proofs[out->n_proofs], et));
	return RV_OK;
}

static enum rv_err read_roots(struct document *out, struct rv_reader *r, struct rv_errtext *et) {
	for (int i = 0; i < out->n_members; i++) {
		rv_read_copy(r, out->members[i].contribution.root.b, RV_HASH_BYTES);
		rv_read_copy(r, out->members[i].contribution.signature, NET_SIG_BYTES);
	}
	return layout_read(asked, r, out, WHAT, et);
}

void document_encode(const struct document *m, uint32_t version, struct rv_writer *w) {
	control_write_head(w, CONTROL_TAG_DOCUMENT, version);
	layout_write(head, m, w);
	if (m->phase == RUN_REDUCE) {
		layout_write(ownership_map, m, w);
		write_roots(m, w);
	}
	layout_write(tail, m, w);
	write_proofs(m, w);
	if (m->phase == RUN_REDUCE)
		rows_write(m, w);
	layout_write(own_leases, m, w);
	layout_write(own_audits, m, w);
}

static enum rv_err check_round(const struct document *d, struct rv_errtext *et) {
	if (d->phase < RUN_WAITING || d->phase > RUN_DONE)
		return rv_fail(et, RV_E_INVALID, "%s: phase = %u, must be 1..%d", WHAT, d->phase, (int)RUN_DONE);
	if ((d->phase == RUN_REDUCE) != (d->attempt != 0))
		return rv_fail(et, RV_E_INVALID, "%s: attempt = %u in phase %u", WHAT, d->attempt, d->phase);
	if (d->deadline_ms > NET_MAX_DEADLINE_MS || (d->phase != RUN_REDUCE && d->deadline_ms != 0))
		return rv_fail(et, RV_E_INVALID, "%s: deadline_ms = %u in phase %u, at most %d and only in phase %d", WHAT,
					   d->deadline_ms, d->phase, (int)NET_MAX_DEADLINE_MS, (int)RUN_REDUCE);
	if (d->slow_deadline_ms > NET_MAX_DEADLINE_MS || (d->phase != RUN_REDUCE && d->slow_deadline_ms != 0))
		return rv_fail(et, RV_E_INVALID, "%s: slow_deadline_ms = %u in phase %u, at most %d and only in phase %d", WHAT,
					   d->slow_deadline_ms, d->phase, (int)NET_MAX_DEADLINE_MS, (int)RUN_REDUCE);
	if (d->round > d->final_round || (d->phase == RUN_DONE) != (d->round == d->final_round))
		return rv_fail(et, RV_E_INVALID, "%s: round %llu of %llu in phase %u", WHAT, (unsigned long long)d->round,
					   (unsigned long long)d->final_round, d->phase);
	if (d->term > NET_MAX_TERM || d->term_round > d->round || (d->term == 0 && d->term_round != 0))
		return rv_fail(et, RV_E_INVALID, "%s: term %llu since round %llu, in round %llu", WHAT,
					   (unsigned long long)d->term, (unsigned long long)d->term_round, (unsigned long long)d->round);
	if (d->snapshot_round > d->round || d->round - d->snapshot_round != d->n_log)
		return rv_fail(et, RV_E_INVALID, "%s: n_log = %u between snapshot_round %llu and round %llu", WHAT, d->n_log,
					   (unsigned long long)d->snapshot_round, (unsigned long long)d->round);
	return RV_OK;
}

static enum rv_err check_older(const struct document *d, struct rv_errtext *et) {
	if (d->n_older > NET_MAX_LOG_DIGESTS - d->n_log || d->n_older > d->snapshot_round)
		return rv_fail(et, RV_E_INVALID, "%s: n_older = %u before snapshot_round %llu, at most %d with the log's %u",
					   WHAT, d->n_older, (unsigned long long)d->snapshot_round, (int)NET_MAX_LOG_DIGESTS, d->n_log);
	if (d->n_kept_rounds > d->n_older)
		return rv_fail(et, RV_E_INVALID, "%s: n_kept_rounds = %u of %u", WHAT, d->n_kept_rounds, d->n_older);
	return RV_OK;
}

static enum rv_err check_kept(const struct document *d, struct rv_errtext *et) {
	uint64_t from = d->snapshot_round - d->n_kept_rounds;
	for (int i = 0; i < d->n_kept_snapshots; i++) {
		uint64_t round = d->kept_snapshots[i].round;
		if (round < from || round >= d->snapshot_round || (i > 0 && round <= d->kept_snapshots[i - 1].round))
			return rv_fail(et, RV_E_INVALID,
						   "%s: kept_snapshots[%d] of round %llu: must ascend from %llu to before %llu", WHAT, i,
						   (unsigned long long)round, (unsigned long long)from, (unsigned long long)d->snapshot_round);
	}
	return RV_OK;
}

/* Checks how the contribution of entry `i` is sent. What codecs there are is not known here. */
static enum rv_err check_form(const struct document *d, const struct member_ref *list, int i, const char *name,
							  struct rv_errtext *et) {
	const struct member_ref *m = &list[i];
	if (d->phase != RUN_REDUCE && (m->codec != 0 || m->part != 0))
		return rv_fail(et, RV_E_INVALID, "%s: %s[%d] contributes by codec %u, part %u in phase %u", WHAT, name, i,
					   m->codec, m->part, d->phase);
	if (m->part == 1 || m->part > NET_MAX_PART)
		return rv_fail(et, RV_E_INVALID, "%s: %s[%d].part = %u, must be 0 or 2..%d", WHAT, name, i, m->part,
					   (int)NET_MAX_PART);
	return RV_OK;
}

enum rv_err document_check_ref(const struct document *d, const struct member_ref *list, int i, const char *name,
							   struct rv_errtext *et) {
	const struct member_ref *m = &list[i];
	enum rv_err e = candidate_refs_check(m->candidates, m->n_candidates, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "%s: %s[%d]", WHAT, name, i);
	if (m->relay > d->n_relays)
		return rv_fail(et, RV_E_INVALID, "%s: %s[%d].relay = %u of %u relays", WHAT, name, i, m->relay, d->n_relays);
	return check_form(d, list, i, name, et);
}

/* Checks entry `i` of a list whose numbers ascend. */
static enum rv_err check_next(const struct document *d, const struct member_ref *list, int i, const char *name,
							  struct rv_errtext *et) {
	RV_TRY(control_check_next(i > 0 ? &list[i - 1].member : NULL, list[i].member, WHAT, name, et));
	return document_check_ref(d, list, i, name, et);
}

static enum rv_err check_banned(const struct document *d, struct rv_errtext *et) {
	const uint32_t *list = d->banned.members;
	for (int i = 0; i < d->banned.n; i++)
		RV_TRY(control_check_next(i > 0 ? &list[i - 1] : NULL, list[i], WHAT, "banned", et));
	return RV_OK;
}

/* Checks that each chunk has a contribution: one participant contributes to all. In rows all do,
 * because a column knows the weight of a whole row only. */
static enum rv_err check_parts(const struct document *d, struct rv_errtext *et) {
	int whole = 0;
	for (int i = 0; i < d->n_members; i++)
		whole += d->members[i].part == 0;
	if (whole == 0 || (d->n_rows > 1 && whole < d->n_members))
		return rv_fail(et, RV_E_INVALID, "%s: %d of %u members contribute to all chunks, must be %s", WHAT, whole,
					   d->n_members, d->n_rows > 1 ? "all of them in a roster of rows" : "one at least");
	return RV_OK;
}

static enum rv_err check_members(const struct document *d, struct rv_errtext *et) {
	bool reduce = d->phase == RUN_REDUCE;
	uint64_t weight_sum = 0;
	if (reduce && d->n_members == 0)
		return rv_fail(et, RV_E_INVALID, "%s: a roster without members", WHAT);
	for (int i = 0; i < d->n_members; i++) {
		const struct member_ref *m = &d->members[i];
		if (reduce && d->n_rows > 1) /* in the order of the roster, by place: rows_check */
			RV_TRY(document_check_ref(d, d->members, i, "members", et));
		else
			RV_TRY(check_next(d, d->members, i, "members", et));
		if (reduce != (m->weight != 0))
			return rv_fail(et, RV_E_INVALID, "%s: members[%d].weight = %u in phase %u", WHAT, i, m->weight, d->phase);
		weight_sum += m->weight;
	}
	if (weight_sum > NET_MAX_WEIGHT_SUM)
		return rv_fail(et, RV_E_INVALID, "%s: weights add up to %llu, at most %d", WHAT, (unsigned long long)weight_sum,
					   (int)NET_MAX_WEIGHT_SUM);
	return RV_OK;
}

static enum rv_err check_syncing(const struct document *d, struct rv_errtext *et) {
	for (int i = 0; i < d->n_syncing; i++) {
		RV_TRY(check_next(d, d->syncing, i, "syncing", et));
		if (document_find(d, d->syncing[i].member) >= 0)
			return rv_fail(et, RV_E_INVALID, "%s: syncing[%d] = %u is in members", WHAT, i, d->syncing[i].member);
	}
	return RV_OK;
}

static enum rv_err check_relays(const struct document *d, struct rv_errtext *et) {
	for (int i = 0; i < d->n_relays; i++) {
		enum rv_err e = control_check_addr(d->relays[i].addr, et);
		if (e != RV_OK)
			return rv_fail_context(et, e, "%s: relays[%d].addr", WHAT, i);
	}
	return RV_OK;
}

/* Checks that piece `i`, whose first sequence has this number, is possible, and shares none with
 * those before it. */
static enum rv_err check_lease(const struct document *d, int i, uint64_t at, struct rv_errtext *et) {
	const struct lease_piece *a = &d->leases[i];
	if (a->count == 0 || a->begin > LEASE_MAX_POSITION - a->count || at > LEASE_MAX_POSITION - a->count)
		return rv_fail(et, RV_E_INVALID, "%s: leases[%d] = %llu+%u, number %llu: empty, or past 2^62", WHAT, i,
					   (unsigned long long)a->begin, a->count, (unsigned long long)at);
	for (int k = 0; k < i; k++) {
		const struct lease_piece *b = &d->leases[k];
		if (a->begin < b->begin + b->count && b->begin < a->begin + a->count)
			return rv_fail(et, RV_E_INVALID, "%s: leases[%d] = %llu+%u has sequences of leases[%d]", WHAT, i,
						   (unsigned long long)a->begin, a->count, k);
	}
	return RV_OK;
}

static enum rv_err check_leases(const struct document *d, struct rv_errtext *et) {
	uint64_t at = d->lease_first;
	if ((d->n_leases == 0 && d->lease_first != 0) || (d->n_leases > 0 && d->phase == RUN_DONE))
		return rv_fail(et, RV_E_INVALID, "%s: lease_first = %llu of %u leases in phase %u", WHAT,
					   (unsigned long long)d->lease_first, d->n_leases, d->phase);
	for (int i = 0; i < d->n_leases; i++) {
		RV_TRY(check_lease(d, i, at, et));
		at += d->leases[i].count;
	}
	return RV_OK;
}

static enum rv_err check_audits(const struct document *d, struct rv_errtext *et) {
	enum rv_err e = audit_orders_check(d->audits, d->n_audits, d->round, et);
	if (e == RV_OK)
		e = score_orders_check(d->scores, d->n_scores, d->round, et);
	return e == RV_OK ? RV_OK : rv_fail_context(et, e, "%s", WHAT);
}

static enum rv_err check_ownership_map(const struct document *d, struct rv_errtext *et) {
	if (d->n_chunks < 1 || d->n_chunks > NET_MAX_CHUNKS)
		return rv_fail(et, RV_E_INVALID, "%s: n_chunks = %u, must be 1..%d", WHAT, d->n_chunks, (int)NET_MAX_CHUNKS);
	uint32_t next = 0;
	for (int i = 0; i < d->n_ranges; i++) {
		const struct owner_range *g = &d->ranges[i];
		if (g->first != next || g->count == 0 || g->count > d->n_chunks - next)
			return rv_fail(et, RV_E_INVALID, "%s: ranges[%d] = %u+%u: must start at %u and end by %u", WHAT, i,
						   g->first, g->count, next, d->n_chunks);
		if (g->owner >= d->n_members)
			return rv_fail(et, RV_E_INVALID, "%s: ranges[%d].owner = %u of %u members", WHAT, i, g->owner,
						   d->n_members);
		next += g->count;
	}
	if (next != d->n_chunks)
		return rv_fail(et, RV_E_INVALID, "%s: ranges end at %u of %u chunks", WHAT, next, d->n_chunks);
	return RV_OK;
}

/* Clears all but the two largest lists, of which their counts say what is used. */
static void clear(struct document *d) {
	memset(d, 0, offsetof(struct document, ranges));
	size_t rows = offsetof(struct document, n_rows);
	memset((uint8_t *)d + rows, 0, offsetof(struct document, column) - rows);
}

enum rv_err document_decode(const void *p, size_t n, struct document *out, struct rv_errtext *et) {
	clear(out);
	struct rv_reader r = rv_reader_of(p, n);
	RV_TRY(control_read_head_spoken(&r, CONTROL_TAG_DOCUMENT, WHAT, &out->version, et));
	RV_TRY(layout_read(head, &r, out, WHAT, et));
	if (out->phase == RUN_REDUCE) {
		RV_TRY(layout_read(ownership_map, &r, out, WHAT, et));
		RV_TRY(read_roots(out, &r, et));
	}
	RV_TRY(layout_read(tail, &r, out, WHAT, et));
	RV_TRY(read_proofs(out, &r, et));
	if (out->phase == RUN_REDUCE)
		RV_TRY(rows_read(out, &r, et));
	RV_TRY(layout_read(own_leases, &r, out, WHAT, et));
	RV_TRY(layout_read(own_audits, &r, out, WHAT, et));
	RV_TRY(control_read_end(&r, WHAT, et));
	RV_TRY(check_round(out, et));
	RV_TRY(check_older(out, et));
	RV_TRY(check_kept(out, et));
	RV_TRY(check_banned(out, et));
	RV_TRY(check_members(out, et));
	RV_TRY(check_syncing(out, et));
	RV_TRY(check_relays(out, et));
	RV_TRY(check_leases(out, et));
	RV_TRY(check_audits(out, et));
	if (out->phase != RUN_REDUCE)
		return RV_OK;
	RV_TRY(check_ownership_map(out, et));
	RV_TRY(check_parts(out, et));
	return rows_check(out, et);
}

void document_copy(struct document *to, const struct document *from) {
	memcpy(to, from, offsetof(struct document, ranges));
	memcpy(to->ranges, from->ranges, from->n_ranges * sizeof from->ranges[0]);
	size_t rows = offsetof(struct document, n_rows);
	memcpy((uint8_t *)to + rows, (const uint8_t *)from + rows, offsetof(struct document, column) - rows);
	memcpy(to->column, from->column, from->n_column * sizeof from->column[0]);
}

int document_find(const struct document *d, uint32_t member) {
	for (int i = 0; i < d->n_members; i++)
		if (d->members[i].member == member)
			return i;
	return -1;
}

uint64_t document_reaches_to(const struct document *d) {
	return d->snapshot_round - d->n_older;
}

const struct rv_hash *document_digest(const struct document *d, uint64_t round) {
	if (round < document_reaches_to(d) || round >= d->round)
		return NULL;
	return round < d->snapshot_round ? &d->older[round - document_reaches_to(d)] : &d->log[round - d->snapshot_round];
}

int document_linked(const struct document *d, struct member_ref out[DOCUMENT_MAX_LINKED]) {
	const int n_column = d->phase == RUN_REDUCE && d->n_rows > 1 ? d->n_column : 0;
	memcpy(out, d->members, d->n_members * sizeof out[0]);
	memcpy(out + d->n_members, d->syncing, d->n_syncing * sizeof out[0]);
	memcpy(out + d->n_members + d->n_syncing, d->column, (size_t)n_column * sizeof out[0]);
	return d->n_members + d->n_syncing + n_column;
}
