/* own_relay.h: a relay that a worker runs for other members of its run (--relay-for-others): the
 * server of net/relay_server in a thread of its own. It forwards ciphertext of others within a rate
 * and a budget, and never dials (docs/decisions/0038).
 *
 * Its key is the member's own: who dials it expects the key that documents name for it. */
#ifndef RV_WORKER_OWN_RELAY_H
#define RV_WORKER_OWN_RELAY_H

#include "base/err.h"
#include "net/banned.h"
#include "net/identity.h"

struct own_relay_config {
	const struct identity *identity; /* the member's; borrowed, outlives the relay */
	uint8_t root[NET_KEY_BYTES];     /* the run's root key */
	uint64_t bytes_per_s;            /* that it forwards; the line carries them in and out */
	uint64_t bytes_per_day;          /* the same; 0: no bound */
	uint16_t port;                   /* 0: the usual one, or the next free one */
};

struct own_relay_figures {
	uint64_t bytes;           /* forwarded since the start */
	uint32_t stations, links; /* now */
};

struct own_relay;
/* Opens its ports on all addresses of this machine and starts the thread. RV_E_BUSY: the port is
 * taken, or none of the usual ones is free; RV_E_IO, RV_E_NOMEM. */
enum rv_err own_relay_start(const struct own_relay_config *cfg, struct own_relay **out, struct rv_errtext *et);
/* Ends the thread, after some 100 ms, frees, and returns the last figures. NULL is fine. */
struct own_relay_figures own_relay_stop(struct own_relay *r);

/* Return facts of the relay that runs; never block. */
uint16_t own_relay_port(const struct own_relay *r);
uint16_t own_relay_second_port(const struct own_relay *r); /* 0: none is open */
/* Names this second port to members from the next turn of the thread on (relay_name_second); at
 * first the one that is open. */
void own_relay_name_second(struct own_relay *r, uint16_t port);
/* Closes stations and links of these members, and refuses them from now on. */
void own_relay_ban(struct own_relay *r, const struct banned *members);
struct own_relay_figures own_relay_look(struct own_relay *r);

#endif
