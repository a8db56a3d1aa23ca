/* serving_key.c: the run's operator may have it served by another key (net/serving_cert.h): this
 * worker learns of it when it connects to the coordinator, and asks for a ticket of that key. */
#include "worker/session/internal.h"

#include <stdio.h>
#include <string.h>

struct serving_cert session_shown_cert(const struct session *s) {
	const struct serving_cert none = {.serial = 0};
	return s->member.trust.cert.serial > 0 ? s->member.trust.cert : none;
}

/* A known key needs no token: the answer repeats its number, with a ticket of the key that serves
 * now. */
static void ask_for_ticket(struct session *s) {
	struct join_request rq = {.protocol = control_version(), .protocol_min = CONTROL_VERSION_MIN};
	memcpy(rq.run_id, s->member.invite.run_id, NET_RUN_ID_BYTES);
	snprintf(rq.name, sizeof rq.name, "%s", s->member.name);
	snprintf(rq.software, sizeof rq.software, "rivulet %s", RV_VERSION);
	control_client_join(s->control, &rq);
}

void session_check_ticket(struct session *s) {
	if (s->member.joined && !ticket_verify(run_trust_key(&s->member.trust), s->member.invite.run_id, s->member.member,
										   s->member.identity.key, s->member.ticket))
		ask_for_ticket(s);
}

void session_follow_serving_key(struct session *s) {
	const struct run_trust *t = http_client_trust(s->http);
	struct rv_errtext et;
	if (t->cert.serial == s->member.trust.cert.serial)
		return;
	s->member.trust = *t;
	if (!s->member.joined)
		return; /* the answer to the join brings the ticket */
	rv_event(s->events, RV_INFO, "serving_key", RV_FIELDS(rv_field_int("serial", t->cert.serial)),
			 "the run is served by another key, number %u, which its root key has signed: earlier ones are refused",
			 t->cert.serial);
	if (membership_store(s->opt->dir, &s->member, &et) != RV_OK)
		rv_event(s->events, RV_WARN, "serving_key", RV_NO_FIELDS, "%s: a restart may believe an earlier key", et.text);
	session_check_ticket(s);
}

void session_take_ticket(struct session *s) {
	struct relay_hello hello = {.version = RELAY_VERSION, .member = s->member.member, .cert = session_shown_cert(s)};
	if (!session_is_up(s))
		return;
	memcpy(hello.run_id, s->member.invite.run_id, NET_RUN_ID_BYTES);
	memcpy(hello.ticket, s->member.ticket, NET_SIG_BYTES);
	peers_serve_by(meshlink_peers(s->mesh), run_trust_key(&s->member.trust), s->member.ticket);
	reach_core_show(reach_core_of(s->reach), rv_clock_monotonic_us(), &hello);
}
