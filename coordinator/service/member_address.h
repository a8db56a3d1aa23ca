/* member_address.h: the address of a member that is announced to the other workers, which dial it.
 *
 * A member states an address in its reports. Its port is used; its host is not trusted, as all
 * workers would dial any host that one of them names: the announced host is the one that the
 * coordinator sees. Hosts with a meaning on one machine or in one network only (loopback,
 * link-local, private) are announced if the coordinator's own end of the connection is of the same
 * kind; else the coordinator's public host is announced instead, as the member is at its site.
 * docs/protocol.md, docs/decisions/0028-a-member-is-where-it-is-seen.md. No I/O. */
#ifndef RV_COORDINATOR_MEMBER_ADDRESS_H
#define RV_COORDINATOR_MEMBER_ADDRESS_H

#include "net/address.h"

/* Numeric hosts without a port, IPv4 in IPv6 shown as IPv4 (address_of_socket). */
struct member_sight {
	char host[NET_ADDR_BYTES]; /* the member's, as seen by the coordinator */
	char own[NET_ADDR_BYTES];  /* the coordinator's end of that connection */
};

/* Chooses the address. `site`: the host by which the coordinator is advertised, as a number; "":
 * none, or its name has no address. `stated`: "host:port" or ":port". *replaced: the announced host
 * differs from the stated one. RV_E_INVALID: `stated` is no address, or the member is seen at a
 * host that cannot be dialed; RV_E_RANGE: too long. */
enum rv_err member_address_choose(const struct member_sight *sight, const char *site, const char *stated,
								  char out[NET_ADDR_BYTES], bool *replaced, struct rv_errtext *et);

#endif
