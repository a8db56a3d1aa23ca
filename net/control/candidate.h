/* candidate.h: the addresses at which a member may be dialed.
 *
 * A worker reports candidates; the coordinator confirms or drops each (coordinator/service/
 * member_address.h), and the document names the confirmed ones of each member in the order in which
 * they should be dialed. No I/O. */
#ifndef RV_NET_CONTROL_CANDIDATE_H
#define RV_NET_CONTROL_CANDIDATE_H

#include "base/bytes.h"
#include "base/err.h"
#include "net/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum candidate_kind {
	/* The host as the coordinator sees it on the connection of the report; the port on which the
	 * member listens, or the one that its router forwards to it. */
	CANDIDATE_SEEN,
	CANDIDATE_REFLECTED, /* where a relay saw a connection from the port on which the member listens */
	CANDIDATE_PRIVATE,   /* in the member's own network: only for members behind the same router */
	CANDIDATE_GIVEN,     /* stated by the member's person: --advertise HOST:PORT */
	CANDIDATE_KINDS
};

/* As a worker reports it. */
struct candidate {
	uint8_t kind;              /* enum candidate_kind */
	char addr[NET_ADDR_BYTES]; /* SEEN: ":port"; else a numeric host with a port */
	/* REFLECTED: the relay's proof (net/identity.h); else 0. */
	uint8_t relay;   /* the relay's place in the document's `relays`, counted from 1 */
	uint64_t unix_s; /* when the relay saw it */
	uint8_t signature[NET_SIG_BYTES];
};

/* As a document names it: a numeric host with a port. */
struct candidate_ref {
	uint8_t kind; /* enum candidate_kind */
	char addr[NET_ADDR_BYTES];
};

/* Returns "seen", "reflected", "private", "given": for texts. */
const char *candidate_kind_name(uint8_t kind);
/* Returns true if both lists name the same addresses of the same kinds in the same order. */
bool candidates_equal(const struct candidate_ref *a, int n_a, const struct candidate_ref *b, int n_b);
/* Returns the address of the SEEN candidate; "": there is none. */
const char *candidates_seen(const struct candidate_ref *list, int n);

/* Returns true if both members were seen at one host, by the coordinator or a relay of the
 * operator: a SEEN or REFLECTED address of each has it. Most likely they are in one house. */
bool candidates_share_host(const struct candidate_ref *a, int n_a, const struct candidate_ref *b, int n_b);

/* ---- encodings, internal to net/control ---- */

/* Write and read a report's list: its length as a byte, then kind u8, addr str; of REFLECTED also
 * relay u8, unix_s u64, signature. RV_E_INVALID: more than NET_MAX_CANDIDATES; too few bytes fail
 * the reader. */
void candidates_write(const struct candidate *list, uint8_t n, struct rv_writer *w);
enum rv_err candidates_read(struct rv_reader *r, struct candidate *list, uint8_t *n, const char *what,
							struct rv_errtext *et);
/* Checks a report's list: the first is SEEN and no other, addresses as above, only a REFLECTED one
 * has a proof. RV_E_INVALID. */
enum rv_err candidates_check(const struct candidate *list, int n, struct rv_errtext *et);
/* Checks a document's list: one at least, addresses as above. RV_E_INVALID. */
enum rv_err candidate_refs_check(const struct candidate_ref *list, int n, struct rv_errtext *et);

#endif
