/* probe_bench.c: see probe_bench.h. */
#include "tests/coordinator/probe_bench.h"

#include "tests/common/check.h"
#include "tests/coordinator/joining.h"
#include "tests/coordinator/run_chunks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void probe_bench_invite(struct probe_bench *b, uint8_t token[NET_TOKEN_BYTES]) {
	struct invite in;
	joining_invite(b->service, NULL, &in);
	memcpy(token, in.token, NET_TOKEN_BYTES);
}

void probe_bench_join(struct probe_bench *b, uint8_t who, const uint8_t token[NET_TOKEN_BYTES]) {
	const uint8_t key[NET_KEY_BYTES] = {who};
	struct invite in = {.has_token = true};
	memcpy(in.token, token, sizeof in.token);
	assert_ok(joining_join(b->service, b->now_us, key, &in, "", NULL, &et));
}

struct probe_bench *probe_bench_open(const struct relay_ref *relays, uint8_t n_relays, uint8_t members) {
	struct probe_bench *b = calloc(1, sizeof *b);
	const uint8_t seed[IDENTITY_SEED_BYTES] = {3};
	uint8_t token[NET_TOKEN_BYTES];
	assert_non_null(b);
	identity_of_seed(seed, &b->run);
	memory_store_init(&b->store);
	b->now_us = S;
	struct service_config cfg = {.serving = &b->run,
								 .root = b->run.key,
								 .run_id = {5},
								 .config = "rounds = 4\nmin-workers = 2\nsilence-ms = 4000\n",
								 .store = &b->store.store,
								 .site = "11.0.0.254",
								 .advertise = {.host = "train.example.org", .port = 7433},
								 .n_relays = n_relays};
	memcpy(cfg.relays, relays, n_relays * sizeof *relays);
	assert_ok(service_new(&cfg, b->now_us, &b->service, &et));
	for (uint8_t who = 1; who <= members; who++) {
		probe_bench_invite(b, token);
		probe_bench_join(b, who, token);
	}
	return b;
}

void probe_bench_close(struct probe_bench *b) {
	service_free(b->service);
	memory_store_release(&b->store);
	free(b);
}

static struct member_sight sight_of(const char *host) {
	struct member_sight s = {.own = "11.0.0.254"};
	(void)snprintf(s.host, sizeof s.host, "%s", host);
	return s;
}

struct report probe_bench_next_report(struct probe_bench *b) {
	return (struct report){.boot = 1,
						   .seq = ++b->seq,
						   .phase = WORKER_SYNCING,
						   .n_chunks = run_chunks("", 0),
						   .n_candidates = 1,
						   .candidates[0].addr = ":7434"};
}

bool probe_bench_report(struct probe_bench *b, uint8_t who, const char *host, struct report *rep,
						const struct probed *probed, struct probe *out) {
	uint8_t key[NET_KEY_BYTES] = {who}, body[NET_MAX_REPORT_BYTES], bytes[SERVICE_REPORT_REPLY_BYTES];
	const struct member_sight sight = sight_of(host);
	struct probes all;
	if (probed != NULL)
		rep->probed = (struct probed_list){.n = 1, .list = {*probed}};
	struct rv_writer w = rv_writer_of(body, sizeof body), r = rv_writer_of(bytes, sizeof bytes);
	report_encode(rep, CONTROL_VERSION, &w);
	assert_ok(service_report(b->service, b->now_us, key, &sight, body, rv_writer_len(&w), &et));
	if (!service_report_reply(b->service, b->now_us, key, &r) || !probes_are(bytes, rv_writer_len(&r)))
		return false;
	assert_ok(probes_decode(bytes, rv_writer_len(&r), &all, &et));
	assert_int_equal(all.n, 1);
	*out = all.list[0];
	return true;
}

const struct document *probe_bench_document(struct probe_bench *b) {
	joining_document(b->service, &b->run, (const uint8_t[NET_KEY_BYTES]){2}, &b->doc);
	return &b->doc;
}

enum rv_err probe_bench_ask(struct probe_bench *b, uint8_t who, const char *host, const uint8_t *token,
							const char *addr, struct reach_test_reply *out, struct rv_errtext *et) {
	uint8_t key[NET_KEY_BYTES] = {who}, body[512], bytes[REACH_TEST_REPLY_MAX_BYTES];
	const struct member_sight sight = sight_of(host);
	struct reach_test_request rq = {.run_id = {5}, .has_token = token != NULL, .n = addr != NULL};
	if (token != NULL)
		memcpy(rq.token, token, sizeof rq.token);
	(void)snprintf(rq.addrs[0].addr, NET_ADDR_BYTES, "%s", addr != NULL ? addr : "");
	struct rv_writer w = rv_writer_of(body, sizeof body), r = rv_writer_of(bytes, sizeof bytes);
	reach_test_request_encode(&rq, CONTROL_VERSION, &w);
	RV_TRY(service_reach_test(b->service, b->now_us, key, &sight, body, rv_writer_len(&w), &r, et));
	return reach_test_reply_decode(bytes, rv_writer_len(&r), out, et);
}
