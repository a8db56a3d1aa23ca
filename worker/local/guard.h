/* guard.h: who may ask a server on loopback what.
 *
 * Any page that the volunteer's browser shows, and any program on the computer, can connect to
 * 127.0.0.1. Three checks keep them out:
 * - Host must name this server by its address. A page whose own name was made to resolve to
 *   127.0.0.1 (DNS rebinding) sends that name.
 * - Origin and Sec-Fetch-Site, where a browser sends them, must say that the page is this server's
 *   own: a page from elsewhere cannot change them (cross-site request forgery).
 * - Everything but the page itself, which is the same for everybody, needs the token of local.json
 *   as `Authorization: Bearer TOKEN`, which only this computer's owner can read. */
#ifndef RV_WORKER_LOCAL_GUARD_H
#define RV_WORKER_LOCAL_GUARD_H

#include <stdbool.h>
#include <stdint.h>

enum guard_verdict {
	GUARD_PASSES,
	GUARD_OTHER_HOST,   /* 403 */
	GUARD_OTHER_ORIGIN, /* 403 */
	GUARD_NO_TOKEN      /* 401 */
};

/* The headers of a request; NULL: absent. */
struct guard_request {
	const char *host, *origin, *fetch_site, *authorization;
	bool repeated; /* one of these headers came more than once */
};

/* Returns whether the request may be served by the server on `port` with `token`. `open`: what is
 * asked for needs no token. Compares the token in a time that does not depend on it. */
enum guard_verdict guard_check(const struct guard_request *rq, uint16_t port, const char *token, bool open);
/* Returns the line with which a request is refused. */
const char *guard_text(enum guard_verdict v);

#endif
