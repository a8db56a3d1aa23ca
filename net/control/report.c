/* report.c: the encoding of a worker's report. */
#include "base/assert.h"
#include "net/control/control.h"
#include "net/control/fields.h"
#include "net/control/layout.h"

#include <math.h>

static const char WHAT[] = "report";

static const struct layout measured[] = {
	LAYOUT_FIELD(PLAIN, struct report_measured, norm2),
	LAYOUT_FIELD(PLAIN, struct report_measured, dot),
	LAYOUT_FIELD(PLAIN, struct report_measured, clipped),
	LAYOUT_LAST,
};

static const struct layout place[] = {{.kind = LAYOUT_PLAIN, .bytes = sizeof(uint16_t)}, LAYOUT_LAST};

static const struct layout one_path[] = {
	LAYOUT_FIELD(PLAIN, struct report_path, member),
	LAYOUT_FIELD(PLAIN, struct report_path, path),
	LAYOUT_LAST,
};

/* Behind these goes a byte: 1 if the proven round is the next one. */
static const struct layout state[] = {
	LAYOUT_FIELD(PLAIN, struct report, boot),
	LAYOUT_FIELD(PLAIN, struct report, seq),
	LAYOUT_FIELD(PLAIN, struct report, phase),
	LAYOUT_FIELD(PLAIN, struct report, round),
	LAYOUT_FIELD(PLAIN, struct report, attempt),
	LAYOUT_FIELD(PLAIN, struct report, tokens),
	LAYOUT_FIELD(PLAIN, struct report, n_chunks),
	LAYOUT_COUNTED(struct report, suspects, n_suspects, place),
	LAYOUT_FIELD(PLAIN, struct report, digest),
	LAYOUT_FIELD(PLAIN, struct report, chain),
	LAYOUT_FIELD(PLAIN, struct report, full_round),
	LAYOUT_FIELD(PLAIN, struct report, full_hash),
	LAYOUT_FIELD(PLAIN, struct report, inner_step),
	LAYOUT_FIELD(PLAIN, struct report, loss),
	LAYOUT_FIELD(PLAIN, struct report, tokens_per_s),
	LAYOUT_FIELD(PLAIN, struct report, tx_bytes),
	LAYOUT_FIELD(PLAIN, struct report, rx_bytes),
	LAYOUT_FIELD(PLAIN, struct report, compute_us),
	LAYOUT_FIELD(PLAIN, struct report, reduce_us),
	LAYOUT_FIELD(PLAIN, struct report, term),
	LAYOUT_FIELD(PLAIN, struct report, up_bytes_per_s),
	LAYOUT_FIELD(PLAIN, struct report, down_bytes_per_s),
	LAYOUT_LAST,
};

static const struct layout proof[] = {
	LAYOUT_FIELD(PLAIN, struct report, proven_chain),
	LAYOUT_FIELD(PLAIN, struct report, needs_from),
	LAYOUT_FIELD(PLAIN, struct report, storage),
	LAYOUT_LAST,
};

/* Behind these go the candidates. */
static const struct layout figures[] = {
	LAYOUT_COUNTED(struct report, paths, n_paths, one_path),
	LAYOUT_COUNTED(struct report, measured, n_measured, measured),
	LAYOUT_FIELD(PLAIN, struct report, mean2),
	LAYOUT_FIELD(PLAIN, struct report, relay),
	LAYOUT_FIELD(PLAIN, struct report, reach),
	LAYOUT_FIELD(PLAIN, struct report, offers_relay),
	LAYOUT_LAST,
};

/* Behind the results of probes. */
static const struct layout lease[] = {
	LAYOUT_FIELD(PLAIN, struct report, lease_first),
	LAYOUT_FIELD(PLAIN, struct report, lease_count),
	LAYOUT_LAST,
};

static const struct layout root[] = {
	LAYOUT_FIELD(PLAIN, struct commitment_root, codec),
	LAYOUT_FIELD(PLAIN, struct commitment_root, root),
	LAYOUT_LAST,
};

static const struct layout commitment[] = {
	LAYOUT_COUNTED(struct commitment, roots, n, root),
	LAYOUT_LAST,
};

static const struct layout signature[] = {{.kind = LAYOUT_PLAIN, .bytes = NET_SIG_BYTES}, LAYOUT_LAST};

