/* fuzz_service.c: the coordinator behind its web server among hostile workers: requests in any
 * order from several keys, time that jumps, a store that is sometimes full, restarts, an operator
 * who bans and takes rounds back. The input is a byte that chooses the run's configuration, then
 * steps: a byte for who does what, and its arguments. Reports follow from the document as an honest
 * worker's do, as far as the input does not say otherwise, so that rounds are committed; they also
 * come bent, and as the fuzzer's bytes. After every step the document must decode and follow from
 * the last one; at the end a coordinator rebuilt from the stored records must stand where this one
 * stood (service_world.h). What takes long is looked at in one execution of four. */
#include "tests/fuzz/service_world.h"

#include "base/chain.h"
#include "coordinator/core/set.h"
#include "tests/coordinator/rig_seals.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { REQUEST_BYTES = NET_MAX_REPORT_BYTES, REPLY_BYTES = NET_MAX_CONFIG_BYTES + 512 };

/* ---- requests ---- */

static void send_join(struct world *w, unsigned who, const void *body, size_t n) {
	static uint8_t bytes[REPLY_BYTES];
	uint8_t key[NET_KEY_BYTES];
	struct rv_errtext et = {0};
	struct rv_writer reply = rv_writer_of(bytes, sizeof bytes);
	world_key(who, key);
	enum rv_err e = service_join(w->service, w->now_us, key, body, n, &reply, &et);
	RV_ASSERT(e == RV_OK || et.text[0] != '\0');
	if (e != RV_OK)
		return;
	RV_ASSERT(!reply.failed && service_find_member(w->service, key) >= 0);
	world_look_at_reply(bytes, rv_writer_len(&reply), key);
}

static void send_report(struct world *w, unsigned who, const void *body, size_t n) {
	static const struct member_sight sights[] = {{"10.0.0.9", "10.0.0.1"},
												 {"203.0.113.9", "10.0.0.1"},
												 {"127.0.0.1", "127.0.0.1"},
												 {"2001:db8::9", "2001:db8::1"}};
	uint8_t key[NET_KEY_BYTES];
	struct rv_errtext et = {0};
	world_key(who, key);
	enum rv_err e = service_report(w->service, w->now_us, key, &sights[who % 4], body, n, &et);
	RV_ASSERT(e == RV_OK || et.text[0] != '\0');
}

static size_t join_body(unsigned who, uint8_t how, uint8_t body[REQUEST_BYTES]) {
	static const struct { uint32_t lowest, highest; } versions[] = {{1, 1}, {1, 2}, {2, 9}, {0, 0}};
	struct join_request rq = {.has_token = !(how & 16), .name = "anna", .software = "fuzz"};
	struct rv_writer b = rv_writer_of(body, REQUEST_BYTES);
	memcpy(rq.run_id, world_run_id(), sizeof rq.run_id);
	rq.run_id[0] ^= (uint8_t)(how & 32);
	if (rq.has_token)
		rq.token[0] = how & 3 ? how & 3 : (uint8_t)(who + 4); /* its own, unless it takes one that others take too */
	if (how & 64)
		rq.token[0] = 0; /* the bad one */
	rq.protocol_min = versions[how >> 2 & 3].lowest;
	rq.protocol = versions[how >> 2 & 3].highest;
	join_request_encode(&rq, &b);
	RV_ASSERT(!b.failed);
	return rv_writer_len(&b);
}

/* ---- reports ---- */

/* One of a few, so that votes can agree. */
static struct rv_hash made_up(uint64_t choice) {
	struct rv_hash h;
	memset(h.b, (int)(choice & 127) + 1, sizeof h.b);
	return h;
}

/* Where it stands: phase, round, attempt. */
static void put_place(const struct world *w, uint8_t place, struct report *rep) {
	static const int rounds[] = {0, -1, 1, -2}, attempts[] = {0, 1, -1, 64};
	rep->phase = (uint8_t)(WORKER_SYNCING + (place & 7) % WORKER_LEAVING);
	rep->round = w->doc.round + (uint64_t)rounds[place >> 3 & 3];
	if (rep->phase == WORKER_REDUCING || rep->phase == WORKER_VOTED)
		rep->attempt = (w->doc.attempt > 0 ? w->doc.attempt : 1) + (uint32_t)attempts[place >> 5 & 3];
	else
		rep->n_suspects = 0;
}

static void put_chain(const struct world *w, uint8_t choice, struct report *rep) {
	bool known = rep->round <= w->doc.round;
	if (choice == 1)
		rep->chain = made_up(1);
	else if (choice == 2 || rep->phase != WORKER_SYNCING)
		rep->chain = known ? w->chains[rep->round] : w->doc.chain;
}

