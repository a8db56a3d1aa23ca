/* poll_flood.h: one member holds all the long polls that it can get (row 21 of
 * docs/security.md). */
#ifndef RV_TESTS_COORDINATOR_POLL_FLOOD_H
#define RV_TESTS_COORDINATOR_POLL_FLOOD_H

#include "tests/coordinator/coordinator_process.h"

enum { POLL_FLOOD_CLIENTS = 32 };

struct poll_flood {
	struct client k[POLL_FLOOD_CLIENTS];
	int started, ended; /* polls; those that the coordinator ended or answered */
};

/* Starts one long poll for a document after number `after`. Returns false if this client has as
 * many requests as it can have. */
bool poll_flood_start(struct poll_flood *f, struct client *k, uint64_t after);
/* Member `who`, with 32 clients of its key, starts as many polls as each can have, and as many
 * again, for a document that is far after number `now`. */
void poll_flood_begin(struct poll_flood *f, struct coordinator *c, uint32_t who, uint64_t now);
/* Starts again those that have ended. */
void poll_flood_go_on(struct poll_flood *f, uint64_t now);
void poll_flood_end(struct poll_flood *f); /* of one that began */

#endif
