/* relay_server.h: a relay on a libevent loop: the shell of net/relay/relay_core.h. It accepts
 * connections on one port, and reflections on a second one, and opens none (docs/decisions/0038).
 *
 * Memory: 128 KiB for a link whose ends do not read, some 30 KiB for a station, and the core's
 * tables, about 2 MiB. A file descriptor for each connection: it raises the process' soft limit for
 * them. One thread. */
#ifndef RV_NET_RELAY_SERVER_H
#define RV_NET_RELAY_SERVER_H

#include "base/err.h"
#include "net/identity.h"
#include "net/relay/relay_core.h"
#include "net/relay_server/ports.h"

#include <event2/event.h>

struct relay_server_config {
	const struct identity *identity; /* of its TLS certificate, which workers pin; borrowed */
	uint8_t root[NET_KEY_BYTES];     /* the run's root key */
	uint64_t bytes_per_day;          /* that a member may send and receive; 0: no bound */
	uint64_t bytes_per_day_of_all;   /* of all links together; 0: no bound */
	uint64_t bytes_per_s;            /* the same */
	struct relay_ports ports; /* the main one is open; the server closes them, also when relay_server_new fails */
};

struct relay_server;
/* Makes a relay that runs with `base`; the caller frees it before `base`. RV_E_NOMEM, and the
 * faults of tls_context_new. */
enum rv_err relay_server_new(struct event_base *base, const struct relay_server_config *cfg, struct relay_server **out,
							 struct rv_errtext *et);
void relay_server_free(struct relay_server *s);                       /* NULL is fine */
void relay_server_name_second(struct relay_server *s, uint16_t port); /* relay_name_second() */
/* Refuses these members from now on (relay_ban()); called at each change of the set. */
void relay_server_ban(struct relay_server *s, const struct banned *members);
/* Returns what it has counted; borrowed, and current as long as the server lives. */
const struct relay_totals *relay_server_totals(const struct relay_server *s);

#endif