static void put_proof(uint8_t choice, struct report *rep) {
	rep->proven_round = rep->round + (rep->phase == WORKER_VOTED);
	rep->proven_chain = rep->phase == WORKER_VOTED ? rv_chain_next(&rep->chain, &rep->digest) : rep->chain;
	if (choice == 1)
		rep->proven_chain = (struct rv_hash){{0}};
	else if (choice == 2)
		rep->proven_chain = made_up(2);
	else if (choice == 3)
		rep->proven_round ^= 1;
}

static void put_full(const struct world *w, uint8_t choice, struct report *rep) {
	rep->full_round = rep->round & ~1ull;
	rep->full_hash = made_up(rep->full_round);
	if (choice == 1)
		rep->full_round = 0;
	else if (choice == 2)
		rep->full_hash = made_up(77);
	else if (choice == 3)
		rep->full_round = w->doc.snapshot_round;
}

/* Commits to a contribution, and signs that; in an attempt, and unless the place says otherwise, to
 * the first. */
static void put_commitment(uint8_t place, unsigned who, struct report *rep) {
	uint8_t key[NET_KEY_BYTES];
	if (rep->phase < WORKER_READY || rep->phase > WORKER_VOTED)
		return;
	rep->commitment.n = 1;
	rep->commitment.roots[0].root = made_up(rep->phase == WORKER_READY ? 100u + (place >> 5 & 3) : 100u);
	world_key(who, key);
	rig_sign_report(rep, world_run_id(), key);
}

static size_t report_body(struct world *w, unsigned who, struct rv_reader *r, uint8_t body[REQUEST_BYTES]) {
	struct report rep = w->says[who];
	uint8_t place = rv_read_u8(r), hashes = rv_read_u8(r);
	struct rv_writer b = rv_writer_of(body, REQUEST_BYTES);
	rep.seq = rep.seq > 0 ? rep.seq : ++w->seq;
	rep.term += w->doc.term;
	put_place(w, place, &rep);
	if (rep.n_chunks == 0)
		rep.n_chunks = w->n_chunks[rep.round % (WORLD_ROUNDS_MAX + 1)];
	put_chain(w, hashes & 3, &rep);
	rep.digest = rep.phase == WORKER_VOTED ? made_up(hashes >> 2 & 3) : (struct rv_hash){{0}};
	put_full(w, hashes >> 4 & 3, &rep);
	put_proof(hashes >> 6, &rep);
	put_commitment(place, who, &rep);
	report_encode(&rep, rep.version, &b);
	RV_ASSERT(!b.failed);
	return rv_writer_len(&b);
}

/* Small ones and very large ones. */
static uint64_t wide(uint8_t v) {
	return (uint64_t)(v & 15) << (v >> 4) * 4;
}

static void put_candidate(uint8_t v, struct report *says) {
	static const char *const addrs[] = {
		":7434",   "10.0.0.1:1", "[fe80::1]:7434",  "a.example.org:65535", "192.0.2.1:7433",
		"nowhere", ":0",         "192.168.1.255:80"};
	enum { ADDRS = sizeof addrs / sizeof addrs[0] };
	const char *text = addrs[v % ADDRS];
	says->n_candidates = (uint8_t)(1 + v / ADDRS % NET_MAX_CANDIDATES);
	struct candidate *c = &says->candidates[says->n_candidates - 1];
	c->kind = (uint8_t)(v >> 5 & 3);
	c->relay = c->kind == CANDIDATE_REFLECTED;
	memcpy(c->addr, text, strlen(text) + 1);
}

static void put_suspects(uint8_t places, struct report *says) {
	const uint64_t set = places;
	says->n_suspects = 0;
	for (int at = set_next(&set, 0, 1); at >= 0; at = set_next(&set, at + 1, 1))
		says->suspects[says->n_suspects++] = (uint16_t)at;
}

/* Something that the member says from now on. */
static void set_fact(struct report *says, uint8_t which, uint8_t v) {
	uint64_t *const numbers[] = {&says->boot,       &says->seq,        &says->term,           &says->tokens,
								 &says->needs_from, &says->tx_bytes,   &says->rx_bytes,       &says->compute_us,
								 &says->reduce_us,  &says->inner_step, &says->up_bytes_per_s, &says->down_bytes_per_s};
	const unsigned n = sizeof numbers / sizeof numbers[0];
	if (which % 18 < n)
		*numbers[which % 18] = wide(v);
	else if (which % 18 == n)
		says->n_chunks = (uint32_t)wide(v);
	else if (which % 18 == n + 1)
		says->version = v & 1u;
	else if (which % 18 == n + 2)
		says->storage = v & 15;
	else if (which % 18 == n + 3)
		put_candidate(v, says);
	else if (which % 18 == n + 4)
		put_suspects(v, says);
	else
		says->loss = says->tokens_per_s = says->heldout_loss = (float)wide(v);
}

