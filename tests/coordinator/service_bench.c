/* service_bench.c: see service_bench.h. */
#include "tests/coordinator/service_bench.h"

#include "tests/common/check.h"
#include "tests/coordinator/joining.h"
#include "tests/coordinator/privacy_page.h"
#include "tests/coordinator/rig_seals.h"
#include "tests/coordinator/run_chunks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG "rounds = 4\nmin-workers = 2\nsilence-ms = 4000\n"

static const uint8_t run_id[NET_RUN_ID_BYTES] = {5};

static void open_service(struct service_bench *b, const char *config) {
	struct service_config cfg = {.serving = &b->run,
								 .root = b->run.key,
								 .config = config,
								 .store = &b->store.store,
								 .advertise = {.host = "train.example.org", .port = 7433}};
	memcpy(cfg.run_id, run_id, sizeof cfg.run_id);
	assert_ok(service_new(&cfg, b->now_us, &b->service, &et));
}

static int open_bench(void **state, const char *config) {
	struct service_bench *b = calloc(1, sizeof *b);
	const uint8_t seed[IDENTITY_SEED_BYTES] = {3};
	*state = b;
	identity_of_seed(seed, &b->run);
	memory_store_init(&b->store);
	b->now_us = 1000000;
	b->sight = (struct member_sight){.host = "10.1.1.1", .own = "10.1.1.2"};
	b->config = config;
	open_service(b, config);
	return 0;
}

int bench_set_up(void **state) {
	return open_bench(state, CONFIG);
}

int bench_set_up_rows(void **state) {
	return open_bench(state, CONFIG "row-size = 4\nownership = equal\n");
}

int bench_set_up_coarser(void **state) {
	return open_bench(state, "rounds = 20\nmin-workers = 2\nsilence-ms = 4000\nslow-members = coarser\n"
							 "slow-codec = topk64\nerror-feedback = 0.95\n");
}

int bench_set_up_audited(void **state) {
	return open_bench(state, CONFIG "audit-chunks = 8\n");
}

int bench_set_up_scored(void **state) {
	return open_bench(state, CONFIG "audit-training = 0.1\n"
									"data-hash = 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n");
}

int bench_set_up_text(void **state) {
	return open_bench(state, CONFIG "data-from = own\n"
									"data-hash = 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n");
}

int bench_tear_down(void **state) {
	struct service_bench *b = *state;
	json_t *status = service_status(b->service, b->now_us, false);
	privacy_page_names(status);
	json_decref(status);
	service_free(b->service);
	memory_store_release(&b->store);
	free(b);
	return 0;
}

void bench_restart(struct service_bench *b) {
	service_free(b->service);
	open_service(b, b->config);
	assert_ok(service_load(b->service, &et));
}

enum rv_err bench_join(struct service_bench *b, uint8_t who, struct join_reply *out) {
	const uint8_t key[NET_KEY_BYTES] = {who};
	struct invite in;
	struct rv_errtext et = {0};
	enum rv_err failing = b->store.failing;
	b->store.failing = RV_OK;
	joining_invite(b->service, NULL, &in);
	b->store.failing = failing;
	return joining_join(b->service, b->now_us, key, &in, b->nameless ? "" : "it's \"me\"", out, &et);
}

void bench_document(struct service_bench *b, struct document *out) {
	joining_document(b->service, &b->run, (const uint8_t[NET_KEY_BYTES]){1}, out);
	assert_int_equal(out->seq, service_document_seq(b->service));
}

static void claim_everything(struct report *rep) {
	rep->tokens = UINT64_C(1) << 62;
	rep->loss = rep->tokens_per_s = 3.3e38f;
	rep->heldout_loss = 3.3e38f;
	rep->heldout_round = UINT64_MAX;
	rep->tx_bytes = rep->rx_bytes = rep->compute_us = rep->reduce_us = rep->inner_step = UINT64_MAX;
	rep->up_bytes_per_s = rep->down_bytes_per_s = UINT64_MAX;
	rep->text_mirror_bytes = rep->text_member_bytes = rep->text_coordinator_bytes = rep->text_stall_us = UINT64_MAX;
}

static void put_candidates(struct report *rep, const char *addr) {
	rep->n_candidates = addr[0] == ':' ? 1 : 2;
	(void)snprintf(rep->candidates[0].addr, NET_ADDR_BYTES, "%s", strrchr(addr, ':'));
	rep->candidates[1].kind = CANDIDATE_GIVEN;
	(void)snprintf(rep->candidates[1].addr, NET_ADDR_BYTES, "%s", addr);
}

enum rv_err bench_report(struct service_bench *b, uint8_t who, enum worker_phase phase, const char *addr) {
	static struct document d;
	uint8_t key[NET_KEY_BYTES] = {who}, body[NET_MAX_REPORT_BYTES];
	struct rv_errtext et = {0};
	bench_document(b, &d);
	struct report rep = {.boot = 1,
						 .seq = ++b->seq,
						 .phase = (uint8_t)phase,
						 .round = d.round,
						 .tokens = 100,
						 .n_chunks = run_chunks("", 0),
						 .chain = d.chain,
						 .loss = (float)(2 + who),
						 .tokens_per_s = 10,
						 .tx_bytes = 1000 * b->seq,
						 .compute_us = b->compute_us,
						 .storage = b->storage};
	if (who == b->liar)
		claim_everything(&rep);
	if (phase == WORKER_REDUCING || phase == WORKER_VOTED)
		rep.attempt = d.attempt;
	if (phase >= WORKER_READY && phase <= WORKER_VOTED)
		rep.commitment.n = 1;
	if (b->state != NULL) {
		rep.round = rep.proven_round = b->state->round;
		rep.chain = rep.proven_chain = b->state->chain;
	}
	if (b->alter != NULL)
		b->alter(&rep, who);
	put_candidates(&rep, addr);
	if (rep.phase >= WORKER_READY && rep.phase <= WORKER_VOTED)
		rig_sign_report(&rep, run_id, key);
	struct rv_writer w = rv_writer_of(body, sizeof body);
	report_encode(&rep, CONTROL_VERSION, &w);
	return service_report(b->service, b->now_us, key, &b->sight, body, rv_writer_len(&w), &et);
}

bool bench_was_told(struct service_bench *b, const char *what) {
	json_t *s = service_status(b->service, b->now_us, false), *event;
	bool found = false;
	size_t i;
	json_array_foreach(json_object_get(s, "events"), i, event) {
		found = found || strstr(json_string_value(json_object_get(event, "text")), what) != NULL;
	}
	json_decref(s);
	return found;
}

void bench_commit_round(struct service_bench *b) {
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(bench_report(b, who, WORKER_TRAINING, ":70"), RV_OK);
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(bench_report(b, who, WORKER_READY, ":70"), RV_OK);
	for (uint8_t who = 1; who <= 2; who++)
		assert_int_equal(bench_report(b, who, WORKER_VOTED, ":70"), RV_OK);
}
