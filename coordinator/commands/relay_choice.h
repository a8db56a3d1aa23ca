/* relay_choice.h: the options of `serve` on relays: its own one, and others of the run. */
#ifndef RV_COORDINATOR_RELAY_CHOICE_H
#define RV_COORDINATOR_RELAY_CHOICE_H

#include "base/event.h"
#include "coordinator/commands/opened_run.h"
#include "coordinator/relay/relay_server.h"

enum { RELAY_LIST_BYTES = NET_MAX_RELAYS * (NET_ADDR_BYTES + 2 * NET_KEY_BYTES + 2) };

struct relay_choice {
	bool own;
	char listen[NET_ADDR_BYTES]; /* "": the host that `serve` listens on, and RELAY_DEFAULT_PORT or a free one */
	char at[RELAY_LIST_BYTES];   /* others: "HOST:PORT=KEY,..." */
	int64_t bytes_per_day, bytes_per_s;
};

/* Checks the texts; `listen`: where `serve` listens. RV_E_INVALID names the option. */
enum rv_err relay_choice_check(const struct relay_choice *o, const struct address *listen, struct rv_errtext *et);
/* Lists the relays, the coordinator's first, and opens its port: cfg->listen_fd, which the caller
 * closes. The relay's address is the advertised host with the port that was opened. The faults of
 * relay_choice_check and listen_socket_open. */
enum rv_err relay_choice_open(const struct relay_choice *o, const struct address *listen,
							  const struct address *advertise, struct relay_server_config *cfg,
							  struct run_relays *relays, struct rv_errtext *et);
/* Logs the relay's address, and the command that starts one elsewhere. */
void relay_choice_log(struct rv_events *ev, const struct run_relays *relays, const struct identity *run);

#endif
