/* relay_choice.h: the options of `serve` on relays: its own one, and others of the run. */
#ifndef RV_COORDINATOR_RELAY_CHOICE_H
#define RV_COORDINATOR_RELAY_CHOICE_H

#include "base/event.h"
#include "coordinator/commands/opened_run.h"
#include "net/relay_server/relay_server.h"

enum { RELAY_SECOND_BYTES = 8, RELAY_LIST_BYTES = NET_MAX_RELAYS * (NET_ADDR_BYTES + 2 * NET_KEY_BYTES + 2) };

struct relay_choice {
	bool own;
	char listen[NET_ADDR_BYTES];     /* "": the host that `serve` listens on, and RELAY_DEFAULT_PORT or a free one */
	char second[RELAY_SECOND_BYTES]; /* relay_second_parse() */
	char at[RELAY_LIST_BYTES];       /* others: "HOST:PORT=KEY,..." */
	int64_t bytes_per_day, bytes_per_s;
};

/* Checks the texts; `listen`: where `serve` listens. RV_E_INVALID names the option. */
enum rv_err relay_choice_check(const struct relay_choice *o, const struct address *listen, struct rv_errtext *et);
/* The surroundings of `serve`; borrowed. */
struct relay_place {
	const struct address *listen, *advertise; /* of `serve` */
	const char *kept_path;                    /* kept_ports.h */
	struct rv_events *events;                 /* gets a warning if the usual port is taken */
};
/* Lists the relays, the coordinator's first, and opens its ports: cfg->ports, which the caller
 * closes. The relay's address is the advertised host with the port that was opened. The faults of
 * relay_choice_check and listen_socket_open. */
enum rv_err relay_choice_open(const struct relay_choice *o, const struct relay_place *place,
							  struct relay_server_config *cfg, struct run_relays *relays, struct rv_errtext *et);
/* Writes down the ports of the relay, if there is one, for the next `serve`. Called once the run is
 * locked, so that they are those of the `serve` that runs. A fault is logged: the relay works as
 * well, and may have other ports after its next start. */
void relay_choice_keep(const struct relay_place *place, const struct relay_ports *ports);
/* Logs where the relay is, or where others are, and the command that starts one elsewhere. */
void relay_choice_log(struct rv_events *ev, const struct run_relays *relays, const struct relay_ports *ports,
					  const uint8_t root[NET_KEY_BYTES]);

#endif
