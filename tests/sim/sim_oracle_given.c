/* sim_oracle_given.c: commits over an owner that gives each peer another mean (--liars), and what
 * is promised then.
 *
 * Two honest participants that have shown what they got prove the lie, and nothing is committed.
 * But where one alone can vote, its list stands under the seals of all owners, and nobody has
 * another one to hold against it (docs/security.md): that is a lie of an owner, which audits find.
 * So a commit may differ from the mean only
 *
 * - in chunks that the liar made, or passed on to its row, and only as it lies;
 * - by a list that an honest participant got and voted for;
 * - if no honest participant has shown another one.
 *
 * All members go on from it, and end with the same state. */
#include "sim.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/* Keeps what the host votes for, as its report says it. */
void given_vote(struct sim *s, int host, const struct report *rep) {
	const struct sim_worker *w = &s->workers[host];
	struct sim_given *g = &s->oracle.given[host];
	const bool known = g->bytes != NULL && g->round == rep->round && g->attempt == rep->attempt;
	if (!liars_equivocate(s) || lies_at(s, host) || rep->phase != WORKER_VOTED || rep->term != s->oracle.term || known)
		return;
	if (w->reduce_round != rep->round || w->reduce_attempt != rep->attempt || rep->round != s->oracle.n_committed)
		return;
	const struct rv_hash digest = global_digest(&s->oracle.global, rep->round, w->reduced);
	if (!rv_hash_equal(&digest, &rep->digest))
		return; /* it has begun another attempt since */
	if (g->bytes == NULL)
		g->bytes = sim_alloc(s->max_payload);
	memcpy(g->bytes, w->reduced, sim_payload(s, rep->round));
	g->round = rep->round;
	g->attempt = rep->attempt;
	g->digest = digest;
	g->shown = false;
}

void given_shown(struct sim *s, int host, const struct evidence *e) {
	struct sim_given *g = &s->oracle.given[host];
	if (e->n_means > 0 && g->bytes != NULL && g->round == e->round && g->attempt == e->attempt)
		g->shown = true;
}

bool given_was_voted(const struct sim *s, int host, const struct core_event *ev) {
	const struct sim_given *g = &s->oracle.given[host];
	return g->bytes != NULL && g->round == ev->round && g->attempt == ev->attempt;
}

void given_release(struct sim *s) {
	for (int h = 0; h < SIM_ORDINARY; h++)
		free(s->oracle.given[h].bytes);
}

static bool is_of(const struct sim_given *g, const struct sim_roster *r) {
	return g->bytes != NULL && g->round == r->round && g->attempt == r->attempt;
}

/* Returns true if the liar encoded the chunk, or gave its mean to the host's row. */
static bool had_hands_on(const struct sim *s, const struct sim_roster *r, int host, uint32_t chunk) {
	const int liar = liars_equivocator(s);
	return roster_encoder(s, r, chunk) == liar || roster_row_owner(s, r, host, chunk) == liar;
}

/* Complains of what differs otherwise than the liar lies: in the last byte of its chunks. */
static void check_lies(struct sim *s, const struct sim_roster *r, int host, const uint8_t *mean) {
	const struct chunking chunks = global_round_chunks(&s->global_config, r->round);
	const uint8_t *got = s->oracle.given[host].bytes;
	for (uint32_t c = 0; c < chunks.n_chunks && !s->failed; c++) {
		const size_t at = chunking_offset_bytes(&chunks, s->opt.codec, c),
					 n = s->opt.codec->encoded_bytes(s->opt.codec, chunking_len(&chunks, c));
		if (memcmp(got + at, mean + at, n) == 0)
			continue;
		if (!had_hands_on(s, r, host, c))
			sim_fail(s,
					 "round %llu attempt %u: chunk %u is committed with another mean than its own, and w%d had no "
					 "hands on it",
					 (unsigned long long)r->round, r->attempt, c, liars_equivocator(s));
		else if (memcmp(got + at, mean + at, n - 1) != 0)
			sim_fail(s, "round %llu attempt %u: chunk %u is committed as w%d did not lie about it",
					 (unsigned long long)r->round, r->attempt, c, liars_equivocator(s));
	}
}

static void check_others(struct sim *s, const struct sim_roster *r, const struct rv_hash *digest) {
	for (int i = 0; i < r->n && !s->failed; i++) {
		const int host = oracle_host_of(s, r->of[i].member);
		const struct sim_given *g = host != SIM_NOBODY && host < SIM_ORDINARY ? &s->oracle.given[host] : NULL;
		if (g != NULL && is_of(g, r) && g->shown && !rv_hash_equal(&g->digest, digest))
			sim_fail(s, "round %llu attempt %u is committed with a false mean, and w%d has shown another one",
					 (unsigned long long)r->round, r->attempt, host);
	}
}

bool given_explains(struct sim *s, const struct sim_roster *r, const struct rv_hash *digest, uint8_t *mean) {
	for (int i = 0; liars_equivocate(s) && i < r->n; i++) {
		const int host = oracle_host_of(s, r->of[i].member);
		if (host == SIM_NOBODY || host >= SIM_ORDINARY || !is_of(&s->oracle.given[host], r) ||
			!rv_hash_equal(&s->oracle.given[host].digest, digest))
			continue;
		check_lies(s, r, host, mean);
		check_others(s, r, digest);
		memcpy(mean, s->oracle.given[host].bytes, sim_payload(s, r->round));
		s->stats.false_means++;
		return true;
	}
	return false;
}
