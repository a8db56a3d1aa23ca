/* network.c: changes of the network: an address of this machine came or went, the coordinator is
 * reachable again; and which addresses of others may be dialed. */
#include "worker/session/internal.h"

#include "base/clock.h"
#include "net/address_watch.h"

#include <unistd.h>

void session_watch_addresses(struct session *s) {
	s->addresses_fd = address_watch_open();
}

void session_unwatch_addresses(struct session *s) {
	if (s->addresses_fd >= 0)
		close(s->addresses_fd);
}

/* Asks and dials at once what was cut off: its timers were set while no attempt could succeed. */
static void hurry(struct session *s, int64_t now_us) {
	control_client_hurry(s->control);
	if (session_is_up(s))
		peers_hurry(meshlink_peers(s->mesh), now_us);
}

void session_poll_addresses(struct session *s, int64_t now_us) {
	if (s->addresses_fd < 0 || !address_watch_take(s->addresses_fd))
		return;
	http_client_drop_stranded(s->http);
	hurry(s, now_us);
}

void session_coordinator_back(struct session *s) {
	hurry(s, rv_clock_monotonic_us());
}

/* Limits the addresses that are dialed, which members state themselves: one of narrower reach than
 * the coordinator's is not of the network that all share. */
void session_limit_reach(struct session *s) {
	struct address met;
	if (http_client_met(s->http, &met))
		peers_set_reach(meshlink_peers(s->mesh), address_reach(&met));
}
