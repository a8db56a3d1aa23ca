/* evidence.c: votes that differ, for the core and for people. */
#include "coordinator/service/internal.h"

#include "base/hex.h"
#include "base/round_number.h"

#include <inttypes.h>

size_t service_evidence_max_bytes(const struct service *s) {
	return evidence_max_bytes(s->most_chunks) + SHOWN_SUMS_MAX_BYTES;
}

enum rv_err service_evidence(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const void *body,
							 size_t n, struct rv_errtext *et) {
	struct evidence e;
	RV_TRY(service_fault(s, et));
	RV_TRY(evidence_decode(body, n, s->cfg.run_id, &e, et));
	RV_TRY(core_testify(s->core, now_us, key, &e, et));
	return service_pump(s, now_us, et);
}

bool service_tell_evidence(struct service *s, const struct core_event *ev) {
	switch (ev->type) {
	case CORE_EVENT_EQUIVOCATED:
		service_tell(
			s, RV_ERROR, "equivocated",
			"round %" PRIu64 ": member %u signed two different averages (chunk %u) and gave them to "
			"different members: it is banned (or, if as many are as can be, stays out of rosters for a while), and "
			"the attempt is made again without it; `status` has both signatures, if they cover the same chunks",
			round_number(ev->round), ev->member, ev->other);
		return true;
	case CORE_EVENT_TWO_ROOTS:
		service_tell(s, RV_ERROR, "two_roots",
					 "round %" PRIu64
					 ": member %u signed two different contributions to it (codec %u): both signatures are kept as "
					 "proof; it is banned",
					 round_number(ev->round), ev->member, ev->other);
		return true;
	case CORE_EVENT_FALSE_VOTE:
		service_tell(s, RV_ERROR, "false_vote",
					 "round %" PRIu64
					 ": member %u voted for an average that no owner gave it: its vote does not count, and "
					 "it stays out of rosters for a while; perhaps bad memory; if it continues, `ban` it",
					 round_number(ev->round), ev->member);
		return true;
	case CORE_EVENT_NO_EVIDENCE:
		service_tell(s, RV_WARN, "no_evidence",
					 "round %" PRIu64
					 ": member %u voted otherwise than others, or passed on an average that is in dispute, and did "
					 "not show in time what it got: its vote does not count, and it stays out of rosters for a while",
					 round_number(ev->round), ev->member);
		return true;
	default:
		return false;
	}
}

static json_t *seal_json(const struct seal *seal) {
	char root[2 * RV_HASH_BYTES + 1], signature[2 * NET_SIG_BYTES + 1];
	rv_hex_encode(seal->root.b, RV_HASH_BYTES, root);
	rv_hex_encode(seal->signature, NET_SIG_BYTES, signature);
	return json_pack("{s:s, s:s}", "root", root, "signature", signature);
}

json_t *service_proofs_json(const struct service *s) {
	struct equivocation proofs[NET_MAX_PROOFS];
	const int all = core_proofs(s->core, proofs);
	json_t *list = json_array();
	for (int i = all > NET_MAX_PROOFS ? all - NET_MAX_PROOFS : 0; i < all; i++) {
		const struct equivocation *e = &proofs[i % NET_MAX_PROOFS];
		const char *of = e->scope.kind == SEAL_CONTRIBUTION ? "contribution" : "average";
		char roster[2 * RV_HASH_BYTES + 1];
		rv_hex_encode(e->scope.roster.b, RV_HASH_BYTES, roster);
		json_t *proof = json_pack("{s:I, s:s, s:I, s:I, s:I, s:s, s:o, s:o}", "member", (json_int_t)e->member, "of", of,
								  "round", (json_int_t)e->scope.round, "attempt", (json_int_t)e->scope.attempt, "chunk",
								  (json_int_t)e->chunk, "roster", roster, "first", seal_json(&e->seals[0]), "second",
								  seal_json(&e->seals[1]));
		(void)json_array_append_new(list, proof);
	}
	return list;
}
