/* scores_rig.h: a coordinator core on a bench (core_rig.h) whose run audits training, and members
 * that report, measure and appeal as a test wants. */
#ifndef RV_TESTS_COORDINATOR_SCORES_RIG_H
#define RV_TESTS_COORDINATOR_SCORES_RIG_H

#include "tests/coordinator/core_rig.h"

enum { SCORES_MEMBERS = 7, SCORES_WINDOW = 6, SCORES_LEASE = 8, SCORES_TOKENS = 8, SCORES_INNER_BYTES = 8 << 20 };

/* Zeros are a run without audit-repeat and rows, whose members all have links. */
struct scores {
	struct rig r;
	/* Measurements and appeals of members, which their reports repeat. */
	struct score_result said[SCORES_MEMBERS][NET_MAX_SCORES];
	uint8_t n_said[SCORES_MEMBERS];
	bool appeals[SCORES_MEMBERS];
	uint32_t row_size; /* 0: one row */
	/* In a run with audit-repeat: what their reports say of inner states. */
	uint32_t repeat_ppm;
	uint32_t probation;
	uint32_t lease; /* sequences that a member reads in a round; 0: SCORES_LEASE */
	bool commits;
	bool breaks_off[SCORES_MEMBERS]; /* the state with which it begins is another one */
	uint64_t up_bytes_per_s;
	/* Those that have no link to `apart_from`: a set. */
	uint64_t apart;
	uint32_t apart_from;
};

/* Returns the root of a member's inner state after a round. */
struct rv_hash scores_inner_root(uint32_t who, uint64_t round);
/* Opens a run that audits `ppm` of its training, all members joined. A score costs 4/3 of what a
 * member trains in a round: with 200,000 ppm about one is drawn a round. */
void scores_open_of(struct scores *s, uint32_t ppm, uint8_t secret);
/* scores_open_of with one secret for most tests. */
void scores_open(struct scores *s, uint32_t ppm);
/* Returns the document of a member, until the next call. */
const struct document *scores_doc(struct scores *s, uint32_t who);
/* Sends a report of a member, with all that it has to say. */
void scores_say(struct scores *s, uint32_t who, enum worker_phase phase);
/* Plays a round without the members of `but`. */
void scores_play(struct scores *s, uint64_t but);
/* scores_play with all; now and then all vouch for a state: a run goes on for so long only with
 * snapshots. */
void scores_play_long(struct scores *s);
/* Returns the auditors that have this order now. */
uint64_t scores_auditors(struct scores *s, const struct score_order *o);
/* Finds an order of the last round, if there is one. */
bool scores_last_order(struct scores *s, struct score_order *out);
/* Plays until an audit is drawn, and returns its order. */
struct score_order scores_next_order(struct scores *s);
/* Plays until the next audit of the member. */
struct score_order scores_next_order_of(struct scores *s, uint32_t member);
/* Adds a verdict to the next report of the member. */
void scores_note(struct scores *s, uint32_t who, const struct score_order *o, enum score_verdict verdict, float gain);
/* scores_note, and sends that report. */
void scores_conclude(struct scores *s, uint32_t who, const struct score_order *o, enum score_verdict verdict,
					 float gain);
/* Lets all that have the order and are not in `but` conclude the same. Returns them. */
uint64_t scores_conclude_all(struct scores *s, const struct score_order *o, uint64_t but, enum score_verdict verdict,
							 float gain);
/* Lets every auditor that is asked report the same gain, until no auditor is left to ask. */
void scores_measure_all(struct scores *s, const struct score_order *o, float gain);
/* Strikes the author of the next order: one doubts it, two others agree. Returns the three. */
uint64_t scores_strike(struct scores *s, struct score_order *o);
/* Lets all that are asked report a verdict of no contribution, until nobody more is asked. Returns
 * them and `but`. */
uint64_t scores_nobody_gets_it(struct scores *s, const struct score_order *o, uint64_t but, enum score_verdict verdict);
/* Lets the author of the order keep its auditors away until the audit ends, while rounds go on with
 * all. */
void scores_evade(struct scores *s, const struct score_order *o);

#endif
