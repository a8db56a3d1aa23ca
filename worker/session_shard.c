/* session_shard.c: --shard is one that the run has. What the coordinator's status says of that is asked for before the
 * join, which spends an invite and a member's number; where it says nothing, the answer to the join does. */
#include "worker/session_internal.h"

#include "base/json_limits.h"

#include <inttypes.h>
#include <jansson.h>

enum {
	STATUS_TIMEOUT_MS = 10000,
	STATUS_MAX_BYTES = 1 << 20,
	MAX_CONTAINERS = 4096,
	MAX_VALUES = 65536,
	HTTP_OK = 200
};

enum rv_err session_check_shard(const struct session *s, int64_t data_shards, struct rv_errtext *et) {
	if (s->opt->shard < data_shards)
		return RV_OK;
	return rv_fail(et, RV_E_RANGE,
				   "--shard %" PRId64 ": the run has %" PRId64
				   " data shard%s, numbered from 0: give one of [0, %" PRId64
				   "], or leave --shard out for the one that falls to this worker",
				   s->opt->shard, data_shards, data_shards == 1 ? "" : "s", data_shards - 1);
}

/* 0: it does not say. */
static int64_t data_shards_of(const struct http_reply *r) {
	if (r->err != RV_OK || r->status != HTTP_OK ||
		rv_json_check_limits(r->body, r->body_bytes, MAX_CONTAINERS, MAX_VALUES, NULL) != RV_OK)
		return 0;
	json_t *status = json_loadb((const char *)r->body, r->body_bytes, 0, NULL);
	int64_t shards = json_integer_value(json_object_get(status, "data_shards"));
	json_decref(status);
	return shards;
}

static void on_status(void *ctx, const struct http_reply *r) {
	struct session *s = ctx;
	struct rv_errtext et = {0};
	int64_t shards = data_shards_of(r);
	enum rv_err e = shards > 0 ? session_check_shard(s, shards, &et) : RV_OK;
	if (e != RV_OK)
		session_fail(s, e, et.text);
	else
		session_join(s);
}

enum rv_err session_check_shard_and_join(struct session *s, struct rv_errtext *et) {
	const struct http_request rq = {.path = "/v1/status",
									.max_reply_bytes = STATUS_MAX_BYTES,
									.timeout_ms = STATUS_TIMEOUT_MS,
									.done = on_status,
									.ctx = s};
	if (s->opt->shard >= 0)
		return http_client_start(s->http, &rq, NULL, et);
	session_join(s);
	return RV_OK;
}
