/* state.h: the state behind relay_core.h, shared by the files of this folder and included by no
 * other. */
#ifndef RV_NET_RELAY_STATE_H
#define RV_NET_RELAY_STATE_H

#include "base/gcra.h"
#include "net/identity.h"
#include "net/relay/relay_core.h"

/* In one call each connection is closed once at most, and each member gets two proofs at most. */
enum { RELAY_ACTIONS = RELAY_CONNECTIONS + 2 * NET_RELAY_MEMBERS + 8, RELAY_NONE = -1 };

enum relay_family { RELAY_V4, RELAY_V6, RELAY_FAMILIES };

enum relay_state {
	RELAY_FREE,
	RELAY_STRANGER, /* has shown nothing yet */
	RELAY_STATION,
	RELAY_REFLECTION, /* kept open for its member */
	RELAY_WAITS,      /* has shown its token; the other end has not */
	RELAY_JOINED
};

struct relay_connection {
	uint8_t state; /* enum relay_state */
	uint8_t port;  /* enum relay_port */
	bool has_key;
	uint8_t key[NET_KEY_BYTES]; /* proven by TLS */
	struct address from;
	char site[NET_ADDR_BYTES]; /* of `from` (address_site): what strangers are counted by */
	int64_t since_us, deadline_us;
	int member; /* STATION, REFLECTION, WAITS, JOINED: index into members */
	int link;   /* WAITS, JOINED: index into links */
};

/* Bytes of a day. */
struct relay_spent {
	int64_t day; /* counted from the start of the relay */
	uint64_t bytes;
};

/* The openings of two members. */
struct relay_opened {
	uint32_t other;   /* number of the one whose index is higher */
	uint32_t caller;  /* number of the caller of the newest, */
	int64_t at_us;    /* its time, */
	int64_t until_us; /* and up to when all are paid for (base/gcra.h); 0: there was none */
};
/* Openings of a member that are kept: more than there can be within the time for which they matter
 * (openings.c). */
enum { RELAY_OPENED = 24 };

struct relay_member {
	bool known;
	uint32_t number;
	uint8_t key[NET_KEY_BYTES];
	int station;                           /* connection, or RELAY_NONE */
	uint8_t token[NET_TOKEN_BYTES];        /* of its station: its reflections show it */
	int seen[RELAY_FAMILIES][RELAY_PORTS]; /* its reflections: connections, or RELAY_NONE */
	int64_t proven_us[RELAY_FAMILIES];     /* time of the newest PROOF */
	int64_t calls_until_us;                /* up to which its calls, the frames of its stations, */
	int64_t frames_until_us;               /* its reflections and its openings are paid for */
	int64_t reflections_until_us;          /* (base/gcra.h) */
	int64_t openings_until_us;
	struct relay_spent spent; /* sent by it or to it */
	struct relay_opened opened[RELAY_OPENED];
};

/* A call, and once both ends have shown their tokens a link. Index 0: the caller. */
struct relay_link {
	uint8_t state; /* RELAY_FREE, RELAY_WAITS, RELAY_JOINED */
	int member[2];
	uint8_t token[2][NET_TOKEN_BYTES];
	int connection[2]; /* RELAY_NONE: has not shown its token */
	int64_t deadline_us;
};

struct relay_core {
	struct relay_config cfg;
	int64_t start_us;
	bool has_run;                       /* that of the first member that proved one: the root key is of one run */
	struct run_trust trust;             /* of that run: run id, and the newest serving key that a member has shown */
	uint64_t newest_term, newest_round; /* of the pair tickets seen */
	struct banned banned;
	uint64_t tokens; /* bytes that may be forwarded, as of tokens_us */
	int64_t tokens_us;
	struct relay_spent spent; /* by all together */
	int strangers;
	struct relay_connection connections[RELAY_CONNECTIONS];
	struct relay_member members[NET_RELAY_MEMBERS];
	struct relay_link links[NET_RELAY_LINKS];
	struct relay_action actions[RELAY_ACTIONS]; /* ring */
	uint32_t first_action, n_actions;
	struct relay_totals totals;
};

/* Adds an action. */
void relay_act(struct relay_core *r, const struct relay_action *a);
void relay_send(struct relay_core *r, int connection, const struct relay_frame *m);
void relay_close(struct relay_core *r, int connection);
/* Makes a stranger something else. */
void relay_settle(struct relay_core *r, int connection, enum relay_state state);

/* ---- members.c ---- */

/* Takes HELLO: makes the connection the station of its member, or closes it. */
void relay_take_hello(struct relay_core *r, int64_t now_us, int connection, const struct relay_hello *m);
/* Returns the member with this number that has a station; NULL: none. */
struct relay_member *relay_find_member(struct relay_core *r, uint32_t number);
/* Returns how many bytes the member, or all together, may still send and receive today. */
uint64_t relay_budget_left(struct relay_core *r, struct relay_member *m, int64_t now_us);
uint64_t relay_budget_of_all_left(struct relay_core *r, int64_t now_us);
/* Returns the milliseconds until its next day. */
uint32_t relay_next_day_ms(const struct relay_core *r, int64_t now_us);

/* ---- reflections.c ---- */

/* Returns from where the member is seen at the main port; NULL: no reflection is open. */
const struct address *relay_mapping(const struct relay_core *r, const struct relay_member *m, enum relay_family f);
/* Returns true if the second port sees it from somewhere else; false also if that is not known. */
bool relay_is_dependent(const struct relay_core *r, const struct relay_member *m, enum relay_family f);
/* Takes a reflection: answers it, and keeps it open if it shows the token of a station. */
void relay_take_reflection(struct relay_core *r, int64_t now_us, int connection, const uint8_t token[NET_TOKEN_BYTES]);
/* Takes note that a kept reflection is gone; `was`: its connection. */
void relay_forget_reflection(struct relay_core *r, int connection, const struct relay_connection *was);
void relay_end_reflections_of(struct relay_core *r, const struct relay_member *m);
/* Signs what is due again for the member, which has a station. */
void relay_renew_proofs(struct relay_core *r, int64_t now_us, struct relay_member *m);

/* ---- calls.c ---- */

/* Whether a call is made. */
struct relay_verdict {
	enum relay_refusal why; /* 0: it is */
	uint8_t whose;          /* set of enum relay_ends */
	uint32_t wait_ms;       /* until it may be; 0: not known */
};

void relay_take_call(struct relay_core *r, int64_t now_us, int connection, const struct relay_call *m);
/* Takes the token of a data connection: it waits, or is joined to the other end, or is closed. */
void relay_take_token(struct relay_core *r, int64_t now_us, int connection, const uint8_t token[NET_TOKEN_BYTES]);
/* Closes both ends of a link. */
void relay_end_link(struct relay_core *r, struct relay_link *l);
/* Closes the links of a member. */
void relay_end_links_of(struct relay_core *r, int member);

/* ---- openings.c: both are indices into members, whose tickets are good ---- */

struct relay_verdict relay_judge_opening(struct relay_core *r, int64_t now_us, int caller, int peer,
										 const struct relay_call *m);
/* Sends OPEN to both ends, unless the peer's call did so just now. */
void relay_make_opening(struct relay_core *r, int64_t now_us, int caller, int peer, const struct relay_call *m);
/* Returns true if a call of the peer was answered by OPEN within the last second. */
bool relay_was_opened(struct relay_core *r, int64_t now_us, int caller, int peer);

#endif
