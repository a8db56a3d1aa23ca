/* service_world.c: see service_world.h. */
#include "tests/fuzz/service_world.h"

#include "base/chain.h"
#include "tests/coordinator/run_chunks.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kept_blocks.h"

#include <stdlib.h>
#include <string.h>

static const char *const configs[] = {
	"rounds = 6\nmin-workers = 2\nsnapshot-every = 2\ngrace-ms = 100\nsilence-ms = 2000\n",
	"rounds = 9\nmin-workers = 1\nsnapshot-every = 1\nfragments = 3\nweight-by-tokens = true\nownership = equal\n",
	"rounds = 6\nmin-workers = 3\nsnapshot-every = 4\ngrace-ms = 0\nsilence-ms = 1000\n",
};

static const uint8_t run_id[NET_RUN_ID_BYTES] = "a run of rivule";

/* Ed25519 is deterministic: the key is made once. */
static const struct identity *run_key(void) {
	static const uint8_t seed[IDENTITY_SEED_BYTES] = {1};
	static struct identity run;
	static bool made;
	if (!made)
		identity_of_seed(seed, &run);
	made = true;
	return &run;
}

const uint8_t *world_run_id(void) {
	return run_id;
}

void world_key(unsigned who, uint8_t key[NET_KEY_BYTES]) {
	memset(key, (int)who + 1, NET_KEY_BYTES);
}

/* ---- the store ---- */

/* All tokens that join requests may have are good, but one: 0. */
static void add_tokens(struct store *s) {
	for (uint8_t first = 1; first <= WORLD_TOKENS; first++) {
		const uint8_t token[NET_TOKEN_BYTES] = {first};
		const struct rv_hash hash = core_token_hash(run_id, token);
		const struct store_invite in = {.uses = 1};
		RV_ASSERT(s->ops->invite_add(s, &hash, &in, NULL) == RV_OK);
	}
}

/* ---- documents ---- */

/* Finds a member that gets documents; returns false if there is none. */
static bool find_reader(struct world *w, uint8_t key[NET_KEY_BYTES]) {
	for (unsigned who = 0; who < WORLD_KEYS; who++) {
		world_key(who, key);
		if (service_find_member(w->service, key) >= 0)
			return true;
	}
	return false;
}

static struct document_reply ask_document(struct world *w, const uint8_t key[NET_KEY_BYTES]) {
	const struct document_wish wish = {.version = CONTROL_VERSION, .any = true};
	struct document_reply r;
	RV_ASSERT(service_document(w->service, key, &wish, &r, NULL) == RV_OK && r.n > NET_SIG_BYTES && !r.is_patch);
	return r;
}

static void read_document(struct world *w, const uint8_t key[NET_KEY_BYTES], struct document *out) {
	const struct document_reply r = ask_document(w, key);
	RV_ASSERT(document_decode(r.bytes + NET_SIG_BYTES, r.n - NET_SIG_BYTES, out, NULL) == RV_OK);
}

static void check_signature(struct world *w) {
	uint8_t key[NET_KEY_BYTES];
	const uint8_t *data;
	size_t bytes;
	if (!find_reader(w, key))
		return;
	const struct document_reply r = ask_document(w, key);
	RV_ASSERT(signed_open(run_key()->key, IDENTITY_DOCUMENT_DOMAIN, r.bytes, r.n, &data, &bytes, NULL) == RV_OK);
}

struct seen {
	uint64_t seq, term, round, snapshot_round;
	uint32_t attempt;
};

static struct seen seen_in(const struct document *d) {
	return (struct seen){d->seq, d->term, d->round, d->snapshot_round, d->attempt};
}

/* Rounds are only taken back by a later term, attempts and snapshots only by a later round or
 * term. */
static void check_order(const struct seen *before, const struct document *d) {
	RV_ASSERT(d->seq >= before->seq && d->term >= before->term);
	if (d->term != before->term)
		return;
	RV_ASSERT(d->round >= before->round && d->snapshot_round >= before->snapshot_round);
	if (d->round == before->round && d->attempt != 0)
		RV_ASSERT(d->attempt >= before->attempt);
}

/* Of a round that was committed in this term, or before its first, there is one state hash. */
static void check_chain(struct world *w, const struct seen *before) {
	const struct document *d = &w->doc;
	uint64_t known = d->term == before->term ? before->round : d->term_round;
	RV_ASSERT(d->round <= d->final_round && d->final_round <= WORLD_ROUNDS_MAX && known <= before->round);
	if (d->round <= known && !rv_hash_is_zero(&w->chains[d->round]))
		RV_ASSERT(rv_hash_equal(&w->chains[d->round], &d->chain));
	w->chains[d->round] = d->chain;
	for (uint64_t r = known + 1; r < d->round; r++)
		w->chains[r] = (struct rv_hash){{0}}; /* went by between two documents */
}

