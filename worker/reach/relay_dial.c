/* relay_dial.c: see relay_dial.h. */
#include "worker/reach/relay_dial.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void fail(struct relay_dial *d, const char *why) {
	(void)snprintf(d->why, sizeof d->why, "%s", why);
	d->state = RELAY_DIAL_FAILED;
}

static struct route route_of(const struct relay_dial *d) {
	return (struct route){.kind = d->local_port != 0 ? ROUTE_PUNCH : ROUTE_DIRECT, /* binds, or does not */
						  .at = d->at,
						  .local_port = d->local_port};
}

/* Has the kernel end the connection with RST, also at the end of the process: one that waits a
 * minute for late packets would keep the next connection between these ports from being made. */
static void end_at_once(int fd) {
	const struct linger none = {.l_onoff = 1, .l_linger = 0};
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

static void connect_to(struct relay_dial *d, const char *host) {
	struct rv_errtext et;
	(void)snprintf(d->at.host, sizeof d->at.host, "%s", host);
	const struct route route = route_of(d);
	if (socket_pipe.connect(socket_pipe.ctx, &route, 0, &d->fd, &et) != RV_OK) {
		fail(d, et.text);
		return;
	}
	d->state = RELAY_DIAL_CONNECTING;
	if (d->local_port != 0)
		end_at_once(d->fd);
}

static enum reach_family family_of(const char *host) {
	return strchr(host, ':') != NULL ? REACH_V6 : REACH_V4;
}

static bool fits(const struct relay_dial *d, const char *host) {
	return d->family == RELAY_DIAL_ANY || (int)family_of(host) == d->family;
}

/* Returns true if the name is the coordinator's, and it is known where that is. */
static bool is_with_coordinator(const struct relay_dial *d, const struct relay_dial_shared *shared,
								struct address *out) {
	bool is_its_name = d->turn == 0 && strcmp(d->at.host, shared->coordinator) == 0;
	return is_its_name && shared->coordinator_at(shared->ctx, out) && fits(d, out->host);
}

static void find_name(struct relay_dial *d, const struct relay_dial_shared *shared, int64_t now_us) {
	struct address at[REACH_FAMILIES];
	enum reach_family first = REACH_V4;
	const char *why;
	enum name_state state = relay_names_find(shared->names, now_us, d->at.host, at, &first, &why);
	if (state == NAME_SOUGHT)
		return;
	int family = d->family != RELAY_DIAL_ANY ? d->family : d->turn % 2 == 0 ? (int)first : (int)!first;
	if (state == NAME_FOUND && d->family == RELAY_DIAL_ANY && at[family].host[0] == '\0')
		family = (int)first;
	if (state == NAME_FAILED)
		fail(d, why);
	else if (at[family].host[0] == '\0')
		fail(d, "its name has no address of that family");
	else
		connect_to(d, at[family].host);
}

void relay_dial_begin(struct relay_dial *d, const struct relay_dial_shared *shared, int64_t now_us,
					  const struct relay_dial_to *to) {
	struct address coordinator;
	struct sockaddr_storage sa;
	socklen_t n;
	*d = (struct relay_dial){.state = RELAY_DIAL_NAMING,
							 .serial = d->serial + 1,
							 .fd = -1,
							 .family = to->family,
							 .turn = to->turn,
							 .local_port = to->local_port};
	if (address_parse(to->addr, &d->at, NULL) != RV_OK) {
		fail(d, "its address is not usable");
		return;
	}
	d->at.port = to->port != 0 ? to->port : d->at.port;
	if (address_to_socket(&d->at, &sa, &n)) {
		struct address numeric = d->at;
		if (fits(d, numeric.host))
			connect_to(d, numeric.host);
		else
			fail(d, "its address is of the other family");
	} else if (is_with_coordinator(d, shared, &coordinator)) {
		connect_to(d, coordinator.host);
	} else {
		find_name(d, shared, now_us);
	}
}

void relay_dial_step(struct relay_dial *d, const struct relay_dial_shared *shared, int64_t now_us, bool is_ready) {
	struct rv_errtext et;
	short events = POLLOUT;
	if (d->state == RELAY_DIAL_NAMING)
		find_name(d, shared, now_us);
	if (d->state != RELAY_DIAL_CONNECTING || !is_ready)
		return;
	const struct route route = route_of(d);
	if (socket_pipe.connected(socket_pipe.ctx, d->fd, &route, &events, &et) != RV_OK)
		fail(d, et.text);
	else
		d->state = RELAY_DIAL_OPEN;
}

void relay_dial_end(struct relay_dial *d) {
	if (d->fd >= 0)
		(void)close(d->fd);
	d->fd = -1;
	d->state = RELAY_DIAL_NONE;
}