static const struct layout signatures[] = {
	LAYOUT_LIST_OF(struct report, signatures, commitment.n, signature),
	LAYOUT_LAST,
};

static const struct layout inner[] = {
	LAYOUT_FIELD(PLAIN, struct commitment, inner_end),
	LAYOUT_FIELD(PLAIN, struct commitment, inner_begin),
	LAYOUT_LAST,
};

static const struct layout text[] = {
	LAYOUT_FIELD(PLAIN, struct report, text_mirror_bytes),
	LAYOUT_FIELD(PLAIN, struct report, text_member_bytes),
	LAYOUT_FIELD(PLAIN, struct report, text_coordinator_bytes),
	LAYOUT_FIELD(PLAIN, struct report, text_stall_us),
	LAYOUT_FIELD(PLAIN, struct report, own_text),
	LAYOUT_LAST,
};

static const struct layout verdict[] = {
	LAYOUT_FIELD(PLAIN, struct audit_result, round),   LAYOUT_FIELD(PLAIN, struct audit_result, chunk),
	LAYOUT_FIELD(PLAIN, struct audit_result, verdict), LAYOUT_FIELD(PLAIN, struct audit_result, member),
	LAYOUT_FIELD(PLAIN, struct audit_result, found),   LAYOUT_LAST,
};

static const struct layout heldout[] = {
	LAYOUT_FIELD(PLAIN, struct report, heldout_round),
	LAYOUT_FIELD(PLAIN, struct report, heldout_loss),
	LAYOUT_LAST,
};

static const struct layout audits[] = {
	LAYOUT_COUNTED(struct report, verdicts, n_verdicts, verdict),
	LAYOUT_COUNTED(struct report, scores, n_scores, layout_score_result),
	LAYOUT_FIELD(BOOL, struct report, appeals),
	LAYOUT_LAST,
};

static const struct layout receipt[] = {
	LAYOUT_FIELD(PLAIN, struct report_receipt, member),
	LAYOUT_FIELD(PLAIN, struct report_receipt, band),
	LAYOUT_LAST,
};

/* And the chunk that stands out. */
static const struct layout receipts[] = {
	LAYOUT_COUNTED(struct report, receipts, n_receipts, receipt),
	LAYOUT_FIELD(PLAIN, struct report, stands_out),
	LAYOUT_LAST,
};

void report_add_path(struct report *m, uint32_t member, uint8_t path) {
	RV_ASSERT(m->n_paths == 0 || member > m->paths[m->n_paths - 1].member);
	if (path != PATH_NONE && m->n_paths < NET_MAX_PEERS)
		m->paths[m->n_paths++] = (struct report_path){.member = member, .path = path};
}

uint8_t report_path(const struct report *m, uint32_t member) {
	int low = 0, high = m->n_paths;
	while (low < high) {
		int mid = (low + high) / 2;
		if (m->paths[mid].member == member)
			return m->paths[mid].path;
		if (m->paths[mid].member < member)
			low = mid + 1;
		else
			high = mid;
	}
	return PATH_NONE;
}

bool report_same_process(uint64_t boot_a, uint64_t boot_b) {
	enum { APART_US = 1000 };
	return (boot_a > boot_b ? boot_a - boot_b : boot_b - boot_a) < APART_US;
}

void report_encode(const struct report *m, uint32_t version, struct rv_writer *w) {
	control_write_head(w, CONTROL_TAG_REPORT, version);
	layout_write(state, m, w);
	rv_write_u8(w, m->proven_round > m->round);
	layout_write(proof, m, w);
	layout_write(figures, m, w);
	candidates_write(m->candidates, m->n_candidates, w);
	probed_write(&m->probed, w);
	layout_write(lease, m, w);
	layout_write(commitment, &m->commitment, w);
	layout_write(signatures, m, w);
	layout_write(text, m, w);
	layout_write(audits, m, w);
	layout_write(heldout, m, w);
	layout_write(inner, &m->commitment, w);
	layout_write(receipts, m, w);
}

static bool path_is_valid(uint8_t path) {
	enum path_kind kind = path_kind_of(path);
	bool has_more = (path & PATH_MORE) != 0, may_have = kind >= PATH_DIALED && kind <= PATH_PUNCHED;
	return kind != PATH_NONE && kind < PATH_KINDS && (may_have || !has_more);
}

