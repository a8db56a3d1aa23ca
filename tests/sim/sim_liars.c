/* sim_liars.c: members that hold others up, or lie to them: what they let out of an honest
 * all-reduce, and how they change it. */
#include "sim.h"

#include "base/assert.h"
#include "net/control/signed_roots.h"

#include <stdlib.h>
#include <string.h>

/* ---- the means of an owner that gives each peer others ---- */

static bool lies_to(const struct sim *s, const struct reduce_msg *m, int to) {
	switch (s->withheld) {
	case WITHHELD_LIKENESS:
		return true;
	case WITHHELD_COLUMN_LIKENESS:
		return m->column;
	case WITHHELD_LIKENESS_OF_ONE:
		return to <= 1; /* 0 or 1 is the liar itself */
	default:
		return false;
	}
}

/* Its last value is another one for each peer. */
static const uint8_t *another_mean(const struct sim *s, const uint8_t *mean, size_t n, int to) {
	uint8_t *bytes = (uint8_t *)s->scratch;
	memcpy(bytes, mean, n);
	bytes[n - 1] = (uint8_t)(1 + to);
	return bytes;
}

/* Returns the row whose member is the final owner of a chunk (net/reduce/grid.h). */
static int final_row(const struct document *d, uint32_t chunk) {
	int alive[NET_MAX_ROWS], n = 0;
	for (int row = 0; row < d->n_rows; row++)
		if (d->row_weights[row] > 0)
			alive[n++] = row;
	RV_ASSERT(n > 0);
	const int row = (int)(chunk % d->n_rows);
	return d->row_weights[row] > 0 ? row : alive[chunk / d->n_rows % (uint32_t)n];
}

/* Returns true if this worker's seal of the row, or of the column, is over the chunk. */
static bool seals(const struct sim_worker *w, const struct document *d, const struct reduce_msg *m, uint32_t chunk) {
	const int self = document_find(d, w->member);
	bool own = false;
	for (int i = 0; i < d->n_ranges; i++)
		own = own || (d->ranges[i].owner == self && chunk - d->ranges[i].first < d->ranges[i].count &&
					  (!m->column || d->ranges[i].first == m->section));
	return own && (!m->column || final_row(d, chunk) == d->row);
}

/* Signs what `to` gets. */
static void seal_again(struct sim_worker *w, struct reduce_msg *m, int to) {
	const struct sim *s = w->sim;
	const struct document *d = round_document(w->core);
	const struct codec *codec = s->global_config.codec;
	struct merkle_sum sum = {.n = 0};
	if (d->round != m->round || d->attempt != m->attempt)
		return;
	for (uint32_t c = 0; c < w->chunks.n_chunks; c++) {
		const size_t n = codec->encoded_bytes(codec, chunking_len(&w->chunks, c));
		const uint8_t *mean = w->reduced + chunking_offset_bytes(&w->chunks, codec, c);
		if (!seals(w, d, m, c))
			continue;
		const struct rv_hash leaf = merkle_leaf(c, another_mean(s, mean, n, to), n);
		merkle_add(&sum, &leaf);
	}
	const struct seal_ops ops = sim_seals(&s->identities[w->host].id);
	struct seal_scope scope = {.roster = d->roster_hash,
							   .term = d->term,
							   .round = d->round,
							   .attempt = d->attempt,
							   .kind = m->column ? SEAL_COLUMN : SEAL_ROW,
							   .first = m->column       ? m->section
										: d->n_rows > 1 ? d->row
														: 0};
	memcpy(scope.run_id, d->run_id, sizeof scope.run_id);
	struct seal seal;
	const struct rv_hash root = merkle_sum_root(&sum);
	ops.sign(ops.ctx, &scope, &root, &seal);
	memcpy(w->false_seal, seal.root.b, RV_HASH_BYTES);
	memcpy(w->false_seal + RV_HASH_BYTES, seal.signature, NET_SIG_BYTES);
	m->data = w->false_seal;
}

