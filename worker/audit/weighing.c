/* weighing.c: see weighing.h. */
#include "worker/audit/weighing.h"

#include "base/assert.h"
#include "base/merkle.h"
#include "base/round_number.h"
#include "worker/audit/gather.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DOUBT_ERRORS = 2 };

enum rv_err weighing_check_run(const struct run_config *run, struct rv_errtext *et) {
	if (!run_config_keeps_contributions(run))
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "members of this run keep no contributions, as it audits nothing (audit-chunks and "
					   "audit-training are 0); `rivulet replay --without MEMBER` measures from all workers' "
					   "directories");
	if (run->mean_feedback > 0)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "with mean-feedback a mean depends on earlier ones, and cannot be made again without a member");
	if (run->merge == MERGE_centered)
		return rv_fail(et, RV_E_UNSUPPORTED,
					   "with merge = centered a mean depends on the one before, and members cannot check it: use "
					   "`rivulet replay --without MEMBER` on all workers' directories");
	return RV_OK;
}

enum rv_err weighing_merge(const struct global_config *g, const struct auditor_case *c, uint32_t left_out,
						   uint8_t *mean, struct rv_errtext *et) {
	const struct chunking chunks = global_round_chunks(g, c->roster->round);
	const size_t values = chunking_len(&chunks, c->chunk);
	struct merge_rule rule = global_merge(g);
	const struct codec *codecs[NET_MAX_ROW];
	const uint8_t *data[NET_MAX_ROW];
	uint32_t weights[NET_MAX_ROW];
	int n = 0;
	for (int i = 0; i < c->n; i++) {
		if (c->members[i]->member == left_out)
			continue;
		codecs[n] = global_sent_as(g, c->members[i]->codec);
		weights[n] = c->members[i]->weight;
		data[n++] = c->data[i];
	}
	if (n == 0)
		return rv_fail(et, RV_E_NOTFOUND, "nobody else has contributed to chunk %u of round %" PRIu64, c->chunk,
					   round_number(c->roster->round));
	rule.codecs = codecs;
	float *scratch = malloc(merge_scratch(&rule, values, n) * sizeof *scratch);
	if (!scratch)
		return rv_fail(et, RV_E_NOMEM, "no memory to merge a chunk of %d contributions", n);
	const enum rv_err e = merge_chunk(&rule, data, weights, n, values, scratch, NULL, mean, NULL, et);
	free(scratch);
	return e;
}

enum rv_err weighing_take(const struct weighing *w, const struct auditor_case *c, struct rv_errtext *et) {
	const struct chunking chunks = global_round_chunks(w->g, w->round);
	const size_t bytes = w->g->codec->encoded_bytes(w->g->codec, chunking_len(&chunks, c->chunk));
	uint8_t *mean = w->without + chunking_offset_bytes(&chunks, w->g->codec, c->chunk);
	RV_ASSERT(c->roster->round == w->round);
	RV_TRY(weighing_merge(w->g, c, NET_NO_MEMBER, mean, et));
	const struct rv_hash leaf = merkle_leaf(c->chunk, mean, bytes);
	if (!rv_hash_equal(&leaf, &w->leaves[c->chunk]))
		return rv_fail(et, RV_E_CORRUPT,
					   "the committed average of chunk %u of round %" PRIu64
					   " is not that of what members sent: its owner lied, or its memory is bad; the run's audits of "
					   "averages find out who",
					   c->chunk, round_number(w->round));
	return weighing_merge(w->g, c, w->member, mean, et);
}

static void copy_state(const struct global_state *from, struct global_state *to) {
	const size_t bytes = from->cfg.n * sizeof(float);
	memcpy(to->theta, from->theta, bytes);
	for (int k = 0; k < global_states(&from->cfg); k++)
		memcpy(to->state[k], from->state[k], bytes);
	to->round = from->round;
	to->chain = from->chain;
}

enum rv_err weighing_step(struct global_state *g, struct global_state *spare, const uint8_t *committed,
						  const struct rv_hash *digest, const uint8_t *without, struct rv_errtext *et) {
	const struct rv_hash other = global_digest(g, g->round, without);
	copy_state(g, spare);
	RV_TRY(global_apply(spare, without, &other, et));
	return global_apply(g, committed, digest, et);
}

struct weighed weighing_compare(const double *with, const double *without, uint64_t n) {
	struct weighed w = {.sequences = n};
	double squares = 0;
	RV_ASSERT(n >= 2);
	for (uint64_t i = 0; i < n; i++) {
		w.with += with[i] / (double)n;
		w.without += without[i] / (double)n;
		w.difference += (with[i] - without[i]) / (double)n;
	}
	for (uint64_t i = 0; i < n; i++) {
		const double off = with[i] - without[i] - w.difference;
		squares += off * off;
	}
	w.error = sqrt(squares / (double)(n - 1) / (double)n);
	const double least = fmax(DOUBT_ERRORS * w.error, WEIGHING_LEAST_SHARE * w.with);
	if (w.difference > least)
		w.verdict = WEIGHING_BETTER_WITHOUT;
	else if (w.difference < -least)
		w.verdict = WEIGHING_BETTER_WITH;
	return w;
}

const char *weighing_verdict_name(enum weighing_verdict v) {
	static const char *const names[] = {"no difference", "better with", "better without"};
	return names[v];
}

size_t weighing_bytes(const struct global_config *g, int rounds, int n) {
	const size_t vectors = 2 * (1 + (size_t)global_states(g)) + 1;
	return vectors * g->n * sizeof(float) + 2 * (size_t)rounds * global_max_payload_bytes(g) + gather_bytes(n);
}
