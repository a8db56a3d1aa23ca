/* fleet_lines.h: the connections of one fake member to its coordinator, as the worker has them: one
 * on which documents are awaited, one for all else, each mutual TLS 1.3 with the member's key, kept
 * open, the run's key pinned. evhttp carries the requests, so that one process has a hundred
 * members (net/http_client.h waits by itself). Single-threaded. */
#ifndef RV_BENCH_FLEET_LINES_H
#define RV_BENCH_FLEET_LINES_H

#include "worker/join/control_client.h"

#include <event2/event.h>

/* Counts of the connections since they were made. */
struct fleet_traffic {
	uint64_t tx_bytes, rx_bytes; /* TLS records and handshakes included */
	uint64_t requests, documents, document_bytes;
	uint64_t faults; /* requests without an answer */
};

struct fleet_lines;

/* Makes them; borrows the arguments, and keeps `trust` up to date (net/tls.h). RV_E_NOMEM,
 * RV_E_UNSUPPORTED. */
enum rv_err fleet_lines_new(struct event_base *base, const struct address *server, struct run_trust *trust,
							const struct identity *identity, struct fleet_lines **out, struct rv_errtext *et);
void fleet_lines_free(struct fleet_lines *l); /* NULL is fine */
/* As control_ops.start and .cancel, with the lines as their `ctx`. */
enum rv_err fleet_lines_start(void *lines, const struct http_request *rq, uint32_t *id, struct rv_errtext *et);
void fleet_lines_cancel(void *lines, uint32_t id);
/* Returns the traffic until now. */
struct fleet_traffic fleet_lines_traffic(const struct fleet_lines *l);

#endif
