/* address_reach.h: how far an address reaches, and whether one that a stranger names may be used.
 *
 * A member states where it can be dialed, and the others dial it. A member must not be able to make
 * them connect to a third party's router, to their own machine or to their LAN: a program dials an
 * address of a narrow range only if it reaches the coordinator in a range as narrow. */
#ifndef RV_NET_ADDRESS_REACH_H
#define RV_NET_ADDRESS_REACH_H

#include "net/address.h"

/* From wide to narrow. */
enum address_reach {
	ADDRESS_PUBLIC,
	ADDRESS_PRIVATE, /* RFC 1918, RFC 6598 (behind a provider's translation), RFC 4193 */
	ADDRESS_LINK,    /* RFC 3927, RFC 4291 section 2.5.6 */
	ADDRESS_LOOPBACK,
	ADDRESS_UNUSABLE /* not numeric, unspecified, multicast, broadcast or reserved: cannot be dialed */
};

/* Returns the range of the host. An IPv4 address mapped or translated into IPv6 (RFC 4291 section
 * 2.5.5.2, RFC 6052 section 2.1) has the range of the IPv4 address. */
enum address_reach address_reach(const struct address *a);
/* Returns true if a program that reaches the coordinator in the range `met` may dial `a`: `a` is
 * not narrower. */
bool address_is_dialable(const struct address *a, enum address_reach met);
/* Returns "public", "private", ...: for texts. */
const char *address_reach_name(enum address_reach r);

#endif