static enum rv_err check_paths(const struct report *m, struct rv_errtext *et) {
	for (int i = 0; i < m->n_paths; i++) {
		RV_TRY(control_check_next(i > 0 ? &m->paths[i - 1].member : NULL, m->paths[i].member, WHAT, "paths", et));
		if (!path_is_valid(m->paths[i].path))
			return rv_fail(et, RV_E_INVALID, "%s: path to %u = %u, must be 1..%d; 2..4 may have 16 and 32 added", WHAT,
						   m->paths[i].member, m->paths[i].path, (int)PATH_KINDS - 1);
	}
	return RV_OK;
}

static enum rv_err check_receipts(const struct report *m, struct rv_errtext *et) {
	for (int i = 0; i < m->n_receipts; i++) {
		RV_TRY(
			control_check_next(i > 0 ? &m->receipts[i - 1].member : NULL, m->receipts[i].member, WHAT, "receipts", et));
		if (m->receipts[i].band == 0)
			return rv_fail(et, RV_E_INVALID, "%s: receipts: the band of %u is 0, must be 1..255", WHAT,
						   m->receipts[i].member);
	}
	return RV_OK;
}

static enum rv_err check_suspects(const struct report *m, struct rv_errtext *et) {
	for (int i = 0; i < m->n_suspects; i++)
		if (m->suspects[i] >= NET_MAX_ROSTER || (i > 0 && m->suspects[i] <= m->suspects[i - 1]))
			return rv_fail(et, RV_E_INVALID, "%s: suspects[%d] = %u: must ascend and stay below %d", WHAT, i,
						   m->suspects[i], (int)NET_MAX_ROSTER);
	return RV_OK;
}

/* Returns NULL, or the fault in an owner's measurements. */
static const char *measured_invalid(const struct report *m) {
	if ((m->n_measured > 0 || m->stands_out > 0) && m->phase != WORKER_VOTED)
		return "measured without a vote";
	if (m->stands_out > m->n_chunks)
		return "the mean of a chunk stands out that there is not";
	if (!isfinite(m->mean2) || m->mean2 < 0)
		return "mean2 is negative or not finite";
	for (uint32_t i = 0; i < m->n_measured; i++) {
		const struct report_measured *p = &m->measured[i];
		if (!isfinite(p->norm2) || p->norm2 < 0 || !isfinite(p->dot))
			return "a measured norm is negative, or not finite, or a dot product is not finite";
		if (p->clipped > m->n_chunks)
			return "more chunks of a contribution were clipped than there are";
	}
	return NULL;
}

static enum rv_err check_lease(const struct report *m, struct rv_errtext *et) {
	const bool any = m->lease_first != 0 || m->lease_count != 0;
	if (any && (m->phase < WORKER_READY || m->lease_count == 0))
		return rv_fail(et, RV_E_INVALID, "%s: lease_first = %llu, lease_count = %u in phase %u", WHAT,
					   (unsigned long long)m->lease_first, m->lease_count, m->phase);
	if (m->lease_first > LEASE_MAX_POSITION - m->lease_count)
		return rv_fail(et, RV_E_INVALID, "%s: lease_first = %llu, lease_count = %u: past 2^62", WHAT,
					   (unsigned long long)m->lease_first, m->lease_count);
	return RV_OK;
}

/* Checks that the run's own codec is the first, each is named once, and no steps begin from an
 * inner state without an end. */
static enum rv_err check_commitment(const struct report *m, struct rv_errtext *et) {
	const struct commitment *c = &m->commitment;
	if (c->n > 0 && (m->phase < WORKER_READY || m->phase > WORKER_VOTED))
		return rv_fail(et, RV_E_INVALID, "%s: a commitment to a contribution in phase %u", WHAT, m->phase);
	if ((c->n == 0 && !rv_hash_is_zero(&c->inner_end)) ||
		(rv_hash_is_zero(&c->inner_end) && !rv_hash_is_zero(&c->inner_begin)))
		return rv_fail(et, RV_E_INVALID, "%s: an inner state without a contribution, or one that begins and has no end",
					   WHAT);
	for (int i = 0; i < c->n; i++)
		if ((i == 0) != (c->roots[i].codec == 0) || commitment_find(c, c->roots[i].codec) != &c->roots[i].root)
			return rv_fail(et, RV_E_INVALID, "%s: roots[%d] is for codec %u: 0 must be the first, each once", WHAT, i,
						   c->roots[i].codec);
	return RV_OK;
}

