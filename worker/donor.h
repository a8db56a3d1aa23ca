/* donor.h: serves the state files to peers, piece by piece, when a link has nothing more urgent to carry.
 *
 * A joiner asks for parts of base-R and log-R; each FETCH is answered with one PIECE or one NONE, in order. What may
 * wait per peer is bounded: more is a breach of the protocol. One thread.
 */
#ifndef RV_WORKER_DONOR_H
#define RV_WORKER_DONOR_H

#include "net/peers.h"
#include "worker/statestore.h"

enum { DONOR_MAX_WAITING = 8 }; /* FETCHes of one peer not answered yet */

struct donor;

/* `store` is borrowed. */
enum rv_err donor_new(const struct statestore *store, uint64_t run_tag, struct donor **out, struct rv_errtext *et);
void donor_free(struct donor *d); /* NULL is fine */
/* RV_E_INVALID (malformed), RV_E_PROTOCOL (too many waiting). */
enum rv_err donor_receive(struct donor *d, uint32_t member, const struct frame_header *h, const uint8_t *body,
						  struct rv_errtext *et);
/* The next answer for `member`; borrows until the next call. */
bool donor_send(struct donor *d, uint32_t member, struct peers_message *out);
void donor_link_down(struct donor *d, uint32_t member);
/* Bytes of state served since the start, frames included; when the last piece went out (0: never). */
uint64_t donor_bytes(const struct donor *d);
bool donor_busy(const struct donor *d); /* something is waiting */

#endif
