/* delivery.h: documents on their way to members: encoded, signed, and as patches of what each
 * member has (net/control/patch.h). A member whose document differs from the one it has in nothing
 * but the number gets none. Single-threaded; every call takes the slots of
 * coordinator/core/core.h. */
#ifndef RV_COORDINATOR_SERVICE_DELIVERY_H
#define RV_COORDINATOR_SERVICE_DELIVERY_H

#include "net/control/control.h"
#include "net/control/patch.h"
#include "net/identity.h"

#include <stdbool.h>

/* A request for a document. */
struct document_wish {
	uint32_t version; /* of the protocol */
	bool any;         /* the current one, whatever the member has */
	uint64_t after;   /* else: one with a later number that says something else */
	bool has_base;    /* a patch will do: */
	uint64_t have;    /* the member keeps the document of this number as its base */
};

struct document_reply {
	const uint8_t *bytes; /* signature | document, or | patch; borrowed until the next call */
	size_t n;             /* 0: nothing new */
	bool is_patch;
	bool is_away; /* nothing, as the member is not in memory: its next request brings it back */
};

struct delivery;

/* Makes it for `slots` members, to sign with `run`, borrowed. RV_E_NOMEM. */
enum rv_err delivery_new(const struct identity *run, int slots, struct delivery **out, struct rv_errtext *et);
void delivery_free(struct delivery *d); /* NULL is fine */
/* Forgets what the member in a slot has: another one has the slot now. */
void delivery_forget(struct delivery *d, uint32_t slot);
/* Returns true if a reply to this wish needs `document` number `seq`: otherwise there is nothing
 * new, as was found before. */
bool delivery_needs(const struct delivery *d, uint32_t slot, const struct document_wish *w, uint64_t seq);
/* Answers the wish of the member in `slot` with `document`, its own. RV_E_NOMEM. */
enum rv_err delivery_make(struct delivery *d, uint32_t slot, const struct document_wish *w,
						  const struct document *document, struct document_reply *out, struct rv_errtext *et);

#endif
