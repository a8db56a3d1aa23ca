/* api.h: the coordinator's requests over HTTP, their permissions and statuses (docs/protocol.md).
 *
 *   GET  /                   anyone       the dashboard
 *   GET  /v1/status          anyone       JSON
 *   GET  /v1/chart?width=    anyone       the training loss by round: SVG, 240 to 2000 pixels wide
 *   GET  /v1/heldout         anyone       the held-out loss by round: loss_curve_print
 *   GET  /v1/config          anyone       the run's configuration, and what the operator says of it
 *   GET  /metrics            anyone       Prometheus text
 *   POST /v1/join            any key      join_request -> join_reply, or 202 and a line of text: the
 *                                         operator has to approve it
 *   POST /v1/report          a member     report -> 204, or 200 and a notice or a probe
 *   POST /v1/pair-tickets    a member     pair_request -> pair_reply; 429 more than one a second
 *   POST /v1/evidence        a member     evidence -> 204; 429 more than one a second
 *   POST /v1/reach-test      any key      reach_test_request -> reach_test_reply; 429 too many from
 *                                         this address
 *   GET  /v1/document?after= a member     its signed document, held until it differs from the one
 *                    &have=               numbered `after`, or 204 after 20 s; 226: a patch of the
 *                                         one numbered `have`
 *   GET  /v1/text/NAME       a member     a file of the run's text, with Range (text_replies.h); 404
 *                                         there is none here, 503 too many at once
 *   GET  /v1/admin/status    the run key  JSON with addresses and keys, of 128 members at most
 *        ?from=NUMBER                     "members_next": the number with which the next page begins
 *   POST /v1/admin/invite    the run key  "count=N&uses=N&lasts_ms=N&approve=0|1" -> one link a line
 *   GET  /v1/admin/invites   the run key  JSON: what is left of each, who came by it
 *   POST /v1/admin/revoke    the run key  ID of an invite, or its link -> a line of text
 *   GET  /v1/admin/pending   the run key  JSON: the computers that ask for approval
 *   POST /v1/admin/approve   the run key  first hex digits of a key -> a line of text
 *   POST /v1/admin/refuse    the run key  the same
 *   POST /v1/admin/ban       the run key  "member=N&banned=0|1" -> 204
 *   POST /v1/admin/rollback  the run key  "to_round=N&force=0|1" -> a line of text
 *   POST /v1/admin/copy      the run key  path of an empty file on this machine -> 204: a copy of
 *                                         the store is in it
 *
 * HEAD is answered as GET, without the body. A key is that of the TLS client certificate. Errors
 * are one line of text: 400 malformed, 401 no certificate, 403 refused, 404, 405, 409 other version
 * or run, or the run is full of members, 429 too many refused joins from this address, or too many
 * bytes of public pages for strangers of one site, 503 the
 * store cannot be written (try again). */
#ifndef RV_COORDINATOR_API_H
#define RV_COORDINATOR_API_H

#include "coordinator/service/service.h"
#include "coordinator/web/connections.h"
#include "coordinator/web/text_replies.h"

#include <event2/http.h>

enum {
	/* Any request has so many bytes at most. Evidence may have service_evidence_max_bytes, on a
	 * connection on which a member's key has come with a request before: libevent reads bodies
	 * before it asks. */
	API_MAX_BODY_BYTES = NET_MAX_REPORT_BYTES,
	API_MAX_HEADER_BYTES = 8192,
	API_HOLD_MS = 20000 /* of a document request */
};

struct api;

/* All is borrowed. */
struct api_config {
	struct service *service;
	struct connections *connections;
	uint8_t run_key[NET_KEY_BYTES];
	struct served_text *text;     /* NULL: none */
	int64_t text_bytes_per_s;     /* of all that is sent of it; 0: no limit */
	struct rv_events *events;     /* NULL: no log */
	void (*changed)(void *owner); /* a request was served, so deadlines may have moved */
	void *owner;
};

/* Makes the API. RV_E_NOMEM. */
enum rv_err api_new(const struct api_config *cfg, struct api **out, struct rv_errtext *et);
/* Forgets held requests. Called before evhttp_free(), which closes their connections: their members
 * did not. */
void api_end_waiting(struct api *a);
/* Frees the API, after evhttp_free(). NULL is fine. */
void api_free(struct api *a);
/* Handles a request: evhttp_set_gencb's callback; `api` as void *. */
void api_serve(struct evhttp_request *rq, void *api);
/* Answers held requests: those with news, and those that have waited long enough; sends parts of
 * the text that are due. Not to be called in callbacks of requests. */
void api_tick(struct api *a, int64_t now_us);
int64_t api_deadline_us(const struct api *a); /* INT64_MAX: none */

#endif