/* Sends others than one owner what it has committed to, and that one something else. */
static void falsify_own(const struct sim *s, struct reduce_msg *m, int to) {
	if (to > 1 || m->type != REDUCE_SCATTER || m->column)
		return;
	uint8_t *bytes = (uint8_t *)s->scratch;
	memcpy(bytes, m->data, m->data_bytes);
	bytes[m->data_bytes - 1] ^= 1;
	m->data = bytes;
}

static void falsify(struct sim_worker *w, struct reduce_msg *m, int to) {
	if (w->sim->withheld == FALSE_CONTRIBUTION)
		falsify_own(w->sim, m, to);
	if (w->sim->withheld == FALSE_SEAL && m->type == REDUCE_SEAL && to <= 1) {
		memcpy(w->false_seal, m->data, SEAL_BYTES);
		w->false_seal[RV_HASH_BYTES] ^= 1;
		m->data = w->false_seal;
	}
	if (!lies_to(w->sim, m, to))
		return;
	if (m->type == REDUCE_GATHER)
		m->data = another_mean(w->sim, m->data, m->data_bytes, to);
	else if (m->type == REDUCE_SEAL)
		seal_again(w, m, to);
}

/* ---- what is kept back ---- */

static bool is_withheld(const struct sim_worker *w, const struct reduce_msg *m, int to) {
	if (w->host != w->sim->withholder)
		return (m->type == REDUCE_SCATTER || m->type == REDUCE_GATHER) &&
			   (plots_withhold(w, to) || again_withholds(w, to));
	switch (w->sim->withheld) {
	case WITHHELD_CONTRIBUTIONS:
		return m->type == REDUCE_SCATTER;
	case WITHHELD_MEANS:
		return m->type == REDUCE_GATHER;
	case WITHHELD_FROM_ONE:
		return m->type == REDUCE_SCATTER && !m->column && to == (grid_member(w->reduce, 0) == w->member);
	case WITHHELD_SUMS:
		return m->type == REDUCE_SCATTER && m->column;
	case WITHHELD_COLUMN_MEANS:
		return m->type == REDUCE_GATHER && m->column;
	default:
		return false;
	}
}

static bool pull(struct sim_worker *w, int index, bool bulk, struct reduce_msg *m) {
	int64_t now_us = w->sim->now_us;
	return bulk ? grid_send(w->reduce, now_us, index, m) : grid_send_control(w->reduce, now_us, index, m);
}

/* One that drips gives a chunk, to whom it may be, when others are about to lose patience. */
static bool drip(struct sim_worker *w, int index, bool bulk, struct reduce_msg *m) {
	enum { EVERY_US = 1900 * SIM_MS }; /* three quarters of silence_us (sim_peers.c) */
	struct sim *s = w->sim;
	const bool any = pull(w, index, bulk && s->now_us >= s->next_drip_us, m);
	if (any && (m->type == REDUCE_SCATTER || m->type == REDUCE_GATHER))
		s->next_drip_us = s->now_us + EVERY_US;
	if (any && m->type == REDUCE_PING)
		m->waiting = 1;
	return any;
}

bool liars_pull(struct sim_worker *w, int index, bool bulk, struct reduce_msg *m) {
	const struct sim *s = w->sim;
	if (w->host == s->withholder && s->withheld == WITHHELD_DRIP)
		return drip(w, index, bulk, m);
	bool any = pull(w, index, bulk, m);
	if (w->host != s->withholder && !plots_withhold(w, index) && !again_withholds(w, index))
		return any;
	while (any && is_withheld(w, m, index))
		any = pull(w, index, bulk, m);
	if (any && m->type == REDUCE_PING)
		m->waiting = 1;
	if (any && w->host == s->withholder)
		falsify(w, m, index);
	return any;
}

/* ---- evidence ---- */

