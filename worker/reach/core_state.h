/* core_state.h: the memory of the reach core, shared by its source files; no other file includes
 * it.
 *
 *   reach_core.c    life, documents, what goes in
 *   core_station.c  a connection to a relay: when it is tried, proven, left,
 *                   and what its relay may send
 *   core_relays.c   which relays are good
 *   core_mapping.c  reflections, and what they show of the worker's router
 *   core_table.c    the pairs by member number
 *   core_pairs.c    the ways of a pair: from a wish of the mesh to a route
 *   core_hosts.c    the hosts that a peer's candidates name, and how often others may be dialed */
#ifndef RV_WORKER_REACH_CORE_STATE_H
#define RV_WORKER_REACH_CORE_STATE_H

#include "base/clock.h"
#include "base/rng.h"
#include "worker/reach/reach_core.h"

enum { HOST_BYTES = 16, NOWHERE = -1 };

struct kept_reflection {
	bool is_asked; /* of the platform: connecting, or open */
	bool is_open;
	bool is_settled; /* it was answered, or has failed, or cannot be, since the station is up */
	struct address at;
	int64_t again_us; /* not asked: time to ask; INT64_MAX: never */
	int64_t open_us;  /* time when it was answered */
	int64_t pause_us; /* after the next failure */
};

struct station {
	bool is_used; /* the guest is not, most of the time */
	enum reach_state state;
	int place;      /* in `relays`: the address in use */
	int64_t try_us; /* IDLE: next try; CONNECTING, GREETING: time to give up */
	int64_t pause_us;
	int tries; /* that failed at this relay, one after the other */
	bool told_down;
	int64_t heard_us, ping_us; /* UP: time of the last frame; of the next PING */
	uint64_t pings, pongs;     /* numbers of the last PING, and of the last that was answered */
	int64_t frames_us;         /* time up to which the frames so far are accounted for */
	int64_t hello_us, up_us;   /* time when HELLO was sent; when SEEN came */
	int64_t rtt_us;            /* between them */
	int64_t used_us;           /* time when a call was last made or taken */
	uint8_t token[NET_TOKEN_BYTES];
	uint16_t second_port;
	struct kept_reflection reflections[REACH_FAMILIES][REACH_PORTS];
};

enum pair_step {
	PAIR_RESTS,
	PAIR_WAITS, /* for a station, and a ticket */
	PAIR_ASKED, /* for a ticket */
	PAIR_CALLED,
	PAIR_TRIES /* the mesh has a route */
};

struct pair {
	uint32_t member;
	bool is_named;                /* by the latest document */
	uint8_t owed[REACH_STATIONS]; /* calls from each station that may still be refused */
	uint8_t home;                 /* place of its home's relay, counted from 1; 0: none */
	uint8_t n_hosts;
	uint8_t hosts[NET_MAX_CANDIDATES][HOST_BYTES]; /* of its candidates: IPv6, or IPv4 mapped into it */
	uint8_t step;                                  /* enum pair_step */
	uint8_t way;                                   /* CALLED, TRIES: enum relay_way */
	uint8_t tried;                                 /* set of ways of this attempt that are behind it */
	bool upgrades;                                 /* linked by a relay: no WAY_FORWARD */
	bool is_passive;                               /* the peer's call: this end makes none of its own */
	bool is_hopeless;                              /* both mappings depend on the destination */
	bool is_refused;                               /* TRIES: the mesh did not take the relay's route */
	uint8_t token[NET_TOKEN_BYTES];                /* of its call */
	int64_t token_us;                              /* time up to which it is offered */
	bool has_waited;                               /* for the peer's mapping, in this attempt */
	int64_t not_before_us;                         /* WAITS: time of the next call; 0: at once */
	uint8_t stales;                                /* tickets that came too late, in this attempt */
	uint8_t choice, turns; /* relay at which it is called, in the order of choices; those that failed in a row */
	uint8_t meets_at;      /* its place */
	uint8_t linked_at;     /* place of the relay that forwards for it, counted from 1; 0: none */
	int64_t linked_us;     /* time since which it is known to */
	uint8_t openings;      /* since it had a link last, modulo 256 */
	int64_t until_us;      /* of the step */
	int64_t again_us;      /* time of the next opening of its own accord; INT64_MAX: none */
	int64_t opens_until_us;
	int64_t wait_us[NET_MAX_RELAYS]; /* time before which the relay takes no call, by place */
};