enum rv_err report_decode(const void *p, size_t n, struct report *out, struct rv_errtext *et) {
	*out = (struct report){0};
	struct rv_reader r = rv_reader_of(p, n);
	RV_TRY(control_read_head_spoken(&r, CONTROL_TAG_REPORT, WHAT, &out->version, et));
	RV_TRY(layout_read(state, &r, out, WHAT, et));
	out->proven_round = out->round + control_read_bool(&r);
	RV_TRY(layout_read(proof, &r, out, WHAT, et));
	RV_TRY(layout_read(figures, &r, out, WHAT, et));
	RV_TRY(candidates_read(&r, out->candidates, &out->n_candidates, WHAT, et));
	RV_TRY(probed_read(&r, &out->probed, et));
	RV_TRY(layout_read(lease, &r, out, WHAT, et));
	RV_TRY(layout_read(commitment, &r, &out->commitment, WHAT, et));
	RV_TRY(layout_read(signatures, &r, out, WHAT, et));
	RV_TRY(layout_read(text, &r, out, WHAT, et));
	RV_TRY(layout_read(audits, &r, out, WHAT, et));
	RV_TRY(layout_read(heldout, &r, out, WHAT, et));
	RV_TRY(layout_read(inner, &r, &out->commitment, WHAT, et));
	RV_TRY(layout_read(receipts, &r, out, WHAT, et));
	RV_TRY(control_read_end(&r, WHAT, et));
	if (out->phase < WORKER_SYNCING || out->phase > WORKER_LEAVING)
		return rv_fail(et, RV_E_INVALID, "%s: phase = %u, must be 1..%d", WHAT, out->phase, (int)WORKER_LEAVING);
	bool reducing = out->phase == WORKER_REDUCING || out->phase == WORKER_VOTED;
	if (reducing != (out->attempt != 0))
		return rv_fail(et, RV_E_INVALID, "%s: attempt = %u in phase %u", WHAT, out->attempt, out->phase);
	if (out->n_chunks < 1 || out->n_chunks > NET_MAX_CHUNKS)
		return rv_fail(et, RV_E_INVALID, "%s: n_chunks = %u, must be 1..%d", WHAT, out->n_chunks, (int)NET_MAX_CHUNKS);
	if (out->term > NET_MAX_TERM)
		return rv_fail(et, RV_E_INVALID, "%s: term = %llu, at most %d", WHAT, (unsigned long long)out->term,
					   (int)NET_MAX_TERM);
	if (out->storage > (REPORT_STORAGE_KINDS | REPORT_STORAGE_FULL) || out->storage == REPORT_STORAGE_FULL)
		return rv_fail(et, RV_E_INVALID, "%s: storage = %u, which is no set of things that cannot be stored", WHAT,
					   out->storage);
	RV_TRY(check_paths(out, et));
	RV_TRY(check_suspects(out, et));
	RV_TRY(check_receipts(out, et));
	enum rv_err e = candidates_check(out->candidates, out->n_candidates, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "%s", WHAT);
	if (!isfinite(out->loss) || !isfinite(out->tokens_per_s) || !isfinite(out->heldout_loss))
		return rv_fail(et, RV_E_INVALID, "%s: loss, tokens_per_s or heldout_loss is not finite", WHAT);
	if (out->relay > NET_MAX_RELAYS)
		return rv_fail(et, RV_E_INVALID, "%s: relay = %u, at most %d", WHAT, out->relay, (int)NET_MAX_RELAYS);
	if (out->reach >= REACH_KINDS)
		return rv_fail(et, RV_E_INVALID, "%s: reach = %u, must be below %d", WHAT, out->reach, (int)REACH_KINDS);
	RV_TRY(check_lease(out, et));
	RV_TRY(check_commitment(out, et));
	e = audit_results_check(out->verdicts, out->n_verdicts, et);
	if (e == RV_OK)
		e = score_results_check(out->scores, out->n_scores, et);
	if (e != RV_OK)
		return rv_fail_context(et, e, "%s", WHAT);
	const char *why = measured_invalid(out);
	if (why != NULL)
		return rv_fail(et, RV_E_INVALID, "%s: %s", WHAT, why);
	return RV_OK;
}
