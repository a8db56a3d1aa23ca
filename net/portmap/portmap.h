/* portmap.h: a TCP port of the home router, forwarded to this machine: asked for by PCP (RFC 6887),
 * NAT-PMP (RFC 6886) and UPnP IGD, whichever the router speaks, for as long as the object lives.
 *
 * A thread of its own talks to the router, because libraries for that wait. It asks again at half
 * of the lease, at portmap_hurry(), and every ten minutes while the router refuses. IPv4 only. */
#ifndef RV_NET_PORTMAP_PORTMAP_H
#define RV_NET_PORTMAP_PORTMAP_H

#include "base/err.h"
#include "net/address.h"

#include <stdbool.h>
#include <stdint.h>

struct portmap;

struct portmap_state {
	bool asked;             /* the first attempt has ended */
	const char *protocol;   /* "PCP", "NAT-PMP", "UPnP"; NULL: no mapping */
	struct address outside; /* where the router accepts connections for this machine */
	char text[192];         /* for people: the reason if there is no mapping, or if it is useless */
};

/* Starts to ask for a mapping of TCP `port`. RV_E_NOMEM. */
enum rv_err portmap_start(uint16_t port, struct portmap **out, struct rv_errtext *et);
/* Removes the mapping and frees; ends after 5 s whatever the router does, after 1 s if it has
 * granted nothing so far. NULL is fine. */
void portmap_stop(struct portmap *p);
/* Asks anew at once: the network has changed. Does not block. */
void portmap_hurry(struct portmap *p);
/* Copies the present state; returns true if it is another one than at the last call. Does not
 * block. */
bool portmap_look(struct portmap *p, struct portmap_state *out);
/* Copies it, and leaves portmap_look as it is. */
void portmap_peek(struct portmap *p, struct portmap_state *out);

#endif
