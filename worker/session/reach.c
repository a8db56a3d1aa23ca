/* reach.c: joins the worker's stations at relays with the mesh, the coordinator and the log. */
#include "worker/session/internal.h"

#include <stdio.h>
#include <string.h>

static void ask_tickets(void *ctx, const uint32_t *peers, int n) {
	control_client_ask_pairs(((struct session *)ctx)->control, peers, n);
}

static bool coordinator_at(void *ctx, struct address *out) {
	return http_client_met(((struct session *)ctx)->http, out);
}

static void tell_station(struct session *s, const struct reach_event *e) {
	const char *addr = e->relay->addr, *also = e->is_guest ? "also " : "";
	if (e->type == REACH_SAYS_UP)
		rv_event(s->events, RV_DEBUG, "relay_up",
				 RV_FIELDS(rv_field_str("relay", addr), rv_field_bool("guest", e->is_guest),
						   rv_field_str("seen_at", e->text)),
				 "%sat the relay %s, which sees this worker at %s", also, addr, e->text);
	else
		rv_event(
			s->events, RV_INFO, "relay_down",
			RV_FIELDS(rv_field_str("relay", addr), rv_field_bool("guest", e->is_guest), rv_field_str("text", e->text)),
			"no longer %sat the relay %s (%s)%s", also, addr, e->text,
			e->is_guest ? "" : ": retrying; members that can be dialed need none");
}

static void tell_pair(struct session *s, const struct reach_event *e) {
	const char *addr = e->relay->addr;
	const struct rv_field *fields =
		RV_FIELDS(rv_field_str("relay", addr), rv_field_int("member", e->peer), rv_field_str("text", e->text));
	if (e->type == REACH_SAYS_REFUSED)
		rv_event(s->events, RV_INFO, "relay_refused", fields,
				 "the relay %s does not connect this worker with member %u: %s", addr, e->peer, e->text);
	else
		rv_event(s->events, RV_DEBUG, "opening", fields,
				 "this worker and member %u (at %s) dial each other at one moment", e->peer, e->text);
}

static const char symmetric[] =
	": the router is symmetric (another port for each destination), so this worker meets members "
	"behind most routers through a relay only; a port that the router forwards to it would help";

static void tell_mapping(struct session *s, const struct reach_event *e) {
	static const char *const kinds[] = {[REACH_MAPPING_UNKNOWN] = "unknown",
										[REACH_MAPPING_INDEPENDENT] = "independent",
										[REACH_MAPPING_DEPENDENT] = "dependent"};
	bool is_symmetric = e->mapping->kind == REACH_MAPPING_DEPENDENT;
	char at[NET_ADDR_BYTES] = "";
	(void)address_format(&e->mapping->at, at);
	rv_event(s->events, RV_DEBUG, "mapping",
			 RV_FIELDS(rv_field_int("family", e->family == REACH_V6 ? 6 : 4), rv_field_str("at", at),
					   rv_field_str("kind", kinds[e->mapping->kind])),
			 "others see this worker's port at %s%s", at, is_symmetric ? symmetric : "");
}

static void tell_bad(struct session *s, const struct reach_event *e) {
	rv_event(s->events, RV_WARN, "relay_bad", RV_FIELDS(rv_field_str("relay", e->relay->addr)),
			 "the relay %s connects nobody, or breaks the rules: others come first for a while", e->relay->addr);
}

static void tell(void *ctx, const struct reach_event *e) {
	if (e->type == REACH_SAYS_MAPPING)
		tell_mapping(ctx, e);
	else if (e->type == REACH_SAYS_BAD)
		tell_bad(ctx, e);
	else if (e->type == REACH_SAYS_UP || e->type == REACH_SAYS_DOWN)
		tell_station(ctx, e);
	else
		tell_pair(ctx, e);
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
	cfg.hello.cert = session_shown_cert(s);
	memcpy(cfg.coordinator, s->member.invite.coordinator.host, sizeof cfg.coordinator);
	return reach_new(&cfg, &s->reach, et);
}

void session_on_unreached(void *ctx, uint32_t member, enum peers_need need) {
	struct session *s = ctx;
	if (s->reach != NULL)
		reach_core_want(reach_core_of(s->reach), rv_clock_monotonic_us(), member, need == PEERS_RELAYED);
}

void session_on_route_end(void *ctx, uint32_t member, const struct route *route, int64_t lived_us, bool failed) {
	struct session *s = ctx;
	if (s->reach != NULL && route->kind == ROUTE_RELAY)
		reach_core_relay_ended(reach_core_of(s->reach), rv_clock_monotonic_us(), member, lived_us, failed);
}

void session_on_pairs(void *ctx, const struct pair_reply *reply) {
	struct session *s = ctx;
	if (s->reach != NULL)
		reach_core_tickets(reach_core_of(s->reach), rv_clock_monotonic_us(), reply);
}

uint8_t session_reflected(const struct session *s, struct candidate out[NET_MAX_CANDIDATES], uint8_t n) {
	for (int family = 0; family < REACH_FAMILIES && n < NET_MAX_CANDIDATES; family++) {
		const struct reach_proof *p = reach_core_proof(reach_core_of(s->reach), (enum reach_family)family);
		if (p == NULL)
			continue;
		out[n] = (struct candidate){.kind = CANDIDATE_REFLECTED, .relay = p->relay, .unix_s = p->unix_s};
		memcpy(out[n].signature, p->signature, sizeof out[n].signature);
		(void)address_format(&p->at, out[n++].addr);
	}
	return n;
}
