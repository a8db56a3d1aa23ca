/* receipts.h: how fast this worker got the contributions of others, for its reports: what a member
 * says of its own line counts up to what the others got from it.
 *
 * The second largest rate of the last five exchanges with a member counts, as with the own line
 * (line_meter.h). Pure arithmetic. */
#ifndef RV_WORKER_MESH_RECEIPTS_H
#define RV_WORKER_MESH_RECEIPTS_H

#include "net/control/control.h"
#include "net/reduce/reduce.h"

enum { RECEIPTS_ROUNDS = 5 };

/* One member, and the rates at which its contributions came. */
struct receipts_of {
	uint32_t member;
	uint64_t exchange;               /* the last one with it */
	uint64_t rates[RECEIPTS_ROUNDS]; /* bytes/s, latest first; 0: none */
};
/* A zeroed struct has none. */
struct receipts {
	uint64_t exchange; /* number of the last one */
	int n;
	struct receipts_of of[NET_MAX_ROW]; /* `member` ascends */
};

/* Takes those of an exchange. One that moved next to nothing is not counted, nor one that took less
 * than round trips may, unless the member counts as slower than even that time shows: its line has
 * become faster. If there is no room, the member that was met longest ago is forgotten. */
void receipts_note(struct receipts *r, const struct reduce_receipt *list, int n);
/* Takes those of which a contribution has so few bytes, or came so soon, as well: for exchanges
 * without noise. */
void receipts_note_all(struct receipts *r, const struct reduce_receipt *list, int n);
void receipts_report(const struct receipts *r, struct report *out);

#endif
