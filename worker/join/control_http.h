/* control_http.h: the control client (worker/join/control_client.h) over HTTPS. */
#ifndef RV_WORKER_JOIN_CONTROL_HTTP_H
#define RV_WORKER_JOIN_CONTROL_HTTP_H

#include "worker/join/control_client.h"

/* Makes a client. `http` is borrowed: the owner drives its loop, and documents must be signed by
 * the key that it believes to serve the run (http_client_trust). `seed`: of the jitter; *out is the
 * caller's. RV_E_NOMEM. */
enum rv_err control_client_new(struct http_client *http, uint64_t seed, const struct control_client_owner *owner,
							   struct control_client **out, struct rv_errtext *et);
void control_client_free(struct control_client *c); /* NULL is fine */

#endif
