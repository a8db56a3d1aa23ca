/* coordinator_version.c: see coordinator_version.h. */
#include "worker/update/coordinator_version.h"

#include "base/clean_text.h"
#include "base/clock.h"
#include "base/json_limits.h"
#include "net/http_client.h"
#include "worker/join/membership.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_BYTES_MAX = 16 << 20, CONTAINERS_MAX = 1 << 17, VALUES_MAX = 1 << 20 };

bool has_joined(const char *dir) {
	char path[PATH_MAX];
	const int n = snprintf(path, sizeof path, "%s/run.conf", dir);
	return n > 0 && (size_t)n < sizeof path && access(path, R_OK) == 0;
}

struct answer {
	bool done;
	enum rv_err err;
	struct rv_errtext text;
	char *software;
};

static enum rv_err take_software(const struct http_reply *reply, char out[SOFTWARE_BYTES], struct rv_errtext *et) {
	if (reply->err != RV_OK)
		return rv_fail(et, reply->err, "%s", reply->text);
	if (reply->status != 200)
		return rv_fail(et, RV_E_PROTOCOL, "the coordinator answers %d", reply->status);
	RV_TRY(rv_json_check_limits(reply->body, reply->body_bytes, CONTAINERS_MAX, VALUES_MAX, et));
	json_t *o = json_loadb((const char *)reply->body, reply->body_bytes, 0, NULL);
	const char *software = json_string_value(json_object_get(o, "software"));
	if (software) {
		(void)snprintf(out, SOFTWARE_BYTES, "%s", software);
		clean_text(out);
	}
	json_decref(o);
	return software ? RV_OK : rv_fail(et, RV_E_PROTOCOL, "the coordinator's status names no software");
}

static void on_done(void *ctx, const struct http_reply *reply) {
	struct answer *a = ctx;
	a->done = true;
	a->err = take_software(reply, a->software, &a->text);
}

static enum rv_err ask(struct http_client *c, char out[SOFTWARE_BYTES], struct rv_errtext *et) {
	struct answer a = {.software = out};
	const struct http_request rq = {
		.path = "/v1/status", .max_reply_bytes = STATUS_BYTES_MAX, .done = on_done, .ctx = &a};
	RV_TRY(http_client_start(c, &rq, NULL, et));
	while (!a.done)
		RV_TRY(http_client_poll(c, NULL, 0, RV_US_PER_S, et));
	return a.err == RV_OK ? RV_OK : rv_fail(et, a.err, "%s", a.text.text);
}

enum rv_err coordinator_version(const char *dir, char out[SOFTWARE_BYTES], struct rv_errtext *et) {
	struct membership *m = calloc(1, sizeof *m);
	struct http_client *c = NULL;
	if (!m)
		return rv_fail(et, RV_E_NOMEM, "no memory for the membership");
	enum rv_err e = membership_load(dir, NULL, m, et);
	if (e == RV_OK) {
		struct http_client_config cfg = {.server = m->invite.coordinator, .trust = m->trust, .identity = &m->identity};
		e = http_client_new(&cfg, &c, et);
		if (e == RV_OK)
			e = ask(c, out, et);
		http_client_free(c);
		membership_release(m);
	}
	free(m);
	return e;
}
