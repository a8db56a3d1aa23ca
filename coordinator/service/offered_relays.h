/* offered_relays.h: relays that members run for others (--relay-for-others), and which of them
 * documents list: those that another member has reached within the last hour, the earliest first.
 *
 * An offer is the port of a report, at the host where the member is seen. It is tested at once, and
 * then every half hour; one that was not reached every minute, one that nobody could test every
 * 5 s. A test that reaches a listed one no more takes it off the list at once; where nobody could
 * test it, it stays until its hour is over. An offer that is withdrawn leaves the list at once, and
 * what was found stays known: made again, it is listed without a test.
 *
 * Each listing changes the documents of all members, and a member may withdraw and offer in turn:
 * of one member OFFERED_LISTINGS are listed at once, then one in OFFERED_LISTING_US.
 *
 * No I/O, no clock, no allocation. Times are monotonic microseconds. */
#ifndef RV_COORDINATOR_SERVICE_OFFERED_RELAYS_H
#define RV_COORDINATOR_SERVICE_OFFERED_RELAYS_H

#include "base/clock.h"
#include "coordinator/core/set.h"
#include "net/control/control.h"

#define OFFERED_SOON_US   (INT64_C(5) * RV_US_PER_S)
#define OFFERED_AGAIN_US  (INT64_C(60) * RV_US_PER_S)
#define OFFERED_RENEW_US  (INT64_C(1800) * RV_US_PER_S)
#define OFFERED_LISTED_US (INT64_C(3600) * RV_US_PER_S)
enum { OFFERED_LISTINGS = 4 };
#define OFFERED_LISTING_US (INT64_C(60) * RV_US_PER_S)

struct offered_relay {
	struct relay_ref at;   /* of the last offer */
	bool is_offered;       /* now */
	int64_t test_us;       /* time of the next test */
	int64_t confirmed_us;  /* time until which it may be listed; 0: it was not reached */
	uint64_t turn;         /* in the list; 0: not listed */
	int64_t paid_until_us; /* time up to which the member's listings are accounted for */
};

struct offered_relays {
	uint64_t turns;
	uint64_t listed[SET_WORDS(NET_MAX_HERE)];   /* those that have a turn */
	struct offered_relay members[NET_MAX_HERE]; /* by the member's slot */
};

/* NOBODY: no other member could test it. */
enum offered_finding { OFFERED_NOBODY, OFFERED_REACHED, OFFERED_NOT_REACHED };

/* Takes an offer from a member's report, addr "" for none. Another than the last begins anew. */
void offered_relays_take(struct offered_relays *o, int64_t now_us, uint32_t slot, const struct relay_ref *at);
/* Forgets the member of a slot: another one has it. */
void offered_relays_forget(struct offered_relays *o, uint32_t slot);
/* Returns true if its relay is to be tested now. */
bool offered_relays_due(const struct offered_relays *o, int64_t now_us, uint32_t slot);
/* Takes the result of a test. */
void offered_relays_tested(struct offered_relays *o, int64_t now_us, uint32_t slot, enum offered_finding found);
/* Writes those that documents list, of the members in the set `live` (slots). Returns their
 * number. */
int offered_relays_list(const struct offered_relays *o, int64_t now_us, const uint64_t *live,
						struct relay_ref out[NET_MAX_RELAYS]);

#endif
