/* member_address.h: which of the addresses that a member reports are announced to the other
 * workers, which dial them.
 *
 * All workers would dial any host that one of them names. So a candidate is announced only if the
 * host has been seen to be the member's:
 * - SEEN: the host that the coordinator sees; only the port is the member's statement. Hosts with a
 *   meaning on one machine or in one network only (loopback, link-local, private) are announced if
 *   the coordinator's own end of the connection is of the same kind; else the coordinator's public
 *   host is announced instead, as the member is at its site.
 * - REFLECTED: a public address that one of the operator's relays has signed for this member.
 * - PRIVATE: an address of a private range, for members seen behind the same address (core.h).
 * - GIVEN: once another member has reached it there, if it is another host than the one seen.
 * docs/protocol.md, docs/decisions/0028-a-member-is-where-it-is-seen.md. No I/O. */
#ifndef RV_COORDINATOR_MEMBER_ADDRESS_H
#define RV_COORDINATOR_MEMBER_ADDRESS_H

#include "net/address.h"
#include "net/control/control.h"

/* Numeric hosts without a port, IPv4 in IPv6 shown as IPv4 (address_of_socket). */
struct member_sight {
	char host[NET_ADDR_BYTES]; /* the member's, as seen by the coordinator */
	char own[NET_ADDR_BYTES];  /* the coordinator's end of that connection */
};

/* The coordinator's knowledge of itself and of the sender of a report. */
struct member_facts {
	const struct member_sight *sight;
	/* The host by which the coordinator is advertised, as a number; "": none, or its name has no
	 * address. */
	const char *site;
	uint16_t port; /* the coordinator's, where it is advertised: no member is there */
	uint8_t run_id[NET_RUN_ID_BYTES];
	uint8_t key[NET_KEY_BYTES]; /* the member's */
	/* The operator's relays, the first of the document's: only their proofs count. */
	const struct relay_ref *relays;
	uint8_t n_relays;
	uint64_t unix_s; /* now */
};

enum member_verdict {
	MEMBER_CONFIRMED,
	MEMBER_NEEDS_PROOF, /* REFLECTED: confirmed if member_proof_check agrees */
	MEMBER_NEEDS_PROBE, /* GIVEN: confirmed once another member has reached it there */
	MEMBER_UNPROVEN,    /* REFLECTED: no proof for strangers, and none is owed. Not announced, and no fault */
	MEMBER_REFUSED
};

enum {
	MEMBER_PROOF_AGE_S = 24 * 3600,   /* of a relay's proof, at most */
	MEMBER_PROOF_AHEAD_S = 3600,      /* of a relay's clock before the coordinator's, at most */
	MEMBER_PRIVATE_PORT_LEAST = 1024, /* below: services of the house, and no worker */
};

/* Writes the address at which the member is seen, with the `port` that it reports (":port").
 * RV_E_INVALID: it is seen at a host that cannot be dialed, or states the coordinator's own
 * address; RV_E_RANGE: too long. */
enum rv_err member_address_seen(const struct member_facts *f, const char *port, char out[NET_ADDR_BYTES],
								struct rv_errtext *et);
/* Judges another candidate of the member that is seen at `seen`, and writes its address in the
 * usual form. `why`: for REFUSED, UNPROVEN and NEEDS_PROBE, the reason. */
enum member_verdict member_address_judge(const struct member_facts *f, const char *seen, const struct candidate *c,
										 char out[NET_ADDR_BYTES], struct rv_errtext *why);
/* Returns true if the relay has signed the address of this candidate for this member. */
bool member_proof_check(const struct member_facts *f, const struct candidate *c);

#endif
