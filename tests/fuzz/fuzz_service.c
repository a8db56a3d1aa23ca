/* fuzz_service.c: the coordinator behind its web server among hostile workers: request bodies in any order from several
 * keys, time that jumps, a store that is sometimes full. Reports are sent both as the fuzzer's bytes and as well-formed
 * ones with the fuzzer's values, so that the core behind the decoder is reached. After every request the signed
 * document must verify and decode; at the end a coordinator rebuilt from the stored records must stand where this one
 * stood. */
#include "coordinator/service.h"

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS = 4, CHUNKS = 12, RECORDS_MAX = 96, REPLY_BYTES = NET_MAX_CONFIG_BYTES + 512 };

static const char config[] = "rounds = 6\nmin-workers = 2\nbase-every = 2\ngrace-ms = 100\nliveness-ms = 5000\n";
static const uint8_t run_id[NET_RUN_ID_BYTES] = "a run of rivule";

struct memory_store {
	bool full;
	int n;
	struct core_record records[RECORDS_MAX];
};

static enum rv_err append(void *store, const struct core_record *rec, const struct commit_stats *stats,
						  struct rv_errtext *et) {
	struct memory_store *m = store;
	(void)stats;
	if (m->full || m->n == RECORDS_MAX)
		return rv_fail(et, RV_E_FULL, "the store is full");
	m->records[m->n++] = *rec;
	return RV_OK;
}

static enum rv_err token_add(void *store, const struct rv_hash *hash, int64_t wall_us, struct rv_errtext *et) {
	(void)store;
	(void)hash;
	(void)wall_us;
	(void)et;
	return RV_OK;
}

/* All tokens but one are good. */
static enum rv_err token_valid(void *store, const struct rv_hash *hash, bool *valid, struct rv_errtext *et) {
	static const uint8_t bad[NET_TOKEN_BYTES] = {0};
	struct rv_hash refused = core_token_hash(run_id, bad);
	(void)store;
	(void)et;
	*valid = !rv_hash_equal(hash, &refused);
	return RV_OK;
}

static const struct store_ops memory_ops = {append, token_add, token_valid};

struct world {
	struct identity run;
	struct memory_store store;
	struct service *service;
	struct document doc; /* the latest */
	uint64_t seq;        /* of reports */
	int64_t now_us;
};

static struct service *make_service(struct world *w) {
	struct service_config cfg = {.run = &w->run, .config = config, .ops = &memory_ops, .store = &w->store};
	struct service *s;
	struct rv_errtext et = {0};
	memcpy(cfg.run_id, run_id, sizeof run_id);
	(void)snprintf(cfg.advertise.host, sizeof cfg.advertise.host, "localhost");
	cfg.advertise.port = 7433;
	RV_ASSERT(service_new(&cfg, w->now_us, &s, &et) == RV_OK);
	return s;
}

static struct world *world_new(void) {
	static const uint8_t seed[IDENTITY_SEED_BYTES] = {1};
	struct world *w = calloc(1, sizeof *w);
	RV_ASSERT(w);
	identity_of_seed(seed, &w->run);
	w->service = make_service(w);
	return w;
}

static void world_free(struct world *w) {
	service_free(w->service);
	free(w);
}

static void look_at_document(struct world *w) {
	size_t n, bytes;
	const uint8_t *data, *p = NULL;
	RV_ASSERT(service_document(w->service, CONTROL_VERSION, &p, &n, NULL) == RV_OK);
	uint64_t seq = w->doc.seq;
	RV_ASSERT(signed_open(w->run.key, IDENTITY_DOCUMENT_DOMAIN, p, n, &data, &bytes, NULL) == RV_OK);
	RV_ASSERT(document_decode(data, bytes, &w->doc, NULL) == RV_OK);
	RV_ASSERT(w->doc.seq >= seq);
}

static void send_join(struct world *w, const uint8_t key[NET_KEY_BYTES], struct rv_reader *r) {
	uint8_t body[512], *reply = malloc(REPLY_BYTES);
	struct join_request rq = {.protocol = CONTROL_VERSION, .has_token = true, .name = "anna", .software = "fuzz"};
	struct rv_errtext et = {0};
	struct rv_writer b = rv_writer_of(body, sizeof body), out = rv_writer_of(reply, REPLY_BYTES);
	RV_ASSERT(reply);
	memcpy(rq.run_id, run_id, sizeof run_id);
	rq.token[0] = rv_read_u8(r);
	join_request_encode(&rq, &b);
	enum rv_err e = service_join(w->service, w->now_us, key, body, rv_writer_len(&b), &out, &et);
	RV_ASSERT(e == RV_OK ? !out.failed && service_is_member(w->service, key) : et.text[0] != '\0');
	free(reply);
}

