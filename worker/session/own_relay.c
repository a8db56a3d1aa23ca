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
	const uint16_t port = own_relay_port(s->own_relay.relay);
	s->own_relay.told_unlisted = true;
	rv_event(s->events, RV_WARN, "own_relay_unlisted", RV_FIELDS(rv_field_int("port", port)),
			 "the run does not list this worker's relay: no other member has reached it, or %d relays are listed. In "
			 "your router, forward TCP port %u to this machine",
			 (int)NET_MAX_RELAYS, port);
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
	memcpy(cfg.run_key, s->member.invite.key, sizeof cfg.run_key);
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
	log_figures(s, "own_relay_closed", own_relay_stop(s->own_relay.relay));
	s->own_relay = (struct session_own_relay){0};
}

/* ---- the offer ---- */

uint16_t session_offered_relay(struct session *s) {
	struct portmap_state m;
	if (s->own_relay.relay == NULL)
		return 0;
	if (s->own_relay.portmap != NULL) {
		(void)portmap_look(s->own_relay.portmap, &m);
		if (m.protocol != NULL && m.text[0] == '\0')
			return m.outside.port;
	}
	return own_relay_port(s->own_relay.relay);
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
	own_relay_ban(o->relay, d->banned);
	if (own != NULL && !o->listed)
		rv_event(s->events, RV_INFO, "own_relay_listed", RV_FIELDS(rv_field_str("relay", own->addr)),
				 "the run lists this worker's relay %s: members that do not reach each other meet there", own->addr);
	if (own == NULL && o->listed && !s->signals.asked) /* a leaving member's relay leaves the list */
		log_unlisted(s);
	o->listed = own != NULL;
}

/* Asks the router for the relay's port, where it is asked for the mesh's. */
static void map_port(struct session *s) {
	struct rv_errtext et;
	if (s->portmap == NULL || s->own_relay.portmap != NULL)
		return;
	if (portmap_start(own_relay_port(s->own_relay.relay), &s->own_relay.portmap, &et) != RV_OK)
		rv_event(s->events, RV_WARN, "port_map", RV_NO_FIELDS, "%s", et.text);
}

void session_own_relay_tick(struct session *s, int64_t now_us) {
	struct session_own_relay *o = &s->own_relay;
	if (o->relay == NULL)
		return;
	map_port(s);
	if (!o->listed && !o->told_unlisted && now_us - o->opened_us >= UNLISTED_US)
		log_unlisted(s);
	if (now_us - o->figures_us < FIGURES_US)
		return;
	o->figures_us = now_us;
	log_figures(s, "own_relay_figures", own_relay_look(o->relay));
}
