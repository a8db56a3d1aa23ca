/* signed_roots.h: a member's signatures of the roots that it has committed to.
 *
 * A report carries them beside its commitment, and a document of a roster those of the receiver's
 * row. The signed text (net/seal.h, SEAL_CONTRIBUTION) names the run, the term, the round, the
 * process (report.boot) and the codec, and no attempt: a contribution is the same in all of them.
 * The key names the member. A process that makes its contribution again counts its boot up first:
 * so two roots of one scope are proof. */
#ifndef RV_NET_CONTROL_SIGNED_ROOTS_H
#define RV_NET_CONTROL_SIGNED_ROOTS_H

#include "net/control/control.h"

/* Signs each root of the report's commitment: some 25 us each. */
void report_sign(struct report *m, const uint8_t run_id[NET_RUN_ID_BYTES], const struct seal_ops *ops);
/* Returns RV_E_INVALID if `key` has not signed one of them. */
enum rv_err report_check_signed(const struct report *m, const uint8_t run_id[NET_RUN_ID_BYTES],
								const uint8_t key[NET_KEY_BYTES], const struct seal_ops *ops, struct rv_errtext *et);
/* Returns what the root at an index of the report's commitment is signed for, and its seal. */
struct seal_scope report_scope(const struct report *m, const uint8_t run_id[NET_RUN_ID_BYTES], int index);
struct seal report_seal(const struct report *m, int index);

/* Returns what a participant's root in a document is signed for. */
struct seal_scope document_scope(const struct document *d, const struct member_ref *participant);

#endif
