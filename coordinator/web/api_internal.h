/* api_internal.h: what the files of the API share; no other file includes it.
 *
 * api.c            a request's way to its handler; life
 * api_anyone.c     pages and figures that anyone may read
 * api_member.c     joins, reports, documents and what else workers send
 * api_operator.c   commands of the operator, with the run's key */
#ifndef RV_COORDINATOR_API_INTERNAL_H
#define RV_COORDINATOR_API_INTERNAL_H

#include "coordinator/service/member_pace.h"
#include "coordinator/service/report_pace.h"
#include "coordinator/web/api.h"
#include "coordinator/web/held.h"
#include "coordinator/web/rate_limit.h"
#include "coordinator/web/status_cache.h"
#include "net/http_server/reply.h"

enum { JOIN_REPLY_MAX_BYTES = NET_MAX_CONFIG_BYTES + 512 };

struct api {
	struct service *service;
	struct connections *connections;
	uint8_t run_key[NET_KEY_BYTES];
	void (*changed)(void *owner);
	void *owner;
	struct held_requests *held;
	struct text_replies *text;
	struct rate_limit refusals, tests, pages; /* pages: bytes of public ones that strangers read */
	struct report_pace pace;
	struct member_pace tickets;          /* requests for pair tickets: each ticket is a signature */
	struct member_pace evidence;         /* what members show: a list of hashes and signatures to check */
	struct member_pace documents, whole; /* requests for documents; those that no patch can answer */
	struct status_cache status;
	uint8_t buffer[JOIN_REPLY_MAX_BYTES]; /* of a reply */
};

/* The arguments of a handler. */
struct request {
	struct evhttp_request *rq;
	const uint8_t *key; /* NULL: no certificate */
	bool is_stranger;   /* neither a member nor the operator */
	struct member_sight sight;
	const void *body;
	size_t n;
	int64_t now_us;
};

/* A path and its handler, which replies, or has the request held. */
struct api_route {
	enum evhttp_cmd_type method;
	const char *path;
	void (*serve)(struct api *a, const struct request *q);
	bool is_folder; /* and all paths that begin with `path` */
};

/* The routes of each file; the last has no path. */
extern const struct api_route api_anyone_routes[], api_member_routes[], api_operator_routes[];

/* Returns the parsed request; `key` holds the bytes that it points to. */
struct request api_request_of(struct evhttp_request *rq, uint8_t key[NET_KEY_BYTES], int64_t now_us);
/* Returns the bytes behind the path's `?`, *n of them; NULL: none. */
const char *api_query_of(const struct request *q, size_t *n);
/* Replies with `text` and frees it; NULL: there was no memory for it. */
void api_reply_made(const struct request *q, const char *type, char *text);
/* Set the limits of strangers' and of members' requests. */
void api_anyone_init(struct api *a);
void api_member_init(struct api *a);
/* Returns true if a stranger of this site may read a public page now. */
bool api_may_read(const struct api *a, const struct request *q);
/* Take a report, and answer a join, that were held (held.h); `api` as void *. */
void api_take_held_report(void *api, struct evhttp_request *rq, int64_t now_us);
void api_answer_held_join(void *api, struct evhttp_request *rq, int64_t now_us);

#endif
