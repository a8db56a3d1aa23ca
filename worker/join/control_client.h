/* control_client.h: the worker's side of the control plane: joins, reports, and keeps asking for
 * the next document.
 *
 * Retries without end: requests to an unreachable coordinator are repeated after growing, jittered
 * pauses. Only a refusal by a reachable coordinator (key or token unknown, another protocol
 * version) is final.
 *
 * No I/O, no clock, no allocation, one thread: requests go through control_ops. The worker fills
 * that table with HTTPS (worker/join/control_http.h), the simulator with its network. The owner's
 * callbacks come from inside a request's `done` or control_client_tick(). */
#ifndef RV_WORKER_JOIN_CONTROL_CLIENT_H
#define RV_WORKER_JOIN_CONTROL_CLIENT_H

#include "net/control/reach_test.h"
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
	/* Checks the run's signature of a document and returns its bytes, borrowed until the next call.
	 * `is_patch`: it came as a patch of the documents opened before
	 * (worker/join/document_opener.h). RV_E_AUTH, RV_E_CORRUPT, RV_E_INVALID. */
	enum rv_err (*open)(void *ctx, bool is_patch, const uint8_t *in, size_t n_in, const uint8_t **bytes, size_t *n,
						struct rv_errtext *et);
};

struct control_client_owner {
	void *ctx;
	/* Takes the run's configuration, unchecked `key = value` lines. */
	void (*on_config)(void *ctx, const char *text);
	/* Takes the answer to the join, borrowed for the call. */
	void (*on_joined)(void *ctx, const struct join_reply *reply);
	/* Reports, for the log, that the join waits for a person; asked again until it is answered.
	 * NULL: not reported. */
	void (*on_waiting)(void *ctx, const char *text);
	/* Takes a document with a valid signature and form, and a later number or term than all
	 * before. */
	void (*on_document)(void *ctx, const struct document *d);
	/* Takes a document with an earlier number than `seen`, and no later term: the coordinator's
	 * store is older than what it served before. */
	void (*on_older)(void *ctx, const struct document *d, uint64_t seen);
	/* Takes the coordinator's notice to this worker when its kind, reason or members change;
	 * NOTICE_NONE: no longer any. */
	void (*on_notice)(void *ctx, const struct notice *n);
	/* Takes the answer to control_client_ask_pairs, borrowed for the call; NULL: there is none. */
	void (*on_pairs)(void *ctx, const struct pair_reply *reply);
	/* Takes probes that the coordinator asks for; repeated until a report has their results. */
	void (*on_probes)(void *ctx, const struct probes *p);
	/* Takes the answer to control_client_ask_reach, borrowed for the call; NULL: there is none, and
	 * `why`; `final`: the coordinator refuses. */
	void (*on_reach)(void *ctx, const struct reach_test_reply *reply, bool final, const char *why);
	/* Reports a final refusal by the coordinator; the worker should end with it. RV_E_OVER: the run
	 * has ended, and takes no new member. */
	void (*on_refused)(void *ctx, enum rv_err e, const char *text);
	/* Reports, for the log, that the coordinator is unreachable (text: why) or reachable again. */
	void (*on_away)(void *ctx, bool away, const char *text);
	/* Takes the answer to control_client_ask_heldout: a text of base/loss_curve.h, unchecked. Not
	 * called if there is none. NULL: it is not asked. */
	void (*on_heldout)(void *ctx, const char *text);
};

struct control_client_config {
	struct control_ops ops;
	struct control_client_owner owner;
	uint32_t version; /* highest version of the protocol that this program speaks */
	uint64_t seed;    /* seed of the jitter */
};

size_t control_client_size(void);
struct control_client *control_client_init(void *memory, const struct control_client_config *cfg);

/* Asks for the run's configuration until the coordinator answers; then calls on_config. */
void control_client_ask_config(struct control_client *c);
/* Asks whether the invite of this request would be refused, until the coordinator answers; then for
 * the configuration, as above. An older coordinator does not know the question: on_config comes. */
void control_client_check_invite(struct control_client *c, const struct join_request *rq);
/* Asks to join until the coordinator answers; then calls on_joined. Meanwhile on_waiting, each time
 * that it answers that a person has to decide first. */
void control_client_join(struct control_client *c, const struct join_request *rq);
/* Starts following documents. */
void control_client_follow(struct control_client *c);
/* Sends the latest report, at once or after the one under way, until one is accepted. */
void control_client_report(struct control_client *c, const struct report *r);
/* Puts these results of probes into all reports from now on, and sends the latest one again. */
void control_client_probed(struct control_client *c, const struct probed_list *probed);
/* Returns true if the last report given has been accepted. */
bool control_client_reported(const struct control_client *c);

/* Asks once for pair tickets for these `n` members, at most NET_MAX_ROW; ends in one on_pairs. Not
 * before the last one has ended (asserted). */
void control_client_ask_pairs(struct control_client *c, const uint32_t *peers, int n);

/* Asks once for the held-out loss by round (on_heldout); no failure is repeated. Not while it is
 * under way: then nothing. */
void control_client_ask_heldout(struct control_client *c);

/* Shows the coordinator what this worker got (net/control/evidence.h), once. Returns false if that
 * is under way already, or cannot be sent now. */
bool control_client_show(struct control_client *c, const void *evidence, size_t n);

/* Asks once for a reachability test, or for news of one; ends in one on_reach. A question that is
 * under way is given up. */
void control_client_ask_reach(struct control_client *c, const struct reach_test_request *rq);

/* Makes all waiting retries due at once: the network works again, or is another one. */
void control_client_hurry(struct control_client *c);
/* Starts the requests that are due. */
void control_client_tick(struct control_client *c, int64_t now_us);
int64_t control_client_deadline_us(const struct control_client *c);

#endif