/* As worker/session/evidence.c. */
void liars_show(struct sim *s, int host) {
	enum { EVERY_US = SIM_S / 2 };
	struct sim_worker *w = &s->workers[host];
	const struct document *d = round_document(w->core);
	struct evidence e;
	if (d == NULL || w->reduce == NULL || s->now_us < w->evidence_us || w->reduce_round != d->round)
		return;
	const bool asked = document_asks(d, w->member) && w->reduce_attempt == d->attempt;
	if (!grid_show(w->reduce, &e) || (!asked && !e.has_proof))
		return;
	if (!asked)
		e.n_means = e.n_seals = 0;
	if (host == s->withholder && s->withheld == WITHHELD_EVIDENCE)
		return;
	if (host == s->withholder && s->withheld == FALSE_EVIDENCE)
		e.seals[0].seal.signature[0] ^= 1;
	const size_t cap = evidence_max_bytes(e.n_means);
	uint8_t *body = sim_alloc(cap);
	struct rv_writer out = rv_writer_of(body, cap);
	evidence_encode(&e, w->version, &out);
	RV_ASSERT(!out.failed);
	if (control_client_show(w->control, body, rv_writer_len(&out)))
		w->evidence_us = s->now_us + EVERY_US;
	free(body);
}

void liars_report(const struct sim *s, int host, struct report *rep) {
	if (host == s->withholder && s->withheld == TWO_ROOTS && rep->phase > WORKER_READY && rep->commitment.n > 0)
		rep->commitment.roots[0].root.b[0] ^= 1;
	if (host == s->withholder && (s->withheld == WITHHELD_EVIDENCE || s->withheld == FALSE_EVIDENCE) &&
		rep->phase == WORKER_VOTED)
		rep->digest.b[0] ^= 1;
}

void liars_sign(const struct sim *s, int host, struct report *rep) {
	const struct seal_ops ops = sim_seals(&s->identities[host].id);
	report_sign(rep, s->run_id, &ops);
	if (host == s->withholder && s->withheld == FALSE_ROOT && rep->commitment.n > 0)
		rep->signatures[0][0] ^= 1;
}

bool liars_forge(const struct sim *s, int host) {
	return (host == s->withholder || host == s->was_withholder) && s->withheld == FALSE_ROOT;
}

bool liars_lie(const struct sim *s, int host) {
	return (host == s->withholder || host == s->was_withholder) && s->withheld != WITHHELD_CONTRIBUTIONS &&
		   s->withheld != WITHHELD_FROM_ONE && s->withheld != WITHHELD_MEANS && s->withheld != WITHHELD_SUMS &&
		   s->withheld != WITHHELD_COLUMN_MEANS;
}

int liars_equivocator(const struct sim *s) {
	return s->withholder != SIM_NOBODY ? s->withholder : s->was_withholder;
}

bool liars_equivocate(const struct sim *s) {
	const bool likeness = s->withheld == WITHHELD_LIKENESS || s->withheld == WITHHELD_COLUMN_LIKENESS ||
						  s->withheld == WITHHELD_LIKENESS_OF_ONE;
	return likeness && liars_equivocator(s) != SIM_NOBODY;
}

void oracle_names(struct sim *s, const struct core_event *ev) {
	const bool two_roots = ev->type == CORE_EVENT_TWO_ROOTS, proven = ev->type == CORE_EVENT_EQUIVOCATED || two_roots;
	if (!proven && ev->type != CORE_EVENT_FALSE_VOTE)
		return;
	const int host = oracle_host_of(s, ev->member);
	const bool false_vote = ev->type == CORE_EVENT_FALSE_VOTE && host != SIM_NOBODY && lies_vote(s, host);
	sim_say(s, SIM_COORDINATOR, "member %u is named in round %llu: %s", ev->member, (unsigned long long)ev->round,
			two_roots ? "it signed two contributions"
			: proven  ? "it signed two lists of means"
					  : "it voted for what it did not get");
	if (host == SIM_NOBODY || !(liars_lie(s, host) || false_vote || (two_roots && lies_at(s, host)))) {
		sim_fail(s, "honest member %u is named as a culprit (event %u)", ev->member, ev->type);
		return;
	}
	if (!proven)
		return;
	s->banned[host] = true;
	oracle_bans(s);
}
