/* ports.h: the sockets on which a relay listens: its port, and a second one for reflections, by
 * which a worker learns whether its router's mapping depends on the destination (net/relay/wire.h).
 * A relay does without a second port where only one is open. */
#ifndef RV_NET_RELAY_SERVER_PORTS_H
#define RV_NET_RELAY_SERVER_PORTS_H

#include "base/err.h"
#include "net/address.h"
#include "net/relay/relay_core.h"

/* Non-blocking listening sockets, by enum relay_port. */
struct relay_ports {
	int fd[RELAY_PORTS];        /* -1: none */
	uint16_t port[RELAY_PORTS]; /* 0: none */
};
#define RELAY_NO_PORTS ((struct relay_ports){.fd = {-1, -1}})

/* Closes what is open; harmless on RELAY_NO_PORTS. */
void relay_ports_close(struct relay_ports *p);

/* Values of --relay-second-port that are no port. */
enum { RELAY_SECOND_NONE = 0, RELAY_SECOND_NEXT = -1 };
/* Reads "next", "none" or 1..65535. RV_E_INVALID. */
enum rv_err relay_second_parse(const char *text, int *out, struct rv_errtext *et);
/* Opens the second port at the host of `main`, where the relay's port is open. RELAY_SECOND_NEXT:
 * `kept` (0: none), else the first free one of the 64 above the relay's; none is no fault.
 * RV_E_BUSY, RV_E_IO: the one that was asked for cannot be opened. */
enum rv_err relay_second_open(const struct address *main, int wanted, uint16_t kept, struct relay_ports *p,
							  struct rv_errtext *et);

#endif
