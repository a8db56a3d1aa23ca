/* reach_scene.c: see reach_scene.h. */
#include "tests/worker/reach_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the platform ---- */

static void on_connect(void *ctx, int station, const struct relay_ref *to) {
	struct scene *s = ctx;
	s->connects++;
	s->at[station] = *to;
	s->is_connected[station] = true;
}

static void on_close(void *ctx, int station) {
	struct scene *s = ctx;
	assert_true(s->is_connected[station]);
	s->closes++;
	s->is_connected[station] = false;
}

static void on_send(void *ctx, int station, const struct relay_frame *m) {
	struct scene *s = ctx;
	assert_true(s->sent < SCENE_MAX_SENT);
	assert_true(s->is_connected[station]);
	s->sent_by[s->sent] = station;
	s->frames[s->sent++] = *m;
}

static void on_reflect(void *ctx, const struct reach_reflection *which, const struct relay_ref *to, uint16_t port,
					   const uint8_t token[NET_TOKEN_BYTES]) {
	struct scene *s = ctx;
	struct asked_reflection *a = &s->reflections[reach_reflection_index(which)];
	assert_false(a->is_asked);
	a->is_asked = true;
	a->n++;
	a->port = port;
	memcpy(a->relay, to->addr, sizeof a->relay);
	memcpy(a->token, token, sizeof a->token);
}

static void on_end_reflection(void *ctx, const struct reach_reflection *which) {
	struct asked_reflection *a = &((struct scene *)ctx)->reflections[reach_reflection_index(which)];
	assert_true(a->is_asked);
	a->is_asked = false;
}

static void on_ask(void *ctx, const uint32_t *peers, int n) {
	struct scene *s = ctx;
	s->asks++;
	s->asked = 0;
	for (int i = 0; i < n; i++)
		s->asked |= UINT64_C(1) << peers[i];
}

static bool on_offer(void *ctx, int station, uint32_t peer, const struct route *route) {
	struct scene *s = ctx;
	s->offers++;
	s->offered = peer;
	s->offered_by = station;
	s->route = *route;
	return !s->refuses_offers;
}

static enum path_kind on_path(void *ctx, uint32_t peer) {
	return ((struct scene *)ctx)->paths[peer];
}

static void on_tell(void *ctx, const struct reach_event *e) {
	struct scene *s = ctx;
	s->ups += e->type == REACH_SAYS_UP;
	s->downs += e->type == REACH_SAYS_DOWN;
	s->refusals += e->type == REACH_SAYS_REFUSED;
	s->mappings += e->type == REACH_SAYS_MAPPING;
	s->openings += e->type == REACH_SAYS_OPENING;
	s->bads += e->type == REACH_SAYS_BAD;
	if (e->type == REACH_SAYS_MAPPING)
		s->mapping = *e->mapping;
	(void)snprintf(s->text, sizeof s->text, "%s", e->text);
}

int scene_setup(void **state) {
	struct scene *s = calloc(1, sizeof *s);
	assert_non_null(s);
	const struct reach_config cfg = {.ops = {.ctx = s,
											 .connect = on_connect,
											 .close = on_close,
											 .send = on_send,
											 .reflect = on_reflect,
											 .end_reflection = on_end_reflection,
											 .ask_tickets = on_ask,
											 .offer = on_offer,
											 .path = on_path,
											 .tell = on_tell},
									 .hello = {.version = RELAY_VERSION, .member = SCENE_SELF},
									 .key = {SCENE_KEY},
									 .seed = 1};
	s->core = reach_core_init(malloc(reach_core_size()), &cfg);
	s->now_us = 1000 * (int64_t)S;
	*state = s;
	return 0;
}

int scene_teardown(void **state) {
	struct scene *s = *state;
	free(s->core);
	free(s);
	return 0;
}

/* ---- documents ---- */

void scene_list_relays(struct scene *s, int n) {
	s->doc.n_relays = (uint8_t)n;
	for (int i = 0; i < n; i++) {
		s->doc.relays[i] = (struct relay_ref){.key = {(uint8_t)(i + 1)}};
		(void)snprintf(s->doc.relays[i].addr, NET_ADDR_BYTES, "10.0.0.%d:7435", i + 1);
	}
	reach_core_follow(s->core, s->now_us, &s->doc);
}

void scene_add_member(struct scene *s, uint32_t member, uint8_t relay, const char *addr) {
	struct member_ref *m = &s->doc.members[s->doc.n_members++];
	*m = (struct member_ref){.member = member, .relay = relay, .n_candidates = 1};
	(void)snprintf(m->candidates[0].addr, sizeof m->candidates[0].addr, "%s", addr);
	reach_core_follow(s->core, s->now_us, &s->doc);
}

/* ---- what happens ---- */

