/* signed_roots.c: see signed_roots.h. */
#include "net/control/signed_roots.h"

#include "base/assert.h"
#include "base/round_number.h"

#include <string.h>

struct seal_scope report_scope(const struct report *m, const uint8_t run_id[NET_RUN_ID_BYTES], int index) {
	RV_ASSERT(index >= 0 && index < m->commitment.n);
	const struct contribution_of of = {
		.term = m->term, .round = m->round, .boot = m->boot, .codec = m->commitment.roots[index].codec};
	return seal_scope_of_contribution(run_id, &of);
}

struct seal report_seal(const struct report *m, int index) {
	RV_ASSERT(index >= 0 && index < m->commitment.n);
	struct seal seal = {.root = m->commitment.roots[index].root};
	memcpy(seal.signature, m->signatures[index], sizeof seal.signature);
	return seal;
}

void report_sign(struct report *m, const uint8_t run_id[NET_RUN_ID_BYTES], const struct seal_ops *ops) {
	for (int i = 0; i < m->commitment.n; i++) {
		const struct seal_scope scope = report_scope(m, run_id, i);
		struct seal seal;
		ops->sign(ops->ctx, &scope, &m->commitment.roots[i].root, &seal);
		memcpy(m->signatures[i], seal.signature, sizeof m->signatures[i]);
	}
}

enum rv_err report_check_signed(const struct report *m, const uint8_t run_id[NET_RUN_ID_BYTES],
								const uint8_t key[NET_KEY_BYTES], const struct seal_ops *ops, struct rv_errtext *et) {
	for (int i = 0; i < m->commitment.n; i++) {
		const struct seal_scope scope = report_scope(m, run_id, i);
		const struct seal seal = report_seal(m, i);
		if (!ops->verify(ops->ctx, key, &scope, &seal))
			return rv_fail(
				et, RV_E_INVALID,
				"report: the root of the contribution to round %llu (codec %u) is not signed by the sender's "
				"key for this run, term, round and process: the report does not count",
				(unsigned long long)round_number(m->round), m->commitment.roots[i].codec);
	}
	return RV_OK;
}

struct seal_scope document_scope(const struct document *d, const struct member_ref *participant) {
	const struct contribution_of of = {
		.term = d->term, .round = d->round, .boot = participant->boot, .codec = participant->codec};
	return seal_scope_of_contribution(d->run_id, &of);
}