/* A relay's record; that of its first place counts. */
struct relay_record {
	int failures;         /* calls in a row that came to nothing, or links that were cut soon */
	int64_t bad_until_us; /* 0: good */
	int64_t pause_us;     /* for which it was bad last; 0: never */
	int64_t try_us;       /* time before which no guest goes there to make it the home */
	int address;          /* at which a guest begins: one of the relay's, counted from 0 */
};

struct reach_core {
	struct reach_ops ops;
	struct relay_hello hello;
	uint8_t key[NET_KEY_BYTES];
	struct rv_rng rng;
	enum address_reach met;
	uint8_t n_relays;
	struct relay_ref relays[NET_MAX_RELAYS];
	struct relay_record judged[NET_MAX_RELAYS];
	int home; /* index in `stations`; the other one is the guest */
	struct station stations[REACH_STATIONS];
	int64_t reflect_us; /* time before which hurry does not reflect again */
	struct reach_mapping mappings[REACH_FAMILIES];
	struct reach_proof proofs[REACH_FAMILIES]; /* at.port 0: none */
	int n_pairs;
	struct pair pairs[NET_MAX_PEERS]; /* by ascending number */
	int n_asked;                      /* tickets that are asked for, */
	uint32_t asked[NET_MAX_ROW];      /* of these members, ascending */
	int64_t strange_until_us;         /* time up to which openings to unknown hosts are accounted for */
};

/* reach_core.c */
/* Returns the first place of the relay that has this place too. */
int reach_first_place(const struct reach_core *r, int place);
static inline int64_t reach_earlier(int64_t a, int64_t b) {
	return a < b ? a : b;
}

/* core_station.c */
/* Goes on to use the guest station at the relay of this first place, connecting at once. */
void station_use(struct reach_core *r, int64_t now_us, int station, int place);
/* Closes and no longer uses it. */
void station_leave(struct reach_core *r, int station);
void station_connected(struct reach_core *r, int64_t now_us, int station);
void station_lost(struct reach_core *r, int64_t now_us, int station, const char *why);
enum rv_err station_frame(struct reach_core *r, int64_t now_us, int station, const struct relay_frame *m,
						  struct rv_errtext *et);
/* Loses it, so that it is made anew. */
void station_renew(struct reach_core *r, int64_t now_us, int station);
void station_hurry(struct reach_core *r, int64_t now_us, int station);
void station_tick(struct reach_core *r, int64_t now_us, int station);
int64_t station_deadline_us(const struct reach_core *r, int station);

/* core_relays.c; places are first places of relays */
/* Returns true for the relay that this worker runs. */
bool relays_is_own(const struct reach_core *r, int place);
/* Returns true for one that is used last: the own one, too. */
bool relays_is_bad(const struct reach_core *r, int64_t now_us, int place);
/* Returns the relay after the one at `place` that is not bad, going round; else the least bad. */
int relays_next(const struct reach_core *r, int64_t now_us, int place);
/* Note of the relay at `place`: it broke the rules; it did not answer a station. */
void relays_broke_rules(struct reach_core *r, int64_t now_us, int place);
void relays_unreached(struct reach_core *r, int64_t now_us, int place);
/* Returns the address of the relay, a place, at which a guest begins. */
int relays_begins_at(const struct reach_core *r, int place);
/* Has guests begin at this address of its relay; any place of the list. */
void relays_begin_at(struct reach_core *r, int place);
/* Notes that a call there came to nothing. */
void relays_failed(struct reach_core *r, int64_t now_us, int place);
/* Notes that a link through it has ended. Returns false if it failed soon. */
bool relays_link_ended(struct reach_core *r, int64_t now_us, int place, int64_t lived_us, bool failed);
/* Makes a better relay the home, if the home's is bad. */
void relays_leave_bad_home(struct reach_core *r, int64_t now_us);

