/* member_address.h: the address at which a member is announced to the other workers, who dial it.
 *
 * A member states an address in its reports. Its port is taken; its host is not believed, for all workers would dial
 * whatever one of them names: the host is the one that the coordinator sees. Hosts that mean something on one machine or
 * in one network only (loopback, link-local, private) are announced where the coordinator's own end of the connection is
 * of the same kind; else the coordinator's public host stands for them, as the member is at its site. docs/protocol.md,
 * docs/decisions/0028-a-member-is-where-it-is-seen.md. No I/O. */
#ifndef RV_COORDINATOR_MEMBER_ADDRESS_H
#define RV_COORDINATOR_MEMBER_ADDRESS_H

#include "net/address.h"

/* Numeric hosts without a port, IPv4 in IPv6 shown as IPv4 (address_of_socket). */
struct member_sight {
	char host[NET_ADDR_BYTES]; /* the member's, as it is seen */
	char own[NET_ADDR_BYTES];  /* the coordinator's end of that connection */
};

/* `site`: the host by which the coordinator is advertised, as a number; "": none, or its name has no address. `stated`:
 * "host:port" or ":port". *replaced: it states another host than is announced. RV_E_INVALID: `stated` is no address, or
 * the member is seen at a host that nobody can dial; RV_E_RANGE: too long. */
enum rv_err member_address_choose(const struct member_sight *sight, const char *site, const char *stated,
								  char out[NET_ADDR_BYTES], bool *replaced, struct rv_errtext *et);

#endif
