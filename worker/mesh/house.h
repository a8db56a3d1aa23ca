/* house.h: which members are in this worker's own network, so that their private addresses may be
 * dialed: those that were seen at the same host as this one (candidates_share_host). Elsewhere the
 * same private address is another machine. */
#ifndef RV_WORKER_HOUSE_H
#define RV_WORKER_HOUSE_H

#include "net/control/control.h"

/* Zero: not known yet. */
struct house {
	struct member_ref self; /* this worker, as a document named it last */
};

/* Reads this worker's own address from a document, if it is in it. */
void house_follow(struct house *h, const struct document *d, uint32_t self);
/* Removes from `ref` the candidates that this worker must not dial. */
void house_filter(const struct house *h, struct member_ref *ref);

#endif