void scene_advance(struct scene *s, int64_t us) {
	int64_t end_us = s->now_us + us;
	for (int64_t at; (at = reach_core_deadline_us(s->core)) <= end_us;) {
		s->now_us = at > s->now_us ? at : s->now_us;
		reach_core_tick(s->core, s->now_us);
		assert_true(reach_core_deadline_us(s->core) > s->now_us); /* the owner's loop may wait */
	}
	s->now_us = end_us;
}

void scene_gets(struct scene *s, int station, const struct relay_frame *m, enum rv_err expected) {
	struct rv_errtext et;
	assert_int_equal(reach_core_frame(s->core, s->now_us, station, m, &et), expected);
}

void scene_pongs(struct scene *s) {
	for (int station = 0; station < REACH_STATIONS; station++) {
		struct relay_frame pong = {.type = RELAY_PONG};
		for (int i = 0; i < s->sent; i++)
			if (s->sent_by[i] == station && s->frames[i].type == RELAY_PING)
				pong.number = s->frames[i].number;
		if (pong.number > s->ponged[station] && s->is_connected[station])
			scene_gets(s, station, &pong, RV_OK);
		s->ponged[station] = pong.number;
	}
}

void scene_comes_up(struct scene *s, int station) {
	struct relay_frame seen = {.type = RELAY_SEEN, .seen = {.at = {.host = "192.0.2.7", .port = 4000}, .nonce = {42}}};
	seen.seen.second_port = s->no_second_port ? 0 : 7436;
	for (int i = 0; i < 1000 && !s->is_connected[station]; i++)
		scene_advance(s, S / 10);
	reach_core_connected(s->core, s->now_us, station);
	scene_gets(s, station, &seen, RV_OK);
}

void scene_reflects(struct scene *s, int station, enum reach_family family, enum reach_port port, const char *host,
					uint16_t at) {
	const struct reach_reflection w = {(uint8_t)station, (uint8_t)family, (uint8_t)port};
	struct address seen_at = {.port = at};
	(void)snprintf(seen_at.host, sizeof seen_at.host, "%s", host);
	assert_true(s->reflections[reach_reflection_index(&w)].is_asked);
	reach_core_reflected(s->core, s->now_us, &w, &seen_at);
}

void scene_reflects_all(struct scene *s, int station) {
	static const char *const hosts[] = {[REACH_V4] = "192.0.2.7", [REACH_V6] = "2001:db8::7"};
	for (int family = 0; family < REACH_FAMILIES; family++)
		for (int port = 0; port < REACH_PORTS; port++) {
			const struct reach_reflection w = {(uint8_t)station, (uint8_t)family, (uint8_t)port};
			if (s->reflections[reach_reflection_index(&w)].is_asked)
				scene_reflects(s, station, (enum reach_family)family, (enum reach_port)port, hosts[family], 7434);
		}
}

void scene_is_home(struct scene *s, int n_relays) {
	scene_list_relays(s, n_relays);
	scene_comes_up(s, 0);
	scene_reflects_all(s, 0);
	assert_int_equal(reach_core_relay(s->core), 1);
}

void scene_gets_tickets(struct scene *s) {
	struct pair_reply reply = {.term = 1, .round = 9};
	for (uint32_t m = 0; m < NET_MAX_ROW; m++)
		if ((s->asked >> m & 1) != 0)
			reply.tickets[reply.n++] = (struct pair_ticket){.peer = m, .signature = {(uint8_t)m}};
	s->asked = 0;
	reach_core_tickets(s->core, s->now_us, &reply);
}

const struct relay_frame *scene_called(const struct scene *s, uint32_t peer, enum relay_way way) {
	assert_true(s->sent > 0);
	const struct relay_frame *m = &s->frames[s->sent - 1];
	assert_int_equal(m->type, RELAY_CALL);
	assert_int_equal(m->call.peer, peer);
	assert_int_equal(m->call.way, way);
	return m;
}

void scene_refuses(struct scene *s, int station, uint32_t peer, enum relay_way way, enum relay_refusal reason,
				   uint32_t wait_ms) {
	const struct relay_frame m = {
		.type = RELAY_REFUSED,
		.refused = {.peer = peer, .way = (uint8_t)way, .reason = (uint8_t)reason, .wait_ms = wait_ms}};
	scene_gets(s, station, &m, RV_OK);
}

void scene_opens(struct scene *s, int station, uint32_t peer, const char *host, uint16_t port) {
	struct relay_frame m = {.type = RELAY_OPEN, .open = {.peer = peer, .delay_us = 50 * MS}};
	m.open.at.port = port;
	(void)snprintf(m.open.at.host, sizeof m.open.at.host, "%s", host);
	scene_gets(s, station, &m, RV_OK);
}

void scene_rings(struct scene *s, int station, uint32_t peer) {
	const struct relay_frame m = {.type = RELAY_RING, .ring = {.peer = peer, .token = {9, 8}}};
	scene_gets(s, station, &m, RV_OK);
}