static void check_members(const struct document *d) {
	RV_ASSERT(d->n_members <= WORLD_KEYS && d->n_syncing <= WORLD_KEYS);
	for (int i = 0; i < d->n_members; i++) {
		RV_ASSERT(d->members[i].member < WORLD_KEYS);
		RV_ASSERT(d->phase == RUN_REDUCE || !banned_has(&d->banned, d->members[i].member));
	}
	for (int i = 0; i < d->n_syncing; i++)
		RV_ASSERT(document_find(d, d->syncing[i].member) < 0);
}

static void take_document(struct world *w) {
	const struct seen before = seen_in(&w->doc);
	uint8_t key[NET_KEY_BYTES];
	if (!find_reader(w, key))
		return;
	read_document(w, key, &w->doc);
	check_order(&before, &w->doc);
	check_chain(w, &before);
	check_members(&w->doc);
}

void world_look(struct world *w) {
	if (service_document_seq(w->service) != w->doc.seq)
		take_document(w);
}

void world_look_closely(struct world *w, bool details) {
	check_signature(w);
	json_t *status = service_status(w->service, w->now_us, details);
	char *metrics = service_metrics(w->service, w->now_us);
	RV_ASSERT(status != NULL && metrics != NULL);
	json_decref(status);
	free(metrics);
}

/* ---- joins ---- */

void world_look_at_reply(const void *p, size_t n, const uint8_t key[NET_KEY_BYTES]) {
	static struct join_reply reply;
	static uint8_t good[WORLD_KEYS][NET_KEY_BYTES + NET_SIG_BYTES]; /* by member: the last one that was verified */
	RV_ASSERT(join_reply_decode(p, n, &reply, NULL) == RV_OK);
	RV_ASSERT(memcmp(reply.run_id, run_id, sizeof run_id) == 0 && reply.member < WORLD_KEYS);
	uint8_t *last = good[reply.member];
	if (memcmp(last, key, NET_KEY_BYTES) == 0 && memcmp(last + NET_KEY_BYTES, reply.ticket, NET_SIG_BYTES) == 0)
		return;
	RV_ASSERT(ticket_verify(run_key()->key, run_id, reply.member, key, reply.ticket));
	memcpy(last, key, NET_KEY_BYTES);
	memcpy(last + NET_KEY_BYTES, reply.ticket, NET_SIG_BYTES);
}

/* ---- life ---- */

static struct service *make_service(struct world *w) {
	struct service_config cfg = {
		.serving = run_key(), .root = run_key()->key, .config = w->config, .store = &w->store.store};
	struct service *s;
	memcpy(cfg.run_id, run_id, sizeof run_id);
	memcpy(cfg.advertise.host, "localhost", sizeof "localhost");
	cfg.advertise.port = 7433;
	RV_ASSERT(service_new(&cfg, w->now_us, &s, NULL) == RV_OK);
	return s;
}

static void make_reports(struct world *w) {
	for (unsigned i = 0; i < WORLD_KEYS; i++)
		w->says[i] =
			(struct report){.version = CONTROL_VERSION, .boot = 1, .n_candidates = 1, .candidates[0].addr = ":7434"};
}

struct world *world_begin(uint8_t config) {
	static struct world w;
	w.config = configs[config % (sizeof configs / sizeof configs[0])];
	memory_store_init(&w.store);
	w.store.max_bytes = WORLD_STORE_BYTES;
	add_tokens(&w.store.store);
	w.now_us = w.doc.seq = w.doc.term = w.doc.round = w.doc.snapshot_round = w.seq = 0;
	w.doc.attempt = 0;
	w.doc.snapshot_hash = (struct rv_hash){0};
	w.restarts = 0;
	for (uint64_t round = 0; round <= WORLD_ROUNDS_MAX; round++)
		w.n_chunks[round] = run_chunks(w.config, round);
	w.service = make_service(&w);
	make_reports(&w);
	w.doc.run_hash = rv_run_hash(run_id, w.config); /* until there is a member that gets documents */
	w.chains[0] = w.doc.chain = rv_chain_start(&w.doc.run_hash);
	return &w;
}

static void restart(struct world *w) {
	const struct document *d = &w->doc;
	world_look(w);
	const struct rv_hash snapshot_hash = d->snapshot_hash, chain = d->chain;
	const struct seen before = seen_in(d);
	service_free(w->service);
	w->service = make_service(w);
	RV_ASSERT(service_load(w->service, NULL) == RV_OK);
	take_document(w);
	RV_ASSERT(d->term == before.term && d->round == before.round && rv_hash_equal(&d->chain, &chain));
	RV_ASSERT(d->snapshot_round == before.snapshot_round && rv_hash_equal(&d->snapshot_hash, &snapshot_hash));
}

void world_restart(struct world *w) {
	if (w->restarts++ < WORLD_RESTARTS_MAX)
		restart(w);
}

void world_end(struct world *w) {
	RV_ASSERT(service_fault(w->service, NULL) == RV_OK);
	restart(w);
	service_free(w->service);
	memory_store_release(&w->store);
	RV_ASSERT(kept_blocks_in_use() == 0);
}
