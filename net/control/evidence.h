/* evidence.h: what a member shows the coordinator when votes differ, or for an audit: POST
 * /v1/evidence (docs/protocol.md, coordinator/core/disputes.c). */
#ifndef RV_NET_CONTROL_EVIDENCE_H
#define RV_NET_CONTROL_EVIDENCE_H

#include "base/bytes.h"
#include "net/control/shown_sums.h"
#include "net/seal.h"

struct evidence {
	uint32_t version; /* decoded: that of its encoding */
	uint64_t term, round;
	uint32_t attempt;
	/* Two seals of one owner, which need no more; has_proof false: it holds none. */
	bool has_proof;
	struct equivocation proof;
	/* The seals with which it got the means, its own among them; and the leaf of each mean, that it
	 * voted for. n_means 0: it has not voted, and shows a proof only. */
	uint16_t n_seals;
	struct owner_seal seals[NET_MAX_SEALS];
	uint32_t n_means;
	const struct rv_hash *means; /* decoded: borrows from the message */
	/* Sums of a committed round, for an audit. has_sums false: none. */
	bool has_sums;
	struct shown_sums sums;
};
/* Returns the bytes of a message with that many means at most, without sums (SHOWN_SUMS_MAX_BYTES
 * more). */
size_t evidence_max_bytes(uint32_t n_means);
void evidence_encode(const struct evidence *m, uint32_t version, struct rv_writer *w);
/* RV_E_INVALID, RV_E_PROTOCOL: as the decoders of control.h. `run_id` becomes that of the proof. */
enum rv_err evidence_decode(const void *p, size_t n, const uint8_t run_id[NET_RUN_ID_BYTES], struct evidence *out,
							struct rv_errtext *et);

#endif
