/* reach.c: joins the worker's station at a relay with the mesh, the coordinator and the log. */
#include "worker/session/internal.h"

#include <stdio.h>
#include <string.h>

static void ask_tickets(void *ctx, uint64_t peers) {
	control_client_ask_pairs(((struct session *)ctx)->control, peers);
}

static bool coordinator_at(void *ctx, struct address *out) {
	return http_client_met(((struct session *)ctx)->http, out);
}

static void tell(void *ctx, const struct reach_event *e) {
	struct session *s = ctx;
	const char *addr = e->relay->addr;
	if (e->type == REACH_SAYS_UP)
		rv_event(s->events, RV_INFO, "relay_up",
				 RV_FIELDS(rv_field_str("relay", addr), rv_field_str("seen_at", e->text)),
				 "at the relay %s, which sees this worker at %s", addr, e->text);
	else if (e->type == REACH_SAYS_DOWN)
		rv_event(s->events, RV_INFO, "relay_down",
				 RV_FIELDS(rv_field_str("relay", addr), rv_field_str("text", e->text)),
				 "no longer at the relay %s (%s): retrying; members that can be dialed need none", addr, e->text);
	else
		rv_event(s->events, RV_INFO, "relay_refused",
				 RV_FIELDS(rv_field_str("relay", addr), rv_field_int("member", e->peer), rv_field_str("text", e->text)),
				 "the relay %s does not connect this worker with member %u: %s", addr, e->peer, e->text);
}

enum rv_err session_open_reach(struct session *s, struct rv_errtext *et) {
	struct reach_shell_config cfg = {
		.identity = &s->member.identity,
		.peers = meshlink_peers(s->mesh),
		.hello = {.version = RELAY_VERSION, .member = s->member.member},
		.owner = {.ctx = s, .ask_tickets = ask_tickets, .tell = tell, .coordinator_at = coordinator_at},
		.seed = (uint64_t)rv_clock_wall_us()};
	memcpy(cfg.hello.run_id, s->member.invite.run_id, NET_RUN_ID_BYTES);
	memcpy(cfg.hello.ticket, s->member.ticket, NET_SIG_BYTES);
	memcpy(cfg.coordinator, s->member.invite.coordinator.host, sizeof cfg.coordinator);
	return reach_new(&cfg, &s->reach, et);
}

void session_on_unreached(void *ctx, uint32_t member, enum peers_need need) {
	struct session *s = ctx;
	if (s->reach != NULL && need == PEERS_UNREACHED)
		reach_core_want(reach_core_of(s->reach), rv_clock_monotonic_us(), member);
}

void session_on_pairs(void *ctx, const struct pair_reply *reply) {
	struct session *s = ctx;
	if (s->reach != NULL)
		reach_core_tickets(reach_core_of(s->reach), rv_clock_monotonic_us(), reply);
}