/* ---- steps ---- */

static void joins(struct world *w, unsigned who, struct rv_reader *r) {
	uint8_t body[REQUEST_BYTES];
	send_join(w, who, body, join_body(who, rv_read_u8(r), body));
}

static void reports(struct world *w, unsigned who, struct rv_reader *r) {
	uint8_t body[REQUEST_BYTES];
	send_report(w, who, body, report_body(w, who, r, body));
}

/* The first ones up to `who`, all the same. */
static void all_report(struct world *w, unsigned who, struct rv_reader *r) {
	const struct rv_reader again = *r;
	for (unsigned i = 0; i <= who; i++) {
		*r = again;
		reports(w, i, r);
	}
}

static void changes(struct world *w, unsigned who, struct rv_reader *r) {
	uint8_t which = rv_read_u8(r);
	set_fact(&w->says[who], which, rv_read_u8(r));
}

static void sends_bent(struct world *w, unsigned who, struct rv_reader *r) {
	uint8_t body[REQUEST_BYTES], at = rv_read_u8(r), flip = rv_read_u8(r);
	bool join = flip & 1;
	size_t n = join ? join_body(who, rv_read_u8(r), body) : report_body(w, who, r, body);
	body[(at * 3u + flip) % n] ^= flip;
	(join ? send_join : send_report)(w, who, body, n);
}

static void sends_bytes(struct world *w, unsigned who, struct rv_reader *r) {
	uint8_t n = rv_read_u8(r);
	const uint8_t *body = rv_read_span(r, n);
	if (body == NULL)
		return;
	send_join(w, who, body, n);
	send_report(w, who, body, n);
}

static void listens(struct world *w, unsigned who, struct rv_reader *r) {
	uint8_t key[NET_KEY_BYTES];
	world_key(who, key);
	service_listens(w->service, w->now_us, key, rv_read_u8(r) & 1);
}

static void time_passes(struct world *w, unsigned who, struct rv_reader *r) {
	(void)who;
	w->now_us += (int64_t)rv_read_u16(r) * 1000;
	service_tick(w->service, w->now_us);
}

/* What is due next is done on time. */
static void time_comes(struct world *w, unsigned who, struct rv_reader *r) {
	(void)who;
	(void)r;
	if (w->store.failing != RV_OK)
		return; /* then it is when the store is tried again, by the real clock */
	int64_t at = service_deadline_us(w->service);
	RV_ASSERT(at > w->now_us);
	if (at < INT64_MAX)
		w->now_us = at;
	service_tick(w->service, w->now_us);
}

static void store_fills(struct world *w, unsigned who, struct rv_reader *r) {
	(void)r;
	w->store.failing = who & 1 ? RV_E_FULL : RV_OK;
}

/* Bans a member, or lets it in again, or takes rounds back. */
static void operator_acts(struct world *w, unsigned who, struct rv_reader *r) {
	char text[SERVICE_ROLLBACK_BYTES] = "";
	uint8_t what = rv_read_u8(r);
	uint64_t to_round = w->doc.round - (what >> 2);
	struct rv_errtext et = {0};
	enum rv_err e = what & 2 ? service_rollback(w->service, w->now_us, to_round, what & 1, text, &et)
							 : service_ban(w->service, w->now_us, who, what & 1, &et);
	RV_ASSERT(e == RV_OK ? text[0] != '\0' || !(what & 2) : et.text[0] != '\0');
}

static void restarts(struct world *w, unsigned who, struct rv_reader *r) {
	(void)who;
	(void)r;
	world_restart(w);
}

static void step(struct world *w, struct rv_reader *r) {
	static void (*const steps[16])(struct world *, unsigned, struct rv_reader *) = {
		joins,      reports,     all_report, changes, sends_bent, sends_bytes,   listens, time_passes,
		time_comes, store_fills, restarts,   reports, all_report, operator_acts, changes, reports};
	uint8_t op = rv_read_u8(r);
	steps[op & 15](w, (op >> 4) % WORLD_KEYS, r);
	world_look(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct rv_reader r = rv_reader_of(data, size);
	uint8_t config = rv_read_u8(&r);
	struct world *w = world_begin(config >> 3);
	while (rv_reader_left(&r) > 0)
		step(w, &r);
	if ((config & 3) == 0)
		world_look_closely(w, config & 4);
	world_end(w);
	return 0;
}
