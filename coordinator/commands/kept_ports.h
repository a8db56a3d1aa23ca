/* kept_ports.h: DIR/relay-ports, one line PORT SECOND: where the relay of `serve` listened last, so
 * that it listens there again: operators forward these ports. */
#ifndef RV_COORDINATOR_COMMANDS_KEPT_PORTS_H
#define RV_COORDINATOR_COMMANDS_KEPT_PORTS_H

#include "net/relay_server/ports.h"

struct kept_ports {
	uint16_t port[RELAY_PORTS]; /* by enum relay_port; 0: none */
};
/* Reads the file; a missing or damaged one counts as none. */
struct kept_ports kept_ports_read(const char *path);
/* Writes the ports that are open; a file with that content stays. RV_E_FULL, RV_E_IO. */
enum rv_err kept_ports_write(const char *path, const struct relay_ports *ports, struct rv_errtext *et);

#endif
