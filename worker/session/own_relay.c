/* own_relay.c: the relay that this worker runs for others, if it is asked to: its offer to the
 * coordinator, what documents say of it, and the log. */
#include "worker/session/internal.h"

#include "net/portmap/portmap.h"
#include "worker/own_relay/own_relay.h"

#include <stdio.h>
#include <string.h>

#define FIGURES_US  (INT64_C(3600) * RV_US_PER_S)
#define UNLISTED_US (INT64_C(300) * RV_US_PER_S)

/* ---- the log ---- */

static void log_figures(struct session *s, const char *name, struct own_relay_figures f) {
	rv_event(s->events, RV_INFO, name,
			 RV_FIELDS(rv_field_int("bytes", (int64_t)f.bytes), rv_field_int("stations", f.stations),
					   rv_field_int("links", f.links)),
			 "relay for others: %.1f MB forwarded since the start; now %u stations, %u links", (double)f.bytes / 1e6,
			 f.stations, f.links);
}

static void log_opened(struct session *s, int64_t rate) {
	const uint16_t port = own_relay_port(s->own_relay.relay);
	rv_event(s->events, RV_INFO, "own_relay",
			 RV_FIELDS(rv_field_int("port", port), rv_field_int("bytes_per_s", rate),
					   rv_field_int("bytes_per_day", s->opt->relay_per_day)),
			 "relay for others on port %u, up to %.3g Mbit/s; the run lists it once another member has reached it",
			 port, (double)rate * 8 / 1e6);
}

static void log_unlisted(struct session *s) {
	const uint16_t port = own_relay_port(s->own_relay.relay), second = own_relay_second_port(s->own_relay.relay);
	char ports[32];
	if (second != 0)
		(void)snprintf(ports, sizeof ports, "ports %u and %u", port, second);
	else
		(void)snprintf(ports, sizeof ports, "port %u", port);
	s->own_relay.told_unlisted = true;
	rv_event(s->events, RV_WARN, "own_relay_unlisted", RV_FIELDS(rv_field_int("port", port)),
			 "the run does not list this worker's relay: no other member has reached it, or %d relays are listed. In "
			 "your router, forward TCP %s to this machine",
			 (int)NET_MAX_RELAYS, ports);
}

/* ---- life ---- */

enum rv_err session_open_own_relay(struct session *s, struct rv_errtext *et) {
	int64_t rate;
	struct rv_errtext why;
	RV_TRY(worker_options_relay_rate(s->opt, &rate, et));
	if (rate == 0)
		return RV_OK;
	struct own_relay_config cfg = {.identity = &s->member.identity,
								   .bytes_per_s = (uint64_t)rate,
								   .bytes_per_day = (uint64_t)s->opt->relay_per_day,
								   .port = (uint16_t)s->opt->relay_port};
	memcpy(cfg.root, s->member.invite.key, sizeof cfg.root);
	if (own_relay_start(&cfg, &s->own_relay.relay, &why) != RV_OK) {
		rv_event(s->events, RV_WARN, "own_relay", RV_NO_FIELDS, "no relay for others: %s", why.text);
		return RV_OK;
	}
	s->own_relay.opened_us = s->own_relay.figures_us = rv_clock_monotonic_us();
	log_opened(s, rate);
	return RV_OK;
}

void session_close_own_relay(struct session *s) {
	if (s->own_relay.relay == NULL)
		return;
	portmap_stop(s->own_relay.portmap);
	portmap_stop(s->own_relay.second_portmap);
	const struct own_relay_figures last = own_relay_stop(s->own_relay.relay);
	log_figures(s, "own_relay_closed", last);
	s->own_relay = (struct session_own_relay){.closed_bytes = s->own_relay.closed_bytes + last.bytes};
}

/* ---- the offer ---- */

/* Returns the port at which the router lets others in; 0: it maps none, or in vain. */
static uint16_t mapped_port(struct portmap *p) {
	struct portmap_state m = {.protocol = NULL};
	if (p != NULL)
		portmap_peek(p, &m);
	return m.protocol != NULL && m.text[0] == '\0' ? m.outside.port : 0;
}

uint16_t session_offered_relay(struct session *s) {
	if (s->own_relay.relay == NULL)
		return 0;
	uint16_t mapped = mapped_port(s->own_relay.portmap);
	return mapped != 0 ? mapped : own_relay_port(s->own_relay.relay);
}

/* Names the second port where others reach it the way that they reach the main one: both mapped by
 * the router, or both without that. */
static void name_second(const struct session_own_relay *o) {
	bool is_mapped = mapped_port(o->portmap) != 0;
	own_relay_name_second(o->relay, is_mapped ? mapped_port(o->second_portmap) : own_relay_second_port(o->relay));
}

static const struct relay_ref *find_own(const struct session *s, const struct document *d) {
	for (int i = 0; i < d->n_relays; i++)
		if (memcmp(d->relays[i].key, s->member.identity.key, NET_KEY_BYTES) == 0)
			return &d->relays[i];
	return NULL;
}

void session_own_relay_follow(struct session *s, const struct document *d) {
	struct session_own_relay *o = &s->own_relay;
	if (o->relay == NULL)
		return;
	const struct relay_ref *own = find_own(s, d);
	own_relay_ban(o->relay, &d->banned);
	if (own != NULL && !o->listed)
		rv_event(s->events, RV_INFO, "own_relay_listed", RV_FIELDS(rv_field_str("relay", own->addr)),
				 "the run lists this worker's relay %s: members that do not reach each other meet there", own->addr);
	if (own == NULL && o->listed && !s->signals.asked) /* a leaving member's relay leaves the list */
		log_unlisted(s);
	o->listed = own != NULL;
}

/* Asks the router for a port of the relay, where it is asked for the mesh's. */
static void map_port(struct session *s, uint16_t port, struct portmap **out) {
	struct rv_errtext et;
	if (s->portmap == NULL || *out != NULL || port == 0)
		return;
	if (portmap_start(port, out, &et) != RV_OK)
		rv_event(s->events, RV_WARN, "port_map", RV_NO_FIELDS, "%s", et.text);
}

void session_own_relay_tick(struct session *s, int64_t now_us) {
	struct session_own_relay *o = &s->own_relay;
	if (o->relay == NULL)
		return;
	map_port(s, own_relay_port(o->relay), &o->portmap);
	map_port(s, own_relay_second_port(o->relay), &o->second_portmap);
	name_second(o);
	if (!o->listed && !o->told_unlisted && now_us - o->opened_us >= UNLISTED_US)
		log_unlisted(s);
	if (now_us - o->figures_us < FIGURES_US)
		return;
	o->figures_us = now_us;
	log_figures(s, "own_relay_figures", own_relay_look(o->relay));
}