/* One of a few values, so that votes can agree: the document's, or a made-up one. */
static struct rv_hash pick_hash(const struct world *w, uint8_t choice) {
	struct rv_hash h = w->doc.chain;
	if (choice & 3)
		memset(h.b, choice & 3, sizeof h.b);
	return h;
}

static void send_report(struct world *w, const uint8_t key[NET_KEY_BYTES], struct rv_reader *r) {
	uint8_t body[NET_MAX_REPORT_BYTES], hashes = rv_read_u8(r);
	struct report rep = {.boot = 1u + (rv_read_u8(r) & 1), .seq = ++w->seq, .n_chunks = CHUNKS, .addr = ":7434"};
	struct rv_errtext et = {0};
	rep.phase = (uint8_t)(WORKER_SYNCING + rv_read_u8(r) % 6);
	rep.round = w->doc.round + rv_read_u8(r) % 3 - 1;
	bool in_attempt = rep.phase == WORKER_REDUCING || rep.phase == WORKER_VOTED;
	rep.attempt = in_attempt ? 1u + rv_read_u8(r) % 3 : 0;
	rep.tokens = rv_read_u16(r);
	rep.suspects = in_attempt ? rv_read_u8(r) & 15 : 0;
	if (rep.phase != WORKER_SYNCING)
		rep.chain = w->doc.chain;
	if (rep.phase == WORKER_VOTED)
		rep.digest = pick_hash(w, (uint8_t)(1 | hashes));
	rep.full_round = hashes & 16 ? rep.round : 0;
	rep.full_hash = pick_hash(w, (uint8_t)(hashes >> 2));
	struct rv_writer b = rv_writer_of(body, sizeof body);
	report_encode(&rep, CONTROL_VERSION, &b);
	enum rv_err e = service_report(w->service, w->now_us, key, "10.0.0.9", body, rv_writer_len(&b), &et);
	RV_ASSERT(e == RV_OK || et.text[0]);
}

static void send_bytes(struct world *w, const uint8_t key[NET_KEY_BYTES], struct rv_reader *r) {
	uint8_t out[REPLY_BYTES];
	struct rv_writer reply = rv_writer_of(out, sizeof out);
	uint8_t n = rv_read_u8(r);
	const uint8_t *body = rv_read_span(r, n);
	if (!body)
		return;
	(void)service_join(w->service, w->now_us, key, body, n, &reply, NULL);
	(void)service_report(w->service, w->now_us, key, "10.0.0.9", body, n, NULL);
}

static void look_at_status(struct world *w) {
	json_t *status = service_status(w->service, w->now_us, true);
	char *metrics = service_metrics(w->service, w->now_us);
	RV_ASSERT(status && metrics);
	json_decref(status);
	free(metrics);
}

static void step(struct world *w, struct rv_reader *r) {
	uint8_t op = rv_read_u8(r), key[NET_KEY_BYTES];
	memset(key, 1 + op % KEYS, sizeof key);
	switch (op / KEYS % 8) {
	case 0:
		send_join(w, key, r);
		break;
	case 1:
		w->now_us += (int64_t)rv_read_u16(r) * 1000;
		break;
	case 2:
		w->store.full = rv_read_u8(r) & 1;
		break;
	case 3:
		send_bytes(w, key, r);
		break;
	case 4:
		(void)service_ban(w->service, w->now_us, rv_read_u8(r) % (KEYS + 1), rv_read_u8(r) & 1, NULL);
		break;
	default:
		send_report(w, key, r);
	}
	service_tick(w->service, w->now_us);
	if (service_document_seq(w->service) != w->doc.seq)
		look_at_document(w);
}

/* What was acknowledged is what the records say. */
static void check_restart(struct world *w) {
	struct rv_errtext et = {0};
	struct service *again = make_service(w);
	for (int i = 0; i < w->store.n; i++)
		RV_ASSERT(service_replay(again, &w->store.records[i], &et) == RV_OK);
	struct document before = w->doc;
	service_free(w->service);
	w->service = again;
	look_at_document(w); /* asserts that seq has not gone back */
	RV_ASSERT(w->doc.round == before.round && rv_hash_equal(&w->doc.chain, &before.chain));
	RV_ASSERT(w->doc.base_round == before.base_round && rv_hash_equal(&w->doc.base_hash, &before.base_hash));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct rv_reader r = rv_reader_of(data, size);
	struct world *w = world_new();
	look_at_document(w);
	while (rv_reader_left(&r) > 0)
		step(w, &r);
	RV_ASSERT(service_fault(w->service, NULL) == RV_OK);
	look_at_status(w);
	check_restart(w);
	world_free(w);
	return 0;
}
