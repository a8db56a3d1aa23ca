/* report.c: reports the worker's phase to the coordinator: on a change, and every heartbeat. */
#include "worker/round/internal.h"

#include "base/assert.h"
#include "base/chain.h"

#include <string.h>

enum worker_phase round_phase(const struct round_core *c) {
	if (c->leaving || c->paused || c->reduce.persist_failed)
		return WORKER_LEAVING;
	if (round_is_entering(c))
		return WORKER_TRAINING;
	if (!c->has_doc || round_is_behind(c))
		return WORKER_SYNCING;
	if (round_has_vote(c))
		return WORKER_VOTED;
	if (round_roster_index(c) >= 0 && c->reduce.running && c->reduce.attempt == c->doc.attempt)
		return WORKER_REDUCING;
	return c->encoded ? WORKER_READY : c->spoiled ? WORKER_SYNCING : WORKER_TRAINING;
}

static void put_suspects(const struct round_core *c, struct report *r) {
	r->n_suspects = c->reduce.running ? c->reduce.suspects.n : 0;
	memcpy(r->suspects, c->reduce.suspects.places, r->n_suspects * sizeof r->suspects[0]);
}

static bool same_suspects(const struct report *a, const struct report *b) {
	return a->n_suspects == b->n_suspects &&
		   memcmp(a->suspects, b->suspects, a->n_suspects * sizeof a->suspects[0]) == 0;
}

static void fill(const struct round_core *c, struct report *r) {
	memset(r, 0, sizeof *r);
	r->boot = c->boot;
	r->term = c->cfg.term;
	r->phase = (uint8_t)round_phase(c);
	bool entering = round_is_entering(c);
	r->round = entering ? c->round + 1 : c->round;
	r->tokens = entering ? c->progress.ahead_tokens : c->progress.tokens;
	r->n_chunks = round_chunks(c, r->round);
	bool reducing = r->phase == WORKER_REDUCING, voted = r->phase == WORKER_VOTED;
	if (reducing || voted) {
		r->attempt = c->doc.attempt;
		put_suspects(c, r);
	}
	const bool has_contribution = r->phase == WORKER_READY || reducing || voted;
	if (c->cfg.step_sequences > 0 && has_contribution && c->progress.sequences > 0) {
		r->lease_first = c->progress.first;
		r->lease_count = (uint32_t)c->progress.sequences;
	}
	if (has_contribution && c->encoded)
		r->commitment = c->commitment;
	if (voted)
		r->digest = c->log.digest;
	if (r->phase != WORKER_SYNCING)
		r->chain = entering ? rv_chain_next(&c->chain, &c->log.digest) : c->chain;
	r->storage = c->cannot_store ? REPORT_STORAGE_ROUNDS : 0;
	round_proven(c, &r->proven_round, &r->proven_chain);
	r->needs_from = r->phase == WORKER_SYNCING ? round_needs_from(c) : 0;
	if (c->n_full > 0) {
		r->full_round = c->full[0].round;
		r->full_hash = c->full[0].hash;
	}
}

/* Returns true if the coordinator decides the same by both reports; tokens are not compared. */
static bool reports_the_same(const struct report *a, const struct report *b) {
	return a->phase == b->phase && a->round == b->round && a->attempt == b->attempt && same_suspects(a, b) &&
		   rv_hash_equal(&a->digest, &b->digest) && rv_hash_equal(&a->chain, &b->chain) &&
		   a->proven_round == b->proven_round && rv_hash_equal(&a->proven_chain, &b->proven_chain) &&
		   a->lease_first == b->lease_first && a->lease_count == b->lease_count && a->storage == b->storage &&
		   commitment_equal(&a->commitment, &b->commitment) && a->needs_from == b->needs_from &&
		   a->full_round == b->full_round && rv_hash_equal(&a->full_hash, &b->full_hash);
}

/* Returns the longest time between reports. Nobody waits for a paused worker: it needs only to be
 * found when the coordinator is another one. */
static int64_t heartbeat_us(const struct round_core *c) {
	enum { PAUSED_HEARTBEATS = 30 };
	return c->paused ? PAUSED_HEARTBEATS * c->cfg.heartbeat_us : c->cfg.heartbeat_us;
}

bool round_next_report(struct round_core *c, int64_t now_us, struct report *out) {
	if (c->next_term != 0)
		return false;
	fill(c, out);
	bool is_due = !c->has_sent || c->report_soon || now_us >= c->sent_us + heartbeat_us(c);
	if (!is_due && reports_the_same(out, &c->sent))
		return false;
	RV_ASSERT(out->phase != WORKER_VOTED || (c->log.held && c->log.own && out->attempt == c->log.attempt));
	RV_ASSERT(out->proven_round >= c->round && out->proven_round <= c->round + 1);
	RV_ASSERT(!c->has_sent || out->boot > c->sent.boot || out->round + 1 >= c->sent.round); /* `entering`, once */
	RV_ASSERT((out->phase == WORKER_VOTED || out->phase == WORKER_REDUCING) == (out->attempt > 0));
	RV_ASSERT(out->full_round <= out->proven_round);
	out->seq = ++c->seq;
	c->sent = *out;
	c->sent_us = now_us;
	c->has_sent = true;
	c->report_soon = false;
	return true;
}

/* Retries (of a failed PERSIST or FETCH) wait for the next heartbeat, so they add no deadline. */
int64_t round_deadline_us(const struct round_core *c) {
	return c->has_sent && !c->report_soon ? c->sent_us + heartbeat_us(c) : c->sent_us;
}

void round_report_soon(struct round_core *c) {
	c->report_soon = true;
}
