/* book.h: the addresses of one member, as documents name them: which to dial next, and how often
 * one may be dialed that never answered. Internal to net/. No I/O, no clock.
 *
 * The addresses are dialed in order, one pass after the other; the one that answered last is first.
 * An address that never answered may be anybody's: a member states it. So it gets 10 packets (4
 * attempts where nobody answers, as TCP repeats its first packet; 10 where they are refused), then
 * one after 30 s, 1, 2, 4, 8, 15, 15 ... min; and all such addresses of a member together, whatever
 * it states in turns, get 40 packets at once and 2 a minute. An address has answered when it has
 * shown the member's key. */
#ifndef RV_NET_MESH_BOOK_H
#define RV_NET_MESH_BOOK_H

#include "net/address_reach.h"
#include "net/control/control.h"

struct book_entry {
	struct address at;
	uint8_t kind;      /* enum candidate_kind */
	bool answered;     /* it has shown the member's key */
	uint8_t packets;   /* that it got since it was stated, or answered; BOOK_FREE_PACKETS at most */
	uint8_t pauses;    /* attempts after those */
	int64_t dialed_us; /* time of the latest attempt */
	int64_t ready_us;  /* not to be dialed before */
};

enum { BOOK_FREE_PACKETS = 10 };

/* Zero: no address. */
struct book {
	int n, turn; /* turn: the next one of this pass */
	struct book_entry entries[NET_MAX_CANDIDATES];
	int64_t paid_us; /* up to which the packets to addresses that never answered are paid for */
};

enum book_news {
	BOOK_SAME,    /* no address that it did not have */
	BOOK_CHANGED, /* some, or its first ones */
	BOOK_MOVED    /* none of those that it had is left */
};

/* Sets the addresses; those that stay keep what is known of them. Addresses that cannot be parsed
 * are left out. */
enum book_news book_set(struct book *b, const struct candidate_ref *list, int n);
/* Returns the next address of this pass that may be dialed now, or NULL: the pass is over. `met`:
 * as address_is_dialable; a PRIVATE candidate may be private in any case, as its owner has found it
 * to be in this network. */
const struct book_entry *book_next(const struct book *b, int64_t now_us, enum address_reach met);
/* Returns the time from which book_next, in a new pass, has an address; INT64_MAX: never. */
int64_t book_ready_us(const struct book *b, enum address_reach met);
/* Notes that book_next's entry `e` is dialed. */
void book_dialed(struct book *b, const struct book_entry *e, int64_t now_us);
/* Notes that the attempt there failed. `jitter`: a factor of its pause. */
void book_failed(struct book *b, const struct address *at, int64_t now_us, double jitter);
/* Begins a new pass. */
void book_rewind(struct book *b);
/* Notes that the member's key was shown there; an address that is no longer stated is ignored. */
void book_answered(struct book *b, const struct address *at);
bool book_has_answered(const struct book *b, const struct address *at);
/* Returns true if any of the addresses has answered. */
bool book_is_proven(const struct book *b);
/* Returns true if the next attempt is to be short, of one packet: the first one, so that the others
 * have their turn soon, and those after the free packets. */
bool book_is_brief(const struct book_entry *e);
/* Forgets the attempts: they failed for this machine's own network. */
void book_forgive(struct book *b);
/* Lets each address be dialed once more: the member is there again. */
void book_retry(struct book *b);
/* Returns an address that is too narrow to be dialed, if all are; NULL: none is, or one may. */
const struct address *book_too_narrow(const struct book *b, enum address_reach met);

#endif
