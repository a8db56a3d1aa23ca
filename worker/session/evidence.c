/* evidence.c: shows the coordinator what this worker got, where votes differ or a member has signed
 * twice; and checks proofs in documents, and that audits are drawn as it was promised. */
#include "worker/session/internal.h"

#include "base/assert.h"
#include "base/round_number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	EVERY_US = 2000000,
	SUMS_EVERY_US = 250000, /* four a second are taken */
	TWO_ROOTS_TIMES = 5     /* the operator may have readmitted that member */
};

static bool post(struct session *s, const struct evidence *e) {
	const size_t cap = evidence_max_bytes(e->n_means) + SHOWN_SUMS_MAX_BYTES;
	uint8_t *body = malloc(cap);
	if (!body)
		return false; /* again soon */
	struct rv_writer w = rv_writer_of(body, cap);
	evidence_encode(e, CONTROL_VERSION, &w);
	RV_ASSERT(!w.failed);
	const bool shown = control_client_show(s->control, body, rv_writer_len(&w));
	free(body);
	return shown;
}

static bool show(struct session *s, const struct evidence *e) {
	const bool shown = post(s, e);
	if (shown)
		rv_event(s->events, RV_WARN, "evidence", RV_FIELDS(rv_field_int("round", (int64_t)e->round)),
				 "round %" PRIu64 ": votes differ, or are few: this worker shows what it got (%u hashes)",
				 round_number(e->round), e->n_means);
	return shown;
}

/* Shows the sums of a committed round that the document asks for, one chunk at a time, in turn: an
 * order that was carried out is not in the next document. */
static void show_sums(struct session *s, int64_t now_us, const struct document *d) {
	struct evidence *e = d->n_audits > 0 && s->audit.sums && now_us >= s->audit.sums_us ? calloc(1, sizeof *e) : NULL;
	bool wait = true;
	for (int i = 0; e && i < d->n_audits && !e->has_sums; i++) {
		const struct audit_order *o = &d->audits[(s->audit.turn + i) % d->n_audits];
		if (o->kind != AUDIT_SHOW || !kept_sums_shown(s->audit.sums, o->round, o->attempt, o->chunk, &e->sums))
			continue;
		e->term = d->term;
		e->round = d->round;
		e->has_sums = true;
		wait = post(s, e); /* else its client is busy: soon again */
		s->audit.turn = (s->audit.turn + i + wait) % NET_MAX_AUDITS;
	}
	if (e && wait)
		s->audit.sums_us = now_us + SUMS_EVERY_US;
	free(e);
}

/* Shows that a participant has signed two contributions, as far as it is not banned yet. */
static void show_two_roots(struct session *s, int64_t now_us, const struct document *d) {
	struct evidence e = {.term = d->term, .round = d->round, .attempt = d->attempt};
	e.has_proof = round_two_roots(session_round(s), &e.proof);
	const bool shows = e.has_proof && s->two_roots_shown < TWO_ROOTS_TIMES && !banned_has(&d->banned, e.proof.member);
	if (!shows || !post(s, &e))
		return;
	s->two_roots_shown++;
	s->evidence_us = now_us + EVERY_US;
	rv_event(s->events, RV_WARN, "evidence", RV_FIELDS(rv_field_int("round", (int64_t)e.proof.scope.round)),
			 "round %" PRIu64 ": member %u signed two different contributions: this worker shows both signatures",
			 round_number(e.proof.scope.round), e.proof.member);
}

void session_turn_evidence(struct session *s, int64_t now_us) {
	const struct document *d = round_document(session_round(s));
	struct evidence e;
	if (d)
		show_sums(s, now_us, d);
	if (d && now_us >= s->evidence_us)
		show_two_roots(s, now_us, d);
	if (!d || now_us < s->evidence_us || !allreduce_running(s->reduce) || allreduce_round(s->reduce) != d->round)
		return;
	const bool asked = document_asks(d, s->member.member) && allreduce_attempt(s->reduce) == d->attempt;
	if (!allreduce_show(s->reduce, &e) || (!asked && !e.has_proof))
		return;
	if (!asked)
		e.n_means = e.n_seals = 0;
	if (show(s, &e))
		s->evidence_us = now_us + EVERY_US;
}

void session_check_proofs(struct session *s, const struct document *d) {
	const struct seal_ops ops = seal_ed25519(NULL);
	for (int i = 0; i < d->n_proofs; i++) {
		const struct equivocation *e = &d->proofs[i];
		bool known = false;
		for (int k = 0; k < s->n_proofs; k++)
			known = known || rv_hash_equal(&s->proofs[k], &e->seals[0].root);
		if (known)
			continue;
		memmove(&s->proofs[1], &s->proofs[0], (NET_MAX_PROOFS - 1) * sizeof s->proofs[0]);
		s->proofs[0] = e->seals[0].root;
		s->n_proofs += s->n_proofs < NET_MAX_PROOFS;
		const bool holds = equivocation_proves(e, &ops);
		const char *what = e->scope.kind == SEAL_CONTRIBUTION ? "contributions" : "averages";
		rv_event(s->events, holds ? RV_WARN : RV_ERROR, "proof",
				 RV_FIELDS(rv_field_int("member", e->member), rv_field_int("round", (int64_t)e->scope.round),
						   rv_field_bool("holds", holds)),
				 holds ? "member %u signed two different %s in round %" PRIu64 ": this worker has checked both "
						 "signatures; it is banned"
					   : "the coordinator says that member %u signed two different %s in round %" PRIu64
						 ", and the signatures do not prove it",
				 e->member, what, round_number(e->scope.round));
	}
}

/* Says that a round's audits may look at whom the coordinator likes; `how`: what it did. */
static void name_draw(struct session *s, uint64_t round, const char *how) {
	rv_event(s->events, RV_ERROR, "audit_draw", RV_FIELDS(rv_field_int("round", (int64_t)round)),
			 "the coordinator %s of the audits of round %" PRIu64 ": it may have chosen whom they look at", how,
			 round_number(round));
}

/* Names, once, a round whose roster has come without a promise. */
static void name_unpromised(struct session *s, const struct document *d) {
	if (!run_config_keeps_contributions(&s->member.config) || d->phase != RUN_REDUCE ||
		s->promise.unmade == d->round + 1)
		return;
	s->promise.unmade = d->round + 1;
	name_draw(s, d->round, "promised no secret for the draw");
}

void session_check_promise(struct session *s, const struct document *d) {
	const bool promises = !rv_hash_is_zero(&d->audit_promise);
	const bool knows = s->promise.term == d->term && !rv_hash_is_zero(&s->promise.of);
	const bool now = s->promise.round == d->round, before = s->promise.round + 1 == d->round;
	const struct rv_hash shown = audit_promise_of(&d->audit_secret);
	if (knows && ((now && promises && !rv_hash_equal(&s->promise.of, &d->audit_promise)) ||
				  (before && !rv_hash_equal(&s->promise.of, &shown))))
		name_draw(s, s->promise.round, "does not show the secret that it had promised for the draw");
	if (!promises) {
		name_unpromised(s, d);
		if (before)
			s->promise.of = (struct rv_hash){{0}};
		return;
	}
	s->promise.term = d->term;
	s->promise.round = d->round;
	s->promise.of = d->audit_promise;
}
