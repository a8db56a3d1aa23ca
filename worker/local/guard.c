/* guard.c: see guard.h. */
#include "worker/local/guard.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum { PLACE_BYTES = 40 };

/* Returns true if `text` is `prefix` and one of the server's two names with its port. */
static bool is_ours(const char *text, const char *prefix, uint16_t port) {
	static const char *const names[] = {"127.0.0.1", "localhost"};
	char ours[PLACE_BYTES];
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		(void)snprintf(ours, sizeof ours, "%s%s:%u", prefix, names[i], port);
		if (strcmp(text, ours) == 0)
			return true;
	}
	return false;
}

static bool is_token(const char *authorization, const char *token) {
	static const char scheme[] = "Bearer ";
	const size_t n = strlen(token), n_scheme = sizeof scheme - 1;
	return authorization && strncmp(authorization, scheme, n_scheme) == 0 && strlen(authorization + n_scheme) == n &&
		   sodium_memcmp(authorization + n_scheme, token, n) == 0;
}

/* Returns true if a browser sent it for the server's own page, or for an address that a person
 * typed. */
static bool is_own_page(const struct guard_request *rq, uint16_t port) {
	if (rq->origin && !is_ours(rq->origin, "http://", port))
		return false;
	return !rq->fetch_site || strcmp(rq->fetch_site, "same-origin") == 0 || strcmp(rq->fetch_site, "none") == 0;
}

enum guard_verdict guard_check(const struct guard_request *rq, uint16_t port, const char *token, bool open) {
	if (rq->repeated || !rq->host || !is_ours(rq->host, "", port))
		return GUARD_OTHER_HOST;
	/* A link on another page may lead to ours: it shows nothing without the token. */
	if (!open && !is_own_page(rq, port))
		return GUARD_OTHER_ORIGIN;
	return open || is_token(rq->authorization, token) ? GUARD_PASSES : GUARD_NO_TOKEN;
}

const char *guard_text(enum guard_verdict v) {
	switch (v) {
	case GUARD_OTHER_HOST:
		return "refused: this page is at http://127.0.0.1 only";
	case GUARD_OTHER_ORIGIN:
		return "refused: another page asks";
	case GUARD_NO_TOKEN:
		return "refused: the token is missing, or of an earlier start. Open the address that `rivulet-worker status` "
			   "prints";
	default:
		return "";
	}
}
