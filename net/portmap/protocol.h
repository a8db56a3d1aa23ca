/* protocol.h: one way to ask a router for a port; internal to net/portmap. */
#ifndef RV_NET_PORTMAP_PROTOCOL_H
#define RV_NET_PORTMAP_PROTOCOL_H

#include "base/err.h"

#include <netinet/in.h>
#include <stdint.h>

struct portmap_lease {
	uint16_t inside, outside; /* TCP ports, host order */
	struct in_addr address;   /* of the router, as the internet sees it; 0: it does not tell */
	uint32_t seconds;         /* from now; 0: for ever */
	uint8_t nonce[12];        /* PCP: names the mapping when it is renewed and removed */
};

struct portmap_protocol {
	const char *name;
	/* Asks for `l->inside`, if possible under the outside port and for the seconds in *l, and fills
	 * in what the router grants. Waits for the router, for up to about 4 s. RV_E_UNSUPPORTED: the
	 * router does not speak this protocol; RV_E_AUTH: it refuses; RV_E_FULL: it has no port left;
	 * RV_E_IO. */
	enum rv_err (*map)(struct portmap_lease *l, struct rv_errtext *et);
	/* Removes the mapping, best effort. */
	void (*unmap)(const struct portmap_lease *l);
};

extern const struct portmap_protocol portmap_pcp, portmap_natpmp, portmap_upnp;

/* Returns the IPv4 address of the default gateway; RV_E_NOTFOUND: there is none. */
enum rv_err portmap_gateway(struct in_addr *out, struct rv_errtext *et);

#endif
