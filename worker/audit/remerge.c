/* remerge.c: see remerge.h. */
#include "worker/audit/remerge.h"

#include "base/assert.h"
#include "base/merkle.h"
#include "outer/merge_reach.h"
#include "worker/audit/weighing.h"

#include <stdlib.h>

/* What a case comes to: its values, and room for the result and for merging. */
struct room {
	size_t values;
	uint8_t *out;
	float *scratch;
};

static enum rv_err sum_row(const struct global_config *g, const struct auditor_case *c, const struct room *m) {
	struct merge_rule rule = global_merge(g);
	const struct codec *codecs[NET_MAX_ROW];
	uint32_t weights[NET_MAX_ROW];
	for (int i = 0; i < c->n; i++) {
		codecs[i] = global_sent_as(g, c->members[i]->codec);
		weights[i] = c->members[i]->weight;
	}
	rule.codecs = codecs;
	return merge_partial(&rule, c->data, weights, c->n, m->values, m->scratch, m->out, NULL, NULL);
}

static enum rv_err make(const struct global_config *g, const struct auditor_case *c, const struct room *m) {
	const struct merge_rule rule = global_merge(g);
	switch (c->kind) {
	case AUDIT_OF_SUM:
		return sum_row(g, c, m);
	case AUDIT_OF_MEAN:
		RV_ASSERT(c->n == c->roster->n_rows);
		return merge_join(&rule, c->data, c->roster->row_weights, c->n, m->values, m->scratch, NULL, m->out, NULL);
	default:
		return weighing_merge(g, c, NET_NO_MEMBER, m->out, NULL);
	}
}

enum rv_err remerge_leaf(const struct global_config *g, const struct auditor_case *c, struct rv_hash *out) {
	const struct chunking chunks = global_round_chunks(g, c->roster->round);
	const struct merge_rule rule = global_merge(g);
	struct room m = {.values = chunking_len(&chunks, c->chunk)};
	const size_t bytes =
		c->kind == AUDIT_OF_SUM ? merge_partial_bytes(m.values) : g->codec->encoded_bytes(g->codec, m.values);
	m.out = malloc(bytes);
	m.scratch = malloc(merge_scratch(&rule, m.values, c->n) * sizeof *m.scratch);
	const enum rv_err e = m.out && m.scratch ? make(g, c, &m) : RV_E_NOMEM;
	if (e == RV_OK)
		*out = merkle_leaf(c->chunk, m.out, bytes);
	free(m.out);
	free(m.scratch);
	return e;
}

bool remerge_is_beyond(const struct global_config *g, const struct auditor_case *c, const uint8_t *mean) {
	const struct chunking chunks = global_round_chunks(g, c->roster->round);
	const size_t values = chunking_len(&chunks, c->chunk);
	struct merge_rule rule = global_merge(g);
	const struct codec *codecs[NET_MAX_ROW];
	const uint8_t *data[NET_MAX_ROW];
	uint32_t weights[NET_MAX_ROW];
	struct merge_known k = {.in = data, .weights = weights};
	bool reaches = true;
	RV_ASSERT(c->kind == AUDIT_OF_AVERAGE);
	for (int i = 0; i < c->n; i++) {
		if (c->data[i] == NULL) {
			k.n_missing++;
			k.missing_weight += c->members[i]->weight;
			continue;
		}
		codecs[k.n_in] = global_sent_as(g, c->members[i]->codec);
		weights[k.n_in] = c->members[i]->weight;
		data[k.n_in++] = c->data[i];
	}
	rule.codecs = codecs;
	float *scratch = malloc(merge_reach_scratch(values) * sizeof *scratch);
	const bool found = scratch && merge_reaches(&rule, &k, mean, values, scratch, &reaches, NULL) == RV_OK;
	free(scratch);
	return found && !reaches;
}
