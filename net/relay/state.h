/* state.h: the state behind relay_core.h, shared by the files of this folder and included by no
 * other. */
#ifndef RV_NET_RELAY_STATE_H
#define RV_NET_RELAY_STATE_H

#include "net/relay/relay_core.h"

enum { RELAY_ACTIONS = 2 * RELAY_CONNECTIONS, RELAY_NONE = -1 };

enum relay_state {
	RELAY_FREE,
	RELAY_STRANGER, /* has shown nothing yet */
	RELAY_STATION,
	RELAY_WAITS, /* has shown its token; the other end has not */
	RELAY_JOINED
};

struct relay_connection {
	uint8_t state; /* enum relay_state */
	bool has_key;
	uint8_t key[NET_KEY_BYTES]; /* proven by TLS */
	struct address from;
	int64_t since_us, deadline_us;
	int member; /* STATION, WAITS, JOINED: index into members */
	int link;   /* WAITS, JOINED: index into links */
};

struct relay_member {
	bool known;
	uint32_t number;
	uint8_t key[NET_KEY_BYTES];
	int station;             /* connection, or RELAY_NONE */
	int64_t calls_until_us;  /* up to which its calls, and the frames of its stations, */
	int64_t frames_until_us; /* are paid for (relay_paced) */
	int64_t day;             /* of bytes_today, counted from the start of the relay */
	uint64_t bytes_today;    /* sent by it */
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
	bool has_run; /* run_id is that of the first member that proved one: the run key signs for one run */
	uint8_t run_id[NET_RUN_ID_BYTES];
	uint64_t newest_term, newest_round; /* of the pair tickets seen */
	uint64_t banned;                    /* set of member numbers */
	uint64_t tokens;                    /* bytes that may be forwarded, as of tokens_us */
	int64_t tokens_us;
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
/* Forgets a connection, and its link with it; relay_close() also closes it. */
void relay_forget(struct relay_core *r, int connection);
void relay_close(struct relay_core *r, int connection);
/* Makes a stranger something else. */
void relay_settle(struct relay_core *r, int connection, enum relay_state state);
/* Returns true, and counts one more, if it does not exceed `burst` at once and one in `each_us`
 * (GCRA, ITU-T I.371). */
bool relay_paced(int64_t *until_us, int64_t now_us, int64_t each_us, int burst);

/* ---- members.c ---- */

/* Takes HELLO: makes the connection the station of its member, or closes it. */
void relay_take_hello(struct relay_core *r, int64_t now_us, int connection, const struct relay_hello *m);
/* Returns the member with this number that has a station; NULL: none. */
struct relay_member *relay_find_member(struct relay_core *r, uint32_t number);
/* Returns how many bytes the member may still send today. */
uint64_t relay_budget_left(struct relay_core *r, struct relay_member *m, int64_t now_us);
/* Returns the milliseconds until its next day. */
uint32_t relay_next_day_ms(const struct relay_core *r, int64_t now_us);

/* ---- calls.c ---- */

void relay_take_call(struct relay_core *r, int64_t now_us, int connection, const struct relay_call *m);
/* Takes the token of a data connection: it waits, or is joined to the other end, or is closed. */
void relay_take_token(struct relay_core *r, int64_t now_us, int connection, const uint8_t token[NET_TOKEN_BYTES]);
/* Closes both ends of a link. */
void relay_end_link(struct relay_core *r, struct relay_link *l);
/* Closes the links of a member. */
void relay_end_links_of(struct relay_core *r, int member);

#endif
