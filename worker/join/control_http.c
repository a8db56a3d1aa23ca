/* control_http.c: see control_http.h. */
#include "worker/join/control_http.h"

#include "base/clock.h"
#include "worker/join/document_opener.h"

#include <stdlib.h>
#include <string.h>

struct control_http {
	struct http_client *http;
	struct document_opener documents;
	uint64_t client[]; /* control_client_size() bytes */
};

static enum rv_err start(void *ctx, const struct http_request *rq, uint32_t *id, struct rv_errtext *et) {
	return http_client_start(((struct control_http *)ctx)->http, rq, id, et);
}

static void cancel(void *ctx, uint32_t id) {
	http_client_cancel(((struct control_http *)ctx)->http, id);
}

static int64_t now_us(void *ctx) {
	(void)ctx;
	return rv_clock_monotonic_us();
}

static enum rv_err open_document(void *ctx, bool is_patch, const uint8_t *in, size_t n_in, const uint8_t **bytes,
								 size_t *n, struct rv_errtext *et) {
	struct control_http *h = ctx;
	memcpy(h->documents.serving_key, run_trust_key(http_client_trust(h->http)), NET_KEY_BYTES);
	return document_opener_open(&h->documents, is_patch, in, n_in, bytes, n, et);
}

enum rv_err control_client_new(struct http_client *http, uint64_t seed, const struct control_client_owner *owner,
							   struct control_client **out, struct rv_errtext *et) {
	struct control_http *h = calloc(1, sizeof *h + control_client_size());
	if (!h)
		return rv_fail(et, RV_E_NOMEM, "no memory for the coordinator's client");
	h->http = http;
	const struct control_client_config cfg = {
		.ops = {.ctx = h, .start = start, .cancel = cancel, .now_us = now_us, .open = open_document},
		.owner = *owner,
		.version = control_version(),
		.seed = seed};
	*out = control_client_init(h->client, &cfg);
	return RV_OK;
}

void control_client_free(struct control_client *c) {
	if (c == NULL)
		return;
	struct control_http *h = (struct control_http *)((uint8_t *)c - offsetof(struct control_http, client));
	document_opener_release(&h->documents);
	free(h);
}
