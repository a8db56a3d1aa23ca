/* network.c: this worker's place in the network: where it listens, the port that its router
 * forwards; an address of this machine came or went, the machine slept, the coordinator is
 * reachable again; and which addresses of others may be dialed. */
#include "worker/session/internal.h"

#include "base/clock.h"
#include "base/os_address_watch.h"
#include "base/os_clock.h"
#include "net/portmap/portmap.h"

#include <stdio.h>
#include <unistd.h>

enum { USUAL_PORT = 7434, RELAYS_PORT = 7435, PORTS_TRIED = 64 };

/* ---- where others reach it ---- */

enum rv_err session_choose_listen(struct session *s, struct rv_errtext *et) {
	(void)snprintf(s->listen, sizeof s->listen, "%s", s->opt->listen);
	for (int port = USUAL_PORT; s->opt->listen[0] == '\0' && port < USUAL_PORT + PORTS_TRIED; port++) {
		(void)snprintf(s->listen, sizeof s->listen, ":%d", port);
		enum rv_err e = port != RELAYS_PORT ? peers_check_listen(s->listen, et) : RV_E_BUSY;
		if (e != RV_E_BUSY)
			return e;
	}
	return peers_check_listen(s->listen, et);
}

/* A mapping can help where the run is on the internet, and peers may come in at any address. Before
 * the join the port must be the one that the mesh will have. */
static bool helps_to_map(const struct session *s) {
	struct address own, coordinator;
	return s->opt->map_port && !s->opt->advertise[0] && http_client_met(s->http, &coordinator) &&
		   address_reach(&coordinator) == ADDRESS_PUBLIC && address_parse(s->listen, &own, NULL) == RV_OK &&
		   own.host[0] == '\0' && (own.port != 0 || session_is_up(s));
}

void session_map_port(struct session *s, uint16_t port) {
	struct rv_errtext et;
	if (s->portmap != NULL && s->mapped_port != port) { /* another program took it before the mesh did */
		portmap_stop(s->portmap);
		s->portmap = NULL;
	}
	if (s->portmap != NULL || !helps_to_map(s))
		return;
	s->mapped_port = port;
	if (portmap_start(port, &s->portmap, &et) != RV_OK)
		rv_event(s->events, RV_WARN, "port_map", RV_NO_FIELDS, "%s", et.text);
}

static void log_mapping(struct session *s, const struct portmap_state *m) {
	const char *but = m->text[0] != '\0'        ? m->text
					  : s->reachability.refuted ? "nobody gets through to it from outside"
												: "";
	if (m->protocol == NULL)
		rv_event(s->events, RV_INFO, "port_map", RV_FIELDS(rv_field_str("text", m->text)),
				 "the router forwards no port to this worker: %s", m->text);
	else
		rv_event(s->events, but[0] ? RV_WARN : RV_INFO, "port_map",
				 RV_FIELDS(rv_field_str("protocol", m->protocol), rv_field_str("host", m->outside.host),
						   rv_field_int("port", m->outside.port), rv_field_str("text", but)),
				 "the router forwards its TCP port %u to this worker (%s)%s%s", m->outside.port, m->protocol,
				 but[0] ? ", but " : "", but);
}

uint16_t session_outside_port(struct session *s) {
	struct portmap_state m;
	if (s->portmap != NULL && portmap_look(s->portmap, &m))
		log_mapping(s, &m);
	bool mapped = s->portmap != NULL && m.protocol != NULL && m.text[0] == '\0' && !s->reachability.refuted;
	return mapped ? m.outside.port : peers_port(meshlink_peers(s->mesh));
}

/* ---- changes ---- */

void session_watch_addresses(struct session *s) {
	s->addresses_fd = os_address_watch_open();
}

void session_unwatch_addresses(struct session *s) {
	if (s->addresses_fd >= 0)
		close(s->addresses_fd);
}

/* Asks and dials at once what was cut off: its timers were set while no attempt could succeed. */
static void hurry(struct session *s, int64_t now_us) {
	control_client_hurry(s->control);
	if (!session_is_up(s))
		return;
	peers_hurry(meshlink_peers(s->mesh), now_us);
	reach_core_hurry(reach_core_of(s->reach), now_us);
}

void session_poll_addresses(struct session *s, int64_t now_us) {
	if (s->addresses_fd < 0 || !os_address_watch_take(s->addresses_fd))
		return;
	http_client_drop_stranded(s->http);
	if (s->portmap != NULL)
		portmap_hurry(s->portmap);
	session_retest_reach(s, now_us);
	hurry(s, now_us);
}

/* The lease of the router's mapping may be over, and every connection. */
static void wake(struct session *s, int64_t now_us) {
	http_client_drop_all(s->http);
	if (s->portmap != NULL)
		portmap_hurry(s->portmap);
	hurry(s, now_us);
	if (session_is_up(s))
		peers_woke(meshlink_peers(s->mesh), now_us);
}

void session_poll_sleep(struct session *s, int64_t now_us) {
	int64_t slept_us = sleep_watch_take(&s->sleep, now_us, os_clock_suspended_us());
	if (slept_us == 0)
		return;
	double seconds = (double)slept_us / RV_US_PER_S;
	rv_event(s->events, RV_INFO, "woke", RV_FIELDS(rv_field_double("seconds", seconds)),
			 "this machine slept, or this program was stopped, for %.0f s: all connections are made anew", seconds);
	wake(s, now_us);
}

void session_coordinator_back(struct session *s) {
	hurry(s, rv_clock_monotonic_us());
}

/* Limits the addresses that are dialed, which members state themselves: one of narrower reach than
 * the coordinator's is not of the network that all share. */
void session_limit_reach(struct session *s) {
	struct address met;
	if (!http_client_met(s->http, &met))
		return;
	peers_set_reach(meshlink_peers(s->mesh), address_reach(&met));
	reach_core_set_reach(reach_core_of(s->reach), address_reach(&met));
	session_map_port(s, peers_port(meshlink_peers(s->mesh)));
}