/* core_mapping.c */
/* Begins with the station's reflections: it is up. */
void mapping_begin(struct reach_core *r, int64_t now_us, int station);
/* Ends them: it is down. */
void mapping_end(struct reach_core *r, int station);
/* Makes them anew: the network is another one. */
void mapping_renew(struct reach_core *r, int64_t now_us, int station);
void mapping_seen(struct reach_core *r, int64_t now_us, const struct reach_reflection *which, const struct address *at);
void mapping_lost(struct reach_core *r, int64_t now_us, const struct reach_reflection *which);
void mapping_take_proof(struct reach_core *r, int station, const struct relay_proof *proof);
void mapping_tick(struct reach_core *r, int64_t now_us, int station);
int64_t mapping_deadline_us(const struct station *s);
/* Returns true if no reflection at the main port is still awaited. */
bool mapping_is_settled(const struct station *s);
enum reach_family mapping_family(const struct address *a);

/* core_hosts.c */
/* Takes the hosts of the candidates that a document names. */
void hosts_learn(struct pair *p, const struct member_ref *ref);
bool hosts_have_ipv6(const struct pair *p);
/* Returns true, and counts it, if an address that a relay names for an opening may be dialed. */
bool hosts_may_open(struct reach_core *r, int64_t now_us, struct pair *p, const struct address *at);

/* core_table.c */
/* Returns the pair with this member; NULL: it is not known. Valid until pairs_add. */
struct pair *pairs_find(struct reach_core *r, uint32_t member);
/* Returns it, new if need be. NULL: all places are of members that the document names, or, if this
 * one is not named, busy. */
struct pair *pairs_add(struct reach_core *r, uint32_t member, bool is_named);

/* core_pairs.c */
void pairs_follow(struct reach_core *r, const struct document *d);
/* Follows another list: places[i] is where the relay of the former first place i is now;
 * NOWHERE: it is no longer listed, and pairs that meet there begin anew. */
void pairs_move_relays(struct reach_core *r, const int places[NET_MAX_RELAYS]);
void pairs_want(struct reach_core *r, int64_t now_us, uint32_t member, bool upgrades);
void pairs_take_tickets(struct reach_core *r, int64_t now_us, const struct pair_reply *reply);
/* Return what is wrong with the frame; NULL: nothing. */
const char *pairs_take_open(struct reach_core *r, int64_t now_us, int station, const struct relay_open *m);
const char *pairs_take_ring(struct reach_core *r, int64_t now_us, int station, const struct relay_ring *m);
const char *pairs_take_refused(struct reach_core *r, int64_t now_us, int station, const struct relay_refused *m);
/* Makes the calls that wait for this station, which is down, at another relay. */
void pairs_lost_station(struct reach_core *r, int64_t now_us, int station);
/* Has forwarded pairs try an opening, since the worker's mapping has changed. */
void pairs_mapping_changed(struct reach_core *r, int64_t now_us);
void pairs_relay_ended(struct reach_core *r, int64_t now_us, uint32_t m, int64_t lived_us, bool failed);
/* Brings a guest station and asks for tickets, where pairs wait for that; calls no mesh. */
void pairs_ask(struct reach_core *r, int64_t now_us);
/* Does what is due: goes on to the next way, asks, leaves an idle guest station. */
void pairs_tick(struct reach_core *r, int64_t now_us);
int64_t pairs_deadline_us(const struct reach_core *r);

#endif
