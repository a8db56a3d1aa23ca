/* joining.h: invites, joins and documents as a worker has them of a service, without sockets. The
 * run's number is {5}. */
#ifndef RV_TESTS_COORDINATOR_JOINING_H
#define RV_TESTS_COORDINATOR_JOINING_H

#include "coordinator/service/service.h"

enum { JOINING_BYTES = 256 };

/* Makes an invite; `terms` NULL: of one use, without end. */
void joining_invite(struct service *s, const struct invite_terms *terms, struct invite *out);
/* Writes a request to join by an invite, or by a link without a token; returns its bytes. */
size_t joining_request(const struct invite *in, const char *name, uint8_t body[JOINING_BYTES]);
/* Joins. Returns what service_join does; `out` (may be NULL): the reply. */
enum rv_err joining_join(struct service *s, int64_t now_us, const uint8_t key[NET_KEY_BYTES], const struct invite *in,
						 const char *name, struct join_reply *out, struct rv_errtext *et);
/* Reads the document of the holder of `key`, a member, with the run's signature. */
void joining_document(struct service *s, const struct identity *run, const uint8_t key[NET_KEY_BYTES],
					  struct document *out);

#endif
