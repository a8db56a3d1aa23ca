/* poll_flood.c: see poll_flood.h. */
#include "tests/coordinator/poll_flood.h"

#include "tests/common/check.h"

#include <stdio.h>
#include <string.h>

enum { PASSES = 2, TURNS = 20, TURN_US = 2000, REPLY_BYTES = 200000, POLL_MS = 60000, FAR = 1000000 };

static void on_poll(void *flood, const struct http_reply *r) {
	struct poll_flood *f = flood;
	(void)r;
	f->ended++;
}

bool poll_flood_start(struct poll_flood *f, struct client *k, uint64_t after) {
	char path[96];
	(void)snprintf(path, sizeof path, "/v1/document?version=%d&after=%llu", (int)CONTROL_VERSION,
				   (unsigned long long)after);
	const struct http_request rq = {
		.path = path, .max_reply_bytes = REPLY_BYTES, .timeout_ms = POLL_MS, .done = on_poll, .ctx = f};
	struct rv_errtext et = {0};
	const enum rv_err e = http_client_start(k->http, &rq, NULL, &et);
	assert_true(e == RV_OK || e == RV_E_FULL);
	f->started += e == RV_OK;
	return e == RV_OK;
}

void poll_flood_go_on(struct poll_flood *f, uint64_t now) {
	for (int i = 0; i < POLL_FLOOD_CLIENTS; i++) {
		while (poll_flood_start(f, &f->k[i], now + FAR))
			;
		for (int turn = 0; turn < TURNS; turn++) /* a few at a time: each shows its key before the next */
			assert_ok(http_client_poll(f->k[i].http, NULL, 0, TURN_US, NULL));
	}
}

void poll_flood_begin(struct poll_flood *f, struct coordinator *c, uint32_t who, uint64_t now) {
	memset(f, 0, sizeof *f);
	for (int i = 0; i < POLL_FLOOD_CLIENTS; i++)
		client_init(&f->k[i], c, who, NULL);
	for (int pass = 0; pass < PASSES; pass++)
		poll_flood_go_on(f, now);
}

void poll_flood_end(struct poll_flood *f) {
	for (int i = 0; i < POLL_FLOOD_CLIENTS; i++)
		client_release(&f->k[i]);
}
