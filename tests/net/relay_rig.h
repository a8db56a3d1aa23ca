/* relay_rig.h: a relay core under virtual time, members of a run with real keys, and what it
 * did. */
#ifndef RV_TESTS_RELAY_RIG_H
#define RV_TESTS_RELAY_RIG_H

#include "net/identity.h"
#include "net/relay/relay_core.h"

enum { RIG_MEMBERS = 4, RIG_SECOND_PORT = 7436 };

struct relay_rig {
	struct relay_core *core;
	int64_t now_us;
	struct identity run, members[RIG_MEMBERS];
	uint8_t run_id[NET_RUN_ID_BYTES];
	int station[RIG_MEMBERS];
	uint8_t token[RIG_MEMBERS][NET_TOKEN_BYTES];
	uint8_t next_random;
	uint64_t unix_s;
	uint32_t rtt_us[RIG_MEMBERS]; /* of the members' stations */
	struct identity relay;
	int n_closed, closed[RELAY_CONNECTIONS]; /* since the last rig_clear() */
	int n_sent, n_splices;
	struct relay_action sent[8]; /* the first ones since then */
};

void rig_init(struct relay_rig *r, uint64_t bytes_per_day, uint64_t bytes_per_s);
void rig_init_for_all(struct relay_rig *r, uint64_t bytes_per_day_of_all);
void rig_release(struct relay_rig *r);
void rig_clear(struct relay_rig *r);
/* Does the actions. */
void rig_drain(struct relay_rig *r);
bool rig_was_closed(const struct relay_rig *r, int connection);
void rig_pass_ms(struct relay_rig *r, int64_t ms);

int rig_accept(struct relay_rig *r, const char *host);
/* Opens a reflection from host and port to a port of the relay with this token. */
int rig_reflect(struct relay_rig *r, const char *host, uint16_t from, enum relay_port to,
				const uint8_t token[NET_TOKEN_BYTES]);
/* Connects as the member with a ticket of `run` for `number`, and returns the connection. */
int rig_hello(struct relay_rig *r, int member, const struct identity *run, uint32_t number);
/* Gives members 0 .. n - 1 a station each; token[]: their reflection tokens. */
void rig_stations(struct relay_rig *r, int n);
/* The member calls another with a ticket of this round of term 1. Returns the type of the first
 * frame that was sent, and 0 for none. */
int rig_call(struct relay_rig *r, int from, int to, uint64_t round);
int rig_call_way(struct relay_rig *r, int from, int to, enum relay_way way, uint64_t round);
void rig_call_with(struct relay_rig *r, int from, uint32_t to, uint64_t term, uint64_t round,
				   const uint8_t ticket[NET_SIG_BYTES]);
/* Opens a data connection that shows this token. */
int rig_data(struct relay_rig *r, const uint8_t token[NET_TOKEN_BYTES]);
/* Calls and joins; the two connections. */
void rig_join(struct relay_rig *r, int from, int to, uint64_t round, int ends[2]);

#endif
