/* control_client.h: the worker's side of the control plane: joins, reports, and keeps asking for
 * the next document.
 *
 * Never gives up: a coordinator that is away is asked again with growing pauses (jittered), and
 * everything goes on when it is back. Only a refusal by a living coordinator (key or token unknown,
 * another protocol version) is final.
 *
 * No I/O, no clock, no allocation: requests go through control_ops. The worker fills that table
 * with HTTPS (worker/join/control_http.h), the simulator with its network. The owner's callbacks
 * come from inside a request's `done` or control_client_tick(). */
#ifndef RV_WORKER_JOIN_CONTROL_CLIENT_H
#define RV_WORKER_JOIN_CONTROL_CLIENT_H

#include "net/control/control.h"
#include "net/http_client.h"

#include <stdbool.h>

struct control_client; /* opaque: control_client_size() bytes, the caller's memory */

struct control_ops {
	void *ctx;
	/* As http_client_start: copies what `rq` points to, and ends with one call of rq->done, not
	 * from inside. */
	enum rv_err (*start)(void *ctx, const struct http_request *rq, uint32_t *id, struct rv_errtext *et);
	void (*cancel)(void *ctx, uint32_t id); /* `done` is not called */
	int64_t (*now_us)(void *ctx);
	/* Checks the run's signature of a document; *bytes points into `in`. RV_E_AUTH,
	 * RV_E_CORRUPT. */
	enum rv_err (*open)(void *ctx, const uint8_t *in, size_t n_in, const uint8_t **bytes, size_t *n,
						struct rv_errtext *et);
};

struct control_client_owner {
	void *ctx;
	/* The run's configuration, `key = value` lines; NULL: the coordinator does not say. Not
	 * checked. */
	void (*on_config)(void *ctx, const char *text);
	void (*on_joined)(void *ctx, const struct join_reply *reply);
	/* A document whose signature and form are right, and with a later number or of a later term
	 * than those before. */
	void (*on_document)(void *ctx, const struct document *d);
	/* One with an earlier number than `seen` of the same term or an earlier one: the coordinator's
	 * store is older than what was served before. */
	void (*on_older)(void *ctx, const struct document *d, uint64_t seen);
	/* What the coordinator says of this worker changed: of another kind, reason or about other
	 * members; kind NOTICE_NONE: nothing any more. */
	void (*on_notice)(void *ctx, const struct notice *n);
	/* The coordinator refused for good: the worker should end with this. */
	void (*on_refused)(void *ctx, enum rv_err e, const char *text);
	/* For the log: it went away (with why), and it is back. */
	void (*on_away)(void *ctx, bool away, const char *text);
};

struct control_client_config {
	struct control_ops ops;
	struct control_client_owner owner;
	uint32_t version; /* of the protocol: the highest that is spoken */
	uint64_t seed;    /* of the jitter */
};

size_t control_client_size(void);
struct control_client *control_client_init(void *memory, const struct control_client_config *cfg);

/* Asks for the run's configuration until it is answered; then on_config. */
void control_client_ask_config(struct control_client *c);
/* Joins until it is answered; then on_joined. */
void control_client_join(struct control_client *c, const struct join_request *rq);
/* Starts following documents. */
void control_client_follow(struct control_client *c);
/* The latest report: sent at once, or after the one under way; sent again until one is accepted. */
void control_client_report(struct control_client *c, const struct report *r);
/* True when the last report given has been accepted. */
bool control_client_reported(const struct control_client *c);

/* The network works again, or is another one: what waits to be asked again is due at once. */
void control_client_hurry(struct control_client *c);
/* Starts what is due. */
void control_client_tick(struct control_client *c, int64_t now_us);
int64_t control_client_deadline_us(const struct control_client *c);

#endif
