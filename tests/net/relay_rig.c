/* relay_rig.c: see relay_rig.h. */
#include "tests/net/relay_rig.h"

#include "base/clock.h"
#include "tests/common/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void any_bytes(void *rig, void *out, size_t n) {
	struct relay_rig *r = rig;
	for (size_t i = 0; i < n; i += NET_TOKEN_BYTES)
		memset((uint8_t *)out + i, ++r->next_random, NET_TOKEN_BYTES);
}

static uint64_t unix_s(void *rig) {
	return ((struct relay_rig *)rig)->unix_s;
}

static uint32_t rtt_us(void *rig, int connection) {
	const struct relay_rig *r = rig;
	for (int i = 0; i < RIG_MEMBERS; i++)
		if (r->station[i] == connection)
			return r->rtt_us[i];
	fail_msg("connection %d is no station", connection);
	return 0;
}

static void make_identity(struct identity *out, uint8_t n) {
	const uint8_t seed[IDENTITY_SEED_BYTES] = {n, 7};
	identity_of_seed(seed, out);
}

static void init(struct relay_rig *r, uint64_t bytes_per_day, uint64_t of_all, uint64_t bytes_per_s) {
	*r = (struct relay_rig){.now_us = 1000 * RV_US_PER_S, .run_id = {9}, .unix_s = 1795444000};
	struct relay_config cfg = {.relay = &r->relay,
							   .second_port = RIG_SECOND_PORT,
							   .bytes_per_day = bytes_per_day,
							   .bytes_per_day_of_all = of_all,
							   .bytes_per_s = bytes_per_s,
							   .ctx = r,
							   .random = any_bytes,
							   .unix_s = unix_s,
							   .rtt_us = rtt_us};
	make_identity(&r->run, 100);
	make_identity(&r->relay, 101);
	for (int i = 0; i < RIG_MEMBERS; i++)
		make_identity(&r->members[i], (uint8_t)i);
	memcpy(cfg.root, r->run.key, NET_KEY_BYTES);
	void *memory = malloc(relay_core_size());
	assert_non_null(memory);
	r->core = relay_core_init(memory, &cfg, r->now_us);
}

void rig_init(struct relay_rig *r, uint64_t bytes_per_day, uint64_t bytes_per_s) {
	init(r, bytes_per_day, 0, bytes_per_s);
}

void rig_init_for_all(struct relay_rig *r, uint64_t bytes_per_day_of_all) {
	init(r, 0, bytes_per_day_of_all, 0);
}

void rig_release(struct relay_rig *r) {
	free(r->core);
}

void rig_clear(struct relay_rig *r) {
	r->n_closed = r->n_sent = r->n_splices = 0;
}

void rig_drain(struct relay_rig *r) {
	struct relay_action a;
	while (relay_next_action(r->core, &a)) {
		if (a.type == RELAY_CLOSE)
			r->closed[r->n_closed++] = a.connection;
		else if (a.type == RELAY_SPLICE)
			r->n_splices++;
		else if (r->n_sent < 8)
			r->sent[r->n_sent++] = a;
	}
}

bool rig_was_closed(const struct relay_rig *r, int connection) {
	for (int i = 0; i < r->n_closed; i++)
		if (r->closed[i] == connection)
			return true;
	return false;
}

void rig_pass_ms(struct relay_rig *r, int64_t ms) {
	for (; ms > 0; ms -= RELAY_TICK_MS) {
		r->now_us += RELAY_TICK_MS * RV_US_PER_MS;
		relay_tick(r->core, r->now_us);
		rig_drain(r);
	}
}

static int accept_from(struct relay_rig *r, const char *host, uint16_t port, enum relay_port to) {
	struct address from = {.port = port};
	(void)snprintf(from.host, sizeof from.host, "%s", host);
	int connection = relay_accept(r->core, r->now_us, &from, to);
	rig_drain(r);
	return connection;
}

int rig_accept(struct relay_rig *r, const char *host) {
	return accept_from(r, host, 4000, RELAY_MAIN_PORT);
}

