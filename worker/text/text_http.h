/* text_http.h: requests to mirrors (text_mirror.h) through libcurl, many at once.
 *
 * A request is for bytes [begin, begin + bytes) of a file whose size is known, delivered in ranges
 * of TEXT_RANGE_BYTES (text_core.h) that begin at its multiples; or for a whole small file of
 * unknown size. A transfer that is cut goes on from where it was, a few times, while it makes
 * progress. The length, the range and the size that a server states must be those asked for. At
 * most three redirects are followed, to http and https. Nothing is connected to an address that is
 * narrower (net/address_reach.h) than `met`: a stranger's manifest must not make members probe a
 * LAN. Certificates are checked by the system's authorities; proxies and .netrc play no part.
 *
 * One thread; callbacks run inside text_http_poll, and may neither start nor cancel requests. The
 * process must ignore SIGPIPE. */
#ifndef RV_WORKER_TEXT_TEXT_HTTP_H
#define RV_WORKER_TEXT_TEXT_HTTP_H

#include "net/address_reach.h"
#include "worker/text/text_core.h"
#include "worker/text/text_mirror.h"

enum { TEXT_HTTP_REQUESTS = TEXT_ASKS_MAX, TEXT_HTTP_NAME_BYTES = 64 };

struct text_http_owner {
	void *ctx;
	/* Takes the next range of a request, or the whole of an unknown file; `bytes` are borrowed.
	 * Returns false to end the request, of which nothing more is reported. */
	bool (*on_range)(void *ctx, uint32_t id, const uint8_t *bytes, size_t n, bool last);
	/* Reports how many bytes of the range under way have come. */
	void (*on_progress)(void *ctx, uint32_t id, uint32_t bytes);
	/* Reports that the server has no ranges, and sends the whole file. */
	void (*on_whole)(void *ctx, uint32_t id);
	/* Reports the end of a request that did not get all; `text` is for people. */
	void (*on_failed)(void *ctx, uint32_t id, enum text_failure why, int64_t retry_us, const char *text);
};

struct text_http_config {
	struct text_http_owner owner;
	const struct text_keys *keys; /* copied */
	const char *hosts;            /* to which redirects are followed, beside the mirror's own (mirror_hosts.h) */
	enum address_reach met;
	int64_t most_per_s; /* bytes a second of one request; 0: no limit */
};
struct text_http;
/* Makes a client without requests. RV_E_NOMEM, RV_E_UNSUPPORTED (libcurl cannot do it). */
enum rv_err text_http_new(const struct text_http_config *cfg, struct text_http **out, struct rv_errtext *et);
void text_http_free(struct text_http *h); /* without callbacks; NULL is fine */

struct text_http_request {
	uint32_t id; /* not 0, not under way */
	const struct text_mirror *mirror;
	const char *name;      /* of the file, copied */
	uint64_t begin, bytes; /* of a file of size `size` */
	uint64_t size;         /* 0: unknown; then begin is 0 and `bytes` the most that it may be */
};
/* Starts a request. RV_E_FULL: TEXT_HTTP_REQUESTS under way; RV_E_NOMEM, RV_E_INVALID. */
enum rv_err text_http_start(struct text_http *h, const struct text_http_request *rq, struct rv_errtext *et);
/* Changes text_http_config.most_per_s, for requests that start from now on. */
void text_http_set_most(struct text_http *h, int64_t most_per_s);
/* Ends a request without a callback; one that has ended is ignored. */
void text_http_cancel(struct text_http *h, uint32_t id);
/* Waits for progress, at most timeout_ms, and makes it. RV_E_IO. */
enum rv_err text_http_poll(struct text_http *h, int timeout_ms, struct rv_errtext *et);
/* Ends the wait under way, or the next. Any thread. */
void text_http_wakeup(struct text_http *h);

#endif