int rig_reflect(struct relay_rig *r, const char *host, uint16_t from, enum relay_port to,
				const uint8_t token[NET_TOKEN_BYTES]) {
	struct relay_preamble p = {.kind = RELAY_REFLECT};
	int connection = accept_from(r, host, from, to);
	memcpy(p.token, token, NET_TOKEN_BYTES);
	relay_take_preamble(r->core, r->now_us, connection, &p);
	rig_drain(r);
	return connection;
}

int rig_hello(struct relay_rig *r, int member, const struct identity *run, uint32_t number) {
	int connection = rig_accept(r, "192.0.2.1");
	struct relay_frame f = {.type = RELAY_HELLO, .hello = {.version = RELAY_VERSION, .member = number}};
	memcpy(f.hello.run_id, r->run_id, NET_RUN_ID_BYTES);
	ticket_sign(run, r->run_id, number, r->members[member].key, f.hello.ticket);
	relay_authenticated(r->core, connection, r->members[member].key);
	relay_take_frame(r->core, r->now_us, connection, &f);
	rig_drain(r);
	return connection;
}

void rig_stations(struct relay_rig *r, int n) {
	for (int i = 0; i < n; i++) {
		rig_clear(r);
		r->station[i] = rig_hello(r, i, &r->run, (uint32_t)i);
		memcpy(r->token[i], r->sent[0].frame.seen.nonce, NET_TOKEN_BYTES);
	}
	assert_int_equal(r->n_closed, 0);
	rig_clear(r);
}

static void take_call(struct relay_rig *r, int from, struct relay_call call, const uint8_t ticket[NET_SIG_BYTES]) {
	memcpy(call.ticket, ticket, NET_SIG_BYTES);
	relay_take_frame(r->core, r->now_us, r->station[from], &(struct relay_frame){.type = RELAY_CALL, .call = call});
	rig_drain(r);
}

void rig_call_with(struct relay_rig *r, int from, uint32_t to, uint64_t term, uint64_t round,
				   const uint8_t ticket[NET_SIG_BYTES]) {
	take_call(r, from, (struct relay_call){.peer = to, .way = WAY_FORWARD, .term = term, .round = round}, ticket);
}

int rig_call(struct relay_rig *r, int from, int to, uint64_t round) {
	return rig_call_way(r, from, to, WAY_FORWARD, round);
}

int rig_call_way(struct relay_rig *r, int from, int to, enum relay_way way, uint64_t round) {
	const struct relay_call call = {.peer = (uint32_t)to, .way = (uint8_t)way, .term = 1, .round = round};
	struct pair_end a = {.member = (uint32_t)from}, b = {.member = (uint32_t)to};
	uint8_t ticket[NET_SIG_BYTES];
	memcpy(a.key, r->members[from].key, NET_KEY_BYTES);
	memcpy(b.key, r->members[to].key, NET_KEY_BYTES);
	pair_ticket_sign(&r->run, r->run_id, 1, round, &a, &b, ticket);
	rig_clear(r);
	take_call(r, from, call, ticket);
	return r->n_sent > 0 ? r->sent[0].frame.type : 0;
}

int rig_data(struct relay_rig *r, const uint8_t token[NET_TOKEN_BYTES]) {
	struct relay_preamble p = {.kind = RELAY_DATA};
	int connection = rig_accept(r, "192.0.2.2");
	memcpy(p.token, token, NET_TOKEN_BYTES);
	relay_take_preamble(r->core, r->now_us, connection, &p);
	rig_drain(r);
	return connection;
}

void rig_join(struct relay_rig *r, int from, int to, uint64_t round, int ends[2]) {
	assert_int_equal(rig_call(r, from, to, round), RELAY_RING);
	assert_int_equal(r->n_sent, 2);
	for (int e = 0; e < 2; e++)
		ends[e] = rig_data(r, r->sent[e].frame.ring.token);
	assert_int_equal(r->n_splices, 1);
	rig_clear(r);
}
